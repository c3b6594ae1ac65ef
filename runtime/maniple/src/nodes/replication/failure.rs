//! Errors that go from node to node.

use std::collections::VecDeque;

use maniple_analysis::distribution::Rank;
use maniple_cluster::Failure;
use maniple_realm::locks::Mutex;

use crate::support::error::Error;

/// The errors of which this node has told others. A failure that comes back says less than its error.
#[derive(Default)]
pub(crate) struct SentErrors(Mutex<VecDeque<(Failure, Error)>>);

/// So many errors are remembered.
const REMEMBERED: usize = 64;

impl SentErrors {
    /// The failure that tells other nodes of an error. This node has met the error itself, or heard of it from another
    /// node.
    pub(crate) fn tell(&self, error: &Error, node: Rank) -> Failure {
        if let Error::OnNode { node, message } = error {
            return Failure { node: *node, message: message.to_string() };
        }
        let failure = Failure { node, message: error.to_string() };
        let mut sent = self.0.lock();
        if sent.iter().all(|(known, _)| *known != failure) {
            if sent.len() == REMEMBERED {
                sent.pop_front();
            }
            sent.push_back((failure.clone(), error.clone()));
        }
        failure
    }

    /// The error of this node that a failure is of, if it is remembered.
    pub(crate) fn recall(&self, failure: &Failure) -> Option<Error> {
        self.0.lock().iter().find(|(known, _)| known == failure).map(|(_, error)| error.clone())
    }

    /// The error that a failure is of.
    pub(crate) fn hear(&self, failure: Failure) -> Error {
        self.recall(&failure).unwrap_or_else(|| maniple_cluster::Error::Failed(failure).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_comes_back_to_its_node_is_itself_again() {
        let (here, there) = (SentErrors::default(), SentErrors::default());
        let error = Error::Ended { task: "step".to_owned() };
        let failure = here.tell(&error, 1);
        let heard = there.hear(failure);
        assert!(matches!(&heard, Error::OnNode { node: 1, .. }), "{heard}");
        // Told on, and back.
        let again = here.hear(there.tell(&heard, 2));
        assert!(matches!(&again, Error::Ended { task } if task == "step"), "{again}");
    }
}
