//! Errors that go from node to node.

use std::collections::VecDeque;

use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// An error as other nodes are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    node: usize,
    message: String,
}

/// The errors that this node has told others of. What others say of one that has come back is less than the error itself.
#[derive(Default)]
pub(crate) struct Told(Mutex<VecDeque<(Failure, Error)>>);

/// So many errors are remembered.
const REMEMBERED: usize = 64;

impl Told {
    /// What others are told of an error that this node has met, perhaps told by another one.
    pub(crate) fn tell(&self, error: &Error, node: Rank) -> Failure {
        if let Error::OnNode { node, message } = error {
            return Failure { node: *node, message: message.to_string() };
        }
        let failure = Failure { node, message: error.to_string() };
        let mut told = self.0.lock();
        if told.iter().all(|(known, _)| *known != failure) {
            if told.len() == REMEMBERED {
                told.pop_front();
            }
            told.push_back((failure.clone(), error.clone()));
        }
        failure
    }

    /// The error that somebody tells of.
    pub(crate) fn hear(&self, failure: Failure) -> Error {
        let told = self.0.lock();
        let own = told.iter().find(|(known, _)| *known == failure).map(|(_, error)| error.clone());
        own.unwrap_or_else(|| Error::OnNode { node: failure.node, message: failure.message.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_comes_back_to_its_node_is_itself_again() {
        let (here, there) = (Told::default(), Told::default());
        let error = Error::Ended { task: "step".to_owned() };
        let failure = here.tell(&error, 1);
        let heard = there.hear(failure);
        assert!(matches!(&heard, Error::OnNode { node: 1, .. }), "{heard}");
        // Told on, and back.
        let again = here.hear(there.tell(&heard, 2));
        assert!(matches!(&again, Error::Ended { task } if task == "step"), "{again}");
    }
}
