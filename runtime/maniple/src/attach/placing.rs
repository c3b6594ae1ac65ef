//! Memory of the program's turned into instances, and the operations that attach and detach these.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use maniple_mapper::RequirementInfo;
use maniple_realm::Event;
use maniple_realm::instance::{Instance, InstanceKind};
use maniple_realm::layout::{DimensionOrder, FieldSpec, LayoutSpec};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::MemoryId;
use maniple_region::{FieldId, FieldMask, FieldType, LogicalRegion, Privilege, Requirement};
use maniple_space::{AnyRect, Rect};

use super::claims::Range;
use super::handle::{Give, Kept};
use super::load::Load;
use super::operation::{AttachOperation, AttachedUse, DetachOperation};
use super::{ATTACH, DETACH};
use crate::context::{ContextState, Promised, Renewed};
use crate::error::{AttachmentError, Error, Result};
use crate::instances::bound::Bound;
use crate::instances::instance::{Backing, PhysicalInstance};
use crate::results::{Origin, Producers, Results, Sources};
use crate::task::compared::Compared;

/// Memory that values of a field are to lie in.
pub(crate) struct Memory {
    pub(super) base: NonNull<u8>,
    pub(super) bytes: usize,
    pub(super) backing: Backing,
    /// The order of the values, if it is not row-major.
    pub(super) order: Option<DimensionOrder>,
}

impl Memory {
    /// The elements of a vector, which stay where they are when it is moved.
    pub(crate) fn of_vec<T>(values: &mut [T]) -> Self {
        let bytes = size_of_val(values);
        Self { base: NonNull::from(values).cast(), bytes, backing: Backing::Attached, order: None }
    }
}

/// The values of a field in a region.
pub(crate) struct Values<'a> {
    pub(crate) region: &'a LogicalRegion,
    pub(crate) field: FieldId,
    pub(crate) ty: FieldType,
}

impl Values<'_> {
    pub(super) fn names(&self) -> (String, String) {
        (self.region.fields().name_of(self.field), self.region.to_string())
    }

    /// Refuses another type than the field's, points that do not lie in one rectangle, and memory that is too short or misaligned for them.
    pub(crate) fn check(&self, memory: &Memory) -> Result<()> {
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

    /// What nodes compare of values in memory that was [checked](Self::check).
    ///
    /// # Safety
    /// The memory is initialised, and nothing writes to it.
    pub(super) unsafe fn compared(&self, memory: &Memory) -> Option<Compared> {
        let declared = self.region.fields().type_of(self.field).ok()?;
        // Padding is not initialised.
        declared.is_plain().then(|| {
            let bytes = self.region.space().space().volume() as usize * declared.size;
            // SAFETY: the memory has values of all points, as it was checked, without padding; the rest is promised by the caller.
            Compared::of(unsafe { slice::from_raw_parts(memory.base.as_ptr(), bytes) })
        })
    }

    /// How the values lie in memory: one behind the other.
    fn layout(&self, order: Option<DimensionOrder>) -> LayoutSpec {
        let spec = FieldSpec { id: self.field, size: self.ty.size, align: self.ty.align };
        let rows = LayoutSpec::new(self.region.space().space().clone(), vec![spec]);
        if let Some(order) = order { rows.ordered(order) } else { rows }
    }
}

impl ContextState {
    /// Checks that the task may use all values of fields so, at this place in the program.
    pub(super) fn begin(
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

    /// An instance of memory that was [checked](Values::check).
    ///
    /// # Safety
    /// The bytes of the memory are initialised values of the type, stay where they are, and are touched by nothing else until the owner is dropped or given back; those to be
    /// only read are at least not written.
    pub(crate) unsafe fn place<O: Send + 'static>(
        &self,
        values: &Values<'_>,
        Memory { base, bytes, backing, order }: Memory,
        owner: O,
    ) -> Result<Arc<PhysicalInstance>> {
        let range = Range::take(base.addr().get(), if backing == Backing::ReadOnly { 0 } else { bytes });
        let range = range.map_err(|address| {
            let (field, region) = values.names();
            AttachmentError::MemoryInUse { field, region, address }
        })?;
        let layout = values.layout(order).build().map_err(Error::internal)?;
        let pool = self.core.realm().memory_pool(self.own_memory());
        let owner = Box::new(Kept::new(owner, range));
        // SAFETY: promised by the caller; memory to be only read is given to nothing that writes.
        let storage = unsafe { Instance::attach(pool, layout, InstanceKind::Normal, base, bytes, owner) };
        let data = (values.region.clone(), FieldMask::of(values.field));
        Ok(self.core.store.attached_instance(storage.map_err(Error::internal)?, data, backing))
    }

    /// The memory that tasks on this processor use first.
    pub(super) fn own_memory(&self) -> MemoryId {
        let visible = self.core.machine().memories_visible_from(self.processor);
        visible.first().map_or(MemoryId(0), |nearest| nearest.memory)
    }

    fn use_of(self: &Arc<Self>, bound: Bound, instance: Arc<PhysicalInstance>, barrier: Event) -> AttachedUse {
        let Requirement { fields, privilege, .. } = &bound.requirement;
        let (region, fields, privilege) = (bound.requirement.target.bound(), fields.clone(), *privilege);
        let info = RequirementInfo { region, fields, privilege, is_shared: false };
        AttachedUse { context: Arc::clone(self), bound, info, instance, barrier }
    }

    /// The attachment of an instance to what it is bound to, with what its memory is read from.
    pub(super) fn submit_attachment(
        self: &Arc<Self>,
        bound: Bound,
        instance: Arc<PhysicalInstance>,
        load: Option<Load>,
    ) -> Result<()> {
        self.submit(slice::from_ref(&bound.clone()), |_, submission| {
            let attached = self.use_of(bound, instance, submission.barrier);
            Arc::new(AttachOperation { attached, load: Mutex::new(load) })
        })?;
        Ok(())
    }

    /// Detachments, and directly behind them fills with zero. The results of the detachments.
    pub(super) fn submit_detachments(
        self: &Arc<Self>,
        detached: Vec<(Bound, Arc<PhysicalInstance>)>,
        zeroed: Vec<Bound>,
        give: Give,
    ) -> Result<Vec<Arc<Results>>> {
        let realm = self.core.realm();
        let mut all_results = Vec::with_capacity(detached.len());
        let mut stream = self.enter()?;
        // One operation is counted.
        let count = detached.len() + zeroed.iter().map(|bound| bound.parts.len()).sum::<usize>();
        self.operations_begin(count);
        let mut operations = Vec::with_capacity(count);
        for (bound, instance) in detached {
            let completion = realm.user_event();
            let (one, sources) = (AnyRect::from(Rect::<1>::from(0..1)), Sources::new());
            let results = Results::new(realm, Origin::BuiltIn(DETACH), one, completion.event(), sources);
            let (promised, none) = (Promised { completion, recorded: None }, Producers::default());
            let operation =
                self.submit_to(&mut stream, slice::from_ref(&bound.clone()), (&none, promised), |_, submission| {
                    let attached = self.use_of(bound, instance, submission.barrier);
                    Arc::new(DetachOperation { attached, results: Arc::clone(&results), give })
                });
            results.produced_by(&operation);
            operations.push(operation);
            all_results.push(results);
        }
        // Nothing may come between that looks at the values.
        for Bound { requirement, parts } in zeroed {
            for (fields, state) in parts {
                let zero = self.zeroing(Renewed { region: requirement.target.bound(), fields, state });
                operations.push(self.zero_in(&mut stream, zero));
            }
        }
        drop(stream);
        operations.iter().for_each(|operation| operation.release());
        self.operations_retired(1);
        all_results.iter().for_each(|results| self.watch(results));
        Ok(all_results)
    }
}
