//! The atomics, locks and parking that the lock-free protocols are written against.
//!
//! [`crate::event`]'s words, the workers' sleep and the reservations' lock word name these through `crate::sync` alone.
//! `tests/loom` compiles the very same files with a `sync` module made of loom's types, so the model checker sees
//! the code that ships, and the crate itself needs no conditional compilation.

pub(crate) use crate::locks::{Mutex, MutexGuard};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use std::time::Duration;

use crate::simulation;

/// Stores what others are to see before this thread loads, with `SeqCst`, what they store: as a store and a fence, at half the cost on some processors.
#[inline]
pub(crate) fn store_before_loads(atomic: &AtomicU32, value: u32) {
    atomic.swap(value, Ordering::SeqCst);
}

/// Where one thread waits for a token. A token given before the wait is not lost; several count as one. Threads of a
/// [simulation](crate::simulation) wait for those of the same one.
#[derive(Debug, Default)]
pub struct Parker {
    /// Not of [`crate::locks`]: a condition variable goes with no other, and what counts locks is not to count sleepers.
    token: parking_lot::Mutex<bool>,
    given: parking_lot::Condvar,
}

impl Parker {
    /// Waits for a token and takes it.
    pub fn park(&self) {
        if simulation::is_inside() {
            simulation::wait_until("somebody to wake it", &|| *self.token.lock());
        }
        let mut token = self.token.lock();
        while !*token {
            self.given.wait(&mut token);
        }
        *token = false;
    }

    /// Waits for a token, takes it and gives true; or gives false after so long. The latter may come too soon.
    pub fn park_for(&self, time: Duration) -> bool {
        if simulation::is_inside() {
            simulation::nap();
            return std::mem::take(&mut *self.token.lock());
        }
        let mut token = self.token.lock();
        if !*token {
            self.given.wait_for(&mut token, time);
        }
        std::mem::take(&mut *token)
    }

    /// Gives the token.
    pub fn unpark(&self) {
        *self.token.lock() = true;
        self.given.notify_one();
    }
}
