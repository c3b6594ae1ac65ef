//! Errors between nodes.

use std::time::Duration;

use thiserror::Error;

use super::message::{HandlerId, Message};
use crate::machine::NodeId;

/// Why a node is lost to the others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Loss {
    /// Its connection was closed, as it is when its process dies.
    #[error("its connection was closed: its process has ended without a word; look at its own output")]
    Closed,
    /// Its connection failed.
    #[error("its connection failed: {0}")]
    Broken(String),
    /// It said nothing for too long.
    #[error(
        "nothing was heard of it for {}s: its process is stopped or its network cut off (if it is only slow, raise the heartbeat time-out)",
        // Microseconds are left out.
        (silence.as_secs_f64() * 10.0).round() / 10.0
    )]
    Silent {
        /// For how long.
        silence: Duration,
    },
    /// It gave up, and said why.
    #[error("it gave up: {0}")]
    Aborted(String),
    /// It sent what no node sends.
    #[error("it sent {0}: its process is damaged, or it is no node of this job")]
    Violation(String),
    /// A handler panicked. Only the node itself sees this; to others it is [`Aborted`](Self::Aborted).
    #[error("the handler {handler} of a message from {from} {panic}")]
    HandlerPanicked {
        /// Which.
        handler: HandlerId,
        /// The node that sent the message.
        from: NodeId,
        /// The text of the panic.
        panic: String,
    },
}

/// A message that was not sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// As many bytes as the window allows are under way to the node. The message comes back: send it when
    /// [`Endpoint::when_room`](super::Endpoint::when_room) calls.
    #[error("the window of {to} is full: wait for `when_room`, then send the message again")]
    Busy {
        /// The node that it was to go to.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Something else.
    #[error(transparent)]
    Net(#[from] NetError),
}

/// Something between nodes that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetError {
    /// No such node.
    #[error("there is no {node}: the job's nodes are 0 to {}", nodes - 1)]
    NoSuchNode {
        /// The node asked for.
        node: NodeId,
        /// How many there are.
        nodes: usize,
    },
    /// A header that is too long.
    #[error("a message's header has at most {limit} bytes, not {found}: put the rest into the payload")]
    HeaderTooLong {
        /// Its bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A payload that is too long.
    #[error(
        "a message's payload has at most {limit} bytes, not {found}: put it into registered memory, or raise `Options::max_message`"
    )]
    PayloadTooLong {
        /// Its bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The node is lost.
    #[error("{node} is lost: {loss}")]
    Lost {
        /// Which.
        node: NodeId,
        /// Why.
        loss: Loss,
    },
    /// This node's part has ended.
    #[error("this node has left the job: it was shut down or has failed before")]
    Closed,
    /// Ends of a transfer that differ in length.
    #[error("a transfer has as many bytes at both ends, not {here} here and {there} there")]
    LengthsDiffer {
        /// Bytes of the local end.
        here: u64,
        /// Bytes of the remote end.
        there: u64,
    },
    /// Memory that the other node does not know.
    #[error(
        "{node} has no segment {segment}: it was not registered, or not any more; keep its `Registration` until all transfers have ended"
    )]
    NoSegment {
        /// The node.
        node: NodeId,
        /// The segment.
        segment: u64,
    },
    /// Bytes outside of the segment.
    #[error("the bytes {offset} to {end} are not all in segment {segment} of {node}")]
    OutOfRange {
        /// The node.
        node: NodeId,
        /// The segment.
        segment: u64,
        /// The first byte.
        offset: u64,
        /// The byte after the last.
        end: u64,
    },
}
