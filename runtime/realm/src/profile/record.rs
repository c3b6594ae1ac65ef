//! The records of a profile: plain values, all times in nanoseconds since the profile began.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::label::Tag;

/// Names an operation, or something that happened and that operations wait for.
///
/// Operations of the realm are named by their events; others, such as the nodes of replayed graphs, get names from
/// [`Profiler::new_operations`](super::Profiler::new_operations).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationId(pub u64);

impl OperationId {
    /// No operation: a thread that does no operation's work.
    pub const NONE: Self = Self(0);

    /// The first of the names that are no events: no node of a machine has this number.
    pub(super) const FIRST_FRESH: u64 = 0x3FFF << 50;

    /// Whether this is [`OperationId::NONE`].
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {:#x}", self.0)
    }
}

/// Names a [`Graph`] of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GraphId(pub u32);

/// The dependences of operations that run many times alike: node `k` comes after `nodes[k]`, which are nodes too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// The nodes that each node comes after.
    pub nodes: Vec<Vec<u32>>,
}

/// One thing that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// An activity of the thread, from `start` to `end`. Spans of one thread are nested or apart. An operation may have
    /// many.
    Span {
        /// The description of the activity.
        tag: Tag,
        /// Whose work it was.
        operation: OperationId,
        /// When it began.
        start: u64,
        /// When it ended.
        end: u64,
    },
    /// An operation was handed to the machine.
    Launched {
        /// The operation.
        operation: OperationId,
        /// The operation that handed it over.
        by: OperationId,
        /// When.
        time: u64,
    },
    /// The last of what an operation waited for had happened, after it was launched.
    Ready {
        /// The operation.
        operation: OperationId,
        /// When.
        time: u64,
    },
    /// An operation comes after others; unused places are [`OperationId::NONE`].
    After {
        /// The operation.
        operation: OperationId,
        /// The operations before it; places that are not needed hold [`OperationId::NONE`].
        after: [OperationId; 4],
    },
    /// Something happened because an operation said so.
    Triggered {
        /// The event that happened.
        event: OperationId,
        /// The operation.
        by: OperationId,
        /// When.
        time: u64,
    },
    /// An operation that had begun went on only after something else.
    Awaited {
        /// The operation.
        operation: OperationId,
        /// The event that it waited for.
        event: OperationId,
        /// When it began to wait.
        time: u64,
    },
    /// The movement of bytes by an operation of kind copy, fill or reduction.
    Transfer {
        /// The operation.
        operation: OperationId,
        /// The memory read; for a fill, the memory written.
        from: u32,
        /// The memory written.
        to: u32,
        /// Bytes written.
        bytes: u64,
    },
    /// The bytes in use of a memory changed.
    Memory {
        /// The memory.
        memory: u32,
        /// The bytes in use from now on.
        used: u64,
        /// When.
        time: u64,
    },
    /// A graph was run: its node `k` is operation `first + k`.
    Replayed {
        /// The graph.
        graph: GraphId,
        /// The operation that is node 0.
        first: OperationId,
        /// The operation that had it run.
        by: OperationId,
        /// When.
        time: u64,
    },
    /// A message left for another process of the job.
    Sent {
        /// The operation that sent it.
        by: OperationId,
        /// The node that it went to.
        to: u16,
        /// Its number among all messages from this node to that one, as [`Record::Received`] has it there.
        number: u64,
        /// When: not after it left.
        time: u64,
    },
    /// A message came from another process of the job.
    Received {
        /// The operation, one of its own, for all that is done because of the message.
        message: OperationId,
        /// The node that it came from.
        from: u16,
        /// Its number among all messages from that node to this one.
        number: u64,
        /// When: not before it was there.
        time: u64,
    },
}

impl Record {
    /// The latest time that it tells.
    #[must_use]
    pub fn time(&self) -> Option<u64> {
        match *self {
            Self::Span { end: time, .. }
            | Self::Launched { time, .. }
            | Self::Ready { time, .. }
            | Self::Triggered { time, .. }
            | Self::Awaited { time, .. }
            | Self::Memory { time, .. }
            | Self::Replayed { time, .. }
            | Self::Sent { time, .. }
            | Self::Received { time, .. } => Some(time),
            Self::After { .. } | Self::Transfer { .. } => None,
        }
    }
}

const _: () = assert!(size_of::<Record>() <= 48);
