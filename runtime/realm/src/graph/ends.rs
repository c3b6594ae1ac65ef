//! The ends of runs, and of their parts. Workers count in lines of their own: only the end of a lane's part of a run is
//! shared, and the ends of stages that are watched.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::compile::Graph;
use super::per_run::{PerRun, Words};
use super::words::EndWord;

/// The counts of nodes, shifts and lanes that have ended in the runs that use each slot. Counts go on from one run to
/// the next.
pub(super) struct Ends {
    /// Every slot has been used once in so many runs: the number of slots, as a power of two.
    turns: u32,
    /// Nodes that have ended, by shift. Not counted in shifts of one node, whose end is that of the node.
    nodes: PerRun<CachePadded<AtomicU64>>,
    /// The ends of shifts of several nodes. Each lane's are in lines of their own.
    shifts: Words<EndWord>,
    /// Shifts that have ended, by lane.
    shifts_of_lane: PerRun<CachePadded<AtomicU64>>,
    /// Lanes that have ended, and stages without nodes.
    parts: PerRun<CachePadded<AtomicU64>>,
    /// For each stage, one more than the last run whose end was announced.
    announced: PerRun<AtomicU64>,
}

impl Ends {
    pub(super) fn new(slots: u64, graph: &Graph) -> Self {
        Self {
            turns: slots.trailing_zeros(),
            nodes: PerRun::new(slots, graph.shifts.len(), CachePadded::default),
            shifts: Words::new(slots, graph.shifts.len()),
            shifts_of_lane: PerRun::new(slots, graph.lanes.len(), CachePadded::default),
            parts: PerRun::new(slots, 1, CachePadded::default),
            announced: PerRun::new(slots, graph.stages(), AtomicU64::default),
        }
    }

    /// Counts one more of so many in each run. True for the last of this one.
    #[inline]
    fn count(&self, ended: &AtomicU64, run: u64, in_each: u32) -> bool {
        // The thread that counts the last one sees what all of them did.
        ended.fetch_add(1, Ordering::AcqRel) + 1 == ((run >> self.turns) + 1) * u64::from(in_each)
    }

    /// Counts an ended node. True if it was the last of its shift.
    #[inline]
    pub(super) fn end_node(&self, graph: &Graph, run: u64, shift: usize) -> bool {
        let nodes = graph.shifts[shift].nodes();
        if nodes == 1 {
            // It has told of its end by its own word.
            return true;
        }
        let is_last = self.count(self.nodes.at(run, shift), run, nodes);
        if is_last {
            // A thread that asks for the end of the stage says so first and then looks here; the caller will look
            // whether it is asked for. As all of that is sequentially consistent, one sees the other.
            self.shifts.at(run, shift).end(run);
        }
        is_last
    }

    /// Whether all nodes of a shift have ended: of one that has several.
    pub(super) fn has_ended(&self, run: u64, shift: usize) -> bool {
        self.shifts.at(run, shift).has_ended(run)
    }

    /// True for the one caller that has to announce the end of a stage.
    pub(super) fn tells(&self, run: u64, stage: u32) -> bool {
        self.announced.at(run, stage as usize).fetch_max(run + 1, Ordering::Relaxed) <= run
    }

    /// Counts a shift that has ended, in its lane. True if it was the last of the run.
    #[inline]
    pub(super) fn end_shift(&self, graph: &Graph, run: u64, lane: u32) -> bool {
        let (lane, shifts) = (lane as usize, graph.shifts_of_lane[lane as usize]);
        self.count(self.shifts_of_lane.at(run, lane), run, shifts) && self.end_part(graph, run)
    }

    /// Counts a lane that has ended, or a stage without nodes. True if it was the last of the run.
    pub(super) fn end_part(&self, graph: &Graph, run: u64) -> bool {
        self.count(self.parts.at(run, 0), run, graph.parts)
    }
}
