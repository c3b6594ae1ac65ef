//! The network: messages between nodes, bytes from memory to memory, collectives of all nodes.
//!
//! A *job* is a number of nodes, each with a rank from 0. A [`Transport`] moves frames between them; an [`Endpoint`]
//! makes of frames what the runtime uses:
//!
//! * active messages ([`Message`], [`Handlers`]), in order from each node to each other one, with a bound on what is
//!   under way;
//! * puts and gets ([`Put`], [`Get`]) straight from and into registered memory ([`Segment`]);
//! * barriers, detection of quiescence, an orderly end; and the loss of a node as something that is told.
//!
//! # The parts, in reading order
//!
//! * [`message`]: messages and their handlers; [`error`]: what can fail;
//! * [`endpoint`]: a node's end of the network; [`segment`]: memory that transfers use;
//! * [`transport`]: the seam; [`frame`]: what crosses it;
//! * [`loopback`]: many nodes in one process, each step chosen by a seed;
#![cfg_attr(feature = "tcp", doc = "* [`tcp`]: nodes in several processes;")]
#![cfg_attr(
    feature = "tcp",
    doc = "* [`shared_memory`]: messages between nodes of one machine, over another transport;"
)]
#![cfg_attr(feature = "mpi", doc = "* [`mpi`]: nodes that `mpirun` or `srun` starts;")]
//! * [`environment`]: which node of which job a process is.
//!
//! `README.md` in this folder describes the protocols and why they hold.
//!
//! # A program
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use maniple_realm::machine::NodeId;
//! use maniple_realm::net::loopback::Network;
//! use maniple_realm::net::{Endpoint, HandlerId, Handlers, Message, Options};
//!
//! const ASK: HandlerId = HandlerId(0);
//! const ANSWER: HandlerId = HandlerId(1);
//!
//! let network = Network::new(2);
//! let heard = Arc::new(AtomicU64::new(0));
//! let join = |rank| {
//!     let heard = heard.clone();
//!     let handlers = Handlers::new()
//!         .on(ASK, |ask| ask.reply(Message::new(ANSWER).payload(vec![21; ask.header().len()])).unwrap_or_default())
//!         .on(ANSWER, move |answer| {
//!             heard.fetch_add(answer.payload().iter().map(|&byte| u64::from(byte)).sum(), Ordering::Relaxed);
//!         });
//!     Endpoint::start(network.node(NodeId(rank)), handlers, Options::default())
//! };
//! let (first, _second) = (join(0), join(1));
//! first.send(NodeId(1), Message::new(ASK).header(b"ab"))?;
//! network.run();
//! assert_eq!(heard.load(Ordering::Relaxed), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(feature = "mpi", feature = "tcp", test))]
mod build;
pub mod endpoint;
pub mod environment;
pub mod error;
pub mod frame;
pub mod loopback;
pub mod message;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(any(feature = "mpi", test))]
mod outbox;
pub mod segment;
#[cfg(feature = "tcp")]
pub mod shared_memory;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod transport;
#[cfg(any(feature = "mpi", feature = "tcp", test))]
pub mod wire;

pub use endpoint::{
    Activity, Endpoint, Get, Handlers, Incoming, Options, Put, Registration, RemoteSegment, RemoteSpan,
};
pub use error::{Loss, NetError, SendError};
pub use frame::MAX_HEADER;
pub use message::{HandlerId, Message};
pub use segment::{Segment, Span};
pub use transport::{Loan, Polled, Transport};
