//! Nodes in several processes, over TCP.
//!
//! [`Tcp::join`] finds the other nodes ([`Settings`] say where and who) and gives a [`Transport`] for an
//! [`Endpoint`](super::Endpoint). Each has one thread of its own, on which a small tokio runtime reads sockets and
//! handlers run; senders write to sockets themselves where they can.
//!
//! ```no_run
//! use maniple_realm::machine::NodeId;
//! use maniple_realm::net::tcp::{Meeting, Secret, Settings, Tcp};
//! use maniple_realm::net::{Endpoint, Handlers, Options};
//!
//! // From the launcher: which of how many nodes, where to meet, and a secret that only this job's nodes know.
//! let secret = std::env::var("JOB_SECRET").ok().and_then(|text| Secret::from_hex(&text)).ok_or("no secret")?;
//! let settings = Settings::new(NodeId(1), 4, Meeting::File("/tmp/job-17".into()), secret)?;
//! let endpoint = Endpoint::start(Tcp::join(settings)?, Handlers::new(), Options::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In reading order: `rendezvous` and `handshake`, how nodes find and trust each other; `link`, how frames leave;
//! `reading`, how they come; `driver`, what the thread does; `identity` and `error`.

mod driver;
mod error;
mod handshake;
mod identity;
mod link;
mod reading;
mod rendezvous;
#[cfg(test)]
mod tests;
mod turn;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use crate::locks::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use self::driver::{SharedTcp, TcpEvent};
pub use self::error::JoinError;
pub use self::identity::Secret;
pub use super::build::BuildId;
use super::shared_memory::SharedMemory;
use super::transport::{Close, Flush, Frames, Polled, Receiver, Transport};
use crate::machine::NodeId;

/// The place where the nodes of a job find node 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// At an address, `HOST:PORT`, on which node 0 listens.
    At(String),
    /// At the address that node 0 writes into a file that all can read, being of the same user. It is gone when all
    /// have come.
    File(PathBuf),
}

impl fmt::Display for Meeting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => write!(formatter, "at {address}"),
            Self::File(file) => write!(formatter, "at the address in {}", file.display()),
        }
    }
}

/// Which node of which job this is, and how patient it is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This node.
    pub rank: NodeId,
    /// How many nodes the job has.
    pub nodes: usize,
    /// The place where nodes meet.
    pub meeting: Meeting,
    /// The address to listen on until all nodes are connected: 127.0.0.1, which other machines cannot reach, unless
    /// told otherwise. Node 0 listens where it is met, unless this says that all addresses are to be listened on:
    /// `0.0.0.0` and `::` mean those of IPv4 and of IPv6.
    pub listen: IpAddr,
    /// The secret that proves that a process belongs to this job.
    pub secret: Secret,
    /// The program that all nodes run: this one.
    pub build: BuildId,
    /// How long to wait until all nodes have come: one minute.
    pub join_timeout: Duration,
    /// How often to give a sign of life if there is nothing else to say: every second.
    pub heartbeat: Duration,
    /// After how long without one a node is lost: 20 seconds. Also how long a greeting, and the end, may take.
    pub silence: Duration,
    /// Whether nodes of one machine send messages by memory that they share ([`SharedMemory`]): yes.
    pub shared_memory: bool,
}

impl Settings {
    /// The usual settings of a node.
    ///
    /// # Errors
    ///
    /// If the file of the running program cannot be read, after which the build is named.
    pub fn new(rank: NodeId, nodes: usize, meeting: Meeting, secret: Secret) -> io::Result<Self> {
        Ok(Self {
            rank,
            nodes,
            meeting,
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secret,
            build: BuildId::of_this_program()?,
            join_timeout: Duration::from_secs(60),
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(20),
            shared_memory: true,
        })
    }
}

/// A node's connections.
pub struct Tcp {
    rank: NodeId,
    shared: Arc<SharedTcp>,
    events: UnboundedSender<TcpEvent>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
}

impl Tcp {
    /// Finds and greets all other nodes; returns when this one is connected with each.
    ///
    /// # Errors
    ///
    /// If a node does not come in time, is of another job or build, or the system refuses something.
    pub fn join(settings: Settings) -> Result<Arc<dyn Transport>, JoinError> {
        let (node, nodes, shared_memory) = (settings.rank, settings.nodes, settings.shared_memory);
        if nodes > 1 << 16 || usize::from(node.0) >= nodes {
            return Err(JoinError::NoSuchRank { node, nodes });
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name(format!("{node} network"));
        let thread = thread.spawn(move || driver::run(settings, &sender));
        let thread = thread.map_err(JoinError::io("starting a thread"))?;
        let joined = receiver.recv().unwrap_or_else(|_| {
            let what = "joining the job".to_owned();
            Err(JoinError::Io { what, error: io::Error::other("the network's thread has ended") })
        });
        let (shared, events) = joined?;
        let thread_id = thread.thread().id();
        let tcp = Arc::new(Self { rank: node, shared, events, thread: Mutex::new(Some(thread)), thread_id });
        Ok(if shared_memory { SharedMemory::over(tcp) } else { tcp })
    }
}

impl Transport for Tcp {
    fn rank(&self) -> NodeId {
        self.rank
    }

    fn nodes(&self) -> usize {
        self.shared.nodes()
    }

    fn start(&self, receiver: Arc<dyn Receiver>) {
        let _ = self.events.send(TcpEvent::Start(receiver));
    }

    fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        self.shared.send(to, frames, flush);
    }

    fn flush(&self) {
        self.shared.flush();
    }

    fn is_near(&self, node: NodeId) -> bool {
        self.shared.is_near(node)
    }

    fn polled(self: Arc<Self>) -> Option<Arc<dyn Polled>> {
        if self.nodes() > 1 { Some(self) } else { None }
    }

    fn close(&self, close: Close) {
        let _ = self.events.send(TcpEvent::Close(close));
    }

    fn join(&self) {
        if thread::current().id() == self.thread_id {
            return;
        }
        // Under the lock, so that a second caller waits too.
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

/// Polling by workers. Frames that no worker looks for are received on the network's thread, all the time.
impl Polled for Tcp {
    fn begin(&self) {}

    fn poll(&self) -> bool {
        self.shared.look()
    }

    fn end(&self) -> bool {
        self.shared.look()
    }

    fn is_cheap(&self) -> bool {
        false
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        let reason = "its transport was dropped".to_owned();
        let _ = self.events.send(TcpEvent::Close(Close::Abort(reason)));
    }
}
