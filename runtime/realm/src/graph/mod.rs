//! Static graphs: work that repeats, compiled once and run many times, without events, queues or allocation.
//!
//! A [`GraphSpec`] lists nodes in an order in which they could run one after another, and says which come after which,
//! within one run and from one run to the next. [`Graph::new`] compiles it: edges that others imply go, each node gets
//! its place in the *lane* of the worker that is its home. [`Realm::start_graph`](crate::Realm::start_graph) makes it
//! run: the driver of the [`GraphRuns`] opens one *stage* after another, a group of nodes that belong together, and
//! workers run the nodes of open stages as soon as what they come after has ended. Runs overlap: the next one's nodes
//! start where the edges allow.
//!
//! How workers find nodes, and why none is forgotten or run twice, is described in the folder's `README.md`.

use std::sync::Arc;

use crate::fault::Fault;
use crate::machine::ProcessorId;
use crate::operation::WorkerContext;
use crate::operation::operations::Operations;

pub(crate) mod active;
mod compile;
mod ends;
mod failures;
mod gate;
mod order;
mod per_run;
pub(crate) mod registry;
mod slots;
mod words;

use active::Active;
pub use compile::Graph;
pub use gate::{Gate, WeakGate};
pub use order::Predecessors;
use registry::Registry;
use words::Manner;

/// The specification that a [`Graph`] is compiled from.
#[derive(Clone, Debug, Default)]
pub struct GraphSpec {
    /// How many stages there are. Stages may be empty.
    pub stages: u32,
    /// The nodes, each after all that it comes after; stages in ascending order.
    pub nodes: Vec<NodeSpec>,
}

/// One node of a graph.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// The stage that it belongs to.
    pub stage: u32,
    /// The processor whose worker should run it.
    pub home: ProcessorId,
    /// No other worker may run it, but for those of [`others`](Self::others).
    pub pinned: bool,
    /// Processors whose workers may run it too if it is pinned.
    pub others: Vec<ProcessorId>,
    /// It takes what its stage is opened with: it fails if the [stage does](GraphRuns::fail).
    pub takes: bool,
    /// The edges from nodes of the same run, which come earlier in the list.
    pub after: Vec<Edge>,
    /// The edges from nodes of the run before: any nodes.
    pub after_previous: Vec<Edge>,
}

/// An edge of a graph: a node that another one comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier node, an index into [`GraphSpec::nodes`].
    pub node: u32,
    /// Whether its failure is this node's too; otherwise only the order counts.
    pub needs: bool,
}

/// The work of the nodes of a graph.
///
/// Methods are called on workers, for different nodes at the same time. They must not block. A panic in
/// [`run`](Self::run) is the node's failure.
pub trait GraphWork: Send + Sync + 'static {
    /// Runs a node. An error spreads to the nodes that need this one.
    fn run(&self, place: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>>;

    /// [`run`](Self::run) has panicked, which is the node's failure.
    fn panicked(&self, _place: GraphPlace, _fault: &Arc<Fault>) {}

    /// Called instead of [`run`](Self::run) when something that the node needs has failed.
    fn poisoned(&self, place: GraphPlace, fault: &Arc<Fault>);

    /// The worker that asks will probably run this node next. A hint, which may come late: the node may have been run
    /// by another.
    fn expect(&self, _place: GraphPlace) {}

    /// All nodes of a stage have ended, and were not passed over: of one that was opened [to be told](GraphRuns::open)
    /// of, that is [watched](GraphRuns::watch), or in which a node failed.
    fn stage_ended(&self, run: u64, stage: u32);

    /// All nodes of a run have ended, and its slot is armed for a later run: see [`GraphRuns::is_armed`].
    fn run_ended(&self, run: u64);
}

/// A node in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphPlace {
    /// The node, an index into [`GraphSpec::nodes`].
    pub node: u32,
    /// The run, from 0.
    pub run: u64,
}

/// A graph that runs: see [`Realm::start_graph`](crate::Realm::start_graph).
///
/// Runs are numbered from 0. The caller opens the stages of each run, in any order, and of the runs one after the
/// other.
pub struct GraphRuns {
    /// The handle that keeps the workers up. It is dropped before the other fields.
    _keeper: Box<dyn Send + Sync>,
    operations: Arc<Operations>,
    registry: Arc<Registry>,
    active: Arc<Active>,
}

impl GraphRuns {
    /// See [`Realm::start_graph`](crate::Realm::start_graph). The workers are there as long as `keeper` is.
    pub(crate) fn start(
        graph: &Arc<Graph>,
        work: Arc<dyn GraphWork>,
        depth: usize,
        operations: Arc<Operations>,
        registry: Arc<Registry>,
        keeper: Box<dyn Send + Sync>,
    ) -> Self {
        let active = Arc::new(Active::new(Arc::clone(graph), work, depth.max(4).next_power_of_two()));
        registry.add(&active);
        Self { _keeper: keeper, operations, registry, active }
    }

    /// Whether the stages of a run may be opened: its slot is armed. A run whose time has not come is armed when an
    /// earlier one ends ([`GraphWork::run_ended`]).
    #[must_use]
    pub fn is_armed(&self, run: u64) -> bool {
        self.active.is_armed(run)
    }

    /// Lets the nodes of a stage run; [`GraphWork::stage_ended`] is called when they have. Of a stage without nodes,
    /// that is at once.
    pub fn open(&self, run: u64, stage: u32) {
        self.open_as(run, stage, Manner::Run, true);
    }

    /// As [`open`](Self::open), for a stage whose end is not watched so far: [`GraphWork::stage_ended`] is called only
    /// if a node fails, or if the stage is [watched](Self::watch) in time. Cheaper: workers need not tell one another
    /// of each end.
    pub fn open_unwatched(&self, run: u64, stage: u32) {
        self.open_as(run, stage, Manner::Run, false);
    }

    fn open_as(&self, run: u64, stage: u32, manner: Manner, watched: bool) {
        debug_assert!(self.is_armed(run), "run {run} is opened before its slot is free");
        self.active.open(&self.operations.presence, run, stage, manner, watched);
    }

    /// From any thread, for a stage that has been opened: calls [`GraphWork::stage_ended`] when its nodes have ended.
    /// False if they have ended already; then it may not be called.
    #[must_use]
    pub fn watch(&self, run: u64, stage: u32) -> bool {
        self.active.watch(run, stage)
    }

    /// From any thread, for a stage that has been opened: whether its nodes have ended.
    #[must_use]
    pub fn has_ended(&self, run: u64, stage: u32) -> bool {
        self.active.has_ended(run, stage)
    }

    /// Passes over the nodes of a stage: they end, in their order, without being run, and [`GraphWork::stage_ended`] is
    /// not called. So a run that will not be completed ends.
    pub fn skip(&self, run: u64, stage: u32) {
        self.open_as(run, stage, Manner::Skip, false);
    }

    /// Fails the nodes of a stage that [take](NodeSpec::takes) what it is opened with, and what needs them. The others
    /// run.
    pub fn fail(&self, run: u64, stage: u32, fault: &Arc<Fault>) {
        self.active.blame_stage(run, stage, fault);
        self.open_as(run, stage, Manner::Poisoned, true);
    }

    /// The faults of nodes that failed in the latest runs, those that need such among them. To be asked when all open
    /// stages have ended. Of runs that ended before as many as may be under way at a time, nothing is known any more.
    #[must_use]
    pub fn faults(&self) -> Vec<(GraphPlace, Arc<Fault>)> {
        self.active.faults()
    }
}

impl Drop for GraphRuns {
    fn drop(&mut self) {
        self.registry.remove(&self.active);
    }
}

impl std::fmt::Debug for GraphRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GraphRuns").field(&self.active).finish()
    }
}
