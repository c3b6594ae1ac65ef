//! In which order operations happened, as far as that was enforced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::check::violation::Violation;
use crate::record::{Kind, Record};

/// An order in which the operations can have happened one after another, and which operation was made to wait for
/// which.
///
/// Operations are known by their positions in the record.
pub(crate) struct OperationOrder {
    /// The operations each of which directly precedes one, by that one.
    before: Vec<Vec<u32>>,
    /// All operations, each behind all that precede it.
    sequence: Vec<u32>,
    /// The position of each operation in the sequence.
    rank: Vec<u32>,
}

/// Whether an operation was made to wait for another one, both known by their positions in the record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Question {
    pub(crate) first: u32,
    pub(crate) second: u32,
}

/// So many questions are answered by one walk over the operations between the first and the last that they are about,
/// which holds as many bits for each of these. In tests few, to see that several walks do as well.
const ASKED_AT_ONCE: usize = if cfg!(test) { 64 } else { 1024 };

type Reached = [u64; ASKED_AT_ONCE / 64];

impl OperationOrder {
    /// Finds the order.
    ///
    /// # Errors
    /// [`Violation::Malformed`] or [`Violation::Circle`], if there can't be one.
    pub(crate) fn of(record: &Record) -> Result<Self, Violation> {
        let before = predecessors(record)?;
        let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
        let mut behind: Vec<Vec<u32>> = vec![Vec::new(); before.len()];
        for (operation, before) in before.iter().enumerate() {
            before.iter().for_each(|&earlier| behind[earlier as usize].push(operation as u32));
        }
        // Of those that can come next always the first in the record, so that the order is always the same.
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..before.len()).filter(|&operation| waiting[operation] == 0).map(|ready| Reverse(ready as u32)).collect();
        let (mut sequence, mut rank) = (Vec::with_capacity(before.len()), vec![0; before.len()]);
        while let Some(Reverse(next)) = ready.pop() {
            rank[next as usize] = sequence.len() as u32;
            sequence.push(next);
            for &later in &behind[next as usize] {
                waiting[later as usize] -= 1;
                if waiting[later as usize] == 0 {
                    ready.push(Reverse(later));
                }
            }
        }
        if sequence.len() < before.len() {
            return Err(circle(record, &before, &waiting));
        }
        Ok(Self { before, sequence, rank })
    }

    /// All operations, each behind all that precede it.
    pub(crate) fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    /// The number of pairs of operations of which one directly precedes the other.
    pub(crate) fn edges(&self) -> usize {
        self.before.iter().map(Vec::len).sum()
    }

    /// The first question whose answer is no, if there is one. Questions name the operation first that comes first in
    /// the sequence.
    ///
    /// Takes a look at each direct predecessor, and for each block of questions that this leaves open, a walk over the
    /// operations that they are about.
    pub(crate) fn first_unordered(&self, questions: &[Question]) -> Option<Question> {
        let mut open = self.not_direct(questions);
        open.sort_unstable_by_key(|question| self.rank[question.first as usize]);
        let mut unordered: Vec<Question> = Vec::new();
        for block in open.chunks(ASKED_AT_ONCE) {
            unordered.extend(self.unordered(block));
        }
        unordered.into_iter().min_by_key(|question| (self.rank[question.second as usize], question.first))
    }

    /// The questions that are not answered by a direct predecessor, each once.
    fn not_direct(&self, questions: &[Question]) -> Vec<Question> {
        let mut open = questions.to_vec();
        open.sort_unstable_by_key(|question| (question.second, question.first));
        open.dedup();
        open.retain(|question| self.before[question.second as usize].binary_search(&question.first).is_err());
        open
    }

    /// Of at most [`ASKED_AT_ONCE`] questions, those whose answer is no.
    fn unordered<'a>(&self, questions: &'a [Question]) -> impl Iterator<Item = Question> + 'a {
        let rank = |operation: u32| self.rank[operation as usize] as usize;
        let start = questions.iter().map(|question| rank(question.first)).min().unwrap_or(0);
        let end = questions.iter().map(|question| rank(question.second) + 1).max().unwrap_or(0).max(start);
        // For each operation between, which questions' first operations it is or comes after.
        let mut reached: Vec<Reached> = vec![[0; ASKED_AT_ONCE / 64]; end - start];
        for (bit, question) in questions.iter().enumerate() {
            reached[rank(question.first) - start][bit / 64] |= 1 << (bit % 64);
        }
        for place in start..end {
            let mut here = reached[place - start];
            for &earlier in &self.before[self.sequence[place] as usize] {
                if let Some(earlier) = rank(earlier).checked_sub(start) {
                    here.iter_mut().zip(&reached[earlier]).for_each(|(here, earlier)| *here |= earlier);
                }
            }
            reached[place - start] = here;
        }
        let answers: Vec<bool> = (questions.iter().enumerate())
            .map(|(bit, question)| reached[rank(question.second) - start][bit / 64] >> (bit % 64) & 1 == 1)
            .collect();
        questions.iter().zip(answers).filter(|(_, answer)| !answer).map(|(question, _)| *question)
    }
}

/// The direct predecessors of each operation, by position, sorted. Those of earlier records have ended before this one
/// began.
fn predecessors(record: &Record) -> Result<Vec<Vec<u32>>, Violation> {
    let mut all = Vec::with_capacity(record.operations.len());
    for (number, operation) in record.numbered() {
        let gathers = matches!(operation.kind, Kind::End { .. } | Kind::Join);
        if let Some(&later) = operation.after.iter().find(|&&earlier| earlier >= number && !gathers) {
            let problem = format!("it names operation {later} as one that came before it, which was issued later");
            return Err(Violation::Malformed { operation: record.name(number), problem });
        }
        let positions = operation.after.iter().filter_map(|&earlier| record.index(earlier));
        let mut before: Vec<u32> = positions.map(|position| position as u32).collect();
        if let Some(&unknown) = before.iter().find(|&&position| position as usize >= record.operations.len()) {
            let unknown = record.number(unknown as usize);
            let problem = format!("it comes after operation {unknown}, which is missing: the record ended too early");
            return Err(Violation::Malformed { operation: record.name(number), problem });
        }
        before.sort_unstable();
        before.dedup();
        all.push(before);
    }
    Ok(all)
}

/// Names a circle among the operations that still wait for others when all that could have come have come.
fn circle(record: &Record, before: &[Vec<u32>], waiting: &[usize]) -> Violation {
    let is_stuck = |operation: usize| waiting[operation] > 0;
    let mut path: Vec<usize> = Vec::new();
    let mut here = (0..before.len()).find(|&operation| is_stuck(operation)).unwrap_or(0);
    while !path.contains(&here) {
        path.push(here);
        let next = before[here].iter().map(|&earlier| earlier as usize).find(|&earlier| is_stuck(earlier));
        here = next.unwrap_or(here);
    }
    let start = path.iter().position(|&operation| operation == here).unwrap_or(0);
    let operations = path[start..].iter().rev().map(|&operation| record.name(record.number(operation)));
    Violation::Circle { operations: operations.collect() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::record::{Operation, OperationNumber};

    /// Operations that come after some of the 12 before each.
    fn graphs() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
        let before = prop::collection::vec(prop::collection::btree_set(1..12_u64, 0..3), 1..150);
        before.prop_map(|distances| {
            let back = |(position, distances): (usize, BTreeSet<u64>)| {
                distances.into_iter().filter_map(|distance| (position as u64).checked_sub(distance)).collect()
            };
            distances.into_iter().enumerate().map(back).collect()
        })
    }

    proptest! {
        #[test]
        fn the_first_pair_without_an_order_is_found(
            graph in graphs(),
            asked in prop::collection::vec((0..150_u32, 0..150_u32), 0..200),
        ) {
            let operations = graph.iter().map(|after| Operation {
                kind: Kind::Join,
                after: after.iter().map(|&earlier| OperationNumber(earlier)).collect(),
            });
            let record = Record { operations: operations.collect(), ..Record::default() };
            let order = OperationOrder::of(&record).expect("edges go back");
            prop_assert_eq!(order.sequence().len(), graph.len());

            let mut all: Vec<BTreeSet<u64>> = Vec::new();
            for after in &graph {
                all.push(after.iter().flat_map(|&earlier| all[earlier as usize].iter().copied().chain([earlier])).collect());
            }
            // Only of one that is first in the sequence can it be asked whether it is first.
            let questions: Vec<Question> = (asked.into_iter())
                .filter(|(first, second)| first < second && (*second as usize) < graph.len())
                .filter(|(first, second)| order.rank[*first as usize] < order.rank[*second as usize])
                .map(|(first, second)| Question { first, second })
                .collect();
            let is_unordered = |question: &&Question| !all[question.second as usize].contains(&u64::from(question.first));
            let expected = questions.iter().filter(is_unordered);
            let expected = expected.min_by_key(|question| (order.rank[question.second as usize], question.first));
            prop_assert_eq!(order.first_unordered(&questions), expected.copied());
        }
    }
}
