//! Errors of a job, and failures that go from node to node.

use std::sync::Arc;

use maniple_realm::Fault;
use maniple_realm::net::{Loss, SendError};
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
        /// The network's account of the loss, and the operations that the nodes were at.
        reason: String,
    },
    /// The program, which runs on all nodes, did not do the same on all of them.
    #[error("{}{difference}{}", DIFFER.0, DIFFER.1)]
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
    /// Data from other nodes cannot be read.
    #[error("what other nodes have sent for {0} cannot be read")]
    Malformed(&'static str),
    /// The transport refuses a message, though the other node is there.
    #[error("a message cannot be sent: {0}")]
    NotSent(Arc<SendError>),
}

/// The words around the difference in the message of [`Error::NodesDiffer`].
const DIFFER: (&str, &str) = (
    "the nodes of the job do not run the same program: ",
    "; look for what a node sees differently: random numbers, the time, the environment, files, the order of hash maps, which of several \
     futures is ready first",
);

impl Error {
    /// Why the job ends after this node gave up with this message: a difference concerns all nodes, whichever found it.
    pub(crate) fn of_abort(node: Rank, message: &str) -> Self {
        let difference = message.strip_prefix(DIFFER.0).and_then(|rest| rest.strip_suffix(DIFFER.1));
        match difference {
            Some(difference) => Self::NodesDiffer { difference: difference.to_owned() },
            None => Self::NodeLost { node, reason: Loss::Aborted(message.to_owned()).to_string() },
        }
    }
}

/// A failure as it is sent to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("on node {node}: {message}")]
pub struct Failure {
    /// The node on which it happened.
    pub node: Rank,
    /// A description of the failure.
    pub message: String,
}
