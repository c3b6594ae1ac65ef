//! The atomics, locks and parking that the lock-free protocols are written against.
//!
//! The words of events, the workers' sleep and the reservations' lock word name these through `crate::sync` alone.
//! `tests/loom` compiles the very same files with a `sync` module made of loom's types, so the model checker sees
//! the code that ships, and the crate itself needs no conditional compilation.

pub(crate) use crate::locks::{Mutex, MutexGuard};
pub(crate) use crate::threads::Parker;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Stores what others are to see before this thread loads, with `SeqCst`, what they store: as a store and a fence, at
/// half the cost on some processors.
#[inline]
pub(crate) fn store_before_loads(atomic: &AtomicU32, value: u32) {
    atomic.swap(value, Ordering::SeqCst);
}
