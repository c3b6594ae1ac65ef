//! How the physical analysis has data moved: at once, at once and on record, or not at all since a replay has done it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_mapper::InstanceId;
use maniple_realm::Event;
use maniple_realm::machine::ProcessorId;
use maniple_realm::transfer::{Transfer, TransferError};
use smallvec::SmallVec;

use super::recording::Recording;
use crate::physical::movement::Preconditions;
use crate::runtime::RuntimeCore;

/// What becomes of the transfers that the analysis of one point asks for.
#[derive(Clone, Copy)]
pub(crate) enum Issuing<'a> {
    /// The machine carries them out.
    Live,
    /// The machine carries them out, and a recording notes them.
    Recorded(&'a PointRecorder<'a>),
    /// They have been carried out, by a replay.
    Again(&'a Ends),
}

/// Notes what is done for one point of a launch.
pub(crate) struct PointRecorder<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) stage: u32,
    pub(crate) processor: ProcessorId,
    /// The nodes of what was moved for the point.
    pub(super) transfers: RefCell<Vec<u32>>,
}

impl<'a> PointRecorder<'a> {
    pub(crate) fn new(recording: &'a Recording, stage: u32, processor: ProcessorId) -> Self {
        Self { recording, stage, processor, transfers: RefCell::default() }
    }
}

/// How the transfers of one point ended, in the order in which they were recorded.
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
    /// Has transfers between some instances carried out after the preconditions, and gives the event of their end. `note` is called if the
    /// machine was told.
    pub(crate) fn transfer<T>(
        self,
        core: &RuntimeCore,
        transfers: impl FnOnce() -> T,
        instances: impl FnOnce() -> SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
        note: impl FnOnce(Event),
    ) -> Event
    where
        T: IntoIterator<Item = Result<Transfer, TransferError>>,
    {
        if let Self::Again(ends) = self {
            return ends.take();
        }
        let (event, node) = self.carry_out(core, transfers, instances, after);
        if let (Self::Recorded(point), Some(node)) = (self, node) {
            point.transfers.borrow_mut().push(node);
        }
        note(event);
        event
    }

    /// Has a buffer filled: as [`transfer`](Self::transfer), but it comes before the analysis and is not part of it.
    pub(crate) fn refill(
        self,
        core: &RuntimeCore,
        transfer: Transfer,
        buffer: InstanceId,
        after: &Preconditions,
    ) -> Event {
        self.carry_out(core, || [Ok(transfer)], || SmallVec::from_iter([buffer]), after).0
    }

    fn carry_out<T>(
        self,
        core: &RuntimeCore,
        transfers: impl FnOnce() -> T,
        instances: impl FnOnce() -> SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
    ) -> (Event, Option<u32>)
    where
        T: IntoIterator<Item = Result<Transfer, TransferError>>,
    {
        let Self::Recorded(point) = self else { return (core.transfer(transfers(), after), None) };
        let transfers: Vec<_> = transfers().into_iter().collect();
        let known = transfers.iter().filter_map(|transfer| transfer.as_ref().ok()).cloned().collect();
        let event = core.transfer(transfers, after);
        let node = point.recording.add_transfers(point, (known, instances()), after, event, core.realm());
        (event, Some(node))
    }

    /// An instance was made, which a replay would not do again.
    pub(crate) fn note_creation(self) {
        if let Self::Recorded(point) = self {
            point.recording.note_creation();
        }
    }
}

/// How many recordings are under way: as long as there are any, nothing is forgotten of who uses what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recordings(Arc<AtomicUsize>);

impl Recordings {
    pub(crate) fn are_under_way(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
