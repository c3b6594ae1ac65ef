//! Tests of counts of the whole process: they take turns, and no others run beside them.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

#[cfg(target_os = "linux")] // where a process can look at its threads
mod failed_jobs;
#[cfg(debug_assertions)]
mod locks;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The turn of a test, until it is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
