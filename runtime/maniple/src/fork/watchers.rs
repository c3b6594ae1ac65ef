//! Watchers of a forked task, which wait for its end.

use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;

use crate::results::Results;

/// A list that stands under a lock. A watcher that joins it then sets a bit in the task's [`Word`](super::word::Word);
/// the thread that ends the task looks at the list if it finds the bit.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    wakers: SmallVec<[Waker; 1]>,
    /// The same end, for code that knows launches by their [`Results`]. Results of a task that has failed stay.
    pub(super) results: Option<Arc<Results>>,
}

impl Watchers {
    /// A waiter.
    pub(super) fn add(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }

    /// Takes the wakers of all watchers.
    pub(super) fn take_wakers(&mut self) -> SmallVec<[Waker; 1]> {
        std::mem::take(&mut self.wakers)
    }
}
