//! Workers and graphs: finding nodes that are ready, and running them one after the other.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Found, Local, WorkerContext};
use crate::events::Event;
use crate::graph::active::{Active, Claimed, Who};
use crate::graph::registry::KnownGraphs;

/// So many nodes are run before the worker looks whether there are operations.
const NODES_IN_A_ROW: usize = 64;

/// So often a worker looks again at a node that only waits for others: what they are at takes little longer than to
/// look elsewhere.
const EXPECTING_ROUNDS: usize = 400;

/// So often it looks only at that node, before it looks beyond.
const THOROUGH_ROUNDS: usize = 8;

/// So often it looks again before it steals.
const HOPEFUL_ROUNDS: usize = 40;
/// And so often if it had to the last time.
const HOPELESS_ROUNDS: usize = 4;

impl Local {
    /// Finds the next work while there are graphs. Nodes take turns with operations.
    pub(super) fn find_among_graphs(&self, operation: impl Fn() -> Option<Found>) -> Option<Found> {
        let mine = || self.claim_node(|graph| graph.claim(self.presence(), self.index(), Who::Owner));
        let found = if self.served.replace(false) { operation().or_else(mine) } else { mine().or_else(operation) };
        let rescues = self.rescues.replace(false);
        if found.is_some() || (!rescues && (self.presence().is_crowded() || !self.presence().stands_in(self.index()))) {
            return found;
        }
        self.claim_node(|graph| self.steal_node(graph))
    }

    fn claim_node(&self, mut claim: impl FnMut(&Active) -> Option<Claimed>) -> Option<Found> {
        let mut known = self.known.borrow_mut();
        self.refresh(&mut known);
        let found = known.graphs.iter().find_map(|graph| Some((graph, claim(graph)?)));
        found.map(|(graph, claimed)| Found::Node(Arc::clone(graph), claimed))
    }

    #[inline]
    fn refresh(&self, known: &mut KnownGraphs) {
        if !self.graphs.is_current(known) {
            // What goes with a graph may be the program's, and panic.
            self.operations().unheard(|| "letting go of graphs".to_owned(), || self.graphs.refresh(known));
        }
    }

    fn steal_node(&self, graph: &Active) -> Option<Claimed> {
        let lanes = graph.lanes();
        let first = self.random() as usize % lanes;
        (first..lanes)
            .chain(0..first)
            .filter(|&lane| lane != self.index())
            .find_map(|lane| graph.claim(self.presence(), lane, Who::Thief(self.index())))
    }

    /// Runs a node, and those of this worker's that are ready after it or soon will be.
    pub(super) fn serve(&self, graph: &Active, claimed: Claimed) {
        let context = WorkerContext { worker: &self.queue.worker, event: Event::NONE };
        graph.run(self.presence(), self.index(), claimed, &context);
        self.workers.helpers.ran_node(self.index());
        for _ in 1..NODES_IN_A_ROW {
            // Whatever is claimed is run.
            let Some(next) = self.expect_node(graph) else { break };
            graph.run(self.presence(), self.index(), next, &context);
            self.workers.helpers.ran_node(self.index());
            self.operations().take_turn();
        }
        self.served.set(true);
        self.workers.after_run(self.index());
    }

    /// The next node to run, one of this worker's own if that is ready or only waits for others; unless there is
    /// something better to do.
    #[inline]
    fn expect_node(&self, graph: &Active) -> Option<Claimed> {
        let operations = self.operations();
        for round in 0..EXPECTING_ROUNDS {
            if self.queue.next.get() != 0
                || operations.queues.has_runtime_work_for(self.index(), &self.queue.deques)
                || operations.is_stopping()
            {
                return None;
            }
            let is_thorough = round % THOROUGH_ROUNDS == THOROUGH_ROUNDS - 1;
            let claimed = match is_thorough {
                true => graph.claim(self.presence(), self.index(), Who::Owner),
                false => graph.claim_first(self.presence(), self.index()),
            };
            if let Some(claimed) = claimed {
                if round > 0 {
                    self.has_stolen.set(false);
                }
                return Some(claimed);
            }
            let is_expecting = graph.is_expecting(self.index());
            if !is_expecting && self.workers.poll_in_passing() {
                // What the next node waits for besides others may have come from another process.
                continue;
            }
            if self.presence().is_crowded() || !is_expecting {
                return None;
            }
            // What this worker waits for may be a node that its own worker does not come to.
            let hopeful_rounds = if self.has_stolen.get() { HOPELESS_ROUNDS } else { HOPEFUL_ROUNDS };
            if round % hopeful_rounds == hopeful_rounds - 1 && self.presence().stands_in(self.index()) {
                let stolen = self.steal_node(graph);
                if stolen.is_some() {
                    self.has_stolen.set(true);
                    return stolen;
                }
            }
            operations.take_turn();
            spin_loop();
        }
        None
    }

    /// Whether what was found takes this worker away from nodes: then others look after those that are ready, as it may
    /// take long.
    #[inline]
    pub(super) fn goes_elsewhere(&self, found: &Found) -> bool {
        !matches!(found, Found::Node(..)) && !self.graphs.is_empty() && self.leave_nodes_to_others()
    }

    fn leave_nodes_to_others(&self) -> bool {
        // Against the opening of a gate: either the thread that opens it sees this, or we see what is ready.
        self.presence().elsewhere[self.index()].fetch_add(1, Ordering::SeqCst);
        if self.presence().sleep.is_anybody_asleep()
            && let Ok(mut known) = self.known.try_borrow_mut()
        {
            self.refresh(&mut known);
            known.graphs.iter().for_each(|graph| graph.leave_to_others(self.presence(), self.index()));
        }
        true
    }

    /// Whether a node is ready that this worker should run before it sleeps: the next one of its own, in any graph, or
    /// of others if there may be no other worker that looks before it sleeps.
    pub(super) fn has_ready_node(&self) -> bool {
        if self.graphs.is_empty() {
            return false;
        }
        let mut known = self.known.borrow_mut();
        self.refresh(&mut known);
        let who = if self.presence().stands_in(self.index()) { Who::Thief(self.index()) } else { Who::Bystander };
        let for_others = self.presence().has_idle_core();
        let has_ready = |graph: &Active| {
            graph.has_ready(self.presence(), self.index(), Who::Owner)
                || (for_others && (0..graph.lanes()).any(|lane| graph.has_ready(self.presence(), lane, who)))
        };
        known.graphs.iter().any(|graph| has_ready(graph))
    }

    /// Whether a node is ready that any worker may run.
    pub(super) fn has_left_node(&self) -> bool {
        if self.graphs.is_empty() {
            return false;
        }
        let mut known = self.known.borrow_mut();
        self.refresh(&mut known);
        known.graphs.iter().any(|graph| {
            (0..graph.lanes()).any(|lane| graph.has_ready(self.presence(), lane, Who::Thief(self.index())))
        })
    }

    /// Lets go of graphs before a sleep: they may be gone afterwards.
    pub(super) fn forget_graphs(&self) {
        self.known.borrow_mut().forget();
    }
}
