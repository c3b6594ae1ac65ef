//! Values that fill regions without being stored, in the record of a replay.
//!
//! A recorded node that puts such a value into an instance was told what gave it: a fill of the recording, or one
//! before it. Replayed, it gets the value of the same fill of its own run, or what is there before that run; and what
//! is there before a run, a fill of the run before may have given.

use maniple_record::{Kind, OperationNumber, Value};

use crate::context::FillNumbers;
use crate::launch::recording::content::{Content, ContentEntry};
use crate::launch::recording::recording::Tape;
use crate::support::recorder::Recorder;

/// The source of a value in the record of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Giver {
    /// A part of a fill of the same run.
    Fill(usize, usize),
    /// It is in a set before the run.
    Before(usize),
}

/// The sources of the values that a node puts into an instance, part by part.
pub(super) fn of_node(kind: &Kind, tape: &Tape, recorder: &Recorder) -> Vec<Option<Giver>> {
    let Kind::Fill { to, parts, .. } = kind else { return Vec::new() };
    let Some(instance) = recorder.region_of(*to) else { return Vec::new() };
    let shapes = instance.space().forest().shapes();
    let before = |entry: &ContentEntry, (part, value): &(maniple_record::Part, Value)| {
        tape.states[entry.state].lock().validity.root().tree().id() == instance.tree().id()
            && part.fields.is_subset_of(&entry.fields)
            && shapes.is_subset(&shapes.intern(&part.points), &entry.shape)
            && entry.content.filled_with() == Some(*value)
    };
    let giver = |filled: &(maniple_record::Part, Value)| match filled.1 {
        Value::Lost => None,
        value => given_by(tape, value)
            .or_else(|| tape.entries.iter().position(|entry| before(entry, filled)).map(Giver::Before)),
    };
    parts.iter().map(giver).collect()
}

/// For each set that was looked at, where the value comes from that it has after a run, if it has one.
pub(super) fn after_a_run(tape: &Tape) -> Vec<Option<Giver>> {
    let giver = |(number, entry): (usize, &ContentEntry)| {
        let state = tape.states[entry.state].lock();
        let value = entry.find(&state).and_then(|set| Content::of(set).filled_with())?;
        Some(given_by(tape, value).unwrap_or(Giver::Before(number)))
    };
    tape.entries.iter().enumerate().map(giver).collect()
}

/// The fill of a recording that gave a value.
fn given_by(tape: &Tape, value: Value) -> Option<Giver> {
    let Value::Of(number) = value else { return None };
    let part = |numbers: &FillNumbers| numbers.iter().position(|&known| known == Some(number));
    let mut fills = tape.fills.iter().enumerate();
    fills.find_map(|(fill, taped)| Some(Giver::Fill(fill, part(&taped.numbers)?)))
}

/// The values in the runs of a replay.
#[derive(Default)]
pub(super) struct ReplayValues {
    /// In each set, before the current run.
    before: Vec<Value>,
    /// The values that the fills of the current run have given so far; for later fills, the values of the run before.
    given: Vec<FillNumbers>,
    /// The values that the fills of the latest whole run have given.
    whole: Vec<FillNumbers>,
}

impl ReplayValues {
    /// A replay begins where sets are filled with these. Its fills have had these numbers, as they were recorded.
    pub(super) fn begin(before: Vec<Value>, given: Vec<FillNumbers>) -> Self {
        Self { before, whole: given.clone(), given }
    }

    pub(super) fn of(&self, giver: Giver) -> Value {
        match giver {
            Giver::Fill(fill, part) => self.given[fill][part].map_or(Value::Initial, Value::Of),
            Giver::Before(entry) => self.before[entry],
        }
    }

    /// A part of a fill has given a value.
    pub(super) fn give(&mut self, fill: usize, part: usize, number: OperationNumber) {
        self.given[fill][part] = Some(number);
    }

    /// All of a run has been issued.
    pub(super) fn end_of_run(&mut self, after: &[Option<Giver>]) {
        self.before = after.iter().map(|giver| giver.map_or(Value::Initial, |giver| self.of(giver))).collect();
        self.whole.clone_from(&self.given);
    }

    /// The values that the fills of the latest whole run, and of the one after it, have given.
    pub(super) fn take(self) -> [Vec<FillNumbers>; 2] {
        [self.whole, self.given]
    }
}
