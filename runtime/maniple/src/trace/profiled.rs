//! Replays in profiles.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::graph::Edge;
use maniple_realm::profile::{Activity, Graph, GraphId, Kind, OperationId, Profiler, Record, Tag};
use maniple_realm::transfer::channel;

use super::nodes::TraceNode;
use super::template::Template;

/// The profile of a replay: the labels of its nodes, and the operations of its runs.
pub(super) struct Profiled {
    profiler: Profiler,
    /// Which replay it is, of all that this process has.
    replay: u64,
    graph: GraphId,
    /// The label of each node.
    tags: Vec<Tag>,
    /// The nodes of each stage.
    stages: Vec<Range<u32>>,
    /// Nodes that come after some of the run before, and which.
    after_run_before: Vec<(u32, Vec<u32>)>,
    /// The operation that is node 0 of a run, by slot.
    firsts: Box<[AtomicU64]>,
}

/// The node that a thread has run last. A thread may run nodes of several replays in turn, also of several runtimes,
/// whose operations have the same names.
#[derive(Clone, Copy)]
struct Latest {
    replay: u64,
    run: u64,
    operation: OperationId,
}

thread_local! {
    static LATEST: Cell<Option<Latest>> = const { Cell::new(None) };
}

/// The number of the next replay.
static REPLAYS: AtomicU64 = AtomicU64::new(0);

impl Profiled {
    pub(super) fn new(profiler: &Profiler, template: &Template, slots: usize) -> Self {
        let predecessors = template.graph.predecessors();
        let earlier = |edges: &[Edge]| edges.iter().map(|edge| edge.node).collect::<Vec<u32>>();
        let graph = profiler.graph(Graph { nodes: predecessors.iter().map(|node| earlier(&node.same_run)).collect() });
        let after_run_before =
            (0..).zip(&predecessors).map(|(node, predecessors)| (node, earlier(&predecessors.run_before)));
        let after_run_before = after_run_before.filter(|(_, earlier)| !earlier.is_empty()).collect();
        let tag = |node: &TraceNode| match node {
            TraceNode::Task(task) => {
                let site = &template.stages[task.stage as usize].site;
                let (domain, launched) = (site.shown_domain(), site.launched.as_ref().map(ToString::to_string));
                let name = site.definition.name();
                let label = profiler.label_of_launch(Kind::Task, name, domain.as_ref(), launched.as_deref());
                Tag { label, index: task.index as u32 }
            }
            TraceNode::Transfers(transfers) => transfers.first().map_or(Tag::NONE, |first| Tag::of(first.label())),
        };
        let tags = template.nodes.iter().map(tag).collect();
        let first_of = |stage: usize| predecessors.partition_point(|node| (node.stage as usize) < stage) as u32;
        let stages = (0..template.stages.len()).map(|stage| first_of(stage)..first_of(stage + 1)).collect();
        let (profiler, firsts) = (profiler.clone(), (0..slots).map(|_| AtomicU64::new(0)).collect());
        let replay = REPLAYS.fetch_add(1, Ordering::Relaxed);
        Self { profiler, replay, graph, tags, stages, after_run_before, firsts }
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
            if let TraceNode::Transfers(transfers) = node {
                let (from, to, bytes) = channel(transfers);
                let operation = OperationId(first.0 + number as u64);
                self.profiler.record(Record::Transfer { operation, from, to, bytes });
            }
        }
    }

    /// The gate of a stage is opened after these.
    #[cold]
    pub(super) fn opens_after(&self, run: u64, stage: usize, earlier: &[OperationId]) {
        for node in self.stages[stage].clone() {
            self.profiler.came_after(self.operation(run, node), earlier.iter().copied());
        }
    }

    /// This thread begins to run a node.
    #[cold]
    pub(super) fn activity(&self, run: u64, node: u32) -> Activity<'_> {
        let operation = self.operation(run, node);
        LATEST.set(Some(Latest { replay: self.replay, run, operation }));
        self.profiler.activity(operation, self.tags[node as usize])
    }

    /// The activity for work that follows now from the end of a node of this run. It belongs to the node of the run
    /// that this thread has run last; to no node, if the thread has run something else since.
    #[cold]
    pub(super) fn catch_up(&self, run: u64) -> Activity<'_> {
        let own = LATEST.get().filter(|latest| (latest.replay, latest.run) == (self.replay, run));
        self.profiler.activity(own.map_or(OperationId::NONE, |latest| latest.operation), Tag::NONE)
    }

    fn operation(&self, run: u64, node: u32) -> OperationId {
        OperationId(self.firsts[self.slot(run)].load(Ordering::Relaxed) + u64::from(node))
    }

    fn slot(&self, run: u64) -> usize {
        run as usize & (self.firsts.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two runtimes, each of which has a profile of its own, in which operations have the same names.
    fn replays() -> [Profiled; 2] {
        [(); 2].map(|()| {
            let profiler = Profiler::writing_to(std::io::sink());
            let graph = profiler.graph(Graph { nodes: vec![Vec::new()] });
            let firsts = [profiler.replay(graph, 1), profiler.replay(graph, 1)];
            Profiled {
                profiler,
                replay: REPLAYS.fetch_add(1, Ordering::Relaxed),
                graph,
                tags: vec![Tag::NONE],
                stages: std::iter::once(0..1).collect(),
                after_run_before: Vec::new(),
                firsts: firsts.map(|first| AtomicU64::new(first.0)).into(),
            }
        })
    }

    /// Whose doing it is what follows.
    fn doer_after(replay: &Profiled, run: u64) -> OperationId {
        let _catch_up = replay.catch_up(run);
        replay.profiler.current()
    }

    #[test]
    fn what_follows_from_the_end_of_a_node_is_its_doing() {
        let [replay, _] = replays();
        drop(replay.activity(1, 0));
        assert_eq!(doer_after(&replay, 1), replay.operation(1, 0));
    }

    #[test]
    fn nothing_is_the_doing_of_another_replay_or_run_whose_node_the_thread_has_run() {
        let [replay, other] = replays();
        drop(replay.activity(0, 0));
        drop(other.activity(0, 0));
        assert_eq!(replay.operation(0, 0), other.operation(0, 0), "the names alone do not tell");
        assert_eq!(doer_after(&replay, 0), OperationId::NONE);
        assert_eq!(doer_after(&other, 1), OperationId::NONE);
    }
}
