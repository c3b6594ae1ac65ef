//! Workers and graphs: finding nodes that are ready, and running them one after the other.

use std::hint::spin_loop;
use std::sync::Arc;

use super::{Found, Local, WorkerContext};
use crate::event::Event;
use crate::graph::active::{Active, Claimed};

/// So many nodes are run before the worker looks whether there are operations.
const NODES_IN_A_ROW: usize = 64;

/// So often a worker looks again at a node that only waits for others: what they are at takes little longer than to look elsewhere.
const EXPECTING_ROUNDS: usize = 100;

impl Local {
    /// What to do next while there are graphs. Nodes take turns with operations.
    pub(super) fn find_among_graphs(&self) -> Option<Found> {
        let operation = || self.find_operation().map(Found::Operation);
        let mine = || self.claim_node(|graph| graph.claim(self.index, false));
        let found = if self.served.replace(false) { operation().or_else(mine) } else { mine().or_else(operation) };
        found.or_else(|| self.claim_node(|graph| self.steal_node(graph)))
    }

    fn claim_node(&self, mut claim: impl FnMut(&Active) -> Option<Claimed>) -> Option<Found> {
        let mut known = self.known.borrow_mut();
        self.core().graphs.refresh(&mut known);
        let found = known.graphs.iter().find_map(|graph| Some((graph, claim(graph)?)));
        found.map(|(graph, claimed)| Found::Node(Arc::clone(graph), claimed))
    }

    fn steal_node(&self, graph: &Active) -> Option<Claimed> {
        let lanes = graph.lanes();
        let first = self.random() as usize % lanes;
        (first..lanes).chain(0..first).filter(|&lane| lane != self.index).find_map(|lane| graph.claim(lane, true))
    }

    /// Runs a node, and those of this worker's that are ready after it or soon will be.
    pub(super) fn serve(&self, graph: &Active, claimed: Claimed) {
        let core = self.core();
        let context = WorkerContext { local: self, event: Event::NONE };
        graph.run(core, self.index, claimed, &context);
        for _ in 1..NODES_IN_A_ROW {
            // Whatever is claimed is run.
            let Some(next) = self.expect_node(graph) else { break };
            graph.run(core, self.index, next, &context);
        }
        self.served.set(true);
        core.after_run(self.index);
    }

    /// This worker's next node, if it is ready or only waits for others; unless there is something better to do.
    #[inline]
    fn expect_node(&self, graph: &Active) -> Option<Claimed> {
        let core = self.core();
        for _ in 0..EXPECTING_ROUNDS {
            if self.next.get() != 0 || core.queues.has_runtime_work_for(self.index, &self.deques) || core.is_stopping() {
                return None;
            }
            if let Some(claimed) = graph.claim(self.index, false) {
                return Some(claimed);
            }
            if !graph.is_expecting(self.index) {
                return None;
            }
            spin_loop();
        }
        None
    }

    /// Whether the next node of this worker, in any graph, is ready.
    pub(super) fn has_ready_node(&self) -> bool {
        if self.core().graphs.is_empty() {
            return false;
        }
        let mut known = self.known.borrow_mut();
        self.core().graphs.refresh(&mut known);
        known.graphs.iter().any(|graph| graph.has_ready(self.index))
    }

    /// Lets go of graphs before a sleep: they may be gone afterwards.
    pub(super) fn forget_graphs(&self) {
        self.known.borrow_mut().forget();
    }
}
