//! Carrying out what the analysis finds due: as transfers of the machine, or when a leaf task begins.

use std::sync::Arc;

use maniple_analysis::validity::{self, Effects, Source};
use maniple_mapper::InstanceId;
use maniple_realm::Event;
use maniple_realm::instance::InstanceKind;
use maniple_realm::layout::FieldLayout;
use maniple_realm::profile::{Kind, LabelId, Profiler, Tag, common};
use maniple_realm::transfer::{ReductionMode, Transfer, TransferError};
use maniple_record::Place;
use maniple_region::FieldMask;
use smallvec::SmallVec;

use super::instance::PhysicalInstance;
use super::issuing::Issuing;
use super::manner::Manner;
use super::store::Store;
use super::validity::{Application, Beginning, Effect, Fill, Movement, Preconditions};
use crate::support::error::{Error, Result};
use crate::support::fill::FillValue;

/// Ranks the instances that data could come from: indices of the first argument, best first, for the second. With each
/// come those of the fields wanted of which it holds all values that are wanted.
pub(crate) type Rank<'a> = dyn FnMut(&[(Arc<PhysicalInstance>, FieldMask)], &PhysicalInstance) -> Vec<usize> + 'a;

/// The analysis of validity, whose effects this machine carries out.
pub(crate) type Analysis<'a, 'm> = validity::Analysis<'a, PhysicalInstance, OperationMachine<'m>>;

/// The machine, on behalf of one operation.
pub(crate) struct OperationMachine<'a> {
    pub(crate) store: &'a Store,
    /// Ranks the instances that data could come from.
    pub(crate) rank: &'a mut Rank<'a>,
    /// How the machine is told.
    pub(crate) issuing: Issuing<'a>,
    /// On whose behalf, for the record.
    pub(crate) issuer: Option<Place>,
    /// Of the transfers, among all.
    pub(crate) priority: i32,
    pub(crate) keeps_apart: bool,
}

impl Effects<PhysicalInstance> for OperationMachine<'_> {
    type Events = Store;

    fn events(&self) -> &Store {
        self.store
    }

    #[inline]
    fn pruning(&self) -> Option<&Store> {
        self.store.prunes().then_some(self.store)
    }

    fn is_catching_up(&self) -> bool {
        matches!(self.issuing, Issuing::Again(_))
    }

    fn keeps_apart(&self) -> bool {
        self.keeps_apart
    }

    fn rank(&mut self, sources: &[(Arc<PhysicalInstance>, FieldMask)], destination: &PhysicalInstance) -> Vec<usize> {
        (self.rank)(sources, destination)
    }

    fn carry_out(&mut self, effect: Effect<'_>, after: &Preconditions) -> Event {
        let (store, issuer) = (self.store, self.issuer);
        let manner =
            Manner { priority: self.priority, tag: store.realm.profiler().map_or(Tag::NONE, |to| tag(&effect, to)) };
        match effect {
            Effect::Move(movements) => {
                let transfers = || movements.iter().flat_map(|movement| moves(movement));
                let instances = || instances_of(movements[0]);
                let note = |event| store.note_copies(event, movements, after, issuer);
                self.issuing.transfer(store, transfers, instances, after, manner, note)
            }
            Effect::Apply(applications) => {
                let transfers = || applications.iter().flat_map(reduces);
                let into = applications.iter().take(1).map(|application| &application.into);
                let buffers = applications.iter().map(|application| &application.from);
                let instances = || buffers.chain(into).map(|instance| instance.id()).collect();
                let note = |event| store.note_reductions(event, applications, after, issuer);
                self.issuing.transfer(store, transfers, instances, after, manner, note)
            }
        }
    }

    fn leave_to_operation(&mut self, contributions: usize) {
        self.store.counters.reductions.add(contributions as u64);
    }
}

/// The tag of an effect in a profile: the fields that it moves, and their region.
#[cold]
fn tag(effect: &Effect<'_>, profiler: &Profiler) -> Tag {
    let (kind, verb, fields, instance) = match effect {
        Effect::Move(movements) => {
            let (kind, verb) = match movements[0].source {
                Source::Instance(_) => (Kind::Copy, "copy"),
                Source::Fill(_) => (Kind::Fill, "fill"),
            };
            (kind, verb, &movements[0].fields, &movements[0].destination)
        }
        Effect::Apply(applications) => (Kind::Reduction, "reduction", &applications[0].fields, &applications[0].into),
    };
    let region = instance.region().root_region();
    let name = format!("{verb} of {} of {region}", region.fields().names_of(fields));
    Tag::of(profiler.label(kind, &name, None))
}

/// The instances that a movement reads and writes.
fn instances_of(movement: &Movement) -> SmallVec<[InstanceId; 4]> {
    movement.from().into_iter().chain([&movement.destination]).map(|instance| instance.id()).collect()
}

/// The transfers that the machine carries out to move values: one for each field.
fn moves(movement: &Movement) -> impl Iterator<Item = Result<Transfer, TransferError>> {
    let (space, to) = (movement.points.space(), movement.destination.storage());
    movement.fields.iter().map(move |field| {
        let size = || to.layout().field(field).map_or(0, FieldLayout::size);
        match &movement.source {
            Source::Instance(from) => Transfer::copy(space.clone(), (from.storage(), field), (to, field)),
            Source::Fill(Fill::Value(value)) => Transfer::fill(space.clone(), (to, field), value.bytes(size())),
            // It comes after the failure, and is not carried out.
            Source::Fill(Fill::Lost(_)) => {
                Transfer::fill(space.clone(), (to, field), FillValue::default().bytes(size()))
            }
        }
    })
}

/// The same to apply contributions.
fn reduces(application: &Application) -> impl Iterator<Item = Result<Transfer, TransferError>> {
    let (from, to) = (application.from.storage(), application.into.storage());
    let mode = if application.into.reduction().is_some() { ReductionMode::Fold } else { ReductionMode::Apply };
    application.fields.iter().filter_map(move |field| {
        let InstanceKind::Reduction(operator) = from.kind() else { return None };
        Some(Transfer::reduce(application.points.space().clone(), (from, field), (to, field), operator, mode))
    })
}

/// Does what a leaf task does itself when it begins, and records that in the profile.
///
/// # Safety
/// The task comes after all operations that used the buffers and the values before, and all that use them next come
/// after the task.
pub(crate) unsafe fn begin(beginning: &Beginning, profiler: Option<&Profiler>) -> Result<()> {
    for buffer in &beginning.empties {
        // SAFETY: promised by the caller.
        unsafe { execute(buffer.emptying()?, common::FILL, profiler) }?;
    }
    let mut apply = |transfer: Result<Transfer, TransferError>| {
        let transfer = transfer.as_ref().map_err(Error::of_transfer)?;
        // SAFETY: promised by the caller; buffers hold the operator's contributions, and all values have been filled or
        // written.
        unsafe { execute(transfer, common::REDUCTION, profiler) }
    };
    beginning.applications.iter().try_for_each(|application| reduces(application).try_for_each(&mut apply))
}

/// Carries a transfer out and records that.
///
/// # Safety
/// As [`Transfer::execute`].
unsafe fn execute(transfer: &Transfer, label: LabelId, profiler: Option<&Profiler>) -> Result<()> {
    let start = profiler.map(Profiler::now_ns);
    // SAFETY: promised by the caller.
    let outcome = unsafe { transfer.execute() };
    if let (Some(profiler), Some(start)) = (profiler, start) {
        profiler.span(Tag::of(label), profiler.current(), start);
    }
    outcome.map_err(|error| Error::of_transfer(&error))
}
