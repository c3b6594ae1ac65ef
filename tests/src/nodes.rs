//! Programs on several nodes of one process.
//!
//! They are connected by a loopback network, which delays by chance; by what processes would be connected with, if
//! [`OVER`] says so.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use maniple::machine::NodeId;
use maniple::mapper::{Mapper, Sharding, ShardingMapper, TaskInfo};
use maniple::net::Transport;
use maniple::net::loopback::{Network, Pump};
use maniple::net::tcp::{Meeting, Secret, Settings, Tcp};
use maniple::{Context, Machine, Result, Runtime};
use maniple_tensor::distributed::TensorMapper;

/// The variable with what connects nodes in tests: `loopback`, if it is not set, `sockets`, or `memory` that they
/// share.
pub const OVER: &str = "MANIPLE_TESTS_OVER";

/// The connections between the nodes of a job in this process.
pub enum Connections {
    /// A network that delays by chance, and what moves its messages.
    Loopback(Network, Pump),
    /// How the first node meets the others over TCP.
    Tcp(Settings),
}

/// More nodes than so many are always connected by a loopback network: of sockets there would be a pair for each two of
/// them.
const MOST_OVER_TCP: usize = 16;

impl Connections {
    /// For so many nodes, by what [`OVER`] says.
    ///
    /// # Panics
    /// If that is nothing that can connect them.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let over = std::env::var(OVER).unwrap_or_else(|_| "loopback".to_owned());
        let shared_memory = match &over[..] {
            "sockets" => false,
            "memory" => true,
            "loopback" => return Self::over_loopback(Network::seeded(nodes, nodes as u64, 10)),
            other => panic!("{OVER} is loopback, sockets or memory, not `{other}`"),
        };
        if nodes > MOST_OVER_TCP {
            eprintln!("{nodes} nodes are connected by a loopback network, not by {over}");
            return Self::over_loopback(Network::seeded(nodes, nodes as u64, 10));
        }
        Self::Tcp(Settings { nodes, meeting: Meeting::File(next_meeting()), shared_memory, ..settings().clone() })
    }

    /// By this network.
    #[must_use]
    pub fn over_loopback(network: Network) -> Self {
        let pump = network.pump();
        Self::Loopback(network, pump)
    }

    /// The end of a node.
    ///
    /// # Panics
    /// If it does not meet the others.
    #[must_use]
    pub fn node(&self, node: usize) -> Arc<dyn Transport> {
        let rank = NodeId(node as u16);
        match self {
            Self::Loopback(network, _) => network.node(rank),
            Self::Tcp(settings) => Tcp::join(Settings { rank, ..settings.clone() }).expect("nodes of one process meet"),
        }
    }

    /// How many frames a node has sent, which only a loopback network counts.
    #[must_use]
    pub fn frames(&self, node: usize) -> u64 {
        match self {
            Self::Loopback(network, _) => network.traffic(NodeId(node as u16)).frames,
            Self::Tcp(_) => 0,
        }
    }
}

/// Runs each of so many nodes on a thread of its own, and gives their results by number.
///
/// # Panics
/// If a node panics.
pub fn each_node<T: Send>(nodes: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let run = &run;
        let nodes: Vec<_> = (0..nodes).map(|node| scope.spawn(move || run(node))).collect();
        nodes.into_iter().map(|node| node.join().expect("a node does not panic")).collect()
    })
}

/// The settings that all jobs of this process have in common. To name the build takes reading the whole program.
fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let meeting = Meeting::File(PathBuf::new());
        Settings::new(NodeId(0), 1, meeting, Secret::random().expect("the system has randomness"))
            .expect("this program's file can be read")
    })
}

fn next_meeting() -> PathBuf {
    static MEETINGS: AtomicU64 = AtomicU64::new(0);
    let number = MEETINGS.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("maniple-tests-{}-{number}", std::process::id()))
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Self::Tcp(Settings { meeting: Meeting::File(file), .. }) = self {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A job of several nodes in this process.
pub struct Nodes {
    connections: Connections,
    count: usize,
    sharding: fn(usize, &TaskInfo<'_>, usize) -> Sharding,
    memory: u64,
    window: Option<usize>,
}

/// So much memory has each node, in bytes, unless another size is said.
const MEMORY: u64 = 1 << 26;

impl Nodes {
    /// So many nodes.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self::over(count, Connections::new(count))
    }

    /// So many nodes, connected by this network whatever [`OVER`] says.
    #[must_use]
    pub fn over_loopback(count: usize, network: &Network) -> Self {
        Self::over(count, Connections::over_loopback(network.clone()))
    }

    fn over(count: usize, connections: Connections) -> Self {
        Self { connections, count, sharding: |_, _, _| Sharding::Blocked, memory: MEMORY, window: None }
    }

    /// With a mapper that deals launches to nodes: what a node, of so many, says of a launch.
    #[must_use]
    pub fn dealt(self, sharding: fn(usize, &TaskInfo<'_>, usize) -> Sharding) -> Self {
        Self { sharding, ..self }
    }

    /// With so many bytes of memory on each node.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// With so many operations in flight on each node at most.
    #[must_use]
    pub fn with_window(self, operations: usize) -> Self {
        Self { window: Some(operations), ..self }
    }

    /// The mapper of a node: the default mapper, but for launches of tensors that are used in steps, for which the
    /// tensors decide.
    fn mapper(&self, node: usize) -> impl Mapper + Clone + Sync + use<> {
        let sharding = self.sharding;
        ShardingMapper::new(TensorMapper::new(), move |launch, nodes| sharding(node, launch, nodes))
    }
}

/// Runs a program on all nodes, with one worker each. What each has come to, by number.
///
/// # Panics
/// If a node cannot be started, or panics.
#[allow(clippy::needless_pass_by_value, reason = "a job runs once")]
pub fn on_nodes<T: Send>(job: Nodes, program: impl AsyncFn(&Context, &Runtime) -> Result<T> + Sync) -> Vec<Result<T>> {
    each_node(job.count, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, job.memory)).workers(1).mapper(job.mapper(node));
        let builder = match job.window {
            Some(operations) => builder.window(operations),
            None => builder,
        };
        let runtime = builder.network(job.connections.node(node)).build()?;
        runtime.run(async |cx| program(cx, &runtime).await)
    })
}
