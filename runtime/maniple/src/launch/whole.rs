//! Launches of the program that are several here, and are replayed together.
//!
//! On several nodes a launch of the program comes to a few launches here: internal ones, by which nodes exchange data,
//! and the task itself. Which these are is known by a number, so that a replay which has compared all of them once need
//! not compare them again, nor be asked for one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a launch of the program and all that it comes to here: launches of the same number are the same, but
/// for their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeNumber(u64);

/// Which part of it a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchPart {
    whole: WholeNumber,
    number: u8,
    /// How many others there are. The task is the last.
    others: u8,
}

impl WholeNumber {
    /// A number that nothing else has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// One of its parts, if so many internal launches come before the task. What has too many is no whole, but launches
    /// like any others.
    pub(crate) fn part(self, number: usize, internal: usize) -> Option<LaunchPart> {
        let others = u8::try_from(internal).ok()?;
        Some(LaunchPart { whole: self, number: u8::try_from(number).ok()?, others })
    }

    /// By what the search for repeats knows it.
    pub(crate) fn token(self) -> u64 {
        // No hash of a launch; should it be one of another by chance, that is found out.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl LaunchPart {
    /// The whole, if this is the first part.
    pub(crate) fn begins(self) -> Option<WholeNumber> {
        (self.number == 0).then_some(self.whole)
    }

    /// Whether the whole ends with it.
    pub(crate) fn is_last(self) -> bool {
        self.number == self.others
    }

    /// A number that no other part has. Never 0, as numbers begin with 1.
    pub(crate) fn word(self) -> u64 {
        self.whole.0 << u8::BITS | u64::from(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_begins_with_its_first_part_and_ends_with_its_task() {
        let whole = WholeNumber::new();
        let part = |number, internal| whole.part(number, internal).expect("there are few parts");
        assert_eq!((part(0, 2).begins(), part(0, 2).is_last()), (Some(whole), false));
        assert_eq!((part(2, 2).begins(), part(2, 2).is_last()), (None, true));
        assert_eq!((part(0, 0).begins(), part(0, 0).is_last()), (Some(whole), true));
    }
}
