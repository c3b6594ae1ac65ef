//! The right to run a forked task: the protocol of an async body, as `maniple_realm::operation::task` draws it.
//!
//! ```text
//! NEW --run--> RUNNING --pending--> IDLE --wake--> QUEUED --run--> RUNNING
//!                 |  \--wake--> NOTIFIED --pending--> QUEUED
//!                 \--ended--> ENDED
//! ```
//!
//! A thread that wakes a task which is queued, or notified, changes nothing, and yet writes the word; the worker that
//! then runs the task reads what was written. So that run sees what the waking thread did before. With a look alone,
//! the run could miss that, and the wake the run.

use crate::support::sync::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;
const ENDED: u8 = 4;
/// Queued, and not known to anything that could wake it.
const NEW: u8 = 5;

/// The right to run a task: there is one, which belongs to the queue that the task is in, to the worker that runs it,
/// or, while it waits, to none.
#[derive(Debug)]
pub(super) struct Schedule(AtomicU8);

impl Schedule {
    /// Of a task that is about to be queued for the first time.
    pub(super) fn queued() -> Self {
        Self(AtomicU8::new(NEW))
    }

    /// The task was taken from its queue, and is the caller's.
    #[inline]
    pub(super) fn run(&self) {
        if self.0.load(Ordering::Relaxed) == NEW {
            // Most tasks are run once: that is to cost no exchange.
            self.0.store(RUNNING, Ordering::Relaxed);
        } else {
            self.0.swap(RUNNING, Ordering::Acquire);
        }
    }

    /// The task can't go on. False if it was woken meanwhile: it is still the caller's, which must queue it.
    #[inline]
    #[must_use]
    pub(super) fn suspend(&self) -> bool {
        // Release: the thread that runs it next sees what this one left.
        let idle = self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !idle {
            self.0.swap(QUEUED, Ordering::AcqRel);
        }
        idle
    }

    /// Whether the task was woken while it is being run.
    pub(super) fn is_notified(&self) -> bool {
        self.0.load(Ordering::Acquire) == NOTIFIED
    }

    /// The task is not run any more.
    #[inline]
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }

    /// Wakes the task: what it waited for may have happened. True if the caller must queue it.
    #[inline]
    #[must_use]
    pub(super) fn wake(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let next = match state {
                IDLE | QUEUED => QUEUED,
                RUNNING | NOTIFIED => NOTIFIED,
                _ => return false,
            };
            match self.0.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return state == IDLE,
                Err(changed) => state = changed,
            }
        }
    }
}
