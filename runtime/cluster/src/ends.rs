//! Ends of programs: a node that goes beyond the point where the program has ended elsewhere would wait for ever, so
//! the job ends.
//!
//! Each node floods the tree with the end of its program. It passes on the first end of a program that it hears of, and
//! compares the others with that: two that differ meet on some node. What a program does here after an end was heard of
//! is compared too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Failure};
use crate::names::Rank;

/// The end of a node's program: the node, the program and its progress, and its failure, if any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    node: Rank,
    program: u64,
    came_to: Progress,
    /// The failure with which it has.
    failure: Option<Failure>,
}

/// How far a node's program has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    /// The number of the next operation. Operations of all programs of the job are numbered through.
    operations: u64,
    /// How many results it has asked the other nodes for.
    questions: u64,
}

impl Progress {
    fn is_beyond(self, other: Self) -> bool {
        self.operations > other.operations || self.questions > other.questions
    }
}

/// The programs that have run on this node, and where each has ended, here or elsewhere.
pub(crate) struct Ends {
    rank: Rank,
    /// See [`Progress`].
    operations: AtomicU64,
    questions: AtomicU64,
    known: Mutex<KnownEnds>,
    /// Whether an end of the program that runs here may have been heard of. Operations look at nothing else otherwise.
    has_heard: AtomicBool,
}

#[derive(Default)]
struct KnownEnds {
    /// The number of the program that runs here.
    program: u64,
    heard: FxHashMap<u64, End>,
}

/// The consequence of an end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    Nothing,
    /// The neighbours in the tree are to be told of it.
    PassOn(End),
    /// Two nodes differ.
    Differ(End, End),
}

impl Ends {
    pub(crate) fn new(rank: Rank) -> Self {
        let (operations, questions) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { rank, operations, questions, known: Mutex::default(), has_heard: AtomicBool::new(false) }
    }

    /// The number of an operation that begins now, which is to be [checked](Self::check).
    pub(crate) fn begin_operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::SeqCst)
    }

    /// The number of the next operation.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    /// The program asks the other nodes for results, which is to be [checked](Self::check).
    pub(crate) fn ask(&self) {
        self.questions.fetch_add(1, Ordering::SeqCst);
    }

    /// The program has ended here.
    pub(crate) fn end(&self, failure: Option<Failure>) -> Consequence {
        let mut known = self.known.lock();
        let program = known.program;
        let own = End { node: self.rank, program, came_to: self.progress(), failure };
        known.program += 1;
        known.heard.retain(|ended, _| ended + 2 >= program);
        let other = known.heard.insert(program, own.clone());
        self.has_heard.store(known.heard.contains_key(&known.program), Ordering::SeqCst);
        drop(known);
        match other {
            None => Consequence::PassOn(own),
            Some(other) if other.came_to != own.came_to => Consequence::Differ(own, other),
            Some(_) => Consequence::Nothing,
        }
    }

    /// The program has ended on another node. If that is news, it is passed on, and what has been done here is to be
    /// [checked](Self::check).
    pub(crate) fn hear(&self, end: End) -> Consequence {
        let mut known = self.known.lock();
        match known.heard.get(&end.program) {
            Some(other) if other.came_to != end.came_to => Consequence::Differ(other.clone(), end),
            Some(_) => Consequence::Nothing,
            None => {
                known.heard.insert(end.program, end.clone());
                // Against `check`: either the operation that begins meanwhile sees this, or its number is seen by the
                // thread that calls `check` after this.
                self.has_heard.store(true, Ordering::SeqCst);
                Consequence::PassOn(end)
            }
        }
    }

    /// Should the program that runs here have ended elsewhere, it must not have gone beyond that here. The two ends, if
    /// it has.
    pub(crate) fn check(&self) -> Option<(End, End)> {
        if !self.has_heard.load(Ordering::SeqCst) {
            return None;
        }
        let known = self.known.lock();
        let Some(end) = known.heard.get(&known.program) else {
            self.has_heard.store(false, Ordering::SeqCst);
            return None;
        };
        let here = self.progress();
        let program = known.program;
        here.is_beyond(end.came_to)
            .then(|| (end.clone(), End { node: self.rank, program, came_to: here, failure: None }))
    }

    fn progress(&self) -> Progress {
        let (operations, questions) = (self.operations.load(Ordering::SeqCst), self.questions.load(Ordering::SeqCst));
        Progress { operations, questions }
    }
}

/// Why a job ends of which two nodes have come to these ends; `name_of` gives the name of an operation, to follow its
/// number.
pub(crate) fn difference(one: &End, other: &End, name_of: impl FnOnce(u64) -> String) -> Error {
    if let Some(failure) = one.failure.as_ref().or(other.failure.as_ref()) {
        return Error::Failed(failure.clone());
    }
    let is_first = one.came_to.operations <= other.came_to.operations;
    let (one, other) = if is_first { (one, other) } else { (other, one) };
    let (ended, went_on) = (one.came_to, other.came_to);
    let difference = if ended.operations < went_on.operations {
        // Numbers begin at 0: this is the first that the other one does not have.
        let next = name_of(ended.operations);
        format!("node {} has ended where node {} comes to operation {}{next}", one.node, other.node, ended.operations)
    } else {
        format!(
            "with as many operations behind them, node {} has asked the others for {} result(s), node {} for {}",
            one.node, ended.questions, other.node, went_on.questions
        )
    };
    Error::NodesDiffer { difference }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::{children, parent};

    /// An act of one node: an operation, a question, the end.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        Begin,
        Ask,
        End,
    }

    /// Runs a program of each node in a random order of what nodes do and of messages: whether some node has found a
    /// difference.
    fn run(programs: &[Vec<Act>], order: &[prop::sample::Index]) -> bool {
        let nodes = programs.len();
        let ends: Vec<_> = (0..nodes).map(Ends::new).collect();
        let mut next = vec![0; nodes];
        let mut messages: Vec<(Rank, Rank, End)> = Vec::new();
        let mut order = order.iter().cycle();
        loop {
            let acting: Vec<Rank> = (0..nodes).filter(|&rank| next[rank] < programs[rank].len()).collect();
            let choices = acting.len() + messages.len();
            if choices == 0 {
                return false;
            }
            let choice = order.next().unwrap().index(choices);
            let (rank, from, consequence) = match acting.get(choice) {
                Some(&rank) => {
                    next[rank] += 1;
                    let consequence = match programs[rank][next[rank] - 1] {
                        Act::Begin => {
                            ends[rank].begin_operation();
                            Consequence::Nothing
                        }
                        Act::Ask => {
                            ends[rank].ask();
                            Consequence::Nothing
                        }
                        Act::End => ends[rank].end(None),
                    };
                    (rank, None, consequence)
                }
                None => {
                    let (from, to, end) = messages.swap_remove(choice - acting.len());
                    (to, Some(from), ends[to].hear(end))
                }
            };
            match consequence {
                Consequence::Nothing => {}
                Consequence::Differ(..) => return true,
                Consequence::PassOn(end) => {
                    let neighbours = parent(rank).into_iter().chain(children(rank, nodes));
                    messages.extend(neighbours.filter(|&to| Some(to) != from).map(|to| (rank, to, end.clone())));
                }
            }
            if ends[rank].check().is_some() {
                return true;
            }
        }
    }

    fn program(operations: usize, questions: usize, ends: bool) -> Vec<Act> {
        let mut acts = vec![Act::Begin; operations];
        acts.extend(vec![Act::Ask; questions]);
        acts.extend(ends.then_some(Act::End));
        acts
    }

    proptest! {
        #[test]
        fn programs_that_end_differently_are_found_in_any_order_of_messages_and_others_are_not(
            nodes in 2..9_usize, operations in 0..4_usize, questions in 0..3_usize,
            other in 0..9_usize, more in prop::option::of(any::<bool>()), ends in any::<bool>(),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..60)
        ) {
            let mut programs = vec![program(operations, questions, true); nodes];
            let other = other % nodes;
            // One node does more than the others, and ends or not; or all do the same.
            match more {
                Some(true) => programs[other] = program(operations + 1, questions, ends),
                Some(false) => programs[other] = program(operations, questions + 1, ends),
                None => {}
            }
            prop_assert_eq!(run(&programs, &order), more.is_some());
        }
    }

    #[test]
    fn the_difference_names_the_first_operation_that_one_node_does_not_have() {
        let end = |node, operations, questions| {
            let came_to = Progress { operations, questions };
            End { node, program: 0, came_to, failure: None }
        };
        let text = |one: &End, other: &End| difference(one, other, |number| format!(", `step {number}`")).to_string();
        assert!(
            text(&end(1, 7, 0), &end(0, 5, 0))
                .contains("node 0 has ended where node 1 comes to operation 5, `step 5`;")
        );
        assert!(
            text(&end(0, 5, 2), &end(1, 5, 1)).contains("node 0 has asked the others for 2 result(s), node 1 for 1;")
        );
        let failure = Failure { node: 1, message: "it is broken".to_owned() };
        let failed = End { failure: Some(failure), ..end(1, 3, 0) };
        assert_eq!(text(&end(0, 5, 2), &failed), "on node 1: it is broken");
    }
}
