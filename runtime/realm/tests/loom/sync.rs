//! The module that the files import as `crate::sync`: loom's types in place of the real ones.

use std::time::Duration;

pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use loom::sync::{Arc, MutexGuard};

/// The checker takes `SeqCst` of single accesses for less than it is; of fences it does not.
pub(crate) fn store_before_loads(atomic: &AtomicU32, value: u32) {
    atomic.store(value, Ordering::Release);
    fence(Ordering::SeqCst);
}

pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

pub(crate) struct Parker {
    token: loom::sync::Mutex<bool>,
    given: loom::sync::Condvar,
}

impl Default for Parker {
    fn default() -> Self {
        Self { token: loom::sync::Mutex::new(false), given: loom::sync::Condvar::new() }
    }
}

impl Parker {
    pub(crate) fn park(&self) {
        let mut token = self.token.lock().unwrap();
        while !*token {
            token = self.given.wait(token).unwrap();
        }
        *token = false;
    }

    /// Time passes at once.
    pub(crate) fn park_for(&self, _: Duration) -> bool {
        loom::thread::yield_now();
        std::mem::take(&mut *self.token.lock().unwrap())
    }

    pub(crate) fn unpark(&self) {
        *self.token.lock().unwrap() = true;
        self.given.notify_one();
    }
}
