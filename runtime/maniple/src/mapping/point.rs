//! Mapping one operation at one point: instances, copies, preconditions.
//!
//! First every requirement gets its instances; only when all have, data moves ([`Analysis::prepare`]); only when the
//! operation's own event is known, it joins the history ([`Analysis::commit`]). So a mapping that fails for want of
//! memory leaves nothing behind.

use std::sync::Arc;

use maniple_analysis::validity::{AccessPlace, Order, Places};
use maniple_mapper::{InstanceChoice, InstanceId, MappingFailure, RequirementMapping};
use maniple_realm::Event;
use maniple_realm::locks::MutexGuard;
use maniple_record::Place as RecordPlace;
use maniple_region::FieldMask;
use smallvec::SmallVec;

use super::decisions::MappedPoint;
use super::regions::Regions;
use super::seat::MapperSeat;
use crate::instances::bound::Bound;
use crate::instances::effects::{Analysis, OperationMachine};
use crate::instances::instance::PhysicalInstance;
use crate::instances::issuing::Issuing;
use crate::instances::placement::{Chosen, PhysicalRegion, Placement};
use crate::instances::selection::{Request, Selection, SelectionError, Taken};
use crate::instances::state::{RegionData, RegionState};
use crate::instances::store::Store;
use crate::instances::validity::{Access, Preparation};
use crate::support::error::Error;

/// The region states of one operation, locked together.
pub(crate) struct LockedStates<'l> {
    locked: SmallVec<[(*const RegionState, MutexGuard<'l, RegionData>); 2]>,
}

impl<'l> LockedStates<'l> {
    /// Locks the states of all requirements, in the order of their addresses, so that operations never wait for each
    /// other in a circle.
    pub(crate) fn lock(bounds: &'l [Bound]) -> Self {
        let mut states: SmallVec<[&'l Arc<RegionState>; 4]> = SmallVec::new();
        for (_, state) in bounds.iter().flat_map(|bound| &bound.parts) {
            // Nearly always that of the requirement before.
            if states.last().is_none_or(|last| !Arc::ptr_eq(last, state)) {
                states.push(state);
            }
        }
        if states.len() > 1 {
            states.sort_unstable_by_key(|state| Arc::as_ptr(state));
            states.dedup_by_key(|state| Arc::as_ptr(state));
        }
        let mut locked = SmallVec::new();
        states.into_iter().for_each(|state| locked.push((Arc::as_ptr(state), state.lock())));
        Self { locked }
    }

    /// The data of one of the states.
    pub(crate) fn of(&mut self, state: &Arc<RegionState>) -> &mut RegionData {
        let found = self.locked.iter_mut().find(|(address, _)| *address == Arc::as_ptr(state));
        &mut found.expect("the states of all requirements are locked").1
    }
}

/// One point of an operation with its requirements.
pub(crate) struct PointMapping<'a> {
    pub(crate) store: &'a Store,
    /// The parent's mapper, which ranks sources.
    pub(crate) seat: &'a MapperSeat,
    pub(crate) bounds: &'a [Bound],
    pub(crate) regions: Regions<'a>,
    pub(crate) order: Order,
    /// The place of the operation in program order, while a record is kept.
    pub(crate) place: Option<RecordPlace>,
    /// The operation may wait for [any other](crate::context::ContextState::may_wait_for_any).
    pub(crate) may_wait: bool,
    /// For each requirement, whether another of the same launch may reduce to the same data.
    pub(crate) reduces_twice: &'a [bool],
    pub(crate) issuing: Issuing<'a>,
    /// The priority of the copies that bring its data.
    pub(crate) copy_priority: i32,
}

/// The outcome of choosing again.
pub(crate) enum Again {
    Same,
    /// Other buffers.
    Other(Box<MappedPoint>),
}

/// Why a point could not be mapped.
pub(crate) enum PointError {
    Full(MappingFailure),
    Fatal(Error),
}

impl PointMapping<'_> {
    /// Finds or makes the instances of all requirements, and adds what must happen before they are used, besides what
    /// the sets know. On failure, everything made for them is gone again.
    pub(crate) fn choose(
        &self,
        states: &mut LockedStates<'_>,
        mappings: &[RequirementMapping],
        before: &mut Preparation,
    ) -> Result<Chosen, PointError> {
        let choices = mappings.iter().map(instance_choices).collect::<Option<SmallVec<[_; 8]>>>();
        let Some(choices) = choices else { return Ok(Chosen::Virtual) };
        let mut chosen = Vec::with_capacity(self.bounds.iter().map(|bound| bound.parts.len()).sum());
        let mut taken = Taken::new();
        for (number, choices) in choices.into_iter().enumerate() {
            for part in 0..self.bounds[number].parts.len() {
                let mut selection = Selection::of((number, part));
                let outcome = self.select(states, choices, &mut taken, &mut selection, before);
                chosen.push(selection);
                if let Err(error) = outcome {
                    self.give_up(states, &chosen);
                    return Err(match error {
                        SelectionError::Full(failure) => PointError::Full(failure),
                        SelectionError::Fatal(error) => PointError::Fatal(error),
                    });
                }
            }
        }
        Ok(Chosen::Instances(chosen))
    }

    /// Finds or makes the instances of a part of a requirement. Buffers among them are taken.
    fn select(
        &self,
        states: &mut LockedStates<'_>,
        choices: &[InstanceChoice],
        taken: &mut Taken,
        selection: &mut Selection,
        before: &mut Preparation,
    ) -> Result<(), SelectionError> {
        let (number, part) = selection.place;
        let (_, state) = &self.bounds[number].parts[part];
        let must_buffer = self.reduces_twice[number] && self.reduces_again(number);
        let request = self.request(number, part, taken, must_buffer);
        states.of(state).select(self.store, &request, choices, selection, before)?;
        take(selection, taken);
        Ok(())
    }

    fn request<'a>(&'a self, number: usize, part: usize, taken: &'a [InstanceId], must_buffer: bool) -> Request<'a> {
        Request {
            number,
            region: &self.regions[number],
            fields: &self.bounds[number].parts[part].0,
            privilege: self.bounds[number].requirement.privilege,
            must_buffer,
            may_wait: self.may_wait,
            taken,
            issuing: self.issuing,
            issuer: self.place,
        }
    }

    /// Takes the choice for an earlier point like this one for this point. The instances of values are still there;
    /// buffers are in use or not, so they are chosen anew. Nothing if that does not work out.
    pub(crate) fn choose_again(
        &self,
        states: &mut LockedStates<'_>,
        earlier: &Arc<MappedPoint>,
        before: &mut Preparation,
    ) -> Option<Again> {
        let Chosen::Instances(chosen) = &earlier.chosen else { return None };
        let mut taken = Taken::new();
        let mut others: Vec<(usize, Selection)> = Vec::new();
        for (index, then) in chosen.iter().enumerate().filter(|(_, then)| then.is_buffered()) {
            let (number, part) = then.place;
            let (_, state) = &self.bounds[number].parts[part];
            // Those before were buffers.
            let request = self.request(number, part, &taken, true);
            if states.of(state).select_again(self.store, &request, then, before) {
                take(then, &mut taken);
                continue;
            }
            let choices = instance_choices(&earlier.mapping.requirements[number])?;
            let mut now = Selection::of(then.place);
            let outcome = self.select(states, choices, &mut taken, &mut now, before);
            if outcome.is_err() || !now.is_same(then) {
                others.push((index, now));
            }
            if outcome.is_err() {
                others.iter().for_each(|(_, selection)| self.deselect(states, selection));
                return None;
            }
        }
        if others.is_empty() {
            return Some(Again::Same);
        }
        let mut chosen = chosen.clone();
        for (index, now) in others {
            chosen[index] = now;
        }
        let chosen = Chosen::Instances(chosen);
        let again = |(number, physical): (usize, &PhysicalRegion)| {
            let (located, place) = (None, Placement::of(&self.bounds[number], number, &chosen));
            PhysicalRegion { located, place, ..physical.clone() }
        };
        let physical = earlier.physical.iter().enumerate().map(again).collect();
        let (point, index, mapping, node) = (earlier.point, earlier.index, earlier.mapping.clone(), earlier.node);
        Some(Again::Other(Box::new(MappedPoint {
            point,
            index,
            mapping,
            target: earlier.target,
            is_bound: earlier.is_bound,
            node,
            batch: None,
            chosen,
            physical,
            places: None,
            _counted: None,
        })))
    }

    /// Takes back what was chosen for a point that cannot be mapped so.
    pub(crate) fn take_back(&self, states: &mut LockedStates<'_>, chosen: &Chosen) {
        if let Chosen::Instances(chosen) = chosen {
            self.give_up(states, chosen);
        }
    }

    fn deselect(&self, states: &mut LockedStates<'_>, selection: &Selection) {
        let (number, part) = selection.place;
        let (_, state) = &self.bounds[number].parts[part];
        states.of(state).deselect(selection);
    }

    /// Whether another requirement of this point reduces to some of the same data.
    fn reduces_again(&self, number: usize) -> bool {
        let mine = &self.bounds[number].requirement;
        (self.bounds.iter().enumerate()).filter(|(other, _)| *other != number).any(
            |(other, Bound { requirement, .. })| {
                requirement.privilege.is_same_reduction(mine.privilege)
                    && requirement.target.tree().id() == mine.target.tree().id()
                    && requirement.fields.overlaps(&mine.fields)
                    && self.regions[number].space().overlaps(self.regions[other].space())
            },
        )
    }

    fn give_up(&self, states: &mut LockedStates<'_>, chosen: &[Selection]) {
        chosen.iter().for_each(|selection| self.deselect(states, selection));
    }

    /// Moves data as needed and adds what the operation must wait for: of each requirement, or of all in one place.
    pub(crate) fn prepare(
        &self,
        states: &mut LockedStates<'_>,
        chosen: &Chosen,
        places: &mut Places,
        before: &mut Preparation,
    ) {
        self.each_access(states, chosen, places, |analysis, access, places| {
            analysis.prepare(access, places, before);
            false
        });
    }

    /// Makes the operation, which ends with `event`, part of the history.
    pub(crate) fn commit(&self, states: &mut LockedStates<'_>, chosen: &Chosen, places: &mut Places, event: Event) {
        self.each_access(states, chosen, places, |analysis, access, places| analysis.commit(access, places, event));
    }

    /// Locates each access and visits it. Where copies were forgotten, so are the instances that nothing holds any
    /// more.
    fn each_access(
        &self,
        states: &mut LockedStates<'_>,
        chosen: &Chosen,
        places: &mut Places,
        mut visit: impl FnMut(&mut Analysis<'_, '_>, &Access<'_>, &[AccessPlace]) -> bool,
    ) {
        let Chosen::Instances(chosen) = chosen else { return };
        let mut rank = |sources: &[(Arc<PhysicalInstance>, FieldMask)], destination: &PhysicalInstance| {
            self.seat.rank(self.store, sources, destination)
        };
        let (store, shapes) = (self.store, self.store.forest.shapes());
        let (issuing, issuer, priority) = (self.issuing, self.place, self.copy_priority);
        // A trace comes after all that was before it, and consists of leaves.
        let keeps_apart = !self.may_wait && matches!(issuing, Issuing::Live);
        let mut machine = OperationMachine { store, rank: &mut rank, issuing, issuer, priority, keeps_apart };
        let mut first = 0;
        for selection in chosen {
            let (number, part) = selection.place;
            let bound = &self.bounds[number];
            let (_, state) = &bound.parts[part];
            let (region, privilege) = (&self.regions[number], bound.requirement.privilege);
            let (data, access) = (states.of(state), selection.access(region, privilege, self.order));
            let mut analysis = Analysis::new(&mut data.validity, shapes, &mut machine);
            let end = analysis.locate(&access, places, first);
            if visit(&mut analysis, &access, &places[first..end]) {
                data.table.collect();
            }
            first = end;
        }
    }
}

/// Buffers of a selection are not for others.
fn take(selection: &Selection, taken: &mut Taken) {
    let instances = selection.instances.iter().map(|(_, instance)| instance);
    taken.extend(instances.filter(|instance| instance.reduction().is_some()).map(|buffer| buffer.id()));
}

/// The instances that a mapper has chosen for a requirement, unless that is virtual.
fn instance_choices(mapping: &RequirementMapping) -> Option<&[InstanceChoice]> {
    match mapping {
        RequirementMapping::Virtual => None,
        RequirementMapping::Instance(choices) => Some(choices),
    }
}
