//! The task that launched a fork.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::context::ContextState;

/// The context that a task was forked from. It has no count of references for that: a context is kept, by the task
/// whose it is, as long as it has anything in flight, and the fork is in flight until it is [counted
/// off](Self::count_off).
pub(super) struct Parent(NonNull<ContextState>);

// SAFETY: contexts are shared by threads.
unsafe impl Send for Parent {}
// SAFETY: as above.
unsafe impl Sync for Parent {}

impl Parent {
    /// The parent of a fork that has been counted in.
    #[inline]
    pub(super) fn of_counted(context: &Arc<ContextState>) -> Self {
        Self(NonNull::from(&**context))
    }

    /// The fork has ended, and tells its parent as the last thing that it does.
    #[inline]
    pub(super) fn count_off(self) {
        // Without a waiter, counting off is all: right after it the context may be gone.
        if self.in_flight.end_fork_unless_waited() {
            return;
        }
        // SAFETY: the context is in an `Arc`, as all are, and there as long as the fork is counted.
        let parent = unsafe {
            Arc::increment_strong_count(self.0.as_ptr());
            Arc::from_raw(self.0.as_ptr())
        };
        parent.fork_ended();
    }
}

impl Deref for Parent {
    type Target = ContextState;

    #[inline]
    fn deref(&self) -> &ContextState {
        // SAFETY: the context is kept as long as the fork is counted.
        unsafe { self.0.as_ref() }
    }
}
