//! Programs on several nodes of one process.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, Sharding, ShardingMapper, TaskInfo};
use maniple::net::loopback::Network;
use maniple::{Context, Machine, Result, Runtime};

/// A job of several nodes in this process.
pub struct Nodes {
    /// What connects them.
    pub network: Network,
    count: usize,
    sharding: fn(usize, &TaskInfo<'_>, usize) -> Sharding,
}

/// So much memory has each node, in bytes.
const MEMORY: u64 = 1 << 26;

impl Nodes {
    /// So many nodes, whose network delays by chance.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { network: Network::seeded(count, count as u64, 10), count, sharding: |_, _, _| Sharding::Blocked }
    }

    /// With a mapper that deals launches to nodes: what a node, of so many, says of a launch.
    #[must_use]
    pub fn dealt(self, sharding: fn(usize, &TaskInfo<'_>, usize) -> Sharding) -> Self {
        Self { sharding, ..self }
    }

    /// What decides on a node.
    fn mapper(&self, node: usize) -> impl Mapper + Clone + Sync + use<> {
        let sharding = self.sharding;
        ShardingMapper::new(DefaultMapper::new(), move |launch, nodes| sharding(node, launch, nodes))
    }
}

/// Runs a program on all nodes, with one worker each. What each has come to, by number.
///
/// # Panics
/// If a node cannot be started, or panics.
#[allow(clippy::needless_pass_by_value, reason = "a job runs once")]
pub fn on_nodes<T: Send>(job: Nodes, program: impl AsyncFn(&Context, &Runtime) -> Result<T> + Sync) -> Vec<Result<T>> {
    let _pump = job.network.pump();
    let run = |node: usize| {
        let builder = Runtime::builder().machine(Machine::uniform(1, MEMORY)).workers(1).mapper(job.mapper(node));
        let runtime = builder.network(job.network.node(NodeId(node as u16))).build()?;
        runtime.run(async |cx| program(cx, &runtime).await)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let nodes: Vec<_> = (0..job.count).map(|node| scope.spawn(move || run(node))).collect();
        nodes.into_iter().map(|node| node.join().expect("a node does not panic")).collect()
    })
}
