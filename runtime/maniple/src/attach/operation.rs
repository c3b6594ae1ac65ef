//! Attachments and detachments as operations of a context's stream.
//!
//! An attachment is a write of all values that brings its own instance. A detachment is a use of all values there that takes the instance away; the fill with zero that
//! follows it directly in the stream lets go of what is known of the instance, so that no operation ever looks for values there again. Mappers choose neither.

use std::any::Any;
use std::slice;
use std::sync::Arc;

use maniple_analysis::validity::{Instance as _, Places};
use maniple_mapper::RequirementInfo;
use maniple_realm::{After, Event};
use maniple_record::Kind;

use super::{ATTACH, DETACH};
use crate::context::ContextState;
use crate::drop_caught::drop_caught;
use crate::error::Error;
use crate::instances::bound::Bound;
use crate::instances::instance::PhysicalInstance;
use crate::instances::issuing::Issuing;
use crate::instances::selection::Selection;
use crate::instances::validity::{self, Preparation};
use crate::mapping::point::{LockedStates, PointMapping};
use crate::mapping::regions::Regions;
use crate::operation::{Mappable, Operation};
use crate::placement::{Chosen, PhysicalRegion};
use crate::results::Results;
use crate::value::Value;

/// All values of a field of a region, in memory of the program's.
pub(super) struct AttachedUse {
    pub(super) context: Arc<ContextState>,
    pub(super) bound: Bound,
    pub(super) info: RequirementInfo,
    pub(super) instance: Arc<PhysicalInstance>,
    pub(super) barrier: Event,
}

/// An attachment in flight.
pub(super) struct AttachOperation(pub(super) AttachedUse);

/// A detachment in flight.
pub(super) struct DetachOperation {
    pub(super) attached: AttachedUse,
    /// What becomes of the memory.
    pub(super) results: Arc<Results>,
    /// The owner of the memory, as the result.
    pub(super) give: fn(Box<dyn Any + Send>) -> Option<Value>,
}

impl AttachedUse {
    fn lock(&self) -> LockedStates<'_> {
        LockedStates::lock(slice::from_ref(&self.bound))
    }

    /// Uses all values in the instance, and nowhere else from then on. The event of that use.
    fn issue(&self, operation: &Operation, states: &mut LockedStates<'_>) -> Event {
        let core = &self.context.core;
        let placed = PointMapping {
            store: &core.store,
            seat: core.seat(self.context.processor),
            bounds: slice::from_ref(&self.bound),
            regions: Regions::Asked(slice::from_ref(&self.info)),
            order: (operation.sequence, 0),
            place: operation.place(0),
            may_wait: false,
            reduces_twice: &[false],
            issuing: Issuing::Live,
        };
        let selection = Selection::of_instance((0, 0), &self.bound.requirement.fields, &self.instance);
        let chosen = Chosen::Instances(vec![selection]);
        let (mut before, mut places) = (Preparation::together(), Places::new());
        placed.prepare(states, (&chosen, &mut places), &mut before);
        let after = before.after_mut();
        after.follow(self.barrier);
        self.instance.leftovers().into_iter().for_each(|event| after.follow(event));
        let used = core.store.own_handle(core.realm().merge(validity::after(after)));
        if let Some(place) = placed.place {
            let physical = PhysicalRegion::of(self.info.clone(), (&self.bound, 0), &chosen);
            let mapping = || Kind::Mapping { place, usage: physical.usage() };
            core.store.record_ended(Some(place.parent), after, used, mapping);
        }
        placed.commit(states, (&chosen, &mut places), used);
        used
    }
}

impl Mappable for AttachOperation {
    fn name(&self) -> &str {
        ATTACH
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        let attached = &self.0;
        let core = &attached.context.core;
        let mut states = attached.lock();
        let (fields, state) = &attached.bound.parts[0];
        states.of(state).table.insert(&attached.instance, fields);
        // Mappers are asked again: there is an instance that they do not know.
        core.store.forget_decisions();
        let used = attached.issue(operation, &mut states);
        drop(states);
        operation.mark_mapped();
        let operation = Arc::clone(operation);
        core.realm().when(After::follows(&[used]), move |_| operation.retire(Ok(())));
    }
}

impl Mappable for DetachOperation {
    fn name(&self) -> &str {
        DETACH
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        let attached = &self.attached;
        let core = &attached.context.core;
        let mut states = attached.lock();
        let used = attached.issue(operation, &mut states);
        attached.instance.detach();
        states.of(&attached.bound.parts[0].1).table.remove(&attached.instance);
        // They must not be taken up again, with an instance that has no memory. Whoever has made one of these has locked the state.
        core.store.forget_decisions();
        drop(states);
        operation.mark_mapped();
        let (detachment, operation) = (Arc::clone(&self), Arc::clone(operation));
        core.realm().when(After::needs(&[used]), move |outcome| {
            let failure = outcome.err().map(|fault| Error::of_fault(fault, detachment.name(), None));
            detachment.release(&operation, failure);
        });
    }
}

impl DetachOperation {
    /// Gives the memory back: everything that used it has ended.
    fn release(&self, operation: &Operation, failure: Option<Error>) {
        // SAFETY: the use of all values has ended, and comes after all uses before. No later operation gets the instance: it is in no table any more, the
        // fill that follows in the stream replaces all that is known of it before anything else is mapped that needs the values, and decisions and templates
        // with it are not taken up.
        let owner = unsafe { self.attached.instance.storage().release() };
        let given = owner.and_then(self.give).ok_or(NoOwner);
        match (failure, given) {
            (None, Ok(value)) => {
                self.results.set(0, Ok(value));
                operation.retire(Ok(()));
            }
            (Some(error), given) => {
                drop_caught("attached memory", DETACH, given);
                operation.retire(Err(&error));
            }
            (None, Err(error)) => operation.retire(Err(&Error::internal(error))),
        }
    }
}

/// Memory was released by something else than its detachment.
#[derive(Debug, thiserror::Error)]
#[error("attached memory was given back before it was detached")]
struct NoOwner;
