//! The last operations of the program, here and on other nodes, for the message that a node is lost.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::locks::Mutex;

use crate::names::{OperationName, Rank};

/// Operations that are remembered: more than a node is usually ahead of another.
const REMEMBERED: usize = 1 << 10;

/// See the [module](self).
pub(crate) struct LastOperations {
    /// The last operations of the program here, each with its number.
    here: Mutex<VecDeque<(u64, OperationName)>>,
    /// For each node, one more than the number of the last operation for which it has sent something, as far as this
    /// node knows.
    heard: Box<[AtomicU64]>,
}

impl LastOperations {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { here: Mutex::default(), heard: (0..nodes).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The program begins an operation.
    pub(crate) fn begin(&self, number: u64, name: OperationName) {
        let mut here = self.here.lock();
        if here.len() == REMEMBERED {
            here.pop_front();
        }
        here.push_back((number, name));
    }

    /// A node has sent something for an operation.
    pub(crate) fn hear(&self, from: Rank, operation: u64) {
        if let Some(heard) = self.heard.get(from) {
            heard.fetch_max(operation + 1, Ordering::Relaxed);
        }
    }

    /// Describes the last operation of this node, to follow a sentence that says that it has come to an end.
    pub(crate) fn here(&self) -> String {
        let here = self.here.lock();
        here.back().map_or_else(String::new, |(number, name)| format!(" at operation {number}, `{}`", name.as_str()))
    }

    /// The name of an operation, to follow its number, if it has begun here and is not long over.
    pub(crate) fn name(&self, number: u64) -> String {
        name_of(&self.here.lock(), number)
    }

    /// Describes the operation at which a node was when it last sent something, and the operation of this node, to
    /// follow a sentence that says that the other node is lost.
    pub(crate) fn describe(&self, node: Rank) -> String {
        let here = self.here.lock();
        let mut text = String::new();
        let heard = self.heard.get(node).map_or(0, |heard| heard.load(Ordering::Relaxed));
        let _ = match heard.checked_sub(1) {
            Some(number) => write!(
                text,
                "; it was at operation {number} of the program{}, when it last sent something",
                name_of(&here, number)
            ),
            None => write!(text, "; it had not yet sent anything for an operation of the program"),
        };
        if let Some((number, name)) = here.back() {
            let _ = write!(text, "; this node is at operation {number}, `{}`", name.as_str());
        }
        text
    }
}

fn name_of(begun: &VecDeque<(u64, OperationName)>, number: u64) -> String {
    let known = begun.iter().rev().find(|(known, _)| *known == number);
    known.map_or_else(String::new, |(_, name)| format!(", `{}`", name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_node_is_described_by_the_last_operation_for_which_it_sent_something() {
        let latest = LastOperations::new(3);
        let nothing = "; it had not yet sent anything for an operation of the program";
        assert_eq!(latest.describe(1), nothing);
        for (number, what) in (0..).zip(["fill", "smooth", "take_over", "smooth"]) {
            latest.begin(number, what.into());
        }
        latest.hear(1, 2);
        // For an earlier one, which was slow on its way.
        latest.hear(1, 1);
        let here = "; this node is at operation 3, `smooth`";
        let there = "; it was at operation 2 of the program, `take_over`, when it last sent something";
        assert_eq!(latest.describe(1), format!("{there}{here}"));
        assert_eq!(latest.describe(2), format!("{nothing}{here}"));
        // Not begun here, or forgotten.
        latest.hear(2, 9);
        assert!(latest.describe(2).contains("operation 9 of the program, when"));
    }
}
