//! Frames: what transports carry.
//!
//! A frame is a [`Header`], a *head* of at most 256 bytes, and a *body* of at most 1 MiB.

use bytes::Bytes;
use smallvec::SmallVec;
use thiserror::Error;

use super::message::HandlerId;
use super::segment::Span;

/// The most bytes that a message's header may have, and so a frame's head.
pub const MAX_HEADER: usize = 256;

/// The most bytes that the body of one frame may have.
pub const MAX_BODY: usize = 1 << 20;

/// Something to be done once, on the thread that makes progress: as short as a handler.
pub type Callback<T> = Box<dyn FnOnce(T) + Send>;

/// Which of a pair's two orders a frame keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Messages, and what the protocols say to each other.
    Messages,
    /// Bytes of puts and gets.
    Bulk,
}

/// How a transfer ended at the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Done,
    /// There is no such segment there.
    NoSegment,
    /// It is not within the segment.
    OutOfRange,
}

/// The kind of a frame, with the fields of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A message or its first part: the head is the message's header, the body the payload as far as it goes.
    Message {
        /// The handler of the message.
        handler: HandlerId,
        /// The bytes of the whole payload.
        payload: u64,
        /// Whether it counts towards the sender's window.
        counted: bool,
        /// Whether the sender wants its credit back now.
        ask: bool,
    },
    /// The next part of the payload of the message before.
    Part,
    /// Messages of so many bytes were handled.
    Credit {
        /// How many.
        bytes: u64,
    },
    /// Bytes for a segment of the receiver.
    PutChunk {
        /// Number of the transfer, given by the node that puts.
        transfer: u64,
        /// Number of the segment.
        segment: u64,
        /// The offset of the bytes in the segment.
        offset: u64,
    },
    /// All bytes of a put have been sent; the head is the notification's header.
    PutEnd {
        /// Number of the transfer.
        transfer: u64,
        /// The handler to be told at the receiver, if any.
        notify: Option<HandlerId>,
    },
    /// How a transfer that the receiver asked for has ended.
    Ended {
        /// Number of the transfer.
        transfer: u64,
        /// How.
        outcome: Outcome,
    },
    /// Asks for bytes of a segment of the receiver.
    GetAsk {
        /// Number of the transfer, given by the node that gets.
        transfer: u64,
        /// Number of the segment.
        segment: u64,
        /// The offset of the bytes in the segment.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// Bytes that the receiver asked for.
    GetChunk {
        /// Number of the transfer.
        transfer: u64,
        /// The offset of the bytes in the range that was asked for.
        offset: u64,
    },
    /// A barrier's round.
    Barrier {
        /// Which barrier.
        generation: u64,
        /// Which round.
        round: u32,
    },
    /// Asks for a node's counts, once it is passive.
    Probe {
        /// Which wave.
        wave: u64,
    },
    /// The counts of a node and all below it in the tree.
    Report {
        /// Which wave.
        wave: u64,
        /// Messages sent.
        sent: u64,
        /// Messages handled.
        handled: u64,
        /// How often a node became active.
        activations: u64,
    },
    /// All nodes are quiet.
    Quiet {
        /// The wave that found it.
        wave: u64,
    },
    /// A sign of life. For transports only, as are the next two.
    Heartbeat,
    /// The node has ended in order, and sends nothing any more.
    Goodbye,
    /// The node has given up; the body says why.
    Abort,
    /// Offers the sender's inbox: the body says where it is, in memory that both could share. For
    /// [`shared_memory`](super::shared_memory) only, as are the next three.
    Offer,
    /// The receiver's inbox is open; the sender's messages come by it from now on.
    Switch,
    /// The receiver's inbox cannot be opened.
    Decline,
    /// Something is in the receiver's inbox, or there is room in the sender's.
    Bell,
    /// A message whose payload is in memory that the sender lends. For [`shared_memory`](super::shared_memory) only.
    Lent {
        /// The handler of the message.
        handler: HandlerId,
        /// Whether it counts towards the sender's window.
        counted: bool,
        /// Whether the sender wants its credit back now.
        ask: bool,
        /// The offset of the block in the sender's inbox: a line of its own, then the payload.
        block: u64,
        /// How many bytes.
        length: u64,
    },
}

impl Header {
    /// Its lane.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::PutChunk { .. } | Self::PutEnd { .. } | Self::GetChunk { .. } => Lane::Bulk,
            _ => Lane::Messages,
        }
    }

    /// Whether transports say it to each other, and endpoints never hear of it.
    #[must_use]
    pub fn is_for_transports(&self) -> bool {
        matches!(
            self,
            Self::Heartbeat
                | Self::Goodbye
                | Self::Abort
                | Self::Offer
                | Self::Switch
                | Self::Decline
                | Self::Bell
                | Self::Lent { .. }
        )
    }

    /// Whether its body goes straight to registered memory.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        matches!(self, Self::PutChunk { .. } | Self::GetChunk { .. })
    }
}

/// The bytes that a frame carries besides head and header.
#[derive(Debug)]
pub enum Body {
    /// Bytes of its own.
    Bytes(Bytes),
    /// Bytes of registered memory.
    Span(Span),
}

/// The unit that a transport carries from one node to another.
pub struct Frame {
    /// Its kind, with the fields of that kind.
    pub header: Header,
    /// Up to [`MAX_HEADER`] bytes.
    pub head: SmallVec<[u8; 40]>,
    /// Up to [`MAX_BODY`] bytes.
    pub body: Body,
    /// To be called when the body's memory may change again; dropped uncalled if the frame is not sent.
    pub sent: Option<Callback<()>>,
}

impl Frame {
    /// A frame of a header only.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, head: SmallVec::new(), body: Body::Bytes(Bytes::new()), sent: None }
    }

    /// Its lane.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.header.lane()
    }
}

impl Body {
    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Span(span) => span.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes that are no frame, or a frame that does not fit what came before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Violation {
    /// An unknown kind.
    #[error("a frame of kind {0}, which does not exist")]
    UnknownKind(u8),
    /// A field with a value that it cannot have.
    #[error("a frame of kind {kind} whose {field} is {found}")]
    BadField {
        /// The frame's kind.
        kind: u8,
        /// Which field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// A frame that is longer than frames are.
    #[error("a frame with {found} bytes of {part}, where {limit} are the most")]
    TooLong {
        /// Head or body.
        part: &'static str,
        /// How many.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A frame that does not fit what came before it.
    #[error("{0}")]
    OutOfPlace(&'static str),
    /// A message without a handler.
    #[error("a message for handler {0}, which this node does not have: give all nodes the same handlers")]
    NoHandler(HandlerId),
}
