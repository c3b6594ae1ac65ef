//! How much of what a task has launched has not ended, and whether it may launch more: one word.

use std::sync::atomic::{AtomicU64, Ordering};

const FORK: u64 = 1 << 32;
const CLOSED: u64 = 1 << 63;

/// What a task has in flight: operations, which go through its stream, and forks.
///
/// All in one word, so that whoever counts something in learns whether he came too late, and whoever closes it whether there is anything to
/// wait for. Who waits looks at the word after he has said that he does, and who counts something off looks for somebody who waits after that:
/// every order here is `SeqCst`, so one of them sees the other.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicU64);

impl InFlight {
    /// One more operation.
    #[inline]
    pub(crate) fn begin_operation(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// So many operations less.
    #[inline]
    pub(crate) fn end_operations(&self, operations: usize) {
        self.0.fetch_sub(operations as u64, Ordering::SeqCst);
    }

    /// One more fork, if the task has not ended.
    #[inline]
    pub(crate) fn begin_fork(&self) -> bool {
        self.0.fetch_add(FORK, Ordering::SeqCst) & CLOSED == 0
    }

    /// One fork less.
    #[inline]
    pub(crate) fn end_fork(&self) {
        self.0.fetch_sub(FORK, Ordering::SeqCst);
    }

    /// The body has ended.
    #[inline]
    pub(crate) fn close(&self) {
        self.0.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Whether the body has ended.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Operations and forks.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        let word = self.0.load(Ordering::SeqCst) & !CLOSED;
        (word % FORK + word / FORK) as usize
    }

    /// Forks.
    #[inline]
    pub(crate) fn forks(&self) -> usize {
        ((self.0.load(Ordering::SeqCst) & !CLOSED) / FORK) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_forks_are_counted_apart_and_together() {
        let flight = InFlight::default();
        flight.begin_operation();
        flight.begin_operation();
        assert!(flight.begin_fork());
        assert_eq!((flight.count(), flight.forks()), (3, 1));
        flight.close();
        assert!(flight.is_closed() && !flight.begin_fork());
        flight.end_fork();
        flight.end_fork();
        flight.end_operations(2);
        assert_eq!((flight.count(), flight.forks()), (0, 0));
    }
}
