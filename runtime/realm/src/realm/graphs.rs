//! The graphs that a realm runs.

use std::sync::Arc;

use super::Realm;
use crate::graph::{Graph, GraphRuns, GraphWork};

impl Realm {
    /// Has the workers serve a graph, whose first run comes after nothing. At most `depth` runs are under way or armed
    /// for at a time; it is rounded up to a power of two of at least 4.
    ///
    /// Workers look at the graph until the handle is dropped.
    pub fn start_graph(&self, graph: &Arc<Graph>, work: Arc<dyn GraphWork>, depth: usize) -> GraphRuns {
        let (operations, registry) = (Arc::clone(&self.shared.operations), Arc::clone(&self.workers().graphs));
        GraphRuns::start(graph, work, depth, operations, registry, Box::new(self.clone()))
    }

    /// Waits until the workers have let go of all graphs that run no more, and so of what those hold: a few
    /// microseconds after they have found nothing else to do. Nothing on a worker, which may have one itself.
    pub fn release_graphs(&self) {
        if self.current_processor().is_none() {
            self.help_while(|| !self.workers().graphs.are_released());
        }
    }
}
