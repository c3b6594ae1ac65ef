//! What the program did last, here and on other nodes, for the message that a node is lost.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;

use crate::task::TaskDefinition;

/// What an operation of the program is.
#[derive(Clone)]
pub(crate) enum Doing {
    Task(Arc<TaskDefinition>),
    Other(&'static str),
}

impl Doing {
    fn name(&self) -> &str {
        match self {
            Self::Task(task) => task.name(),
            Self::Other(what) => what,
        }
    }
}

/// So many operations are remembered: more than a node is usually ahead of another.
const REMEMBERED: usize = 1 << 10;

/// See the [module](self).
pub(crate) struct Latest {
    /// The latest operations of the program here, each with its number.
    here: Mutex<VecDeque<(u64, Doing)>>,
    /// For each node, one more than the number of the latest operation for which it has sent something, as far as this is known.
    heard: Box<[AtomicU64]>,
}

impl Latest {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { here: Mutex::default(), heard: (0..nodes).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The program begins an operation.
    pub(crate) fn begin(&self, number: u64, doing: Doing) {
        let mut here = self.here.lock();
        if here.len() == REMEMBERED {
            here.pop_front();
        }
        here.push_back((number, doing));
    }

    /// A node has sent something for an operation.
    pub(crate) fn hear(&self, from: Rank, operation: u64) {
        if let Some(heard) = self.heard.get(from) {
            heard.fetch_max(operation + 1, Ordering::Relaxed);
        }
    }

    /// Where this node is: more of a sentence that says that it has come to an end.
    pub(crate) fn here(&self) -> String {
        let here = self.here.lock();
        here.back().map_or_else(String::new, |(number, doing)| format!(" at operation {number}, `{}`", doing.name()))
    }

    /// What an operation is, to follow its number, if it has begun here and is not long over.
    pub(crate) fn name(&self, number: u64) -> String {
        name(&self.here.lock(), number)
    }

    /// Where a node was when it was last heard of, and where this one is: more of a sentence that says that it is lost.
    pub(crate) fn tell(&self, node: Rank) -> String {
        let here = self.here.lock();
        let mut told = String::new();
        let heard = self.heard.get(node).map_or(0, |heard| heard.load(Ordering::Relaxed));
        let _ = match heard.checked_sub(1) {
            Some(number) => write!(
                told,
                "; it was at operation {number} of the program{}, when it last sent something",
                name(&here, number)
            ),
            None => write!(told, "; it had not yet sent anything for an operation of the program"),
        };
        if let Some((number, doing)) = here.back() {
            let _ = write!(told, "; this node is at operation {number}, `{}`", doing.name());
        }
        told
    }
}

fn name(begun: &VecDeque<(u64, Doing)>, number: u64) -> String {
    let known = begun.iter().rev().find(|(known, _)| *known == number);
    known.map_or_else(String::new, |(_, doing)| format!(", `{}`", doing.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_of_by_what_it_last_sent_something_for() {
        let latest = Latest::new(3);
        let nothing = "; it had not yet sent anything for an operation of the program";
        assert_eq!(latest.tell(1), nothing);
        for (number, what) in (0..).zip(["fill", "smooth", "take_over", "smooth"]) {
            latest.begin(number, Doing::Other(what));
        }
        latest.hear(1, 2);
        // For an earlier one, which was slow on its way.
        latest.hear(1, 1);
        let here = "; this node is at operation 3, `smooth`";
        let there = "; it was at operation 2 of the program, `take_over`, when it last sent something";
        assert_eq!(latest.tell(1), format!("{there}{here}"));
        assert_eq!(latest.tell(2), format!("{nothing}{here}"));
        // So far back that nobody knows what it was, or not begun here.
        latest.hear(2, 9);
        assert!(latest.tell(2).contains("operation 9 of the program, when"));
    }
}
