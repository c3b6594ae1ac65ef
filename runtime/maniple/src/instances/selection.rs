//! Turning a mapper's choices into instances: those that exist, else new ones.

use std::sync::{Arc, Weak};

use maniple_analysis::validity::{Instance as _, Mode, Order};
use maniple_mapper::{Columns, Extent, InstanceChoice, InstanceId, MappingFailure, ReductionPlace, Reuse};
use maniple_realm::Event;
use maniple_realm::instance::{Claim, Instance, InstanceError, InstanceKind};
use maniple_realm::layout::{FieldSpec, LayoutError, LayoutSpec, keeps_in_one, padded, with_gaps};
use maniple_realm::machine::MemoryId;
use maniple_record::Place as RecordPlace;
use maniple_region::{FieldMask, LogicalRegion, OperatorId, Privilege};
use maniple_space::AnyRect;
use smallvec::SmallVec;

use super::instance::PhysicalInstance;
use super::issuing::Issuing;
use super::state::{RegionData, RegionState};
use super::store::Store;
use super::validity::{Access, Instances, Preconditions, Preparation};
use crate::support::error::Error;

/// The instances chosen for a part of a requirement.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    /// The requirement's number, and the part's in it.
    pub(crate) place: (usize, usize),
    pub(crate) instances: Instances,
    /// A reduction that works on the values themselves.
    pub(crate) in_place: bool,
    /// For a reduction in buffers: where contributions by other operators can be applied before, if no instance holds
    /// those values yet.
    pub(crate) homes: Vec<(FieldMask, Arc<PhysicalInstance>)>,
    made: Made,
}

/// Instances and claims that were made for a selection, and are given up if nothing comes of it.
#[derive(Clone, Default)]
struct Made {
    instances: Vec<Arc<PhysicalInstance>>,
    /// Parts of instances that count as used since.
    claims: Vec<(Arc<PhysicalInstance>, Claim)>,
}

impl Selection {
    /// Whether an instance was made for this selection.
    pub(crate) fn has_made(&self, instance: &Arc<PhysicalInstance>) -> bool {
        self.made.instances.iter().any(|created| Arc::ptr_eq(created, instance))
    }
}

/// Buffers that requirements of one task have got: no other gets them.
pub(crate) type Taken = SmallVec<[InstanceId; 4]>;

/// A request for instances of one requirement.
pub(crate) struct Request<'a> {
    pub(crate) number: usize,
    pub(crate) region: &'a LogicalRegion,
    pub(crate) fields: &'a FieldMask,
    pub(crate) privilege: Privilege,
    /// Other requirements of the same task may reduce to the same data: each needs a buffer of its own.
    pub(crate) must_buffer: bool,
    /// The task may get memory that is still to be freed. Not one whose parent is a task: the operation that frees the
    /// memory may wait for that parent.
    pub(crate) may_wait: bool,
    /// Buffers that other requirements of the same task have got.
    pub(crate) taken: &'a [InstanceId],
    pub(crate) issuing: Issuing<'a>,
    /// On whose behalf, for the record.
    pub(crate) issuer: Option<RecordPlace>,
}

/// The region for which a new instance is made.
struct NewInstancePlace<'a> {
    region: &'a LogicalRegion,
    /// The part of the region that is about to be used.
    part: &'a LogicalRegion,
    may_wait: bool,
}

/// A buffer that exists for contributions, with the best use of it.
enum KnownBuffer {
    /// It is used together with other tasks.
    Shared(Arc<PhysicalInstance>),
    /// No task uses it.
    Free(Arc<PhysicalInstance>),
    /// Tasks use the one, if there is one: a new buffer is better.
    InUse(Option<Arc<PhysicalInstance>>),
}

/// Why there is no selection.
pub(crate) enum SelectionError {
    /// No room: the mapper may choose again.
    Full(MappingFailure),
    /// Something that choosing again does not mend.
    Fatal(Error),
}

impl Selection {
    /// None yet.
    pub(crate) fn of(place: (usize, usize)) -> Self {
        Self { place, ..Self::default() }
    }

    /// Of one instance, for these fields.
    pub(crate) fn of_instance(place: (usize, usize), fields: &FieldMask, instance: &Arc<PhysicalInstance>) -> Self {
        let instances = Instances::from_iter([(fields.clone(), Arc::clone(instance))]);
        Self { place, instances, ..Self::default() }
    }

    /// The access of an operation to a region in these instances.
    #[inline]
    pub(crate) fn access<'a>(&'a self, region: &'a LogicalRegion, privilege: Privilege, order: Order) -> Access<'a> {
        let mode = Mode::of(privilege, self.in_place);
        Access { number: self.place, region, mode, instances: &self.instances, homes: &self.homes, order }
    }

    /// Whether it is of buffers for contributions: which one is free changes from task to task.
    pub(crate) fn is_buffered(&self) -> bool {
        self.instances.iter().any(|(_, instance)| instance.reduction().is_some())
    }

    /// Whether it is of the same instances, all of which are there.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let are_same = |((fields, one), (others, other)): ((&_, &Arc<PhysicalInstance>), (&_, &Arc<_>))| {
            Arc::ptr_eq(one, other) && fields == others
        };
        let pairs = self.instances.iter().map(|(fields, instance)| (fields, instance));
        self.instances.len() == other.instances.len()
            && pairs.zip(other.instances.iter().map(|(fields, instance)| (fields, instance))).all(are_same)
            && self.homes.is_empty()
            && other.homes.is_empty()
    }
}

impl RegionData {
    /// Finds or makes instances for a request, trying the choices in order, and adds what must happen before they are
    /// used, besides what the sets know: the refilling of a buffer.
    pub(crate) fn select(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        choices: &[InstanceChoice],
        selection: &mut Selection,
        before: &mut Preparation,
    ) -> Result<(), SelectionError> {
        let (mut failure, emptied) = (None, before.empties());
        for choice in choices {
            let outcome = match request.privilege {
                Privilege::Reduce(operator) if self.wants_buffer(request, choice) => {
                    self.select_buffers(store, request, choice, operator, selection, before)
                }
                _ => self.select_values(store, request, choice, selection),
            };
            let Err(error) = outcome else { return Ok(()) };
            self.deselect(selection);
            before.keep_empties(emptied);
            *selection = Selection::of(selection.place);
            match self::failure(request.number, choice.memory, error) {
                SelectionError::Full(full) => failure = Some(full),
                fatal => return Err(fatal),
            }
        }
        let none = || SelectionError::Fatal(Error::mapper("map_requirement", "names no instance and is not virtual"));
        Err(failure.map_or_else(none, SelectionError::Full))
    }

    fn wants_buffer(&self, request: &Request<'_>, choice: &InstanceChoice) -> bool {
        request.must_buffer || choice.reduction == ReductionPlace::Buffer || self.validity.sink().is_some()
    }

    /// Takes a selection back whose task could not be mapped: what was made for it goes.
    pub(crate) fn deselect(&mut self, selection: &Selection) {
        for (instance, claim) in &selection.made.claims {
            instance.unclaim(claim);
        }
        for instance in &selection.made.instances {
            self.table.remove(instance);
        }
    }

    fn select_values(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        choice: &InstanceChoice,
        selection: &mut Selection,
    ) -> Result<(), CreateError> {
        selection.in_place = matches!(request.privilege, Privilege::Reduce(_));
        // A trace counts on what it finds, and nothing was in use when it began.
        let spares_used =
            self.is_renewed && !matches!(choice.reuse, Reuse::Only(_)) && matches!(request.issuing, Issuing::Live);
        selection.instances = match self.values(store, request, choice, spares_used, &mut selection.made) {
            Err(CreateError::Machine(error)) if spares_used && is_want_of_room(&error) => {
                self.values(store, request, choice, false, &mut selection.made)?
            }
            other => other?,
        };
        Ok(())
    }

    /// Instances for the values of a request: those that exist, except, if `spares_used`, those in use that hold
    /// nothing any more; else new ones. A region that is a rectangle lies in one rectangle of each.
    fn values(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        choice: &InstanceChoice,
        spares_used: bool,
        made: &mut Made,
    ) -> Result<Instances, CreateError> {
        let mut missing = request.fields.clone();
        let (validity, region) = (&mut self.validity, request.region);
        let mut may_read_only = |instance: &PhysicalInstance| {
            let held = request.fields.intersection(instance.fields());
            request.privilege == Privilege::Read && validity.valid_fields(region, &held, instance) == held
        };
        let is_in_use = |instance: &PhysicalInstance| {
            instance.holders() == 0 && instance.leftovers().into_iter().any(|event| !store.realm.has_triggered(event))
        };
        let may_take = |instance: &PhysicalInstance| {
            (!instance.is_read_only() || may_read_only(instance)) && !(spares_used && is_in_use(instance))
        };
        let (memory, layout, reuse) = (choice.memory, &choice.layout, choice.reuse);
        let mut instances = self.table.find(region, &mut missing, memory, layout, reuse, may_take);
        let mut extent = choice.extent;
        instances.retain(|(fields, instance)| {
            let is_claimed = self.claim(store, region, instance, made);
            if !is_claimed {
                // What finds no room in a wider instance may find as much elsewhere, also such as is still to be freed.
                missing = missing.union(fields);
                extent = Extent::Region;
            }
            is_claimed
        });
        store.keep(&instances, choice.keep);
        if missing.is_empty() {
            return Ok(instances);
        }
        let found = instances.len();
        let wide = self.extent(request.region, extent);
        for columns in columns(&missing, &self.validity.available_fields(), choice.columns) {
            let part = request.region.space().space();
            // A rectangle is to lie in one, whatever the mapper says; what is aligned begins with the region's own
            // values, and room is around them.
            let region = match choice.layout.align.is_none()
                && choice.layout.pad.is_none()
                && keeps_in_one(wide.space().space(), bytes_of_point(&wide, &columns), part)
            {
                true => &wide,
                false => request.region,
            };
            let place = NewInstancePlace { region, part: request.region, may_wait: request.may_wait };
            let instance = self.create(store, place, &columns, choice, None)?;
            request.issuing.note_creation();
            made.instances.push(Arc::clone(&instance));
            instances.push((columns.intersection(&missing), instance));
        }
        store.keep(&instances[found..], choice.keep);
        Ok(instances)
    }

    /// Counts the part of an instance as used that a region has, if there is room or some can be made: whether that is
    /// so.
    fn claim(
        &mut self,
        store: &Store,
        region: &LogicalRegion,
        instance: &Arc<PhysicalInstance>,
        made: &mut Made,
    ) -> bool {
        if !instance.is_in_parts() {
            return true;
        }
        loop {
            match instance.claim(region) {
                Ok(None) => return true,
                Ok(Some(claim)) => {
                    made.claims.push((Arc::clone(instance), claim));
                    return true;
                }
                Err(full) if !full.is_to_come() && store.make_room_for(instance.memory(), self) => {}
                Err(_) => return false,
            }
        }
    }

    /// One buffer a field: contributions to different fields may have different types.
    fn select_buffers(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        choice: &InstanceChoice,
        operator: OperatorId,
        selection: &mut Selection,
        before: &mut Preparation,
    ) -> Result<(), CreateError> {
        for field in request.fields.iter() {
            let column = FieldMask::of(field);
            let buffer = match self.known_buffer(store, request, choice, operator, &column) {
                KnownBuffer::Shared(buffer) => buffer,
                KnownBuffer::Free(buffer) => {
                    empty(store, request, &buffer, before);
                    buffer
                }
                KnownBuffer::InUse(used) => {
                    let place =
                        NewInstancePlace { region: request.region, part: request.region, may_wait: request.may_wait };
                    match (self.create(store, place, &column, choice, Some(operator)), used) {
                        (Ok(buffer), _) => {
                            request.issuing.note_creation();
                            selection.made.instances.push(Arc::clone(&buffer));
                            buffer
                        }
                        (Err(CreateError::Machine(error)), Some(used)) if is_want_of_room(&error) => used,
                        (Err(error), _) => return Err(error),
                    }
                }
            };
            selection.instances.push((column, buffer));
        }
        if self.validity.is_homeless(request.region, request.fields, operator) {
            selection.homes = self.values(store, request, choice, false, &mut selection.made)?.into_vec();
        }
        Ok(())
    }

    /// Takes the buffers of an earlier selection again, if all are free and nothing else is needed.
    pub(crate) fn select_again(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        earlier: &Selection,
        before: &mut Preparation,
    ) -> bool {
        let Privilege::Reduce(operator) = request.privilege else { return false };
        let is_free = |buffer: &PhysicalInstance| {
            buffer.reduction() == Some(operator) && buffer.holders() == 0 && !request.taken.contains(&buffer.id())
        };
        if !earlier.instances.iter().all(|(_, buffer)| is_free(buffer))
            || self.validity.is_homeless(request.region, request.fields, operator)
        {
            return false;
        }
        earlier.instances.iter().for_each(|(_, buffer)| empty(store, request, buffer, before));
        true
    }

    /// The buffer that there is for a column's contributions.
    fn known_buffer(
        &mut self,
        store: &Store,
        request: &Request<'_>,
        choice: &InstanceChoice,
        operator: OperatorId,
        column: &FieldMask,
    ) -> KnownBuffer {
        let known = self.table.buffers(request.region, choice.memory, operator);
        let fits = |buffer: &Arc<PhysicalInstance>| {
            buffer.fields() == column
                && !request.taken.contains(&buffer.id())
                && buffer.satisfies(&choice.layout, request.region)
        };
        let known: SmallVec<[_; 4]> = known.filter(|buffer| fits(buffer)).cloned().collect();
        let (free, used): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
            known.into_iter().partition(|buffer| buffer.holders() == 0);
        let contributors = used.into_iter().filter_map(|buffer| {
            self.validity.contributors(&buffer, request.region).map(|contributors| (contributors, buffer))
        });
        let open: SmallVec<[_; 4]> = contributors.collect();
        let least = open.iter().min_by_key(|(contributors, buffer)| (*contributors, buffer.id()));
        let least = least.map(|(_, buffer)| Arc::clone(buffer));
        match (least, free.into_iter().next()) {
            // Tasks that fold into one buffer do so one after the other: more buffers than processors gain nothing.
            (Some(least), _) if open.len() >= store.machine().processors().len() => KnownBuffer::Shared(least),
            (_, Some(free)) => KnownBuffer::Free(free),
            (least, None) => KnownBuffer::InUse(least),
        }
    }

    fn extent(&self, region: &LogicalRegion, extent: Extent) -> LogicalRegion {
        let levels = match extent {
            Extent::Region => 0,
            Extent::Ancestor(levels) => levels,
            Extent::Root => usize::MAX,
        };
        let mut space = region.space().clone();
        for _ in 0..levels {
            let Some(partition) = space.partition().filter(|_| space != *self.validity.root().space()) else { break };
            space = partition.parent().clone();
        }
        region.with_space(space)
    }

    fn create(
        &mut self,
        store: &Store,
        NewInstancePlace { region, part, may_wait }: NewInstancePlace<'_>,
        fields: &FieldMask,
        choice: &InstanceChoice,
        operator: Option<OperatorId>,
    ) -> Result<Arc<PhysicalInstance>, CreateError> {
        let spec = layout(region, fields, choice, operator)?;
        let layout = spec.build().map_err(|error| layout_error(error, choice.memory))?;
        let kind = instance_kind(region, fields, operator)?;
        let memory = choice.memory;
        let in_parts = || {
            if region.space() == part.space() || operator.is_some() {
                return None;
            }
            let instance = Instance::create_in_parts(store.realm.memory_pool(memory), layout.clone()).ok()?;
            instance.claim(part.space().space()).ok().map(|_| (instance, Event::NONE))
        };
        // What counts as a whole may get memory that is still to be freed.
        let whole = || match store.realm.create_instance(memory, layout.clone(), kind) {
            Ok(storage) if !may_wait && !store.realm.has_triggered(storage.1) => Err(store.promised(&storage.0)),
            other => other,
        };
        let create = || in_parts().map_or_else(whole, Ok);
        let mut result = create();
        while is_full(&result) && store.make_room_for(memory, self) {
            result = create();
        }
        // Templates of traces that are not being replayed hold on to instances, and so do decisions about launches to
        // come.
        while is_full(&result) && store.discard_caches() {
            while is_full(&result) && store.make_room_for(memory, self) {
                result = create();
            }
        }
        let (storage, ready) = result.map_err(CreateError::Machine)?;
        let instance = store.new_instance(storage, ready, region.original(), fields.clone(), operator);
        self.table.insert(&instance, fields);
        instance.belongs_to(Weak::<RegionState>::clone(self.state()));
        Ok(instance)
    }
}

/// Has a buffer emptied that nothing needs any more.
fn empty(store: &Store, request: &Request<'_>, buffer: &Arc<PhysicalInstance>, before: &mut Preparation) {
    let (ready, leftovers) = (buffer.ready(), buffer.merged_leftovers());
    // Should the selection be taken back, nothing has happened.
    if before.empty(buffer) {
        let after = before.of(request.number);
        after.need(ready);
        leftovers.into_iter().for_each(|event| after.follow(event));
        store.counters.fills.add(1);
        return;
    }
    let mut after = Preconditions::default();
    after.need(ready);
    after.follows.extend(leftovers);
    let emptied = request.issuing.refill(store, buffer, &after, request.issuer);
    before.of(request.number).need(emptied);
    // Should the selection be taken back, the next user of the buffer or its memory must still come after this.
    buffer.leave_behind_instead(emptied);
}

enum CreateError {
    Machine(InstanceError),
    /// More bytes than can be counted, in this memory.
    TooLarge(MemoryId, AnyRect),
    Other(Error),
}

fn layout_error(error: LayoutError, memory: MemoryId) -> CreateError {
    match error {
        LayoutError::TooLarge { bounds } => CreateError::TooLarge(memory, bounds),
        other => {
            CreateError::Other(Error::mapper("map_requirement", format!("asks for an impossible layout: {other}")))
        }
    }
}

impl From<Error> for CreateError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn is_full<T>(result: &Result<T, InstanceError>) -> bool {
    result.as_ref().is_err_and(is_want_of_room)
}

/// Whether it may help to let go of instances. What the system refuses it may give when it has got other bytes back.
fn is_want_of_room(error: &InstanceError) -> bool {
    matches!(error, InstanceError::OutOfMemory(_) | InstanceError::SystemRefused(_))
}

fn failure(requirement: usize, memory: MemoryId, error: CreateError) -> SelectionError {
    match error {
        CreateError::Machine(InstanceError::OutOfMemory(full)) => SelectionError::Full(MappingFailure::OutOfMemory {
            requirement,
            memory: full.memory,
            bytes: full.requested,
            used: full.used,
            capacity: full.capacity,
        }),
        CreateError::TooLarge(memory, bounds) => {
            SelectionError::Full(MappingFailure::TooLarge { requirement, memory, bounds })
        }
        CreateError::Machine(InstanceError::SystemRefused(refused)) => {
            SelectionError::Full(MappingFailure::SystemRefused { requirement, memory, bytes: refused.bytes as u64 })
        }
        CreateError::Machine(other) => SelectionError::Fatal(Error::internal(other)),
        CreateError::Other(error) => SelectionError::Fatal(error),
    }
}

/// The bytes of fields at a point.
pub(crate) fn bytes_of_point(region: &LogicalRegion, fields: &FieldMask) -> usize {
    fields.iter().filter_map(|field| region.fields().type_of(field).ok()).map(|ty| ty.size).sum()
}

/// The fields of each new instance.
fn columns(missing: &FieldMask, all: &FieldMask, columns: Columns) -> SmallVec<[FieldMask; 2]> {
    match columns {
        Columns::Requirement => SmallVec::from_iter([missing.clone()]),
        Columns::Separate => missing.iter().map(FieldMask::of).collect(),
        Columns::All => SmallVec::from_iter([missing.union(all)]),
    }
}

pub(crate) fn layout(
    region: &LogicalRegion,
    fields: &FieldMask,
    choice: &InstanceChoice,
    operator: Option<OperatorId>,
) -> Result<LayoutSpec, Error> {
    let mut specs = Vec::with_capacity(fields.len());
    for id in fields.iter() {
        let ty = region.fields().type_of(id)?;
        let (size, align) = match operator {
            Some(operator) => {
                let reduction = operator.reduction_on(ty).ok_or_else(|| Error::no_reduction(operator, region, id))?;
                (reduction.rhs_size(), reduction.rhs_align())
            }
            None => (ty.size, ty.align),
        };
        specs.push(FieldSpec { id, size, align });
    }
    let bytes_of_point = specs.iter().map(|field| field.size).sum();
    let points = region.space().space();
    let points = match choice.layout.pad {
        Some(pad) if operator.is_none() => padded(points, pad).ok_or_else(|| no_room_around(region, pad))?,
        _ => with_gaps(points, bytes_of_point),
    };
    let mut spec = LayoutSpec::new(points, specs);
    if let Some(arrangement) = choice.layout.arrangement {
        spec = spec.arranged(arrangement);
    }
    if let Some(order) = choice.layout.order {
        spec = spec.ordered(order);
    }
    if let Some(align) = choice.layout.align {
        spec = spec.aligned(align as usize);
    }
    Ok(spec)
}

fn no_room_around(region: &LogicalRegion, pad: u32) -> Error {
    Error::mapper("map_requirement", format!("wants room for {pad} points around {region}, which is no rectangle"))
}

pub(crate) fn instance_kind(
    region: &LogicalRegion,
    fields: &FieldMask,
    operator: Option<OperatorId>,
) -> Result<InstanceKind, Error> {
    let (Some(operator), Some(first)) = (operator, fields.iter().next()) else { return Ok(InstanceKind::Normal) };
    let ty = region.fields().type_of(first)?;
    let reduction = operator.reduction_on(ty).ok_or_else(|| Error::no_reduction(operator, region, first))?;
    Ok(InstanceKind::Reduction(*reduction))
}
