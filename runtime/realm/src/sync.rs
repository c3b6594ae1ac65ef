//! The atomics, locks and parking that the lock-free protocols are written against.
//!
//! [`crate::event`]'s words, the workers' sleep and the reservations' lock word name these through `crate::sync` alone.
//! `tests/loom` compiles the very same files with a `sync` module made of loom's types, so the model checker sees
//! the code that ships, and the crate itself needs no conditional compilation.

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Where one thread waits for a token. A token given before the wait is not lost; several count as one.
#[derive(Default)]
pub(crate) struct Parker {
    token: Mutex<bool>,
    given: Condvar,
}

impl Parker {
    /// Waits for a token and takes it.
    pub(crate) fn park(&self) {
        let mut token = self.token.lock();
        while !*token {
            self.given.wait(&mut token);
        }
        *token = false;
    }

    /// Gives the token.
    pub(crate) fn unpark(&self) {
        *self.token.lock() = true;
        self.given.notify_one();
    }
}
