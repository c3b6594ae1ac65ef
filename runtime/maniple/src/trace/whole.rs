//! Launches of the program that are several here, replayed together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_cluster::ParcelFuture;

use crate::launch::{LaunchPart, TaskLauncher, WholeNumber};
use crate::task::arguments::Arguments;

/// The part as which a stage of a template is known.
#[derive(Debug, Default)]
pub(super) struct Mark(AtomicU64);

/// A launch of the program, lent by the code that launches it.
pub(crate) struct Whole<'a> {
    pub(crate) number: WholeNumber,
    /// How many internal launches come before the task.
    pub(crate) internal: usize,
    /// Turns the arguments of an earlier launch into those of the next internal one, and gives the parcels that it
    /// waits for.
    pub(crate) complete: &'a mut dyn FnMut(&mut Arguments) -> Option<Arc<ParcelFuture>>,
    pub(crate) launcher: &'a mut TaskLauncher,
}

impl Mark {
    /// A stage was found to be the same launch as a part.
    pub(super) fn set(&self, part: LaunchPart) {
        let word = part.word();
        if self.0.load(Ordering::Relaxed) != word {
            self.0.store(word, Ordering::Relaxed);
        }
    }

    pub(super) fn is(&self, part: LaunchPart) -> bool {
        self.0.load(Ordering::Relaxed) == part.word()
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
}
