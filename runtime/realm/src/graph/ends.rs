//! What of a run has ended. Workers count in lines of their own: only the end of a lane's part of a run is shared, and the end of a stage that
//! somebody wants to be told of.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::compile::Graph;

/// What of the runs that use one slot has ended.
pub(super) struct Ends {
    /// Nodes that have not ended, by shift. Not counted in shifts of one node.
    left_in_shift: Box<[CachePadded<AtomicU32>]>,
    /// For each shift, one more than the last run in which all its nodes have ended. Each lane's are in lines of their own.
    ended: Box<[AtomicU64]>,
    /// Shifts that have not ended, by lane.
    left_in_lane: Box<[CachePadded<AtomicU32>]>,
    /// Lanes that have not ended, and stages without nodes.
    left: CachePadded<AtomicU32>,
    /// For each stage, one more than the last run of which its end was told.
    told: Box<[AtomicU64]>,
}

impl Ends {
    pub(super) fn new(graph: &Graph) -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            left_in_shift: graph.nodes_of_shift.iter().map(|_| CachePadded::default()).collect(),
            ended: zeros(graph.nodes_of_shift.len()),
            left_in_lane: graph.lanes.iter().map(|_| CachePadded::default()).collect(),
            left: CachePadded::default(),
            told: zeros(graph.stages()),
        }
    }

    /// Everything as it must be before a run begins.
    pub(super) fn arm(&self, graph: &Graph) {
        for (left, &nodes) in self.left_in_shift.iter().zip(&graph.nodes_of_shift).filter(|&(_, &nodes)| nodes > 1) {
            left.store(nodes, Ordering::Relaxed);
        }
        for (left, &shifts) in self.left_in_lane.iter().zip(&graph.shifts_of_lane) {
            left.store(shifts, Ordering::Relaxed);
        }
        self.left.store(graph.parts, Ordering::Relaxed);
    }

    /// Counts an ended node. True if it was the last of its shift.
    #[inline]
    pub(super) fn end_node(&self, graph: &Graph, run: u64, shift: usize) -> bool {
        // A node that is alone needs no counting.
        let is_last = graph.nodes_of_shift[shift] == 1 || self.left_in_shift[shift].fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            // Whoever asks for the end of the stage says so first and then looks here; the caller will look whether somebody asks. As all of that is
            // sequentially consistent, one sees the other.
            self.ended[shift].store(run + 1, Ordering::SeqCst);
        }
        is_last
    }

    /// Whether all nodes of a stage have ended: of one that has any.
    pub(super) fn has_ended(&self, graph: &Graph, run: u64, stage: u32) -> bool {
        graph.shifts_of_stage(stage).iter().all(|&shift| self.ended[shift as usize].load(Ordering::SeqCst) > run)
    }

    /// True for the one caller that has to tell of the end of a stage.
    pub(super) fn tells(&self, run: u64, stage: u32) -> bool {
        self.told[stage as usize].fetch_max(run + 1, Ordering::Relaxed) <= run
    }

    /// Counts a shift that has ended, in its lane. True if it was the last of the run.
    #[inline]
    pub(super) fn end_shift(&self, lane: u32) -> bool {
        self.left_in_lane[lane as usize].fetch_sub(1, Ordering::AcqRel) == 1 && self.end_part()
    }

    /// Counts a lane that has ended, or a stage without nodes. True if it was the last of the run.
    pub(super) fn end_part(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Lanes that have not ended, and stages without nodes.
    pub(super) fn left(&self) -> u32 {
        self.left.load(Ordering::Relaxed)
    }
}
