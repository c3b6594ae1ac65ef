//! One word that tells who still knows a forked task, whether it has ended, and whether somebody waits for that.

use crate::sync::{AtomicUsize, Ordering};

/// Somebody has put himself on the list of watchers.
const WATCHED: usize = 1;
const ENDED: usize = 2;
const FAILED: usize = 4;
const REFERENCE: usize = 8;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its value is there.
    Good,
    /// Its results tell why.
    Failed,
}

impl Outcome {
    fn bits(self) -> usize {
        match self {
            Self::Good => ENDED,
            Self::Failed => ENDED | FAILED,
        }
    }
}

/// What the end of a task leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Somebody knows the task, and will free it. It is not the caller's any more.
    Nothing,
    /// Nobody else knows the task: the caller frees it.
    Free,
    /// There are watchers to be told. The caller still has his reference.
    Tell,
}

/// The word.
#[derive(Debug)]
pub(super) struct Word(AtomicUsize);

impl Word {
    /// Of a task that one knows.
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(REFERENCE))
    }

    /// One more reference, while nobody but its one owner knows the task.
    #[inline]
    pub(super) fn add_first(&mut self) {
        self.0 = AtomicUsize::new(2 * REFERENCE);
    }

    /// One more reference, by somebody who has one.
    #[inline]
    pub(super) fn add(&self) {
        // As in `Arc`: who gives the reference away orders what comes before.
        let before = self.0.fetch_add(REFERENCE, Ordering::Relaxed);
        if before > usize::MAX / 2 {
            // So many were forgotten; going on would free what is in use.
            std::process::abort();
        }
    }

    /// One reference less; but true if it is the only one, which the caller still has: he ends or frees the task.
    #[inline]
    #[must_use]
    pub(super) fn remove(&self) -> bool {
        // Acquire: what others did before they let go comes before the freeing. Nobody can come by a reference if this is the only one.
        if self.0.load(Ordering::Acquire) / REFERENCE == 1 {
            return true;
        }
        let was_last = self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1;
        if was_last {
            self.0.fetch_add(REFERENCE, Ordering::Relaxed);
        }
        was_last
    }

    /// Whether nobody but the caller, who has a reference, knows the task.
    pub(super) fn is_only(&self) -> bool {
        self.0.load(Ordering::Acquire) / REFERENCE == 1
    }

    /// How the task ended, if it has. What it left is seen by who learns this.
    #[inline]
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let word = self.0.load(Ordering::Acquire);
        match (word & ENDED, word & FAILED) {
            (0, _) => None,
            (_, 0) => Some(Outcome::Good),
            _ => Some(Outcome::Failed),
        }
    }

    /// The caller has put himself on the list of watchers, whose lock he holds. He is told of the end, unless that has come.
    pub(super) fn watch(&self) {
        self.0.fetch_or(WATCHED, Ordering::AcqRel);
    }

    /// The task has ended; the caller ran it, and gives up his reference with that unless there is more to do.
    #[inline]
    #[must_use]
    pub(super) fn end(&self, outcome: Outcome) -> Last {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & WATCHED == 0 {
            let ended = (word | outcome.bits()) - REFERENCE;
            match self.0.compare_exchange_weak(word, ended, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if ended / REFERENCE == 0 => return Last::Free,
                Ok(_) => return Last::Nothing,
                Err(changed) => word = changed,
            }
        }
        self.0.fetch_or(outcome.bits(), Ordering::AcqRel);
        Last::Tell
    }
}
