//! Attachments and detachments as operations of a context's stream.
//!
//! An attachment is a write of all values that brings its own instance. A detachment is a use of all values there that
//! takes the instance away; the fill with zero that follows it directly in the stream lets go of what is known of the
//! instance, so that no operation ever looks for values there again. Mappers choose neither.

use std::slice;
use std::sync::Arc;

use maniple_analysis::validity::{Instance as _, Places};
use maniple_mapper::RequirementInfo;
use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event};
use maniple_record::Kind;

use super::handle::{Finished, Give};
use super::held::Load;
use super::room::Wanted;
use super::{ATTACH, DETACH};
use crate::context::ContextState;
use crate::core::Chance;
use crate::data::value::Value;
use crate::instances::bound::Bound;
use crate::instances::instance::PhysicalInstance;
use crate::instances::issuing::Issuing;
use crate::instances::placement::{Chosen, PhysicalRegion};
use crate::instances::selection::Selection;
use crate::instances::validity::{self, Preparation};
use crate::mapping::point::{LockedStates, PointMapping};
use crate::mapping::regions::Regions;
use crate::operation::lifecycle::{Mappable, Operation};
use crate::results::Results;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

/// All values of a field of a region, in memory of the program's.
pub(super) struct AttachedUse {
    pub(super) context: Arc<ContextState>,
    pub(super) bound: Bound,
    pub(super) info: RequirementInfo,
    pub(super) instance: Arc<PhysicalInstance>,
    pub(super) barrier: Event,
}

/// An attachment in flight.
pub(super) struct AttachOperation {
    pub(super) attached: AttachedUse,
    /// It holds memory from then on that counts from then on.
    pub(super) takes_room: bool,
    pub(super) from_file: Mutex<Option<FromFile>>,
}

/// The needs of an attached file.
pub(super) struct FromFile {
    /// The load that reads the file into the memory, if the file is read.
    pub(super) load: Option<Load>,
    /// Room for its values.
    pub(super) room: Wanted,
}

/// A detachment in flight.
pub(super) struct DetachOperation {
    pub(super) attached: AttachedUse,
    /// The results that give the memory back.
    pub(super) results: Arc<Results>,
    /// The owner of the memory, as the result.
    pub(super) give: Give,
    /// If that writes a file: what was read of it and written to it before.
    pub(super) written_after: Vec<Event>,
}

impl AttachedUse {
    fn lock(&self) -> LockedStates<'_> {
        LockedStates::lock(slice::from_ref(&self.bound))
    }

    /// Uses all values in the instance, and nowhere else from then on. The event of that use, which comes after that of
    /// the memory being loaded.
    fn issue(&self, operation: &Operation, states: &mut LockedStates<'_>, loaded: Event) -> Event {
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
            copy_priority: 0,
        };
        let selection = Selection::of_instance((0, 0), &self.bound.requirement.fields, &self.instance);
        let chosen = Chosen::Instances(vec![selection]);
        let (mut before, mut places) = (Preparation::together(), Places::new());
        placed.prepare(states, &chosen, &mut places, &mut before);
        let after = before.after_mut();
        after.follow(self.barrier);
        after.need(loaded);
        self.instance.leftovers().into_iter().for_each(|event| after.follow(event));
        let used = core.store.own_handle(core.realm().merge(validity::after(after)));
        if let Some(place) = placed.place {
            let physical = PhysicalRegion::of(self.info.clone(), &self.bound, 0, &chosen);
            let mapping = || Kind::Mapping { place, usage: physical.usage() };
            core.store.record_ended(Some(place.parent), after, used, mapping);
        }
        placed.commit(states, &chosen, &mut places, used);
        used
    }
}

impl Mappable for AttachOperation {
    fn name(&self) -> &str {
        ATTACH
    }

    fn takes_room(&self) -> bool {
        self.takes_room
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        self.map_with(operation, Chance::Another);
    }
}

impl AttachOperation {
    /// Maps it, when there is room.
    fn map_with(self: Arc<Self>, operation: &Arc<Operation>, chance: Chance) {
        let core = &self.attached.context.core;
        let from_file = self.from_file.lock().take();
        let (load, room) = match from_file {
            None => (None, Ok(Event::NONE)),
            Some(FromFile { load, room }) => match room.take(core) {
                Ok(there) => (load, Ok(there)),
                Err(_) if chance == Chance::Another => {
                    *self.from_file.lock() = Some(FromFile { load, room });
                    core.store.counters.mapping_retries.add(1);
                    let (own, operation) = (Arc::clone(&self), Arc::clone(operation));
                    core.starve(Box::new(move |chance| own.map_with(&operation, chance)));
                    return;
                }
                Err(full) => (load, Err(room.refusal(&full))),
            },
        };
        // After this the values are there, or it is known why not.
        let ready = match (&load, &room) {
            (Some(load), _) => load.loading.loaded,
            (None, Ok(there)) => *there,
            (None, Err(error)) => core.store.poisoned(error.clone()),
        };
        self.map_when(operation, ready);
        match (load, room) {
            (Some(load), Ok(there)) => self.load(load, there),
            (Some(load), Err(error)) => load.fail(error),
            (None, _) => {}
        }
    }

    fn map_when(&self, operation: &Arc<Operation>, ready: Event) {
        let attached = &self.attached;
        let core = &attached.context.core;
        let mut states = attached.lock();
        let (fields, state) = &attached.bound.parts[0];
        states.of(state).table.insert(&attached.instance, fields);
        // Mappers are asked again: there is an instance that they do not know.
        core.store.forget_decisions(attached.instance.region().tree().id());
        let used = attached.issue(operation, &mut states, ready);
        drop(states);
        operation.mark_mapped();
        let operation = Arc::clone(operation);
        core.realm().when(After::needs(&[used]), move |outcome| {
            let failure = outcome.err().map(|fault| Error::of_fault(fault, ATTACH, None));
            operation.retire(failure.as_ref().map_or(Ok(()), Err));
        });
    }

    /// Reads a file, when there is room for its values, and after what comes before in the program.
    fn load(&self, load: Load, there: Event) {
        let core = Arc::clone(&self.attached.context.core);
        let instance = Arc::clone(&self.attached.instance);
        let after = [&load.loading.earlier.events[..], &[there]].concat();
        let realm = core.realm().clone();
        realm.when(After::follows(&after), move |_| {
            // SAFETY: the memory is this file's, and all uses of it come after the event that this triggers.
            core.wait_for_file(move || unsafe { load.run(&instance) });
        });
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
        let used = attached.issue(operation, &mut states, Event::NONE);
        attached.instance.detach();
        states.of(&attached.bound.parts[0].1).table.remove(&attached.instance);
        // Decisions must not be taken up again, with an instance that has no memory. A thread that makes one has locked
        // the state.
        core.store.forget_decisions(attached.instance.region().tree().id());
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
    fn release(self: &Arc<Self>, operation: &Arc<Operation>, failure: Option<Error>) {
        // SAFETY: the use of all values has ended, and comes after all uses before. No later operation gets the
        // instance: it is in no table any more, the fill that follows in the stream replaces all that is known of it
        // before anything else is mapped that needs the values, and decisions and templates with it are not taken up.
        let owner = unsafe { self.attached.instance.storage().release() };
        let given = owner.and_then(self.give).ok_or(NoOwner);
        match (failure, given) {
            (None, Ok(Finished::Now(value))) => self.end(operation, Ok(value)),
            (None, Ok(Finished::Later(finish))) => {
                let (own, operation) = (Arc::clone(self), Arc::clone(operation));
                let core = &self.attached.context.core;
                core.realm().when(After::follows(&self.written_after), move |_| {
                    let core = Arc::clone(&own.attached.context.core);
                    core.wait_for_file(move || own.end(&operation, finish()));
                });
            }
            (Some(error), given) => {
                drop_caught("attached memory", DETACH, given);
                operation.retire(Err(&error));
            }
            (None, Err(error)) => operation.retire(Err(&Error::internal(error))),
        }
    }

    fn end(&self, operation: &Operation, result: Result<Value>) {
        match result {
            Ok(value) => {
                self.results.set(0, Ok(value));
                operation.retire(Ok(()));
            }
            Err(error) => operation.retire(Err(&error)),
        }
    }
}

/// Memory was released by something else than its detachment.
#[derive(Debug, thiserror::Error)]
#[error("attached memory was given back before it was detached")]
struct NoOwner;
