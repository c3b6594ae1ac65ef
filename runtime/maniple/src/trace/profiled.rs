//! Replays in profiles.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::graph::Edge;
use maniple_realm::profile::{Activity, Graph, GraphId, Kind, OperationId, Profiler, Record, Tag};
use maniple_realm::transfer::channel;

use super::template::{Node, Template};

/// What a profile is told of a replay.
pub(super) struct Profiled {
    profiler: Profiler,
    graph: GraphId,
    /// What each node is called.
    tags: Vec<Tag>,
    /// Nodes that come after some of the run before, and which.
    after_run_before: Vec<(u32, Vec<u32>)>,
    /// The operation that is node 0 of a run, by slot.
    firsts: Box<[AtomicU64]>,
}

thread_local! {
    /// The node that this thread has run last.
    static LATEST: Cell<OperationId> = const { Cell::new(OperationId::NONE) };
}

impl Profiled {
    pub(super) fn new(profiler: &Profiler, template: &Template, slots: usize) -> Self {
        let predecessors = template.graph.predecessors();
        let earlier = |edges: &[Edge]| edges.iter().map(|edge| edge.node).collect::<Vec<u32>>();
        let graph = profiler.graph(Graph { nodes: predecessors.iter().map(|node| earlier(&node.same_run)).collect() });
        let after_run_before =
            (0..).zip(&predecessors).map(|(node, predecessors)| (node, earlier(&predecessors.run_before)));
        let after_run_before = after_run_before.filter(|(_, earlier)| !earlier.is_empty()).collect();
        let tag = |node: &Node| match node {
            Node::Task(task) => {
                let site = &template.stages[task.stage as usize].site;
                let label = profiler.label(Kind::Task, site.definition.name(), site.shown_domain().as_ref());
                Tag { label, index: task.index as u32 }
            }
            Node::Transfers(transfers) => transfers.first().map_or(Tag::NONE, |first| Tag::of(first.label())),
        };
        let tags = template.nodes.iter().map(tag).collect();
        let (profiler, firsts) = (profiler.clone(), (0..slots).map(|_| AtomicU64::new(0)).collect());
        Self { profiler, graph, tags, after_run_before, firsts }
    }

    /// A run begins.
    #[cold]
    pub(super) fn begin(&self, template: &Template, run: u64) {
        let first = self.profiler.replay(self.graph, template.nodes.len() as u64);
        let before = self.operation(run.wrapping_sub(1), 0);
        self.firsts[self.slot(run)].store(first.0, Ordering::Relaxed);
        if run > 0 {
            for (node, earlier) in &self.after_run_before {
                let earlier = earlier.iter().map(|&earlier| OperationId(before.0 + u64::from(earlier)));
                self.profiler.came_after(OperationId(first.0 + u64::from(*node)), earlier);
            }
        }
        for (number, node) in template.nodes.iter().enumerate() {
            if let Node::Transfers(transfers) = node {
                let (from, to, bytes) = channel(transfers);
                let operation = OperationId(first.0 + number as u64);
                self.profiler.record(Record::Transfer { operation, from, to, bytes });
            }
        }
    }

    /// This thread begins to run a node.
    #[cold]
    pub(super) fn activity(&self, run: u64, node: u32) -> Activity<'_> {
        let operation = self.operation(run, node);
        LATEST.set(operation);
        self.profiler.activity(operation, self.tags[node as usize])
    }

    /// What follows now from the end of the node that this thread has run is its doing.
    #[cold]
    pub(super) fn aftermath(&self) -> Activity<'_> {
        self.profiler.activity(LATEST.get(), Tag::NONE)
    }

    fn operation(&self, run: u64, node: u32) -> OperationId {
        OperationId(self.firsts[self.slot(run)].load(Ordering::Relaxed) + u64::from(node))
    }

    fn slot(&self, run: u64) -> usize {
        run as usize & (self.firsts.len() - 1)
    }
}
