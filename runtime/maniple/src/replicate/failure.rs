//! Errors that go from node to node.

use serde::{Deserialize, Serialize};

use super::layout::Rank;
use crate::error::Error;

/// An error as other nodes are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    node: usize,
    message: String,
}

impl Failure {
    /// An error that this node has met, perhaps told by another one.
    pub(crate) fn new(error: &Error, node: Rank) -> Self {
        match error {
            Error::OnNode { node, message } => Self { node: *node, message: message.to_string() },
            other => Self { node, message: other.to_string() },
        }
    }

    /// The error, on another node than the one where it happened.
    pub(crate) fn error(self) -> Error {
        Error::OnNode { node: self.node, message: self.message.into() }
    }
}
