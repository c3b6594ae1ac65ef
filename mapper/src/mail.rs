//! Messages between mappers.

use std::fmt;

use maniple_realm::machine::{NodeId, ProcessorId};

/// A mapper object of a job: that of a processor of a node, of the mapper of the same name as the one that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapperAddress {
    /// The node.
    pub node: NodeId,
    /// The processor, by its number on that node.
    pub processor: ProcessorId,
}

impl fmt::Display for MapperAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.processor, self.node)
    }
}

/// The bytes that a message has at most.
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// So many bytes of messages that were not heard may one node have for the mappers of another, or for its own; each
/// counts 64 bytes more than it has.
pub const MOST_UNHEARD: usize = 16 << 20;

/// So often at most is a message answered, and that answer answered: mappers that go on for ever would keep a program
/// from ending.
pub const MOST_ANSWERS: u8 = 64;

/// How mappers send messages to those of other processors and nodes: loads, times that they have measured, decisions
/// that all are to make alike.
///
/// The other mapper [hears](crate::Mapper::hear) of a message when it has time, after the call in which that was sent;
/// messages from one mapper to another arrive in the order in which they were sent. Results of the program can't depend
/// on them. Messages that are still under way when the program ends are lost.
pub trait Mail {
    /// The mapper that sends.
    fn here(&self) -> MapperAddress;

    /// How many nodes the job has.
    fn nodes(&self) -> usize;

    /// Sends a message. Does not wait.
    ///
    /// # Errors
    /// If there is no such node, or, of this node, no such processor; if the message is too long, or one answer too
    /// many; or if the mappers there have not heard too much that they were sent before. A processor that another node
    /// has not is found out there, and logged.
    fn send(&self, to: MapperAddress, message: &[u8]) -> Result<(), MailError>;
}

/// Why a message of a mapper was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// The job has no such node.
    #[error("a mapper sends a message to {node}, but the job has {nodes} nodes, numbered from 0")]
    NoSuchNode {
        /// The node.
        node: NodeId,
        /// How many there are.
        nodes: usize,
    },
    /// This node has no such processor.
    #[error("a mapper sends a message to {processor} of its node, which has {processors} processors, numbered from 0")]
    NoSuchProcessor {
        /// The processor.
        processor: ProcessorId,
        /// How many there are.
        processors: usize,
    },
    /// The message is too long.
    #[error(
        "a mapper sends a message of {bytes} bytes, of at most {LONGEST_MESSAGE}; send what has changed, or have tasks send data by regions"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Mappers have answered each other's messages too often.
    #[error(
        "mappers have answered each other's messages {MOST_ANSWERS} times in a row; send the next message from another call than `hear`"
    )]
    TooManyAnswers,
    /// The mappers of a node are busy, and have not heard enough of what they were sent.
    #[error(
        "a mapper sends a message to {node}, whose mappers have not heard {unheard} bytes that this node has sent, of at most {MOST_UNHEARD}; send          what has changed, and less often"
    )]
    TooManyUnheard {
        /// The node.
        node: NodeId,
        /// The bytes that were not heard.
        unheard: usize,
    },
}
