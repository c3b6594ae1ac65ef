//! The record of what is launched and issued, if one is kept.

use maniple_analysis::validity::Source;
use maniple_realm::{After, Event};
use maniple_record::{Because, Contribution, Kind, Launch, LaunchNumber, OperationNumber, Part, Place, Usage, Value};

use super::store::Store;
use super::validity::{Application, Fill, Movement, Preconditions};
use crate::support::recorder;

/// Recording, where it is wanted; else these do nothing but what they are for.
impl Store {
    /// Events that come after all of some others, and fail if a needed one does. While a record is kept, with a handle
    /// of its own.
    pub(crate) fn merged(&self, after: After<'_>) -> Event {
        match &self.recorder {
            None => self.realm.merge(after),
            Some(recorder) => recorder.merged(&self.realm, after),
        }
    }

    /// An event that triggers with another one: while a record is kept a new one, else that one.
    pub(crate) fn own_handle(&self, event: Event) -> Event {
        if self.recorder.is_none() {
            return event;
        }
        recorder::own_handle(&self.realm, event)
    }

    /// Records an operation that comes after events, and after the beginning of the task that issues it.
    pub(crate) fn record(
        &self,
        issuer: Option<OperationNumber>,
        after: &Preconditions,
        kind: impl FnOnce() -> Kind,
    ) -> Option<OperationNumber> {
        let recorder = self.recorder.as_ref()?;
        let mut after = recorder.numbers_of(after.needs.iter().chain(&after.follows).copied());
        let issuer = issuer.map(|issuer| recorder.issued_after(issuer));
        after.extend(issuer.filter(|issuer| !after.contains(issuer)));
        Some(recorder.push(kind(), after))
    }

    /// Records an operation whose end is known.
    pub(crate) fn record_ended(
        &self,
        issuer: Option<OperationNumber>,
        after: &Preconditions,
        event: Event,
        kind: impl FnOnce() -> Kind,
    ) {
        self.record_end(self.record(issuer, after, kind), event);
    }

    /// Says which event is the end of an operation.
    pub(crate) fn record_end(&self, operation: Option<OperationNumber>, event: Event) {
        if let (Some(recorder), Some(operation)) = (&self.recorder, operation) {
            recorder.ends_with(operation, event);
        }
    }

    /// Says what the end of a task comes after, besides what it launched.
    pub(crate) fn record_end_after(&self, task: Option<OperationNumber>, events: &[Event]) {
        if let (Some(recorder), Some(task)) = (&self.recorder, task) {
            recorder.ends_after(task, events.iter().copied());
        }
    }

    /// Says that a task that launches has ended, with all that it launched: unless what it launched was given up, and
    /// it waited no longer.
    pub(crate) fn record_whole(&self, task: Option<OperationNumber>) {
        if let (Some(recorder), Some(task), None) = (&self.recorder, task, self.realm.breakdown()) {
            recorder.has_ended(task);
        }
    }

    /// Records that data was given up.
    pub(crate) fn record_loss(&self, place: Option<Place>, usages: Vec<Usage>) {
        if let Some(place) = place {
            self.record(Some(place.parent), &Preconditions::default(), || Kind::Lost { place, usages });
        }
    }

    /// Records a launch of a task's, whose end is an event.
    pub(crate) fn record_launch(
        &self,
        parent: Option<OperationNumber>,
        completion: Event,
        launch: impl FnOnce(OperationNumber) -> Launch,
    ) -> Option<LaunchNumber> {
        let (recorder, parent) = (self.recorder.as_ref()?, parent?);
        Some(recorder.launch(launch(parent), completion))
    }

    /// Records that a task leaves to its parent what it has made.
    pub(crate) fn record_return(&self, task: Option<OperationNumber>, parent: Option<OperationNumber>) {
        if let (Some(recorder), Some(parent), Some(task)) = (&self.recorder, parent, task) {
            recorder.return_to(parent, task);
        }
    }

    /// Records that what a task launches is no longer traced, as it was since this launch.
    pub(crate) fn record_end_of_trace(&self, parent: Option<OperationNumber>, beginning: Option<LaunchNumber>) {
        if let (Some(recorder), Some(parent), Some(beginning)) = (&self.recorder, parent, beginning) {
            recorder.end_trace(parent, beginning);
        }
    }

    /// Records that a launch is mapped after another one.
    pub(crate) fn record_dependence(&self, launch: Option<LaunchNumber>, on: Option<LaunchNumber>, because: Because) {
        if let (Some(recorder), Some(launch), Some(on)) = (&self.recorder, launch, on) {
            recorder.depends(launch, recorder.end_of_trace(on), because);
        }
    }
}
/// Counts and records what moves.
impl Store {
    pub(crate) fn note_copies(
        &self,
        event: Event,
        movements: &[&Movement],
        after: &Preconditions,
        issuer: Option<Place>,
    ) {
        let bytes = movements.iter().map(|movement| bytes_copied(movement)).sum();
        if bytes > 0 {
            self.counters.copies.add(1);
            self.counters.bytes_copied.add(bytes);
        } else {
            self.counters.fills.add(1);
        }
        self.record_ended(issuer.map(|place| place.parent), after, event, || {
            movements_kind(movements, issuer.map(|place| place.launch))
        });
    }

    pub(crate) fn note_reductions(
        &self,
        event: Event,
        applications: &[Application],
        after: &Preconditions,
        issuer: Option<Place>,
    ) {
        self.counters.reductions.add(applications.len() as u64);
        self.record_ended(issuer.map(|place| place.parent), after, event, || Kind::Apply {
            cause: issuer.map(|place| place.launch),
            to: applications.first().expect("an operation applies something").into.id(),
            contributions: applications.iter().filter_map(contribution).collect(),
        });
    }
}

/// Bytes moved from one instance to another; a fill moves none.
fn bytes_copied(movement: &Movement) -> u64 {
    let Some(from) = movement.from() else { return 0 };
    let sizes = movement.fields.iter().filter_map(|field| from.storage().layout().field(field));
    movement.points.space().volume() * sizes.map(|layout| layout.size() as u64).sum::<u64>()
}

/// The kind of an operation that carries out movements with one source and destination.
fn movements_kind(movements: &[&Movement], cause: Option<LaunchNumber>) -> Kind {
    let first = movements.first().expect("an operation moves something");
    let to = first.destination.id();
    let part = |movement: &Movement| Part { fields: movement.fields.clone(), points: movement.points.space().clone() };
    if let Source::Instance(from) = &first.source {
        return Kind::Copy {
            cause,
            from: from.id(),
            to,
            parts: movements.iter().map(|&movement| part(movement)).collect(),
        };
    }
    let filled = |movement: &&Movement| match &movement.source {
        Source::Fill(Fill::Value(value)) => Some((part(movement), value.recorded())),
        Source::Fill(Fill::Lost(_)) => Some((part(movement), Value::Lost)),
        Source::Instance(_) => None,
    };
    Kind::Fill { cause, to, parts: movements.iter().filter_map(filled).collect() }
}

/// The contribution that is made when a buffer is applied.
fn contribution(application: &Application) -> Option<Contribution> {
    let (buffer, operator) = (application.from.id(), application.from.reduction()?);
    let part = Part { fields: application.fields.clone(), points: application.points.space().clone() };
    Some(Contribution { buffer, operator, part })
}
