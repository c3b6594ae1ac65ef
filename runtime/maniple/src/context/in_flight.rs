//! How much of what a task has launched has not ended, whether it may launch more, and whether it is waited for: one
//! word.

use crate::support::sync::{AtomicU64, Ordering};

const FORK: u64 = 1 << 31;
/// A task or thread waits for the numbers to fall.
const WAITED: u64 = 1 << 62;
const CLOSED: u64 = 1 << 63;
const NUMBERS: u64 = !(WAITED | CLOSED);

/// The operations and forks that a task has in flight. Operations go through its stream.
///
/// Both numbers are in one word with the marks of the end and of waiters. So a thread that counts something in learns
/// whether it came too late, a thread that closes the word whether there is anything to wait for, and a thread that
/// counts something off whether a waiter has to be told. A waiter marks the word, too: so everything that it learns to
/// be in flight then is counted off by a thread that sees it wait.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicU64);

/// How many operations and forks a word says.
fn numbers(word: u64) -> (usize, usize) {
    let word = word & NUMBERS;
    ((word % FORK) as usize, (word / FORK) as usize)
}

impl InFlight {
    /// One more operation.
    #[inline]
    pub(crate) fn begin_operation(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// So many operations more.
    #[inline]
    pub(crate) fn begin_operations(&self, operations: usize) {
        self.0.fetch_add(operations as u64, Ordering::SeqCst);
    }

    /// So many operations less. Whether there is a waiter.
    #[inline]
    #[must_use]
    pub(crate) fn end_operations(&self, operations: usize) -> bool {
        self.0.fetch_sub(operations as u64, Ordering::SeqCst) & WAITED != 0
    }

    /// One more fork, if the task has not ended.
    #[inline]
    pub(crate) fn begin_fork(&self) -> bool {
        self.0.fetch_add(FORK, Ordering::SeqCst) & CLOSED == 0
    }

    /// One fork less. Whether there is a waiter.
    #[inline]
    #[must_use]
    pub(crate) fn end_fork(&self) -> bool {
        self.0.fetch_sub(FORK, Ordering::SeqCst) & WAITED != 0
    }

    /// One fork less, unless there is a waiter. If it was done, nothing that the count kept may be touched afterwards.
    #[inline]
    #[must_use]
    pub(crate) fn end_fork_unless_waited(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & WAITED == 0 {
            match self.0.compare_exchange_weak(word, word - FORK, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => word = changed,
            }
        }
        false
    }

    /// There is a waiter now. Gives the number of all that is in flight: all of that will be counted off by threads
    /// that see the waiter.
    pub(crate) fn wait(&self) -> usize {
        let (operations, forks) = numbers(self.0.fetch_or(WAITED, Ordering::SeqCst));
        operations + forks
    }

    /// There is no waiter any more.
    pub(crate) fn wait_no_more(&self) {
        self.0.fetch_and(!WAITED, Ordering::SeqCst);
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
        let (operations, forks) = numbers(self.0.load(Ordering::SeqCst));
        operations + forks
    }

    /// Forks.
    #[inline]
    pub(crate) fn forks(&self) -> usize {
        numbers(self.0.load(Ordering::SeqCst)).1
    }

    /// As new.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.0 = AtomicU64::new(0);
    }
}
