//! Which workers are at what: asleep, at something else than nodes of graphs, or without a core.

use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_utils::CachePadded;

use super::seat::Seat;
use super::sleep::Sleep;
use crate::machine::ProcessorId;
use crate::profile::Records;
use crate::threads::simulated;

/// The worker whose place a guest may have.
pub(crate) const LENT: usize = 0;

/// The workers of a realm, as others see them.
pub(crate) struct Presence {
    pub(crate) sleep: Sleep,
    /// Whether they are threads of [a simulation](crate::simulation).
    pub(crate) is_simulated: bool,
    /// While graphs run, for each worker how many other things than nodes it is at, one on top of another.
    pub(crate) elsewhere: Box<[CachePadded<AtomicU32>]>,
    /// The place of the worker whose work a thread of the program's does while it waits. With it go what that worker
    /// has recorded: what it does is in its own row of a profile, whichever thread does it.
    pub(crate) seat: Seat<Records>,
    /// How many threads the system runs at a time, if those are fewer than the workers.
    fewer_cores: Option<usize>,
    /// The processor of each worker.
    processors: Vec<ProcessorId>,
}

impl Presence {
    /// Workers that serve these processors, for which the system has so many cores.
    pub(crate) fn new(processors: &[ProcessorId], cores: usize) -> Self {
        Self {
            sleep: Sleep::new(processors.len(), cores),
            is_simulated: simulated::is_inside(),
            elsewhere: processors.iter().map(|_| CachePadded::default()).collect(),
            seat: Seat::new(),
            fewer_cores: (cores < processors.len()).then_some(cores),
            processors: processors.to_vec(),
        }
    }

    /// The processor of each worker.
    pub(crate) fn processors(&self) -> &[ProcessorId] {
        &self.processors
    }

    /// The worker of a processor, if it has one.
    pub(crate) fn worker_of(&self, processor: ProcessorId) -> Option<usize> {
        let guess = processor.0 as usize;
        if self.processors.get(guess) == Some(&processor) {
            return Some(guess);
        }
        self.processors.iter().position(|&own| own == processor)
    }

    /// Whether more workers are awake than the system has cores for: some of them had better sleep, lest one that is at
    /// something the others wait for is made to wait itself.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.fewer_cores.is_some_and(|cores| self.sleep.awake() > cores)
    }

    /// Whether the system has a core for one more worker.
    pub(crate) fn has_idle_core(&self) -> bool {
        self.fewer_cores.is_none() || self.sleep.has_idle_core()
    }

    /// Whether so many workers take all cores.
    pub(crate) fn has_as_many_as_cores(&self, workers: usize) -> bool {
        self.fewer_cores.is_none_or(|cores| workers >= cores)
    }

    /// See [`Realm::stand_in`](crate::Realm::stand_in).
    pub(crate) fn stand_in(&self, processor: ProcessorId) -> ProcessorId {
        self.worker_of(processor).map_or(processor, |worker| self.processors[self.stand_in_of(worker)])
    }

    /// The worker that runs what is meant for this one, unless that must: see [`stand_in`](Self::stand_in).
    #[inline]
    pub(crate) fn stand_in_of(&self, worker: usize) -> usize {
        // Those that stand in are the first: one for each core.
        self.fewer_cores.map_or(worker, |cores| worker * cores / self.processors.len())
    }

    /// Whether a worker runs what is meant for others: see [`stand_in`](Self::stand_in).
    #[inline]
    pub(crate) fn stands_in(&self, worker: usize) -> bool {
        self.fewer_cores.is_none_or(|cores| worker < cores)
    }

    /// Says that nodes of a graph are ready that another worker might run.
    pub(crate) fn announce_nodes(&self) {
        match self.fewer_cores {
            None => self.sleep.announce(),
            // The others would take a core from one that runs nodes.
            Some(cores) => _ = (0..cores).any(|worker| self.sleep.is_asleep(worker) && self.sleep.wake(worker)),
        }
    }

    /// Whether a worker is at something else than nodes of graphs, or its place is vacant.
    #[inline]
    pub(crate) fn is_elsewhere(&self, worker: usize) -> bool {
        self.elsewhere[worker].load(Ordering::SeqCst) != 0 || (worker == LENT && self.seat.is_unattended())
    }
}
