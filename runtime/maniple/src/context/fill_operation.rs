//! Fills as operations of a context's stream.

use std::slice;
use std::sync::Arc;

use maniple_record::{Kind, LaunchNumber, OperationNumber};
use maniple_region::{FieldMask, LogicalRegion, Privilege, Requirement};
use smallvec::SmallVec;

use super::ContextState;
use super::regions::Renewed;
use super::stream::{Promised, Stream};
use crate::instances::bound::Bound;
use crate::instances::validity::Preconditions;
use crate::mapping::point::LockedStates;
use crate::operation::lifecycle::{self, Mappable, Operation};
use crate::results::Producers;
use crate::support::error::Result;
use crate::support::fill::FillValue;

/// A fill in flight. It moves nothing: instances get the value when an operation looks.
pub(crate) struct FillOperation {
    /// The name of the operation.
    pub(crate) name: &'static str,
    pub(crate) bound: Bound,
    pub(crate) value: FillValue,
}

/// The name of a fill that gives up the data of a region which is destroyed, and whose name another will have.
pub(crate) const DESTRUCTION: &str = "destruction";

/// The name of a fill by which fields begin that took the ids of freed ones.
pub(crate) const NEW_FIELDS: &str = "new fields";

/// For each part of what is filled, the number of its filling, while a record is kept.
pub(crate) type FillNumbers = SmallVec<[Option<OperationNumber>; 1]>;

impl FillOperation {
    /// From now on the data has the value. The states are locked.
    pub(crate) fn carry_out(&self, operation: &Operation, states: &mut LockedStates<'_>) -> FillNumbers {
        let region = self.bound.requirement.target.bound();
        let parts = self.bound.parts.iter().map(|(fields, state)| {
            let number = record_fill(operation, &region, fields);
            states.of(state).validity.fill(&region, fields, self.value.recorded_as(number));
            number
        });
        parts.collect()
    }
}

impl Mappable for FillOperation {
    fn name(&self) -> &str {
        self.name
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        let mut states = LockedStates::lock(slice::from_ref(&self.bound));
        self.carry_out(operation, &mut states);
        if self.name == DESTRUCTION {
            self.bound.parts.iter().for_each(|(_, state)| states.of(state).begin_anew());
        }
        drop(states);
        if self.name == DESTRUCTION {
            operation.scope.gave_up(self.bound.requirement.target.tree().id());
        }
        operation.mark_mapped();
        operation.retire(Ok(()));
    }
}

fn record_fill(operation: &Operation, region: &LogicalRegion, fields: &FieldMask) -> Option<OperationNumber> {
    let place = operation.place(0)?;
    let fill = || Kind::FillRegion { place, region: region.clone(), fields: fields.clone() };
    operation.scope.store().record(Some(place.parent), &Preconditions::default(), fill)
}

impl ContextState {
    /// Makes fields zero everywhere in a region. The session under way has been left.
    pub(crate) fn submit_zero(self: &Arc<Self>, zero: Renewed) -> Result<()> {
        self.parts.iter().for_each(|part| part.zeroed(&zero.region, &zero.fields));
        let (bound, operation) = fill_with_zero(zero);
        self.submit_after(std::slice::from_ref(&bound), &Producers::default(), |_, _| Arc::new(operation))?;
        Ok(())
    }

    /// The same later, but at this place in program order, in a stream of the caller's.
    pub(crate) fn zeroing(&self, zero: Renewed) -> Zeroing {
        let (bound, operation) = fill_with_zero(zero);
        let completion = self.core.realm().user_event();
        let launch = |parent| lifecycle::recorded(parent, &operation, std::slice::from_ref(&bound));
        let recorded = self.core.store.record_launch(self.recorded, completion.event(), launch);
        Zeroing { bound, operation, promised: Promised { completion, recorded } }
    }

    /// The operation is to be released.
    pub(crate) fn zero_in(self: &Arc<Self>, stream: &mut Stream, zeroing: Zeroing) -> Arc<Operation> {
        let Zeroing { bound, operation, promised } = zeroing;
        self.submit_to(stream, std::slice::from_ref(&bound), &Producers::default(), promised, |_, _| {
            Arc::new(operation)
        })
    }
}

/// Fields that are to become zero.
pub(crate) struct Zeroing {
    bound: Bound,
    operation: FillOperation,
    promised: Promised,
}

impl Zeroing {
    /// The number of its launch, while a record is kept.
    pub(crate) fn recorded(&self) -> Option<LaunchNumber> {
        self.promised.recorded
    }
}

fn fill_with_zero(Renewed { region, fields, state }: Renewed) -> (Bound, FillOperation) {
    let requirement = Requirement::new(region, fields.clone(), Privilege::Discard);
    let bound = Bound { requirement, parts: SmallVec::from_iter([(fields, state)]) };
    let operation = FillOperation { name: "fill", bound: bound.clone(), value: FillValue::default() };
    (bound, operation)
}
