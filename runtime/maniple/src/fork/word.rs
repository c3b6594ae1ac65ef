//! One word that tells which references to a forked task are left, whether it has ended, and whether that is waited
//! for.

use crate::support::sync::{AtomicU64, Ordering};

/// A watcher has put itself on the list of watchers.
const WATCHED: u64 = 1;
const ENDED: u64 = 2;
const FAILED: u64 = 4;
/// Below the wakers, of which each has a reference too: so what follows is as it would be without them, as soon as
/// there are none.
const REFERENCE: u64 = 8;
const WAKER: u64 = 1 << 35;
/// So many references, or wakers, were forgotten: going on would free what is in use.
const TOO_MANY_REFERENCES: u64 = WAKER / 2;
const TOO_MANY_WAKERS: u64 = 1 << 63;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkOutcome {
    /// Its value is there.
    Good,
    /// Its results tell why.
    Failed,
}

impl ForkOutcome {
    fn bits(self) -> u64 {
        match self {
            Self::Good => ENDED,
            Self::Failed => ENDED | FAILED,
        }
    }
}

/// The work that the end of a task leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Another reference is left, whose owner frees the task. It is not the caller's any more.
    Nothing,
    /// No other reference is left: the caller frees it.
    Free,
    /// There are watchers to be told. The caller still has its reference.
    Tell,
}

/// The word.
#[derive(Debug)]
pub(super) struct Word(AtomicU64);

impl Word {
    /// Of a task that one knows.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(REFERENCE))
    }

    /// One more reference, while only its one owner knows the task.
    #[inline]
    pub(super) fn add_first(&mut self) {
        self.0 = AtomicU64::new(2 * REFERENCE);
    }

    /// One more reference, made by the owner of one.
    #[inline]
    pub(super) fn add(&self) {
        // As in `Arc`: the thread that gives the reference away orders what comes before.
        check_count(self.0.fetch_add(REFERENCE, Ordering::Relaxed));
    }

    /// One more waker, with a reference of its own.
    #[inline]
    pub(super) fn add_waker(&self) {
        check_count(self.0.fetch_add(REFERENCE + WAKER, Ordering::Relaxed));
    }

    /// One waker less; its reference stays, and is the caller's. Whether it was the last.
    #[inline]
    pub(super) fn remove_waker(&self) -> bool {
        // Release: a thread that finds that there are none sees what the waker did.
        self.0.fetch_sub(WAKER, Ordering::AcqRel) / WAKER == 1
    }

    /// Whether there are no wakers. Then there will be none, unless the caller makes one: it takes one to make another,
    /// or to be running the task.
    #[inline]
    pub(super) fn has_no_waker(&self) -> bool {
        self.0.load(Ordering::Acquire) < WAKER
    }

    /// One reference less; but true if it is the only one, which the caller still has: it ends or frees the task.
    #[inline]
    #[must_use]
    pub(super) fn remove(&self) -> bool {
        // Acquire: what others did before they let go comes before the freeing. No other reference can be made if this
        // is the only one.
        if self.0.load(Ordering::Acquire) / REFERENCE == 1 {
            return true;
        }
        let was_last = self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1;
        if was_last {
            self.0.fetch_add(REFERENCE, Ordering::Relaxed);
        }
        was_last
    }

    /// Whether the caller's reference is the only one.
    pub(super) fn is_only(&self) -> bool {
        self.0.load(Ordering::Acquire) / REFERENCE == 1
    }

    /// How the task ended, if it has. A thread that learns this sees what the task left.
    #[inline]
    pub(super) fn outcome(&self) -> Option<ForkOutcome> {
        let word = self.0.load(Ordering::Acquire);
        match (word & ENDED, word & FAILED) {
            (0, _) => None,
            (_, 0) => Some(ForkOutcome::Good),
            _ => Some(ForkOutcome::Failed),
        }
    }

    /// The caller has joined the list of watchers, whose lock it holds. It is notified of the end, unless that has
    /// come.
    pub(super) fn watch(&self) {
        self.0.fetch_or(WATCHED, Ordering::AcqRel);
    }

    /// The task has ended; the caller ran it, and gives up its reference with that unless there is more to do.
    #[inline]
    #[must_use]
    pub(super) fn end(&self, outcome: ForkOutcome) -> Last {
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

#[inline]
fn check_count(before: u64) {
    if before % WAKER > TOO_MANY_REFERENCES || before > TOO_MANY_WAKERS {
        std::process::abort();
    }
}
