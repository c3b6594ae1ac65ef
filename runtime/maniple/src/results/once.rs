//! A value that one thread puts in place, once, and that others look at when it is there.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const BEING_SET: u8 = 1;
const SET: u8 = 2;

/// A [`OnceLock`](std::sync::OnceLock) that is never waited for: setting it is an exchange and a store, looking at it a
/// load.
pub(crate) struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written by the one thread that took the state from `EMPTY` to `BEING_SET`, and read only after
// `SET`, which that thread stores when it is done. Threads that read it share it, and the one that drops it may be
// another than the one that wrote it.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(None) }
    }

    /// Puts the value in place; false if there is one.
    #[inline]
    pub(crate) fn set(&self, value: T) -> bool {
        if self.state.compare_exchange(EMPTY, BEING_SET, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // SAFETY: this thread alone took the state from `EMPTY`, and no thread reads before `SET`.
        unsafe { *self.value.get() = Some(value) };
        self.state.store(SET, Ordering::Release);
        true
    }

    /// The value, if it is there.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: it was set before, and is not touched again as long as `self` is shared.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// The value, taken out: as new.
    pub(crate) fn take(&mut self) -> Option<T> {
        *self.state.get_mut() = EMPTY;
        self.value.get_mut().take()
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}
