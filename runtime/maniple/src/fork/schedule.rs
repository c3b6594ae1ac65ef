//! Who may run a forked task: the protocol of an async body, as `maniple_realm::operation::task` draws it.
//!
//! ```text
//! QUEUED --run--> RUNNING --pending--> IDLE --wake--> QUEUED
//!                    |  \--wake--> NOTIFIED --pending--> QUEUED
//!                    \--ended--> ENDED
//! ```

use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;
const ENDED: u8 = 4;

/// The right to run a task: there is one, which belongs to the queue that the task is in, to who runs it, or to nobody.
#[derive(Debug)]
pub(super) struct Schedule(AtomicU8);

impl Schedule {
    /// Of a task that is about to be queued.
    pub(super) fn queued() -> Self {
        Self(AtomicU8::new(QUEUED))
    }

    /// The task was taken from its queue, and is the caller's.
    #[inline]
    pub(super) fn run(&self) {
        self.0.store(RUNNING, Ordering::Relaxed);
    }

    /// The task can't go on. False if somebody has woken it meanwhile: it is still the caller's, who must queue it.
    #[inline]
    #[must_use]
    pub(super) fn suspend(&self) -> bool {
        // Release: whoever runs it next sees what this one left.
        let idle = self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !idle {
            self.0.store(QUEUED, Ordering::Release);
        }
        idle
    }

    /// The task is not run any more.
    #[inline]
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }

    /// What the task waited for may have happened. True if the caller must queue it.
    #[inline]
    #[must_use]
    pub(super) fn wake(&self) -> bool {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let next = match state {
                IDLE => QUEUED,
                RUNNING => NOTIFIED,
                _ => return false,
            };
            match self.0.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return next == QUEUED,
                Err(changed) => state = changed,
            }
        }
    }
}
