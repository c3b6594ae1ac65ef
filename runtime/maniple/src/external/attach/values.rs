//! Memory, and the values of a field that are to lie in it.

use std::ptr::NonNull;
use std::slice;

use maniple_realm::layout::{DimensionOrder, FieldSpec, LayoutSpec};
use maniple_realm::machine::MemoryId;
use maniple_region::{FieldId, FieldType, LogicalRegion};

use super::ATTACH;
use crate::instances::instance::Backing;
use crate::support::error::{AttachmentError, Error, Result};
use crate::task::compared::Compared;

/// Memory that values of a field are to lie in.
pub(crate) struct FieldMemory {
    pub(super) base: NonNull<u8>,
    pub(super) bytes: usize,
    pub(super) backing: Backing,
    /// The order of the values, if it is not row-major.
    pub(super) order: Option<DimensionOrder>,
    /// Which of the machine's it is a part of, if that is known.
    pub(super) home: Option<MemoryId>,
}

impl FieldMemory {
    /// The elements of a vector, which stay where they are when it is moved.
    pub(crate) fn of_vec<T>(values: &mut [T]) -> Self {
        let bytes = size_of_val(values);
        Self { base: NonNull::from(values).cast(), bytes, backing: Backing::Attached, order: None, home: None }
    }
}

/// The values of a field in a region.
pub(crate) struct FieldValues<'a> {
    pub(crate) region: &'a LogicalRegion,
    pub(crate) field: FieldId,
    pub(crate) ty: FieldType,
}

impl FieldValues<'_> {
    pub(super) fn names(&self) -> (String, String) {
        (self.region.fields().name_of(self.field), self.region.to_string())
    }

    /// Refuses another type than the field's, points that do not lie in one rectangle, and memory that is too short or
    /// misaligned for them.
    pub(crate) fn check(&self, memory: &FieldMemory) -> Result<()> {
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

    /// The digest that nodes compare of values in memory that was [checked](Self::check).
    ///
    /// # Safety
    /// The memory is initialised, and nothing writes to it.
    pub(super) unsafe fn compared(&self, memory: &FieldMemory) -> Option<Compared> {
        let declared = self.region.fields().type_of(self.field).ok()?;
        // Padding is not initialised.
        declared.is_plain().then(|| {
            let bytes = self.region.space().space().volume() as usize * declared.size;
            // SAFETY: the memory has values of all points, as it was checked, without padding; the rest is promised by
            // the caller.
            Compared::of(unsafe { slice::from_raw_parts(memory.base.as_ptr(), bytes) })
        })
    }

    /// How the values lie in memory: one behind the other.
    pub(super) fn layout(&self, order: Option<DimensionOrder>) -> LayoutSpec {
        let spec = FieldSpec { id: self.field, size: self.ty.size, align: self.ty.align };
        let rows = LayoutSpec::new(self.region.space().space().clone(), vec![spec]);
        if let Some(order) = order { rows.ordered(order) } else { rows }
    }
}
