//! Memory of the program's as the place of a region's values: attached without a copy, used, and detached with what the region holds then.
//!
//! Both are operations in program order. An attachment is like a write of all values, which are in the memory from then on; a mapper may place copies elsewhere, and
//! tasks may change these, so what the memory holds meanwhile is unspecified. A detachment brings the current values to it, if they are elsewhere, and gives it
//! back; the values leave the region with it, which is zero there from then on, as when it was made.

mod claims;
mod handle;
mod operation;

use std::any::Any;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use maniple_mapper::RequirementInfo;
use maniple_realm::instance::{Instance, InstanceError, InstanceKind};
use maniple_realm::layout::{FieldSpec, LayoutSpec};
use maniple_realm::machine::MemoryId;
use maniple_region::{Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Requirement};
use maniple_space::{AnyRect, Rect};

use self::claims::{Claim, Range};
use self::handle::{Kept, give, give_shared};
use self::operation::{AttachOperation, AttachedUse, DetachOperation};
use crate::context::{Context, ContextState, Promised, Renewed};
use crate::error::{AttachmentError, Error, Result};
use crate::instances::bound::Bound;
use crate::instances::instance::{Backing, PhysicalInstance};
use crate::regions::Region;
use crate::replication::Replica;
use crate::results::{Origin, Producers, Results, Sources};
use crate::value::Value;

pub use self::handle::{Attached, Detached};

const ATTACH: &str = "attachment";
const DETACH: &str = "detachment";

/// Memory, and what gives its owner back.
struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    backing: Backing,
    give: fn(Box<dyn Any + Send>) -> Option<Value>,
}

/// The values of a field in a region.
struct Values<'a> {
    region: &'a LogicalRegion,
    field: FieldId,
    ty: FieldType,
}

impl Values<'_> {
    fn names(&self) -> (String, String) {
        (self.region.fields().name_of(self.field), self.region.to_string())
    }

    /// Refuses another type than the field's, points that do not lie in one rectangle, and memory that is too short or misaligned for them.
    fn check(&self, memory: &Memory) -> Result<()> {
        let (field, region) = self.names();
        let declared = self.region.fields().type_of(self.field)?;
        if declared != self.ty {
            let problem = format!("field `{field}` holds {declared:?}, not {:?}", self.ty);
            return Err(Error::launch(ATTACH, problem));
        }
        let space = self.region.space().space();
        if !space.is_dense() {
            return Err(AttachmentError::Scattered { region }.into());
        }
        let (points, size) = (space.volume(), self.ty.size as u64);
        if points.checked_mul(size).is_none_or(|needed| needed > memory.bytes as u64) {
            let found = memory.bytes.checked_div(self.ty.size).unwrap_or(0);
            return Err(AttachmentError::TooShort { field, region, points, found }.into());
        }
        let (ty, align, address) = (self.ty.name, self.ty.align, memory.base.addr().get());
        if !address.is_multiple_of(align) {
            return Err(AttachmentError::Misaligned { field, region, ty, align, address }.into());
        }
        Ok(())
    }

    /// How the values lie in memory: in row-major order, one behind the other.
    fn layout(&self) -> LayoutSpec {
        let spec = FieldSpec { id: self.field, size: self.ty.size, align: self.ty.align };
        LayoutSpec::new(self.region.space().space().clone(), vec![spec])
    }
}

/// Data from outside of the runtime.
impl Context {
    /// Makes a vector the place of a field's values in a region, which is a rectangle: in row-major order, from now on. Nothing is copied, and nothing is waited for. A vector
    /// that is longer keeps its rest as it is.
    ///
    /// The values are the region's like any others: tasks use them where they are, or in copies that a mapper wants elsewhere. What the vector holds is known again when
    /// it is [detached](Self::detach).
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     value: f64,
    /// }
    ///
    /// #[task(leaf)]
    /// fn double(#[writes(value)] cells: Piece<Cell>) {
    ///     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// }
    ///
    /// let doubled = Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(3)?;
    ///     let values = cx.attach_vec(&cells, Cell::value, vec![1.0, 2.0, 3.0])?;
    ///     cx.launch(double(&cells));
    ///     cx.detach(values)?.await
    /// })?;
    /// assert_eq!(doubled, [2.0, 4.0, 6.0]);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// In a program that several nodes run, each gives the values of the whole region, and all the same.
    ///
    /// # Errors
    /// [`Error::Attachment`] if the vector is too short, the region's points are scattered, or other memory is attached to some of the values; [`Error::MappedByParent`] if the
    /// task has some of them mapped; [`Error::PrivilegeNotHeld`], [`Error::Region`] if the region was destroyed, [`Error::Launch`] if the field holds another type. The vector is then dropped.
    pub fn attach_vec<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        mut values: Vec<T>,
    ) -> Result<Attached<Vec<T>>> {
        let bytes = size_of_val(values.as_slice());
        let base = NonNull::from(values.as_mut_slice()).cast();
        let memory = Memory { base, bytes, backing: Backing::Attached, give: give::<Vec<T>> };
        // SAFETY: the elements are values of `T`; they stay where they are when the vector moves, and nothing touches them before it is given back.
        unsafe { self.attach(&values_of(region, field), memory, values) }
    }

    /// As [`attach_vec`](Self::attach_vec), for values that are to be read only: a slice behind an `Arc`, a file that is mapped to memory, or anything else that is a slice. A task that
    /// may change some of the values gets other memory, with a copy of those that it needs, and so do all after it that read these.
    ///
    /// Detaching it gives it back as it was, whatever the region holds by then.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # #[task(leaf)]
    /// # fn double(#[writes(value)] cells: Piece<Cell>) {
    /// #     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// # }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let table: Arc<[f64]> = vec![1.0, 2.0, 3.0].into();
    /// let cells = cx.region::<Cell>(3)?;
    /// let values = cx.attach_read_only(&cells, Cell::value, Arc::clone(&table))?;
    /// cx.launch(double(&cells));
    /// assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), [2.0, 4.0, 6.0]);
    /// assert_eq!(*cx.detach(values)?.await?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`attach_vec`](Self::attach_vec).
    pub fn attach_read_only<F, T: FieldValue, O, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        values: O,
    ) -> Result<Attached<O>>
    where
        O: AsRef<[T]> + Send + Sync + 'static,
    {
        // Shared, so that it stays where it is, and may be moved while its values are looked at.
        let owner = Arc::new(values);
        let values: &[T] = (*owner).as_ref();
        let bytes = size_of_val(values);
        let base = NonNull::from(values).cast();
        let memory = Memory { base, bytes, backing: Backing::ReadOnly, give: give_shared::<O> };
        // SAFETY: the values are those of a borrow of what the owner shares with nobody, which lasts until that is given back. They are only read.
        unsafe { self.attach(&values_of(region, field), memory, owner) }
    }

    /// As [`attach_vec`](Self::attach_vec), for any memory: `length` values from `base` on. The owner is dropped when the memory is not needed any more, or given back when it is
    /// detached.
    ///
    /// # Safety
    /// The `length` values from `base` on are initialised, and may be read and written by any thread. They stay there, touched by nothing else, until the owner is
    /// dropped or given back.
    ///
    /// # Errors
    /// As [`attach_vec`](Self::attach_vec); and [`Error::Attachment`] if the memory is misaligned, or some of it is attached already.
    pub unsafe fn attach_raw<F, T: FieldValue, O: Send + 'static, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        (base, length): (NonNull<T>, usize),
        owner: O,
    ) -> Result<Attached<O>> {
        let bytes = length.saturating_mul(size_of::<T>());
        let memory = Memory { base: base.cast(), bytes, backing: Backing::Attached, give: give::<O> };
        // SAFETY: promised by the caller.
        unsafe { self.attach(&values_of(region, field), memory, owner) }
    }

    /// Takes memory back that was attached, at this place in the program: with the values that the region has after all that was launched before this call. Returns at once; the memory
    /// is there when nothing uses it any more. Values are copied only if they are current nowhere but elsewhere.
    ///
    /// The values leave the region with it: the field is zero in the region from then on, as when the region was made.
    ///
    /// # Errors
    /// [`Error::Attachment`] if another task attached it that still has the region, [`Error::MappedByParent`] if the task has some of the values mapped,
    /// [`Error::PrivilegeNotHeld`], or [`Error::Region`] if the region was destroyed. The memory is then left to the region.
    pub fn detach<M: Send + 'static>(&self, attached: Attached<M>) -> Result<Detached<M>> {
        let Attached { claim, instance, state: known, give, flushes, .. } = attached;
        let state = &self.state;
        let privilege = if flushes && !instance.is_read_only() { Privilege::ReadWrite } else { Privilege::Discard };
        let (region, fields) = (&claim.region, FieldMask::of(claim.field));
        let bound = state.begin(DETACH, region, &fields, privilege)?;
        if !std::ptr::eq(Arc::as_ptr(&bound.parts[0].1), known.as_ptr()) {
            let (task, field, region) = (state.name().to_owned(), claim.field_name(), region.to_string());
            return Err(AttachmentError::AttachedElsewhere { task, field, region }.into());
        }
        if let Some(replica) = Replica::of(state) {
            match privilege {
                Privilege::ReadWrite => replica.bring(self, region, &fields, privilege)?,
                _ => replica.replace(DETACH, region, &fields, None),
            }
            state.interrupt("a detachment");
        }
        Ok(Detached::new(state.submit_detachment((bound, privilege), instance, give)?))
    }

    /// # Safety
    /// The bytes of the memory are initialised values of the type, stay where they are, and are touched by nothing else until the owner is dropped or given back; those to be
    /// only read are at least not written.
    unsafe fn attach<O: Send + 'static, M>(
        &self,
        values: &Values<'_>,
        memory: Memory,
        owner: O,
    ) -> Result<Attached<M>> {
        let (state, fields) = (&self.state, FieldMask::of(values.field));
        values.check(&memory)?;
        let bound = state.begin(ATTACH, values.region, &fields, Privilege::Discard)?;
        let Memory { base, bytes, backing, give } = memory;
        let points = values.region.space().shape().clone();
        let claim = state.claim(Claim { region: values.region.clone(), field: values.field, points })?;
        let range = Range::take(base.addr().get(), if backing == Backing::ReadOnly { 0 } else { bytes });
        let range = range.map_err(|address| {
            let (field, region) = values.names();
            AttachmentError::MemoryInUse { field, region, address }
        })?;
        let layout = values.layout().build().map_err(Error::internal)?;
        let pool = state.core.realm().memory_pool(state.own_memory());
        let owner = Box::new(Kept::new(owner, range));
        // SAFETY: promised by the caller; memory to be only read is given to nothing that writes.
        let storage = unsafe { Instance::attach(pool, layout, InstanceKind::Normal, base, bytes, owner) };
        let storage = storage.map_err(|error: InstanceError| Error::internal(error))?;
        if let Some(replica) = Replica::of(state) {
            replica.replace(ATTACH, values.region, &fields, None);
        }
        let instance = state.core.store.attached_instance(storage, (values.region.clone(), fields), backing);
        let known = Arc::downgrade(&bound.parts[0].1);
        let used = (bound.clone(), Privilege::Discard, Arc::clone(&instance));
        state.submit(slice::from_ref(&bound), |_, submission| {
            Arc::new(AttachOperation(state.use_of(used, submission.barrier)))
        })?;
        Ok(Attached { claim, instance, state: known, give, flushes: true, marker: PhantomData })
    }
}

impl ContextState {
    /// Checks that the task may use all values of a field so, at this place in the program.
    fn begin(
        self: &Arc<Self>,
        name: &'static str,
        region: &LogicalRegion,
        fields: &FieldMask,
        privilege: Privilege,
    ) -> Result<Bound> {
        self.interrupt(name);
        let bound = self.bind(name, Requirement::new(region.clone(), fields.clone(), privilege))?;
        self.check_inline(name, slice::from_ref(&bound))?;
        Ok(bound)
    }

    /// The memory that tasks on this processor use first.
    fn own_memory(&self) -> MemoryId {
        let visible = self.core.machine().memories_visible_from(self.processor);
        visible.first().map_or(MemoryId(0), |nearest| nearest.memory)
    }

    fn use_of(
        self: &Arc<Self>,
        (bound, privilege, instance): (Bound, Privilege, Arc<PhysicalInstance>),
        barrier: maniple_realm::Event,
    ) -> AttachedUse {
        let (region, fields) = (bound.requirement.target.bound(), bound.requirement.fields.clone());
        let info = RequirementInfo { region, fields, privilege, is_shared: false };
        AttachedUse { context: Arc::clone(self), bound, info, instance, barrier }
    }

    /// The detachment, and directly behind it a fill with zero.
    fn submit_detachment(
        self: &Arc<Self>,
        (bound, privilege): (Bound, Privilege),
        instance: Arc<PhysicalInstance>,
        give: fn(Box<dyn Any + Send>) -> Option<Value>,
    ) -> Result<Arc<Results>> {
        let realm = self.core.realm();
        let completion = realm.user_event();
        let (one, sources) = (AnyRect::from(Rect::<1>::from(0..1)), Sources::new());
        let results = Results::new(realm, Origin::BuiltIn(DETACH), one, completion.event(), sources);
        let (fields, data) = bound.parts[0].clone();
        let zero = Renewed { region: bound.requirement.target.bound(), fields, state: data };
        let (promised, none) = (Promised { completion, recorded: None }, Producers::default());
        let mut stream = self.enter()?;
        let detachment = self.submit_to(&mut stream, slice::from_ref(&bound), (&none, promised), |_, submission| {
            let attached = self.use_of((bound.clone(), privilege, instance), submission.barrier);
            Arc::new(DetachOperation { attached, results: Arc::clone(&results), give })
        });
        results.produced_by(&detachment);
        // Nothing may come between the two that looks at the values.
        self.operation_begins();
        let zero = self.zeroing(zero);
        let zero = self.zero_in(&mut stream, zero);
        drop(stream);
        detachment.release();
        zero.release();
        self.watch(&results);
        Ok(results)
    }
}

fn values_of<F, T: FieldValue, const D: usize>(region: &Region<F, D>, field: Field<F, T>) -> Values<'_> {
    Values { region: region.logical(), field: field.id(), ty: FieldType::of::<T>() }
}
