//! Programs that get no further: neighbours in the tree show each other what they have done, so that nodes that differ
//! do not wait for each other for ever.
//!
//! A program also waits at points that are not the same in equal programs, where no digests are compared: for fewer
//! operations in flight, say. If nodes differ, that may wait for what another node never sends. So a node on which the
//! program has done nothing for a [while](period) shows its neighbours, once, the first interval of operations on which
//! nodes have not agreed. A neighbour that has done something else in this interval ends the job. A node that shows
//! less may only be slow.
//!
//! Why that finds every difference: let all nodes stand still, after they have done the same up to some operation. All
//! have come that far, as what comes before does not depend on what differs. They have agreed on the same comparisons,
//! and the operation is in the interval after these. Somewhere in the tree there are two neighbours that have done
//! different things in its place, or of which one has ended. The one that stood still later has shown so when the other
//! did no more.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::evidence::Evidence;
use crate::log::Rest;

/// Programs of so many nodes are looked at so often. A program that does nothing from one look to the next is at a
/// standstill.
///
/// The more nodes there are, the more often one of them is only slow, and all others wait for it; and what is shown
/// goes to as many nodes.
pub(crate) fn period(nodes: usize) -> Duration {
    Duration::from_millis(500) * nodes.div_ceil(16) as u32
}

/// The state of a program that a node shows its neighbours at a standstill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Standstill {
    /// The number of the program among those of the job.
    pub(crate) program: u64,
    /// The number of the interval.
    pub(crate) interval: u64,
    pub(crate) evidence: Evidence,
    /// The rest of the interval, after these operations.
    pub(crate) rest: Rest,
}

impl Standstill {
    /// Whether two nodes have done different things. What one of them has not done yet is none.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        if (self.program, self.interval) != (other.program, other.interval) {
            return false;
        }
        let (one, another) = (&self.evidence.operations, &other.evidence.operations);
        let has_ended = |node: &Self, other: &Self| {
            node.rest != Rest::Unknown && node.evidence.operations.len() < other.evidence.operations.len()
        };
        let differ = one.iter().zip(another).any(|((one, _), (another, _))| one != another);
        differ || has_ended(self, other) || has_ended(other, self)
    }

    /// The failure with which the program has ended.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        if let Rest::Failure(failure) = &self.rest { Some(failure) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::log::{Log, take};
    use crate::names::Rank;
    use crate::tree::{children, parent};

    /// An act of one node. A node whose last act is no end then waits for ever.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        Do(u64),
        Compare,
        End,
        Fail,
    }

    /// A message on its way to a node.
    enum Message {
        Shown(Standstill),
        /// All nodes have agreed on this interval.
        Agreed(u64),
    }

    /// A job as far as it compares.
    struct Job {
        logs: Vec<Log<()>>,
        /// Of each comparison, by number, what nodes have claimed.
        claims: Vec<Vec<u64>>,
        begun: Vec<u64>,
        messages: Vec<(Rank, Message)>,
        differs: bool,
    }

    impl Job {
        fn new(nodes: usize) -> Self {
            let logs = (0..nodes).map(|_| Log::new(0)).collect();
            Self { logs, claims: Vec::new(), begun: vec![0; nodes], messages: Vec::new(), differs: false }
        }

        fn compare(&mut self, rank: Rank) {
            let number = self.begun[rank];
            self.begun[rank] += 1;
            self.claims.resize_with(self.claims.len().max(number as usize + 1), Vec::new);
            let claims = &mut self.claims[number as usize];
            claims.push(self.logs[rank].digest());
            self.logs[rank].compare(number, 0);
            if claims.len() == self.logs.len() {
                self.differs |= claims.iter().any(|claim| *claim != claims[0]);
                self.messages.extend((0..self.logs.len()).map(|to| (to, Message::Agreed(number))));
            }
        }

        fn act(&mut self, rank: Rank, act: Act) {
            match act {
                Act::Do(digest) => self.logs[rank].add((digest, ())),
                Act::Compare => self.compare(rank),
                Act::End => {
                    self.compare(rank);
                    self.logs[rank].end(None);
                }
                Act::Fail => {
                    let failure = Failure { node: rank, message: "it is broken".to_owned() };
                    self.logs[rank].end(Some(failure));
                }
            }
        }

        fn shown(&self, node: Rank) -> Standstill {
            self.logs[node].with_first(|interval, operations, rest| {
                let operations = operations.iter().map(|(digest, ())| (*digest, String::new())).collect();
                let evidence = Evidence { node, operations, observed: BTreeMap::new() };
                Standstill { program: 0, interval, evidence, rest: rest.clone() }
            })
        }

        /// The node is looked at.
        fn look(&mut self, rank: Rank) {
            if self.logs[rank].is_at_standstill() {
                let shown = self.shown(rank);
                let neighbours = parent(rank).into_iter().chain(children(rank, self.logs.len()));
                self.messages.extend(neighbours.map(|to| (to, Message::Shown(shown.clone()))));
            }
        }

        fn deliver(&mut self, message: usize) {
            match self.messages.swap_remove(message) {
                (to, Message::Shown(shown)) => self.differs |= self.shown(to).differs_from(&shown),
                (to, Message::Agreed(number)) => drop(take(&self.logs[to].under_way(), number)),
            }
        }

        /// Runs a program of each node in a random order of what nodes do, of looks and of messages, until all stand
        /// still: whether a difference was found.
        fn run(mut self, programs: &[Vec<Act>], order: &[prop::sample::Index]) -> bool {
            let nodes = programs.len();
            let mut next = vec![0; nodes];
            let mut order = order.iter().cycle();
            loop {
                let acting: Vec<Rank> = (0..nodes).filter(|&rank| next[rank] < programs[rank].len()).collect();
                if acting.is_empty() {
                    break;
                }
                let choice = order.next().unwrap().index(acting.len() + self.messages.len());
                match acting.get(choice) {
                    Some(&rank) => {
                        next[rank] += 1;
                        self.act(rank, programs[rank][next[rank] - 1]);
                    }
                    None => self.deliver(choice - acting.len()),
                }
                self.look(order.next().unwrap().index(nodes));
            }
            // They stand still, and nothing that they show changes that.
            for _ in 0..3 {
                while !self.messages.is_empty() {
                    let message = order.next().unwrap().index(self.messages.len());
                    self.deliver(message);
                }
                (0..nodes).for_each(|rank| self.look(rank));
            }
            assert!(self.messages.is_empty());
            self.differs
        }
    }

    /// Operations in intervals of one to three.
    fn program(intervals: &[usize]) -> Vec<Act> {
        let mut acts = Vec::new();
        for (number, &operations) in intervals.iter().enumerate() {
            acts.extend((0..operations).map(|operation| Act::Do((10 * number + operation + 1) as u64)));
            acts.push(Act::Compare);
        }
        acts.pop();
        acts.push(Act::End);
        acts
    }

    proptest! {
        #[test]
        fn nodes_that_wait_differently_than_others_are_found_in_any_order_and_equal_ones_are_not(
            intervals in prop::collection::vec(1..4_usize, 1..4), stops in prop::collection::vec(0..12_usize, 2..9),
            odd in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), how in prop::option::of(0..4),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..60)
        ) {
            let common = program(&intervals);
            let operations: Vec<usize> = (0..common.len()).filter(|&at| matches!(common[at], Act::Do(_))).collect();
            let (nodes, odd, at) = (stops.len(), odd.index(stops.len()), operations[at.index(operations.len())]);
            let mut programs = vec![common.clone(); nodes];
            match how {
                Some(0) => programs[odd][at] = Act::Do(99),
                Some(1) => programs[odd].insert(at, Act::Do(99)),
                Some(2) => programs[odd].splice(at.., [Act::End]).for_each(drop),
                Some(_) => programs[odd].splice(at.., [Act::Fail]).for_each(drop),
                None => {}
            }
            // Each may wait for ever, once it has done what all do and what differs.
            for (program, stop) in programs.iter_mut().zip(stops) {
                program.truncate(if how.is_some() { at + 1 + stop } else { stop });
            }
            prop_assert_eq!(Job::new(nodes).run(&programs, &order), how.is_some());
        }
    }
}
