//! Breakdowns: a failure that would be reported to no thread.
//!
//! Most failures are reported: they poison an event, and its waiters learn why. But a panic in a callback, in a job or
//! in what a worker does between two bodies is reported to no thread, and what it should have brought about will never
//! happen. What waits for that would wait for ever. So all waits end: the realm has broken down, and says why. What is
//! queued is still run.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crate::locks::Mutex;

use crate::fault::{self, Fault, Panic};
use crate::sync::Parker;

/// A failure that would have been reported to no thread. It is the fault of every wait from then on.
#[derive(Clone, Debug)]
pub struct Breakdown {
    /// The action that panicked, as the subject of "panicked".
    pub during: String,
    /// The panic that ended it.
    pub panic: Panic,
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.during, self.panic)
    }
}

impl std::error::Error for Breakdown {}

/// Whether the realm has broken down, and the waiters that want to hear of it.
#[derive(Default)]
pub(crate) struct Breakdowns {
    first: OnceLock<Arc<Fault>>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    list: Vec<(u64, Whom)>,
    next: u64,
}

/// The waiter to wake.
pub(crate) enum Whom {
    /// A thread.
    Thread(Arc<Parker>),
    /// A future.
    Future(Waker),
}

/// A waiter is woken by a breakdown until this goes.
pub struct BreakdownWatch<'a> {
    breakdowns: &'a Breakdowns,
    number: u64,
}

impl Drop for BreakdownWatch<'_> {
    fn drop(&mut self) {
        let number = self.number;
        let mut waiting = self.breakdowns.waiting.lock();
        let at = waiting.list.iter().position(|(watched, _)| *watched == number);
        let removed = at.map(|at| waiting.list.swap_remove(at));
        drop(waiting);
        drop(removed);
    }
}

impl Breakdowns {
    /// Why the realm broke down, if it has. One load.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Arc<Fault>> {
        self.first.get()
    }

    /// Has a waiter woken by a breakdown; not if there has been one.
    pub(crate) fn watch(&self, whom: Whom) -> Result<BreakdownWatch<'_>, Arc<Fault>> {
        let mut waiting = self.waiting.lock();
        // Set under the lock: a waiter in the list then is woken, and one that comes later sees it.
        if let Some(fault) = self.first() {
            return Err(Arc::clone(fault));
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.list.push((number, whom));
        Ok(BreakdownWatch { breakdowns: self, number })
    }

    /// The realm breaks down, unless it has.
    pub(super) fn begin(&self, fault: Fault) {
        let mut waiting = self.waiting.lock();
        if self.first.set(Arc::new(fault)).is_err() {
            return;
        }
        let woken = std::mem::take(&mut waiting.list);
        drop(waiting);
        for (_, whom) in woken {
            match whom {
                Whom::Thread(parker) => parker.unpark(),
                // A panic of a waker has no one left to report to.
                Whom::Future(waker) => drop(fault::catch(|| waker.wake())),
            }
        }
    }
}
