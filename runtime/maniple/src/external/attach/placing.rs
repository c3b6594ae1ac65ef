//! Memory of the program's turned into instances, and the operations that attach and detach these.

use std::slice;
use std::sync::Arc;

use maniple_mapper::RequirementInfo;
use maniple_realm::Event;
use maniple_realm::instance::{Instance, InstanceKind};
use maniple_realm::locks::Mutex;
use maniple_region::{FieldMask, LogicalRegion, Privilege, Requirement};
use maniple_space::{AnyRect, Rect};

use super::claims::Range;
use super::handle::{Give, Kept};
use super::operation::{AttachOperation, AttachedUse, DetachOperation, FromFile};
use super::values::{FieldMemory, FieldValues};
use super::{ATTACH, DETACH};
use crate::context::{ContextState, Promised, Renewed};
use crate::instances::bound::Bound;
use crate::instances::instance::{Backing, PhysicalInstance};
use crate::operation::lifecycle::Operation;
use crate::results::{Origin, Producers, Results, Sources};
use crate::support::error::{AttachmentError, Error, Result};

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

    /// An instance of memory that was [checked](FieldValues::check).
    ///
    /// # Safety
    /// The bytes of the memory are initialised values of the type, stay where they are, and are touched by nothing else
    /// until the owner is dropped or given back; those to be only read are at least not written.
    pub(crate) unsafe fn place<O: Send + 'static>(
        &self,
        values: &FieldValues<'_>,
        FieldMemory { base, bytes, backing, order, home }: FieldMemory,
        owner: O,
    ) -> Result<Arc<PhysicalInstance>> {
        let range = Range::take(base.addr().get(), if backing == Backing::ReadOnly { 0 } else { bytes });
        let range = range.map_err(|address| {
            let (field, region) = values.names();
            AttachmentError::MemoryInUse { field, region, address }
        })?;
        let layout = values.layout(order).build().map_err(Error::internal)?;
        let counted = if backing == Backing::Attached { layout.bytes() as u64 } else { 0 };
        let pool = self.core.realm().memory_pool(home.unwrap_or_else(|| self.memory_for(counted)));
        let charge = (counted > 0).then(|| pool.charge(counted));
        let owner = Box::new(Kept::new(owner, range, charge));
        // SAFETY: promised by the caller; memory to be only read is given to nothing that writes.
        let storage = unsafe { Instance::attach(pool, layout, InstanceKind::Normal, base, bytes, owner) };
        let (storage, fields) = (storage.map_err(Error::internal)?, FieldMask::of(values.field));
        Ok(self.core.store.attached_instance(storage, values.region.clone(), fields, backing))
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
        from_file: Option<FromFile>,
    ) -> Result<Arc<Operation>> {
        self.interrupt(ATTACH);
        // What waits for a file is mapped after what the file waits for, and what waits for other nodes after all
        // before: else an operation between could be made to wait for this one's memory.
        let loading = from_file.as_ref().and_then(|file| file.load.as_ref()).map(|load| &load.loading);
        let producers = loading.map(|loading| Producers {
            here: loading.earlier.operations.clone(),
            are_afar: loading.is_afar || loading.earlier.are_afar,
        });
        self.submit_after(slice::from_ref(&bound.clone()), &producers.unwrap_or_default(), |_, submission| {
            let attached = self.use_of(bound, instance, submission.barrier);
            let takes_room = from_file.is_some();
            Arc::new(AttachOperation { attached, takes_room, from_file: Mutex::new(from_file) })
        })
    }

    /// Detachments, and directly behind them a fill of all that is detached with zero. Files are written after these
    /// events. The results of the detachments.
    pub(super) fn submit_detachments(
        self: &Arc<Self>,
        detached: Vec<(Bound, Arc<PhysicalInstance>)>,
        zeroed: Bound,
        give: Give,
        written_after: &[Event],
    ) -> Result<Vec<Arc<Results>>> {
        let realm = self.core.realm();
        let mut all_results = Vec::with_capacity(detached.len());
        let mut stream = self.enter()?;
        // One operation is counted.
        let count = detached.len() + zeroed.parts.len();
        self.operations_begin(count);
        let mut operations = Vec::with_capacity(count);
        for (bound, instance) in detached {
            let completion = realm.user_event();
            let (one, sources) = (AnyRect::from(Rect::<1>::from(0..1)), Sources::new());
            let results = Results::new(realm, Origin::BuiltIn(DETACH), one, completion.event(), sources);
            let (promised, none) = (Promised { completion, recorded: None }, Producers::default());
            let operation =
                self.submit_to(&mut stream, slice::from_ref(&bound.clone()), &none, promised, |_, submission| {
                    let attached = self.use_of(bound, instance, submission.barrier);
                    let (results, written_after) = (Arc::clone(&results), written_after.to_vec());
                    Arc::new(DetachOperation { attached, results, give, written_after })
                });
            results.produced_by(&operation);
            operations.push(operation);
            all_results.push(results);
        }
        // Nothing may come between that looks at the values.
        let Bound { requirement, parts } = zeroed;
        for (fields, state) in parts {
            let zero = self.zeroing(Renewed { region: requirement.target.bound(), fields, state });
            operations.push(self.zero_in(&mut stream, zero));
        }
        drop(stream);
        operations.iter().for_each(|operation| operation.release());
        self.operations_retired(1);
        all_results.iter().for_each(|results| self.watch(results));
        Ok(all_results)
    }
}
