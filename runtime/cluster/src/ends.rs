//! Ends of programs: a node that goes beyond the point where the program has ended elsewhere would wait for ever, so the job ends.
//!
//! Each node floods the tree with the end of its program. It passes on the first end of a program that it hears of, and compares the others with that: two that differ
//! meet on some node. What a program does here after an end was heard of is compared too, and what it has done before: a node that waits for others may have come less far than one that has ended,
//! by another way.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Failure};
use crate::names::Rank;

/// Where a node's program has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    node: Rank,
    program: u64,
    came_to: Progress,
    course: Course,
    /// The failure with which it has.
    failure: Option<Failure>,
}

/// What a program has done on a node since all nodes last agreed: after each operation, a digest of all up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Course {
    /// How many operations come before.
    before: u64,
    digests: VecDeque<u64>,
}

/// So many digests are kept at most: of a node that is further ahead of others, nothing is known of where it left their way.
const LONGEST_COURSE: usize = 1 << 14;

impl Course {
    fn add(&mut self, digest: u64) {
        self.digests.push_back(digest);
        if self.digests.len() > LONGEST_COURSE {
            self.digests.pop_front();
            self.before += 1;
        }
    }

    /// All nodes have done so many operations alike.
    fn agree(&mut self, operations: u64) {
        let agreed = operations.saturating_sub(self.before).min(self.digests.len() as u64);
        self.digests.drain(..agreed as usize);
        self.before += agreed;
    }

    /// The number of the first operation known of that both have done, each in another way.
    fn parts_from(&self, other: &Self) -> Option<u64> {
        let first = self.before.max(other.before);
        let end = |course: &Self| course.before + course.digests.len() as u64;
        let common = end(self).min(end(other)).checked_sub(first)?;
        // Digests are of all operations before: once they differ, they do.
        let differs = |number: u64| {
            let digest = |course: &Self| course.digests.get((first + number - course.before) as usize).copied();
            digest(self) != digest(other)
        };
        let is_last = |number: u64| !differs(number);
        let (mut least, mut most) = (0, common);
        while least < most {
            let middle = least + (most - least) / 2;
            if is_last(middle) { least = middle + 1 } else { most = middle }
        }
        (least < common).then_some(first + least)
    }
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
    known: Mutex<Known>,
    /// Of the program that runs here. Locked after what is known.
    course: Mutex<Course>,
    /// Whether an end of the program that runs here may have been heard of. Operations look at nothing else otherwise.
    has_heard: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// The number of the program that runs here.
    program: u64,
    heard: FxHashMap<u64, End>,
}

/// What follows from an end.
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
        let (known, course) = (Mutex::default(), Mutex::default());
        Self { rank, operations, questions, known, course, has_heard: AtomicBool::new(false) }
    }

    /// The number of the program that runs here.
    pub(crate) fn program(&self) -> u64 {
        self.known.lock().program
    }

    /// The program has done an operation, which is to be [checked](Self::check): a digest of all that it has done.
    pub(crate) fn note(&self, digest: u64) {
        self.course.lock().add(digest);
    }

    /// All nodes have done so many operations of a program alike.
    pub(crate) fn agree(&self, program: u64, operations: u64) {
        let known = self.known.lock();
        if known.program == program {
            self.course.lock().agree(operations);
        }
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
        let course = std::mem::take(&mut *self.course.lock());
        let own = End { node: self.rank, program, came_to: self.progress(), course, failure };
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

    /// The program has ended on another node. If that is news, it is passed on, and what has been done here is to be [checked](Self::check).
    pub(crate) fn hear(&self, end: End) -> Consequence {
        let mut known = self.known.lock();
        match known.heard.get(&end.program) {
            Some(other) if other.came_to != end.came_to => Consequence::Differ(other.clone(), end),
            Some(_) => Consequence::Nothing,
            None => {
                known.heard.insert(end.program, end.clone());
                // Against `check`: either the operation that begins meanwhile sees this, or its number is seen by who calls `check` after this.
                self.has_heard.store(true, Ordering::SeqCst);
                Consequence::PassOn(end)
            }
        }
    }

    /// Should the program that runs here have ended elsewhere, it must not have gone beyond that here, nor have come here by another way. The two ends, if it has, and the number of the operation
    /// where ways part, if they do.
    pub(crate) fn check(&self) -> Option<(End, End, Option<u64>)> {
        if !self.has_heard.load(Ordering::SeqCst) {
            return None;
        }
        let known = self.known.lock();
        let Some(end) = known.heard.get(&known.program) else {
            self.has_heard.store(false, Ordering::SeqCst);
            return None;
        };
        let (came_to, program) = (self.progress(), known.program);
        let parts_at = self.course.lock().parts_from(&end.course);
        (came_to.is_beyond(end.came_to) || parts_at.is_some()).then(|| {
            let here = End { node: self.rank, program, came_to, course: Course::default(), failure: None };
            (end.clone(), here, parts_at)
        })
    }

    fn progress(&self) -> Progress {
        let (operations, questions) = (self.operations.load(Ordering::SeqCst), self.questions.load(Ordering::SeqCst));
        Progress { operations, questions }
    }
}

/// Why a job ends of which two nodes have come to these ends, by ways that may part at an operation; `name_of` gives the name of an operation, to follow its number.
pub(crate) fn difference(
    (one, other, parts_at): (&End, &End, Option<u64>),
    name_of: impl FnOnce(u64) -> String,
) -> Error {
    if let Some(failure) = one.failure.as_ref().or(other.failure.as_ref()) {
        return Error::Failed(failure.clone());
    }
    if let Some(number) = parts_at {
        let difference = format!(
            "node {} has ended, and did something else than node {} from its operation {number} on",
            one.node, other.node
        );
        return Error::NodesDiffer { difference };
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

    /// What one node does: an operation, of one kind or another, a question, the end.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        Begin(u64),
        Ask,
        End,
    }

    /// Runs a program of each node in a random order of what nodes do and of messages: whether some node has found a difference.
    fn run(programs: &[Vec<Act>], order: &[prop::sample::Index]) -> bool {
        let nodes = programs.len();
        let ends: Vec<_> = (0..nodes).map(Ends::new).collect();
        let (mut next, mut digests) = (vec![0; nodes], vec![0_u64; nodes]);
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
                        Act::Begin(kind) => {
                            digests[rank] = digests[rank] * 3 + kind + 1;
                            ends[rank].note(digests[rank]);
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
        let mut acts = vec![Act::Begin(0); operations];
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

    proptest! {
        /// What one node does may be anything; if it has not ended, it waits for ever.
        #[test]
        fn a_node_that_waits_on_another_way_than_one_that_has_ended_is_found(
            nodes in 2..9_usize, operations in 1..6_usize, other in 0..9_usize, odd in 0..6_usize, done in 1..6_usize,
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..60)
        ) {
            let mut programs = vec![program(operations, 0, true); nodes];
            let (other, done) = (other % nodes, done.min(operations));
            let mut own = program(done, 0, false);
            let is_odd = odd < done;
            if is_odd {
                own[odd] = Act::Begin(1);
            }
            programs[other] = own;
            prop_assert_eq!(run(&programs, &order), is_odd);
        }
    }

    #[test]
    fn courses_part_at_the_first_operation_that_differs_and_is_known() {
        let course = |before, digests: &[u64]| Course { before, digests: digests.iter().copied().collect() };
        assert_eq!(course(0, &[1, 2, 3]).parts_from(&course(0, &[1, 2, 3, 4])), None);
        assert_eq!(course(0, &[1, 2, 3]).parts_from(&course(0, &[1, 7, 8, 9])), Some(1));
        assert_eq!(course(2, &[3, 4]).parts_from(&course(0, &[1, 7, 8, 9])), Some(2));
        assert_eq!(course(0, &[1, 2]).parts_from(&course(2, &[9])), None);
        assert_eq!(course(0, &[1]).parts_from(&course(5, &[9])), None);
        let mut long = Course::default();
        (0..LONGEST_COURSE as u64 + 3).for_each(|digest| long.add(digest));
        assert_eq!((long.before, long.digests.len()), (3, LONGEST_COURSE));
        long.agree(5);
        assert_eq!((long.before, long.digests[0]), (5, 5));
        long.agree(4);
        long.agree(1 << 20);
        assert_eq!((long.before, long.digests.len()), (LONGEST_COURSE as u64 + 3, 0));
    }

    #[test]
    fn the_difference_names_the_first_operation_that_one_node_does_not_have() {
        let end = |node, operations, questions| {
            let came_to = Progress { operations, questions };
            End { node, program: 0, came_to, course: Course::default(), failure: None }
        };
        let name = |number| format!(", `step {number}`");
        let text = |one: &End, other: &End| difference((one, other, None), name).to_string();
        let parted = difference((&end(1, 7, 0), &end(0, 5, 0), Some(3)), name).to_string();
        assert!(parted.contains("node 1 has ended, and did something else than node 0 from its operation 3 on;"));
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
