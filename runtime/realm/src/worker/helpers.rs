//! How workers that help while a condition holds learn that it may have changed. The protocol is described in the
//! crate's `README.md`.
//!
//! The file knows nothing of conditions or sleep, so that loom can check it alone (`tests/loom`).

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The workers that rest in [`Realm::help_while`](crate::Realm::help_while), and a counter for each worker of the
/// operations that it has ended.
///
/// The end of an operation is far too frequent for a fence, so it is published by modifying the worker's own counter, a
/// line that no other worker usually touches. One that is about to rest, which is rare, modifies them all.
pub(crate) struct Helpers {
    /// How many rest, or are about to.
    resting: AtomicU32,
    is_resting: Box<[AtomicU32]>,
    /// The number of operations that each worker has ended, and in the last place of the nudges from elsewhere.
    ended: Box<[CachePadded<AtomicU64>]>,
    /// How many nodes of graphs each worker has run: of use only for the worker on watch, which looks whether each gets
    /// on.
    nodes: Box<[CachePadded<AtomicU64>]>,
}

impl Helpers {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            resting: AtomicU32::new(0),
            is_resting: (0..workers).map(|_| AtomicU32::new(0)).collect(),
            ended: (0..=workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            nodes: (0..workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }

    /// The worker is about to rest: it must look at its condition once more afterwards, and may then sleep.
    pub(crate) fn begin_rest(&self, worker: usize) {
        self.is_resting[worker].store(1, Ordering::Relaxed);
        self.resting.fetch_add(1, Ordering::Relaxed);
        for ended in &self.ended {
            // Against the modification in `changed_by`: the later of the two sees what came before the earlier.
            ended.fetch_add(0, Ordering::AcqRel);
        }
    }

    /// The worker rests no more.
    pub(crate) fn end_rest(&self, worker: usize) {
        self.resting.fetch_sub(1, Ordering::Relaxed);
        self.is_resting[worker].store(0, Ordering::Relaxed);
    }

    /// Publishes what the worker did before, which may change conditions. True if a worker rests, and is to be woken.
    #[inline]
    #[must_use]
    pub(crate) fn changed_by(&self, worker: usize) -> bool {
        self.ended[worker].fetch_add(1, Ordering::AcqRel);
        self.resting.load(Ordering::Relaxed) > 0
    }

    /// A worker has run a node of a graph.
    #[inline]
    pub(crate) fn ran_node(&self, worker: usize) {
        // No other worker counts there.
        let nodes = &self.nodes[worker];
        nodes.store(nodes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How much each worker has done, up to now: nodes of graphs, and whatever else has [changed
    /// something](Self::changed_by).
    pub(crate) fn ends(&self) -> impl Iterator<Item = u64> {
        let workers = self.ended.iter().zip(&self.nodes);
        workers.map(|(ended, nodes)| ended.load(Ordering::Relaxed).wrapping_add(nodes.load(Ordering::Relaxed)))
    }

    /// [`changed_by`](Self::changed_by), from a thread that is no worker.
    #[must_use]
    pub(crate) fn changed_outside(&self) -> bool {
        self.changed_by(self.is_resting.len())
    }

    /// The workers that rest, or have just stopped to.
    pub(crate) fn resting(&self) -> impl Iterator<Item = usize> {
        (0..self.is_resting.len()).filter(|&worker| self.is_resting[worker].load(Ordering::Relaxed) != 0)
    }
}
