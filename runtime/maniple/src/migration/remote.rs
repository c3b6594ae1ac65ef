//! The program as migration sees it: tasks of this node that run elsewhere, and the part of the runtime that runs tasks
//! of others.

use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use serde::{Deserialize, Serialize};

use super::packet::TaskPacket;
use super::result::TaskResult;
use crate::support::error::Error;
use crate::support::statistics::Counters;

/// Tasks of this node that run on another one.
pub(crate) trait Remote: Send {
    /// Ends the tasks with their results, one for each in the order of the packet, or runs here what was refused there.
    /// Called by a worker; or, if the job has ended, by the thread that ends it or the one that would have sent the
    /// packet.
    fn complete(self: Box<Self>, results: Vec<TaskResult>);
}

/// A function that is called with the results of a packet, one for each task.
pub(crate) type Done = Box<dyn FnOnce(Vec<TaskResult>) + Send>;

/// The part of the runtime that runs tasks of other nodes, and knows which tasks wait here. It may be gone while the
/// node is still in the job.
pub(crate) trait Executor: Send + Sync {
    /// Runs the tasks of a packet here, or forwards them. Does not block: the thread that calls may be the network's.
    fn execute(self: Arc<Self>, packet: TaskPacket, values: Bytes, done: Done);

    /// Takes a task out of the queues for a thief, if at least so many tasks are queued, and the mapper permits it.
    fn steal(&self, thief: NodeId, at_least: usize) -> Option<(TaskPacket, Box<dyn Remote>)>;

    /// Tries to map again what found no memory: tasks that were away have ended.
    fn memory_may_be_free(&self);

    /// Has a mapper hear a message of another node's. Does not block.
    fn deliver(self: Arc<Self>, from: NodeId, letter: Letter, text: Bytes);

    /// Another node's mappers have heard so many bytes more of messages from here.
    fn letters_heard(&self, by: NodeId, bytes: u64);

    /// The counters of statistics.
    fn counters(&self) -> &Counters;
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MigrationMessage {
    /// A steal request, or that there is nothing to steal.
    Steal,
    /// Tasks that migrate.
    Packet,
    /// The results of a packet.
    Results,
    /// A message between mappers.
    Letter,
    /// How many bytes of such messages were heard.
    Heard,
}

/// The header of a message between mappers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Letter {
    /// The number of the mapper, of several.
    pub(crate) mapper: u16,
    /// The processor of the mapper that sends it.
    pub(crate) from: u32,
    /// That of the mapper for which it is.
    pub(crate) to: u32,
    /// How many messages it is an answer to, one after the other.
    pub(crate) answers: u8,
}

/// The services of its node that migration needs: to send messages, and to encode errors.
pub(crate) trait Network: Send + Sync {
    /// Sends a message. Never blocks.
    fn send(&self, to: NodeId, message: MigrationMessage, header: &[u8], payload: Vec<u8>);

    /// The error as it is sent to other nodes.
    fn encode_error(&self, error: &Error) -> Vec<u8>;

    /// The error that another node has told of.
    fn decode_error(&self, bytes: &[u8]) -> Option<Error>;

    /// The machine.
    fn realm(&self) -> &Realm;
}
