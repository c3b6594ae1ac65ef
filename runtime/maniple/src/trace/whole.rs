//! Launches of the program that are several here, and are replayed together.
//!
//! On several nodes a launch of the program comes to a few launches here: internal ones, by which nodes exchange data, and the task itself. Which these are is known
//! by a number, so that a replay which has compared all of them once need not compare them again, nor be asked for one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_cluster::ParcelFuture;

use crate::launch::TaskLauncher;
use crate::task::arguments::Arguments;

/// The number of a launch of the program and all that it comes to here: launches of the same number are the same, but for their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeNumber(u64);

/// Which part of it a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    whole: WholeNumber,
    number: u8,
    /// How many others there are. The task is the last.
    others: u8,
}

/// The part as which a stage of a template is known.
#[derive(Debug, Default)]
pub(super) struct Mark(AtomicU64);

/// A launch of the program, lent by who launches it.
pub(crate) struct Whole<'a> {
    pub(crate) number: WholeNumber,
    /// How many internal launches come before the task.
    pub(crate) internal: usize,
    /// Turns the arguments of an earlier launch into those of the next internal one, and gives the parcels that it waits for.
    pub(crate) complete: &'a mut dyn FnMut(&mut Arguments) -> Option<Arc<ParcelFuture>>,
    pub(crate) launcher: &'a mut TaskLauncher,
}

impl WholeNumber {
    /// A number that nothing else has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// One of its parts, if so many internal launches come before the task. What has too many is no whole, but launches like any others.
    pub(crate) fn part(self, number: usize, internal: usize) -> Option<Part> {
        let others = u8::try_from(internal).ok()?;
        Some(Part { whole: self, number: u8::try_from(number).ok()?, others })
    }

    /// By what it is known to who looks for repeats.
    pub(crate) fn token(self) -> u64 {
        // No hash of a launch; should it be one of another by chance, that is found out.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl Mark {
    /// A stage was found to be the same launch as a part.
    pub(super) fn set(&self, part: Part) {
        let word = part.word();
        if self.0.load(Ordering::Relaxed) != word {
            self.0.store(word, Ordering::Relaxed);
        }
    }

    pub(super) fn is(&self, part: Part) -> bool {
        self.0.load(Ordering::Relaxed) == part.word()
    }
}

impl Part {
    /// The whole, if this is the first part.
    pub(crate) fn begins(self) -> Option<WholeNumber> {
        (self.number == 0).then_some(self.whole)
    }

    /// Whether the whole ends with it.
    pub(crate) fn is_last(self) -> bool {
        self.number == self.others
    }

    /// Never 0, as numbers begin with 1.
    fn word(self) -> u64 {
        self.whole.0 << u8::BITS | u64::from(self.number)
    }
}

impl Whole<'_> {
    /// How many launches it is.
    pub(super) fn parts(&self) -> usize {
        self.internal + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_part_of_one_launch() {
        let (one, other) = (WholeNumber::new(), WholeNumber::new());
        let part = |whole: WholeNumber, number| whole.part(number, 1).expect("there are few parts");
        let mark = Mark::default();
        assert!(!mark.is(part(one, 0)));
        mark.set(part(one, 1));
        assert!(mark.is(part(one, 1)));
        assert!(!mark.is(part(one, 0)) && !mark.is(part(other, 1)));
        mark.set(part(other, 1));
        assert!(mark.is(part(other, 1)) && !mark.is(part(one, 1)));
        assert!(one.part(255, 255).is_some() && one.part(0, 256).is_none());
    }

    #[test]
    fn a_whole_begins_with_its_first_part_and_ends_with_its_task() {
        let whole = WholeNumber::new();
        let part = |number, internal| whole.part(number, internal).expect("there are few parts");
        assert_eq!((part(0, 2).begins(), part(0, 2).is_last()), (Some(whole), false));
        assert_eq!((part(2, 2).begins(), part(2, 2).is_last()), (None, true));
        assert_eq!((part(0, 0).begins(), part(0, 0).is_last()), (Some(whole), true));
    }
}
