//! What can go wrong in a job, and errors that go from node to node.

use std::sync::Arc;

use maniple_realm::Fault;
use maniple_realm::net::SendError;
use serde::{Deserialize, Serialize};

use crate::names::Rank;

/// The result of an operation of a job.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a job, or this node's part in it, has come to an end, or an exchange has failed. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A node is gone, and with it data that no other node has: the job has ended.
    #[error("node {node} is lost, and the job with it: {reason}")]
    NodeLost {
        /// The node.
        node: Rank,
        /// What the network knows of it, and what the nodes were doing.
        reason: String,
    },
    /// The program, which runs on all nodes, did not do the same on all of them.
    #[error(
        "the nodes of the job do not run the same program: {difference}; look for what a node sees differently: random numbers, the time, the \
         environment, files, the order of hash maps, which of several futures is ready first"
    )]
    NodesDiffer {
        /// The first difference, and which node has done what.
        difference: String,
    },
    /// Something failed on another node.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The realm has broken down, or was given up: nothing more arrives.
    #[error("the job is over: {0}")]
    Over(Arc<Fault>),
    /// What other nodes have sent cannot be read.
    #[error("what other nodes have sent for {0} cannot be read")]
    Malformed(&'static str),
    /// The transport refuses a message, though the other node is there.
    #[error("a message cannot be sent: {0}")]
    NotSent(Arc<SendError>),
}

/// A failure as it is sent to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("on node {node}: {message}")]
pub struct Failure {
    /// The node on which it happened.
    pub node: Rank,
    /// What happened.
    pub message: String,
}
