//! Contexts that a worker keeps for the next forked task.
//!
//! Each holds on to the runtime, so that using it again counts no references: with all workers counting in one place,
//! that would cost more than the rest of a launch. Only workers of that runtime keep any, and they let go of them
//! before they sleep.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::ContextState;

/// So many contexts are kept.
const MOST: usize = 64;

/// The only reference to a context.
pub(super) struct Unused(Arc<ContextState>);

impl Unused {
    /// The context, if this is the only reference to it.
    #[inline]
    fn new(context: Arc<ContextState>) -> Option<Self> {
        let is_only = Arc::strong_count(&context) == 1 && Arc::weak_count(&context) == 0;
        // What others did with the context comes before their letting go of it.
        fence(Ordering::Acquire);
        is_only.then_some(Self(context))
    }

    /// To make it another task's. `Arc::get_mut` would lock the counts for a moment, to find what is known.
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut ContextState {
        debug_assert!(Arc::get_mut(&mut self.0).is_some());
        // SAFETY: there was no other reference when this was made, so there is none to make another from, strong or
        // weak.
        unsafe { &mut *Arc::as_ptr(&self.0).cast_mut() }
    }

    #[inline]
    pub(super) fn into_context(self) -> Arc<ContextState> {
        self.0
    }
}

thread_local! {
    static SPARE: RefCell<Vec<Unused>> = const { RefCell::new(Vec::new()) };
}

/// A context that no task uses any more.
#[inline]
pub(super) fn take() -> Option<Unused> {
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}

/// Keeps a context to which this is the only reference, and in which nothing has been made. The thread is a worker of
/// its runtime.
#[inline]
pub(crate) fn keep_spare(context: Arc<ContextState>) {
    debug_assert!(context.core.realm().current_worker().is_some());
    let Some(context) = Unused::new(context) else { return };
    // The thread may be ending, and have no place for it.
    let _ = SPARE.try_with(|spare| {
        let mut contexts = spare.borrow_mut();
        if contexts.len() < MOST {
            contexts.push(context);
        }
    });
}

/// Lets go of all contexts that this thread keeps.
pub(crate) fn forget_spare() {
    // What goes with a context may use the list.
    let contexts = SPARE.try_with(RefCell::take);
    drop(contexts);
}
