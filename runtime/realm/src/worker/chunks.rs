//! How the chunks of one loop are dealt to the threads that run them, and how the loop's owner learns that all have
//! ended. The protocol is described in the crate's `README.md`.
//!
//! The file knows nothing of workers, so that loom can check it alone (`tests/loom`).

use crate::sync::{AtomicU64, Ordering, Parker};

/// The chunks of a loop. The thread that [takes](Self::take) one runs it and [ends](Self::end) it; the owner
/// [waits](Self::wait) for the end of all.
pub(crate) struct Chunks {
    count: u64,
    /// So many were taken, or more, as threads that find none left count too.
    taken: AtomicU64,
    /// So many have not ended; and whether the owner waits for that.
    left: AtomicU64,
    owner: Parker,
}

const WAITING: u64 = 1 << 63;

impl Chunks {
    pub(crate) fn new(count: usize) -> Self {
        let count = count as u64;
        Self { count, taken: AtomicU64::new(0), left: AtomicU64::new(count), owner: Parker::default() }
    }

    /// Takes a chunk that is not taken, if there is one. It has not ended, and the owner waits, until the taker says
    /// so.
    #[inline]
    pub(crate) fn take(&self) -> Option<usize> {
        if !self.has_more() {
            return None;
        }
        // Which thread takes which is decided by the order of the changes to this one counter; nothing else is ordered
        // by it.
        let chunk = self.taken.fetch_add(1, Ordering::Relaxed);
        (chunk < self.count).then_some(chunk as usize)
    }

    /// Whether there are chunks that are not taken.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.taken.load(Ordering::Relaxed) < self.count
    }

    /// A chunk that the caller has taken has ended.
    #[inline]
    pub(crate) fn end(&self) {
        self.end_many(1);
    }

    /// Withdraws what is left. For a thread that has taken a chunk that has not ended: so it is not this that ends the
    /// loop.
    pub(crate) fn give_up(&self) {
        let taken = self.taken.swap(self.count, Ordering::Relaxed);
        if taken < self.count {
            self.end_many(self.count - taken);
        }
    }

    #[inline]
    fn end_many(&self, chunks: u64) {
        // What the chunks did comes before what the owner does next.
        if self.left.fetch_sub(chunks, Ordering::AcqRel) == WAITING | chunks {
            self.owner.unpark();
        }
    }

    /// Whether all chunks have ended. Only the owner asks.
    #[inline]
    pub(crate) fn have_ended(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Waits, once, until all chunks have ended. Only the owner does, and when there are none left to be taken: so it
    /// waits for what others are running.
    pub(crate) fn wait(&self) {
        // Either the last chunk ends before this, or the thread that ends it sees that the owner waits.
        if self.left.fetch_or(WAITING, Ordering::AcqRel) != 0 {
            self.owner.park();
        }
    }
}
