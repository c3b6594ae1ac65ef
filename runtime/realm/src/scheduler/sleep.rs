//! When workers sleep and what wakes them. The protocol is described in the crate's `README.md`.
//!
//! The file knows nothing of queues, so that loom can check it alone (`tests/loom`).

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Ordering, Parker, fence};

/// The sleeping state of a realm's workers.
///
/// A worker is *running*, *searching* (looking for work, counted in `searching`) or *asleep* (its bit is set, and it
/// waits at its parker or is about to). The thread that clears a worker's bit wakes it, and counts it as searching on
/// its behalf. One of those asleep may be *on watch*: it is woken as any other, and looks by itself now and then.
pub(crate) struct Sleep {
    asleep: Box<[AtomicU64]>,
    searching: CachePadded<AtomicU32>,
    parkers: Box<[Parker]>,
    /// While so many are awake, work for any worker wakes none, if one is on watch.
    cores: usize,
    /// The worker on watch, counted from 1; 0 for none.
    watcher: AtomicU32,
}

const WORD: usize = u64::BITS as usize;

impl Sleep {
    /// Of so many workers, for which the system has so many cores.
    pub(crate) fn new(workers: usize, cores: usize) -> Self {
        Self {
            cores,
            watcher: AtomicU32::new(0),
            asleep: (0..workers.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect(),
            searching: CachePadded::new(AtomicU32::new(0)),
            parkers: (0..workers).map(|_| Parker::default()).collect(),
        }
    }

    /// Running to searching.
    pub(crate) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::SeqCst);
    }

    /// Searching to running. True if no worker is searching any more: the caller must then look whether there is
    /// more work, and [`announce`](Self::announce) it if so, since producers rely on searchers to find what they queue.
    #[must_use]
    pub(crate) fn end_search(&self) -> bool {
        let last = self.searching.fetch_sub(1, Ordering::SeqCst) == 1;
        fence(Ordering::SeqCst);
        last
    }

    /// Searching to asleep, not yet parked: the worker looks at all its queues once more and then either parks or
    /// [cancels](Self::cancel).
    pub(crate) fn fall_asleep(&self, worker: usize) {
        self.asleep[worker / WORD].fetch_or(bit(worker), Ordering::SeqCst);
        self.searching.fetch_sub(1, Ordering::SeqCst);
        // Against the fence in `announce` and `wake`: either they see the bit, or the caller's look sees their work.
        fence(Ordering::SeqCst);
    }

    /// Whether every worker is asleep, or about to be: then nothing runs and nothing that was queued for any of them is
    /// left, unless someone outside is queueing it right now.
    pub(crate) fn all_asleep(&self) -> bool {
        let is_full = |(index, word): (usize, &AtomicU64)| {
            let workers = (self.parkers.len() - index * WORD).min(WORD);
            word.load(Ordering::SeqCst) == u64::MAX >> (WORD - workers)
        };
        self.asleep.iter().enumerate().all(is_full)
    }

    /// How many workers are awake. One that has just set its bit to fall asleep is not among them.
    pub(crate) fn awake(&self) -> usize {
        let asleep = self.asleep.iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize);
        self.parkers.len() - asleep.sum::<usize>()
    }

    /// Whether this worker is asleep, or about to be.
    #[inline]
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        self.asleep[worker / WORD].load(Ordering::SeqCst) & bit(worker) != 0
    }

    /// Whether any worker is asleep, or about to be.
    #[inline]
    pub(crate) fn is_anybody_asleep(&self) -> bool {
        self.asleep.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    /// Asleep, not parked, back to searching.
    pub(crate) fn cancel(&self, worker: usize) {
        if self.clear(worker) {
            self.searching.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Parks until woken; searching again afterwards.
    pub(crate) fn park(&self, worker: usize) {
        // A token may be left from a waking that `cancel` raced with; the bit tells.
        while self.asleep[worker / WORD].load(Ordering::Acquire) & bit(worker) != 0 {
            self.parkers[worker].park();
        }
    }

    /// Whether the system has a core for one more worker.
    pub(crate) fn has_idle_core(&self) -> bool {
        self.awake() < self.cores
    }

    /// Asleep, not yet parked, goes on watch, unless there is no need to or another is. There is need if there are more
    /// workers than cores, or graphs run.
    pub(crate) fn begin_watch(&self, worker: usize, graphs_run: bool) -> bool {
        let is_needed = self.cores < self.parkers.len() || (graphs_run && self.parkers.len() > 1);
        let needs_watcher = is_needed && self.watcher.load(Ordering::SeqCst) == 0;
        let watcher = worker as u32 + 1;
        needs_watcher && self.watcher.compare_exchange(0, watcher, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The worker on watch is so no longer: if it is asleep and not woken, it looks at all its queues once more.
    pub(crate) fn end_watch(&self) {
        self.watcher.store(0, Ordering::SeqCst);
        // Against the fence in `announce`: either that sees that no worker is on watch, or the look sees its work.
        fence(Ordering::SeqCst);
    }

    /// Wakes a sleeping worker if none is on watch: it will go on watch when it has found no work.
    #[cold]
    pub(crate) fn see_to_watch(&self) {
        // Against the one in `end_watch`: either no worker is seen to be on watch, or the look there sees what the
        // caller has done.
        fence(Ordering::SeqCst);
        if self.parkers.len() > 1 && self.watcher.load(Ordering::SeqCst) == 0 {
            self.wake_one();
        }
    }

    /// Parks until woken, or so long. Whether it was woken, and so is searching.
    pub(crate) fn park_for(&self, worker: usize, time: Duration) -> bool {
        while self.is_asleep(worker) {
            if !self.parkers[worker].park_for(time) {
                return !self.is_asleep(worker);
            }
        }
        true
    }

    /// Says that work which any worker may do was queued: wakes one, unless one is searching and will find it, or there
    /// are no cores for more and a worker is on watch.
    #[inline]
    pub(crate) fn announce(&self) {
        // Against the fences in `end_search`, `fall_asleep` and `end_watch`.
        fence(Ordering::SeqCst);
        self.announce_pushed();
    }

    /// [`announce`](Self::announce) for work that was published by
    /// [`store_before_loads`](crate::sync::store_before_loads), which is as good as the fence.
    #[inline]
    pub(crate) fn announce_pushed(&self) {
        if self.searching.load(Ordering::SeqCst) == 0 && self.is_anybody_asleep() {
            self.wake_any();
        }
    }

    #[cold]
    fn wake_any(&self) {
        // The workers awake look at all queues before they sleep; the worker on watch looks in case they don't come to
        // it.
        if !self.has_idle_core() && self.watcher.load(Ordering::SeqCst) != 0 {
            return;
        }
        self.wake_one();
    }

    fn wake_one(&self) {
        for word in 0..self.asleep.len() {
            let mut sleepers = self.asleep[word].load(Ordering::SeqCst);
            while sleepers != 0 {
                let worker = word * WORD + sleepers.trailing_zeros() as usize;
                if self.wake_cleared(worker) {
                    return;
                }
                sleepers = self.asleep[word].load(Ordering::SeqCst);
            }
        }
    }

    /// Wakes this worker if it is asleep, for work or news meant for it. False if it was not asleep: then it will look
    /// by itself before it sleeps.
    pub(crate) fn wake(&self, worker: usize) -> bool {
        fence(Ordering::SeqCst);
        let asleep = self.asleep[worker / WORD].load(Ordering::SeqCst) & bit(worker) != 0;
        asleep && self.wake_cleared(worker)
    }

    /// Wakes every worker that is asleep.
    pub(crate) fn wake_all(&self) {
        for worker in 0..self.parkers.len() {
            self.wake(worker);
        }
    }

    fn wake_cleared(&self, worker: usize) -> bool {
        // Counted before the bit is cleared: were it after, the worker could end its search first and count below zero.
        self.searching.fetch_add(1, Ordering::SeqCst);
        if self.clear(worker) {
            self.parkers[worker].unpark();
            return true;
        }
        self.searching.fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// True for the one caller that clears the bit.
    fn clear(&self, worker: usize) -> bool {
        self.asleep[worker / WORD].fetch_and(!bit(worker), Ordering::SeqCst) & bit(worker) != 0
    }
}

fn bit(worker: usize) -> u64 {
    1 << (worker % WORD)
}
