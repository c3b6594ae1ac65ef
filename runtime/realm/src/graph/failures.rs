//! Why nodes of a graph failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::locks::Mutex;
use rustc_hash::FxHashMap;

use super::compile::{Graph, Predecessor};
use crate::fault::Fault;

/// The failures of the latest runs.
#[derive(Default)]
pub(super) struct Failures {
    /// Whether there are any: set before the node that failed ends, so that those after it see it.
    any: AtomicBool,
    known: Mutex<KnownFailures>,
}

#[derive(Default)]
struct KnownFailures {
    /// By run and place.
    of_nodes: FxHashMap<(u64, u32), Arc<Fault>>,
    of_stages: FxHashMap<(u64, u32), Arc<Fault>>,
}

impl Failures {
    /// Whether anything has failed that a node might need which may start.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Notes why a stage fails. Before it is opened.
    #[cold]
    pub(super) fn note_stage(&self, run: u64, stage: u32, fault: &Arc<Fault>) {
        let mut known = self.known.lock();
        known.of_stages.insert((run, stage), Arc::clone(fault));
        self.any.store(true, Ordering::Relaxed);
    }

    /// Notes why a node fails. Before it ends.
    #[cold]
    pub(super) fn note_node(&self, run: u64, place: usize, fault: &Arc<Fault>) {
        let mut known = self.known.lock();
        known.of_nodes.insert((run, place as u32), Arc::clone(fault));
        self.any.store(true, Ordering::Relaxed);
    }

    /// Why a stage fails, if it does.
    #[cold]
    pub(super) fn of_stage(&self, run: u64, stage: u32) -> Option<Arc<Fault>> {
        self.known.lock().of_stages.get(&(run, stage)).cloned()
    }

    /// The failure of something that a node needs, all of which has ended.
    #[cold]
    pub(super) fn before(&self, graph: &Graph, run: u64, place: usize) -> Option<Arc<Fault>> {
        self.known.lock().before(graph, run, place).cloned()
    }

    /// Forgets what is not asked for any more: the failures before a run.
    pub(super) fn forget_before(&self, run: u64) {
        if !self.are_any() {
            return;
        }
        let mut known = self.known.lock();
        known.of_nodes.retain(|&(failed, _), _| failed >= run);
        known.of_stages.retain(|&(failed, _), _| failed >= run);
        if known.of_nodes.is_empty() && known.of_stages.is_empty() {
            self.any.store(false, Ordering::Relaxed);
        }
    }

    /// The runs and places of nodes that failed, with the reasons.
    pub(super) fn of_nodes(&self) -> Vec<((u64, u32), Arc<Fault>)> {
        self.known.lock().of_nodes.iter().map(|(&key, fault)| (key, Arc::clone(fault))).collect()
    }
}

impl KnownFailures {
    fn before(&self, graph: &Graph, run: u64, place: usize) -> Option<&Arc<Fault>> {
        let failure = |predecessor: &Predecessor| match graph.junction(predecessor.place()) {
            Some(_) => self.before(graph, run, predecessor.place()),
            None if predecessor.is_of_previous_run() => {
                self.of_nodes.get(&(run.checked_sub(1)?, predecessor.place() as u32))
            }
            None => self.of_nodes.get(&(run, predecessor.place() as u32)),
        };
        graph.before(place).iter().filter(|predecessor| predecessor.needs()).find_map(failure)
    }
}
