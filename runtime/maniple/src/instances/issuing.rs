//! How the analysis has data moved: at once, at once and logged, or not at all since a replay has done it.

use std::cell::Cell;

use maniple_mapper::InstanceId;
use maniple_realm::transfer::{Transfer, TransferError};
use maniple_realm::{After, Event, EventStatus};
use maniple_record::{Kind, Part, Place};
use smallvec::SmallVec;

use super::instance::PhysicalInstance;
use super::manner::Manner;
use super::store::Store;
use super::validity::Preconditions;

/// The treatment of the transfers that the analysis of one point asks for.
#[derive(Clone, Copy)]
pub(crate) enum Issuing<'a> {
    /// The machine carries them out.
    Live,
    /// The machine carries them out, and a log notes them.
    Logged(&'a dyn TransferLog),
    /// They have been carried out, by a replay.
    Again(&'a Ends),
}

/// Notes what is done for one point of a launch, to be done again later.
pub(crate) trait TransferLog {
    /// Notes transfers between some instances that were issued after the preconditions and end with an event. Of a step
    /// of the analysis `of_analysis` is true; otherwise they came before it.
    fn add_transfers(
        &self,
        transfers: Vec<Transfer>,
        instances: SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
        event: Event,
        of_analysis: bool,
    );

    /// Notes that an instance was made, which would not be made again.
    fn note_creation(&self);
}

/// How the transfers of one point ended, in the order in which they were logged.
pub(crate) struct Ends {
    events: Vec<Event>,
    next: Cell<usize>,
}

impl Ends {
    pub(crate) fn new(events: Vec<Event>) -> Self {
        Self { events, next: Cell::new(0) }
    }

    fn take(&self) -> Event {
        let next = self.next.replace(self.next.get() + 1);
        self.events.get(next).copied().unwrap_or(Event::NONE)
    }
}

impl Issuing<'_> {
    /// Has transfers between some instances carried out after the preconditions, and gives the event of their end.
    /// `note` is called if the machine was told.
    pub(super) fn transfer<T>(
        self,
        store: &Store,
        transfers: impl FnOnce() -> T,
        instances: impl FnOnce() -> SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
        manner: Manner,
        note: impl FnOnce(Event),
    ) -> Event
    where
        T: IntoIterator<Item = Result<Transfer, TransferError>>,
    {
        if let Self::Again(ends) = self {
            let event = ends.take();
            let has_failed = |event| matches!(store.realm.status(event), EventStatus::Poisoned(_));
            // A replay applies contributions also to values that an earlier run has lost, which the graph nodes that
            // need them are told. To the analysis they are lost then.
            let lost = || after.needs.iter().copied().find(|&need| has_failed(need));
            return if has_failed(event) { event } else { lost().unwrap_or(event) };
        }
        let event = self.carry_out(store, transfers, instances, after, manner, true);
        note(event);
        event
    }

    /// Empties a buffer: every contribution becomes the identity. It comes before the analysis and is not part of it.
    pub(super) fn refill(
        self,
        store: &Store,
        buffer: &PhysicalInstance,
        after: &Preconditions,
        issuer: Option<Place>,
    ) -> Event {
        store.counters.fills.add(1);
        let event = match buffer.emptying() {
            Ok(emptying) => {
                let buffers = || SmallVec::from_iter([buffer.id()]);
                self.carry_out(store, || [Ok(emptying.clone())], buffers, after, Manner::default(), false)
            }
            // It stands for the preconditions all the same.
            Err(error) => store.merged(After { needs: &[store.poisoned(error)], follows: &after.follows }),
        };
        store.record_ended(issuer.map(|place| place.parent), after, event, || Kind::Refill {
            cause: issuer.map(|place| place.launch),
            buffer: buffer.id(),
            part: Part { fields: buffer.fields().clone(), points: buffer.region().space().space().clone() },
        });
        event
    }

    fn carry_out<T>(
        self,
        store: &Store,
        transfers: impl FnOnce() -> T,
        instances: impl FnOnce() -> SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
        manner: Manner,
        of_analysis: bool,
    ) -> Event
    where
        T: IntoIterator<Item = Result<Transfer, TransferError>>,
    {
        let Self::Logged(log) = self else { return store.transfer(transfers(), after, manner) };
        let transfers: Vec<_> = transfers().into_iter().collect();
        let known = transfers.iter().filter_map(|transfer| transfer.as_ref().ok()).cloned().collect();
        let event = store.transfer(transfers, after, manner);
        log.add_transfers(known, instances(), after, event, of_analysis);
        event
    }

    /// An instance was made, which a replay would not do again.
    pub(super) fn note_creation(self) {
        if let Self::Logged(log) = self {
            log.note_creation();
        }
    }
}
