//! Nodes that leave the job: if another one runs a program that such a node will not run, it would wait for ever, so
//! the job ends.
//!
//! Each node floods the tree with the first departure that it hears of, as with [ends](crate::ends). Those that leave
//! after equally many programs have nothing to wait for.

use maniple_realm::locks::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Failure};
use crate::names::Rank;

/// A node leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leave {
    pub(crate) node: Rank,
    /// How many programs it has run.
    pub(crate) programs: u64,
    /// Why the program has given up there.
    pub(crate) failure: Option<Failure>,
}

/// The departure after the fewest programs that has been heard of.
#[derive(Default)]
pub(crate) struct Leaves(Mutex<Option<Leave>>);

impl Leaves {
    /// A node leaves. Whether that is news, which others are to hear too. What has begun here is to be
    /// [checked](Self::check) then.
    pub(crate) fn hear(&self, leave: &Leave) -> bool {
        let mut heard = self.0.lock();
        let is_news = heard.as_ref().is_none_or(|known| leave.programs < known.programs);
        if is_news {
            *heard = Some(leave.clone());
        }
        is_news
    }

    /// Why the job ends, if more programs have begun here than some node has run that leaves.
    pub(crate) fn check(&self, here: Rank, begun: u64) -> Option<Error> {
        let heard = self.0.lock();
        let Leave { node, programs, failure } = heard.as_ref().filter(|leave| leave.programs < begun)?;
        Some(match failure {
            Some(failure) => Error::Failed(failure.clone()),
            None => {
                let difference =
                    format!("node {node} has left the job after {programs} run(s), where node {here} begins another");
                Error::NodesDiffer { difference }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(node: Rank, programs: u64, failure: Option<&str>) -> Leave {
        let failure = failure.map(|message| Failure { node, message: message.to_owned() });
        Leave { node, programs, failure }
    }

    #[test]
    fn a_node_that_runs_more_than_one_that_leaves_is_told_why() {
        let leaves = Leaves::default();
        assert!(leaves.check(0, 7).is_none());
        assert!(leaves.hear(&leave(1, 2, None)));
        assert!(leaves.check(0, 2).is_none());
        let told = leaves.check(0, 3).unwrap().to_string();
        assert!(told.contains("node 1 has left the job after 2 run(s), where node 0 begins another"), "{told}");
        assert!(!leaves.hear(&leave(2, 2, Some("as many"))) && !leaves.hear(&leave(2, 3, None)));
        assert!(leaves.hear(&leave(3, 1, Some("the file is not there"))), "it leaves earlier");
        assert_eq!(leaves.check(0, 2).unwrap().to_string(), "on node 3: the file is not there");
    }
}
