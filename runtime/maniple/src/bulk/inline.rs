//! Inline mappings: a task looks at data by itself.
//!
//! A mapping is an operation in program order like any other. As long as it is held, launching something that
//! interferes with it is an error: the task would wait for itself.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple_analysis::validity::Places;
use maniple_mapper::{MappingFailure, RequirementInfo, RequirementMapping, TaskInfo};
use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, Fault, UserEvent};
use maniple_record::Kind;
use maniple_region::{Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Requirement};
use maniple_space::{AnyRect, Rect};

use crate::context::mapped::{Hold, Mapped, ReadMapping, WriteMapping};
use crate::context::{Context, ContextState};
use crate::core::Chance;
use crate::data::regions::Region;
use crate::instances::bound::Bound;
use crate::instances::issuing::Issuing;
use crate::instances::placement::{Chosen, PhysicalRegion, Placement};
use crate::instances::validity::{self, Preparation};
use crate::mapping::answer::check_requirement;
use crate::mapping::lookup::Lookup;
use crate::mapping::point::{LockedStates, PointError, PointMapping};
use crate::mapping::regions::Regions;
use crate::mapping::{MAPPING_ATTEMPTS, Whom};
use crate::nodes::replication::Replica;
use crate::operation::lifecycle::{Mappable, MapperNumber, Operation};
use crate::support::error::{Error, Result};

/// An inline mapping in flight.
struct InlineOperation {
    bound: Bound,
    /// The same, as a mapper sees it.
    info: RequirementInfo,
    context: Arc<ContextState>,
    mapper: MapperNumber,
    released: Event,
    barrier: Event,
    mapped: UserEvent,
    place: Arc<Mutex<Option<PhysicalRegion>>>,
}

const NAME: &str = "inline mapping";

impl Mappable for InlineOperation {
    fn name(&self) -> &str {
        NAME
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        self.try_to_map(operation, Chance::Another);
    }

    fn mapper(&self) -> MapperNumber {
        self.mapper
    }

    fn is_held(&self) -> bool {
        true
    }
}

impl InlineOperation {
    fn whom(&self) -> Whom {
        self.context.whom(self.mapper)
    }

    fn try_to_map(self: &Arc<Self>, operation: &Arc<Operation>, chance: Chance) {
        match self.place(operation) {
            Ok(()) => operation.mark_mapped(),
            Err(PointError::Fatal(error)) => self.fail(operation, &error),
            Err(PointError::Full(failure)) if chance == Chance::Last => {
                let (requirement, region) = (&self.bound.requirement, Some(&self.info.region));
                self.fail(operation, &Error::no_room(NAME, None, requirement, region, failure));
            }
            Err(PointError::Full(_)) => {
                let (mapping, operation) = (Arc::clone(self), Arc::clone(operation));
                self.context.core.starve(Box::new(move |chance| mapping.try_to_map(&operation, chance)));
            }
        }
    }

    fn place(&self, operation: &Arc<Operation>) -> std::result::Result<(), PointError> {
        let core = &self.context.core;
        let bounds = std::slice::from_ref(&self.bound);
        let mut states = LockedStates::lock(bounds);
        let placed = PointMapping {
            store: &core.store,
            seat: core.seat(self.whom()),
            bounds,
            regions: Regions::Asked(slice::from_ref(&self.info)),
            order: (operation.sequence, 0),
            place: operation.place(0),
            may_wait: self.context.may_wait_for_any(),
            reduces_twice: &[false],
            issuing: Issuing::Live,
            copy_priority: 0,
        };
        let (chosen, mut before) = self.choose(&placed, &mut states)?;
        let mut places = Places::new();
        placed.prepare(&mut states, &chosen, &mut places, &mut before);
        let after = before.after_mut();
        after.follow(self.barrier);
        let ready = core.realm().merge(validity::after(after));
        // The use ends with the mapping's release, and not before the data was there.
        let used = core.store.own_handle(core.realm().merge(After { needs: &[ready], follows: &[self.released] }));
        let physical = PhysicalRegion::of(self.info.clone(), &self.bound, 0, &chosen);
        if let Some(place) = placed.place {
            let mapping = || Kind::Mapping { place, usage: physical.usage() };
            core.store.record_ended(Some(place.parent), after, used, mapping);
        }
        placed.commit(&mut states, &chosen, &mut places, used);
        *self.place.lock() = Some(physical);
        drop(states);
        core.realm().trigger_after(self.mapped, &ready);
        let operation = Arc::clone(operation);
        core.realm().when(After::follows(&[used]), move |_| operation.retire(Ok(())));
        Ok(())
    }

    /// Asks the mapper, again if what it says finds no room.
    fn choose(
        &self,
        placed: &PointMapping<'_>,
        states: &mut LockedStates<'_>,
    ) -> std::result::Result<(Chosen, Preparation), PointError> {
        let mut attempt = 0;
        loop {
            let mapping = self.ask(states).map_err(PointError::Fatal)?;
            let mut before = Preparation::together();
            match placed.choose(states, &[mapping], &mut before) {
                Ok(chosen) => return Ok((chosen, before)),
                Err(PointError::Full(failure)) => {
                    self.tell_failure(&failure);
                    attempt += 1;
                    if attempt == MAPPING_ATTEMPTS {
                        return Err(PointError::Full(failure));
                    }
                }
                Err(fatal) => return Err(fatal),
            }
        }
    }

    fn tell_failure(&self, failure: &MappingFailure) {
        let domain = AnyRect::from(Rect::<1>::from(0..1));
        let info = TaskInfo {
            name: NAME,
            point: domain.lo(),
            domain,
            is_index_launch: false,
            requirements: slice::from_ref(&self.info),
            variants: &[],
            origin: self.context.processor,
            depth: self.context.depth + 1,
            tag: 0,
        };
        let core = &self.context.core;
        core.seat(self.whom()).tell_failure(&core.store, &info, failure);
    }

    fn ask(&self, states: &mut LockedStates<'_>) -> Result<RequirementMapping> {
        let core = &self.context.core;
        let processor = self.context.processor;
        let states = std::cell::RefCell::new(states);
        let bounds = std::slice::from_ref(&self.bound);
        let regions = Regions::Asked(slice::from_ref(&self.info));
        let mail = core.mail_of(self.whom());
        let lookup = Lookup { store: &core.store, bounds, regions, states: &states, mail: &mail };
        let seat = core.seat(self.whom());
        let mapping =
            seat.call(&core.store, "map_inline", |mapper| mapper.map_inline(&self.info, processor, &lookup))?;
        check_requirement(&mapping, &self.info, true, processor, core.machine())
            .map_err(|problem| Error::mapper("map_inline", problem))?;
        Ok(mapping)
    }

    fn fail(&self, operation: &Operation, error: &Error) {
        self.context.core.realm().poison(self.mapped, Arc::<Fault>::from(error.clone()));
        operation.mark_mapped();
        operation.retire(Err(error));
    }
}

impl Context {
    /// Maps a field of a region to look at it here, as it is after all that was launched before this call. The future
    /// is ready when the data is. A field known only at run time is named by [`Field::new`].
    ///
    /// The data is mapped from this call on, until the mapping is dropped, or the future if it is not awaited:
    /// launching something meanwhile that changes this data is an error.
    ///
    /// # Errors
    /// [`Error::PrivilegeNotHeld`], [`Error::MappedByParent`], [`Error::Access`] for a field of another type,
    /// [`Error::OutOfMemory`]; or the failure of the task that was to compute the data.
    pub fn map_read<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
    ) -> impl Future<Output = Result<ReadMapping<T, D>>> + Send + use<F, T, D> {
        let begun = self.begin_mapping(region.logical(), field.id(), FieldType::of::<T>(), Privilege::Read);
        async move { Ok(ReadMapping::new(begun?.wait().await?)) }
    }

    /// A copy of all values of a field, in the row-major order of their points, as they are after all that was launched
    /// before this call: for code that knows neither the region's fields nor its dimension when it is compiled.
    ///
    /// # Errors
    /// As [`Context::map_read`].
    pub fn read_field<T: FieldValue>(
        &self,
        region: &LogicalRegion,
        field: FieldId,
    ) -> impl Future<Output = Result<Vec<T>>> + Send + use<T> {
        let begun = self.begin_mapping(region, field, FieldType::of::<T>(), Privilege::Read);
        async move { Ok(begun?.wait().await?.to_vec()) }
    }

    /// Maps a field of a region to read and change it here, at this place in the program as [`Context::map_read`] does.
    /// The future is ready when the data is.
    ///
    /// The data is mapped from this call on, until the mapping is dropped, or the future if it is not awaited:
    /// launching something meanwhile that uses this data is an error.
    ///
    /// # Errors
    /// As [`Context::map_read`].
    pub fn map_write<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
    ) -> impl Future<Output = Result<WriteMapping<T, D>>> + Send + use<F, T, D> {
        let begun = self.begin_mapping(region.logical(), field.id(), FieldType::of::<T>(), Privilege::ReadWrite);
        async move { Ok(WriteMapping::new(begun?.wait().await?)) }
    }

    fn begin_mapping(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        ty: FieldType,
        privilege: Privilege,
    ) -> Result<Begun> {
        let state = &self.state;
        let declared = region.fields().type_of(field)?;
        if declared != ty {
            return Err(Error::Access {
                task: state.name().to_owned(),
                requirement: 0,
                field: region.fields().name_of(field),
                region: region.to_string(),
                problem: format!("it holds {declared:?}, not {ty:?}"),
            });
        }
        let requirement = Requirement::new(region.clone(), FieldMask::of(field), privilege);
        state.interrupt("an inline mapping");
        let bound = state.bind(NAME, requirement.clone())?;
        state.check_inline(NAME, std::slice::from_ref(&bound))?;
        if let Some(replica) = Replica::of(state) {
            replica.bring(self, region, &bound.requirement.fields, privilege)?;
            state.interrupt("an inline mapping");
        }
        let realm = state.core.realm();
        let (released, mapped) = (realm.user_event(), realm.user_event());
        let hold = Arc::new(Hold::new(&state.core, released));
        let place = Arc::new(Mutex::new(None));
        // Relaxed: what this task launches later, whatever thread does it, comes after this.
        state.has_mapped.store(true, Ordering::Relaxed);
        state.submit(std::slice::from_ref(&bound), |stream, submission| {
            stream.inline.add(&hold, requirement);
            Arc::new(InlineOperation {
                bound: bound.clone(),
                info: RequirementInfo {
                    region: region.clone(),
                    fields: FieldMask::of(field),
                    privilege,
                    is_shared: false,
                },
                context: Arc::clone(state),
                mapper: self.mapper,
                released: released.event(),
                barrier: submission.barrier,
                mapped,
                place: Arc::clone(&place),
            })
        })?;
        Ok(Begun { context: Arc::clone(state), region: region.clone(), field, mapped: mapped.event(), place, hold })
    }
}

/// A mapping that has its place in the program. Dropped, it releases the data.
struct Begun {
    context: Arc<ContextState>,
    region: LogicalRegion,
    field: FieldId,
    mapped: Event,
    place: Arc<Mutex<Option<PhysicalRegion>>>,
    hold: Arc<Hold>,
}

impl Begun {
    /// The mapping, once the data is there.
    async fn wait(self) -> Result<Mapped> {
        let Self { context, region, field, mapped, place, hold } = self;
        if let Err(fault) = context.core.realm().event_future(mapped).await {
            let error = Error::of_fault(&fault, NAME, None);
            context.has_seen(&error);
            return Err(error);
        }
        let physical = place.lock().take();
        let instance = physical.and_then(|physical| match physical.place {
            Placement::Instances(instances) => instances.into_iter().next(),
            Placement::Virtual(_) => None,
        });
        let (_, instance) = instance.ok_or_else(|| Error::launch(NAME, "it was given no instance"))?;
        Ok(Mapped::new(region, field, instance, hold))
    }
}
