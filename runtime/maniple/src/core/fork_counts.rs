//! How many tasks were forked, and have ended: counted by each worker for itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// The counts of all workers.
#[derive(Debug)]
pub(crate) struct ForkCounts(Box<[CachePadded<OfWorker>]>);

/// The counts of one worker. Only that worker writes them, so adding is a load and a store.
#[derive(Debug, Default)]
struct OfWorker {
    launched: AtomicU64,
    ended: AtomicU64,
}

impl ForkCounts {
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| CachePadded::default()).collect())
    }

    /// The worker, which is this thread, has forked a task.
    #[inline]
    pub(crate) fn launched(&self, worker: usize) {
        add_one(&self.0[worker].launched);
    }

    /// The worker, which is this thread, has seen a task end.
    #[inline]
    pub(crate) fn ended(&self, worker: usize) {
        add_one(&self.0[worker].ended);
    }

    /// How many were forked by workers, and how many have ended.
    pub(crate) fn read(&self) -> (u64, u64) {
        let sum = |count: fn(&OfWorker) -> &AtomicU64| {
            self.0.iter().map(|worker| count(worker).load(Ordering::Relaxed)).sum::<u64>()
        };
        (sum(|worker| &worker.launched), sum(|worker| &worker.ended))
    }
}

fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
