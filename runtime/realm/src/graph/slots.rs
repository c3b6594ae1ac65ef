//! The slots that runs use, one run at a time: the words of all nodes, and the ends of nodes and stages.
//!
//! There are as many *slots* as runs may be under way, a power of two, and run `r` uses slot `r` modulo their number.
//! All words count up from turn to turn: nothing needs to be set back.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::compile::{Graph, Predecessor};
use super::ends::Ends;
use super::per_run::{PerRun, Words};
use super::words::{ClaimWord, EndWord, Gate, JunctionWord};

/// The slots of the runs of a graph.
pub(super) struct Slots {
    count: u64,
    pub(super) claims: Words<ClaimWord>,
    pub(super) node_ends: Words<EndWord>,
    junctions: PerRun<JunctionWord>,
    pub(super) gates: PerRun<Gate>,
    pub(super) ends: Ends,
    /// The run that each slot is armed for.
    armed: PerRun<CachePadded<AtomicU64>>,
}

impl Slots {
    /// So many, a power of two, each armed for its first run.
    pub(super) fn new(graph: &Graph, count: u64) -> Self {
        let mut runs = 0..count;
        Self {
            count,
            claims: Words::new(count, graph.len()),
            node_ends: Words::new(count, graph.len()),
            junctions: PerRun::new(count, graph.junctions(), JunctionWord::default),
            gates: PerRun::new(count, graph.stages(), Gate::new),
            ends: Ends::new(count, graph),
            armed: PerRun::new(count, 1, || CachePadded::new(AtomicU64::new(runs.next().unwrap_or(0)))),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn is_armed(&self, run: u64) -> bool {
        self.armed.at(run, 0).load(Ordering::Acquire) == run
    }

    /// Gives the slot of a run that has ended to the run that uses it next.
    pub(super) fn arm_again(&self, run: u64) {
        self.armed.at(run, 0).store(run + self.count, Ordering::Release);
    }

    /// Whether all that comes before a node has ended.
    #[inline]
    pub(super) fn may_start(&self, graph: &Graph, run: u64, place: usize) -> bool {
        graph.before(place).iter().all(|&predecessor| self.has_ended(graph, run, predecessor))
    }

    /// Whether what comes before a node of a run has ended.
    #[inline]
    fn has_ended(&self, graph: &Graph, run: u64, predecessor: Predecessor) -> bool {
        let place = predecessor.place();
        if predecessor.is_of_previous_run() {
            run == 0 || self.node_ends.at(run - 1, place).has_ended(run - 1)
        } else if let Some(junction) = graph.junction(place) {
            self.is_passed(graph, run, place, junction)
        } else {
            self.node_ends.at(run, place).has_ended(run)
        }
    }

    /// Whether all that comes before a junction has ended.
    fn is_passed(&self, graph: &Graph, run: u64, place: usize, junction: usize) -> bool {
        let before = graph.before(place);
        let word = self.junctions.at(run, junction);
        word.is_passed(run, before.len(), |number| self.has_ended(graph, run, before[number]))
    }

    /// Whether all nodes of a stage have ended: of one that has any.
    pub(super) fn has_stage_ended(&self, graph: &Graph, run: u64, stage: u32) -> bool {
        graph.shifts_of_stage(stage).iter().all(|&shift| match graph.shifts[shift as usize].only() {
            Some(place) => self.node_ends.at(run, place).has_ended(run),
            None => self.ends.has_ended(run, shift as usize),
        })
    }

    /// The run that each slot is armed for.
    pub(super) fn armed(&self) -> Vec<u64> {
        self.armed.all().map(|armed| armed.load(Ordering::Relaxed)).collect()
    }
}
