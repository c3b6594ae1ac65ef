//! The locks of the runtime. Builds with debug assertions count how often they are taken, so that tests can say what
//! takes none; in others they are `parking_lot`'s own and cost what those cost.
//!
//! Counted is every mutex and every read-write lock of this crate and of those above it that run programs, by whichever
//! thread it is taken. Not counted are:
//!
//! * what threads sleep by: the token of a [`Parker`](crate::threads::Parker), and the condition variables of a
//!   [loopback](crate::net::loopback) network and of [threads for files](crate::io);
//! * the locks of other crates and of the system: the allocator's, those of sockets, `std`'s at the first use of a
//!   `OnceLock`;
//! * what is no lock, because no thread waits while another is held up: event words, the counters of graphs, the words
//!   of [reservations](crate::reservation), deques. A thread that finds one changed tries again.

#[cfg(debug_assertions)]
pub use counted::{Mutex, MutexGuard, RwLock, show, taken, taken_here};
#[cfg(not(debug_assertions))]
pub use parking_lot::{Mutex, MutexGuard, RwLock};

#[cfg(debug_assertions)]
mod counted {
    use std::backtrace::Backtrace;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use parking_lot::lock_api;

    /// `parking_lot`'s mutex, counted.
    pub type Mutex<T> = lock_api::Mutex<Counted<parking_lot::RawMutex>, T>;
    /// The guard of a [`Mutex`], which holds it.
    pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Counted<parking_lot::RawMutex>, T>;
    /// `parking_lot`'s read-write lock, counted.
    pub type RwLock<T> = lock_api::RwLock<Counted<parking_lot::RawRwLock>, T>;

    static BY_ALL: AtomicU64 = AtomicU64::new(0);
    static ARE_SHOWN: AtomicBool = AtomicBool::new(false);

    thread_local! {
        static HERE: Cell<u64> = const { Cell::new(0) };
    }

    /// How many locks all threads have taken so far.
    #[must_use]
    pub fn taken() -> u64 {
        BY_ALL.load(Ordering::SeqCst)
    }

    /// How many locks the calling thread has taken so far.
    #[must_use]
    pub fn taken_here() -> u64 {
        HERE.get()
    }

    /// From now on, each lock that is taken is shown on standard error, with the thread that takes it; or not any more.
    pub fn show(are_shown: bool) {
        ARE_SHOWN.store(are_shown, Ordering::SeqCst);
    }

    /// A lock that counts how often it is taken.
    pub struct Counted<R>(R);

    fn count() {
        BY_ALL.fetch_add(1, Ordering::Relaxed);
        HERE.set(HERE.get() + 1);
        if ARE_SHOWN.load(Ordering::Relaxed) {
            eprintln!("a lock is taken:\n{}", Backtrace::force_capture());
        }
    }

    fn count_if(is_taken: bool) -> bool {
        if is_taken {
            count();
        }
        is_taken
    }

    // SAFETY: everything is left to the lock inside.
    unsafe impl<R: lock_api::RawMutex> lock_api::RawMutex for Counted<R> {
        // Not shared: each lock begins as a copy of its own, which is what the trait has it for.
        #[allow(clippy::declare_interior_mutable_const, reason = "as in the trait")]
        const INIT: Self = Self(R::INIT);

        type GuardMarker = R::GuardMarker;

        fn lock(&self) {
            count();
            self.0.lock();
        }

        fn try_lock(&self) -> bool {
            count_if(self.0.try_lock())
        }

        unsafe fn unlock(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock() }
        }

        fn is_locked(&self) -> bool {
            self.0.is_locked()
        }
    }

    // SAFETY: everything is left to the lock inside.
    unsafe impl<R: lock_api::RawRwLock> lock_api::RawRwLock for Counted<R> {
        #[allow(clippy::declare_interior_mutable_const, reason = "as in the trait")]
        const INIT: Self = Self(R::INIT);

        type GuardMarker = R::GuardMarker;

        fn lock_shared(&self) {
            count();
            self.0.lock_shared();
        }

        fn try_lock_shared(&self) -> bool {
            count_if(self.0.try_lock_shared())
        }

        unsafe fn unlock_shared(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_shared() }
        }

        fn lock_exclusive(&self) {
            count();
            self.0.lock_exclusive();
        }

        fn try_lock_exclusive(&self) -> bool {
            count_if(self.0.try_lock_exclusive())
        }

        unsafe fn unlock_exclusive(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_exclusive() }
        }

        fn is_locked(&self) -> bool {
            self.0.is_locked()
        }
    }

    // SAFETY: everything is left to the lock inside.
    unsafe impl<R: lock_api::RawRwLockRecursive> lock_api::RawRwLockRecursive for Counted<R> {
        fn lock_shared_recursive(&self) {
            count();
            self.0.lock_shared_recursive();
        }

        fn try_lock_shared_recursive(&self) -> bool {
            count_if(self.0.try_lock_shared_recursive())
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn each_lock_that_is_taken_counts_once() {
        let (mutex, table) = (Mutex::new(0), RwLock::new(0));
        let before = (taken(), taken_here());
        *mutex.lock() += 1;
        // Not in one statement, in which the one would wait for the other.
        let value = *table.read();
        *table.write() = value + 1;
        assert_eq!(taken_here() - before.1, 3);
        assert!(taken() - before.0 >= 3, "other tests take some too");
    }

    #[test]
    fn a_lock_that_is_not_to_be_had_does_not_count() {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        let before = taken_here();
        assert!(mutex.try_lock().is_none());
        assert_eq!(taken_here(), before);
        drop(held);
        assert!(mutex.try_lock().is_some());
        assert_eq!(taken_here(), before + 1);
    }
}
