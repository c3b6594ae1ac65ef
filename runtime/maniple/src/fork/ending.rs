//! The end of a forked task, and who waits for it.
//!
//! ```text
//! PENDING --somebody waits--> WATCHED --end--> GOOD or FAILED
//!     \-------------------------end-------------------/
//! ```
//!
//! Who waits puts a waker into a list under its lock and then moves the state from `PENDING`; who ends the task swaps the state and, if that was
//! `WATCHED`, takes the list under its lock. So if nobody waits yet, the end is one swap; and no waker is forgotten: if it came too late for
//! the swap, moving the state fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::future::Results;

const PENDING: u8 = 0;
const WATCHED: u8 = 1;
const GOOD: u8 = 2;
const FAILED: u8 = 3;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its value is there.
    Good,
    /// Its results tell why.
    Failed,
}

/// Whether a task has ended, and who is to be told.
#[derive(Debug, Default)]
pub(super) struct Ending {
    state: AtomicU8,
    watchers: Mutex<Watchers>,
}

/// Who looks at the end of a task.
#[derive(Debug, Default)]
struct Watchers {
    wakers: SmallVec<[Waker; 1]>,
    /// The same end, for those who know launches by their [`Results`]. Those of a task that has failed stay.
    results: Option<Arc<Results>>,
}

impl Ending {
    /// How the task ended, if it has. What it left is seen by who learns this.
    #[inline]
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.state.load(Ordering::Acquire) {
            GOOD => Some(Outcome::Good),
            FAILED => Some(Outcome::Failed),
            _ => None,
        }
    }

    /// How the task ended; if it has not, the waker will be woken.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Outcome> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        let mut watchers = self.watchers.lock();
        if !watchers.wakers.iter().any(|known| known.will_wake(waker)) {
            watchers.wakers.push(waker.clone());
        }
        self.is_watched();
        drop(watchers);
        // It may have ended before anybody could tell that it is watched.
        self.outcome().map_or(Poll::Pending, Poll::Ready)
    }

    /// The results that stand for this end, made by `make` if there are none yet. Of a task that has ended well they are the caller's alone.
    pub(super) fn results(&self, make: impl FnOnce() -> Arc<Results>) -> Arc<Results> {
        let mut watchers = self.watchers.lock();
        let results = Arc::clone(watchers.results.get_or_insert_with(make));
        self.is_watched();
        if self.outcome() == Some(Outcome::Good) {
            watchers.results = None;
        }
        results
    }

    /// Somebody has joined the watchers, whose lock he holds.
    fn is_watched(&self) {
        let _ = self.state.compare_exchange(PENDING, WATCHED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The task has ended: tells those who wait. Once. The results that stand for the end of one that ended well are the caller's to end.
    #[inline]
    pub(super) fn end(&self, outcome: Outcome) -> Option<Arc<Results>> {
        let state = match outcome {
            Outcome::Good => GOOD,
            Outcome::Failed => FAILED,
        };
        if self.state.swap(state, Ordering::AcqRel) == WATCHED { self.tell(outcome) } else { None }
    }

    fn tell(&self, outcome: Outcome) -> Option<Arc<Results>> {
        let mut watchers = self.watchers.lock();
        let wakers = std::mem::take(&mut watchers.wakers);
        let results = watchers.results.take_if(|_| outcome == Outcome::Good);
        drop(watchers);
        wakers.into_iter().for_each(Waker::wake);
        results
    }
}
