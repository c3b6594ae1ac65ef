//! What is attached: to which data, and where the memory is.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use maniple_realm::locks::Mutex;
use maniple_region::{FieldId, LogicalRegion, Shape, TreeId};

use crate::context::{ContextState, Part};
use crate::error::{AttachmentError, Error, Result};
use crate::instances::bound::Bound;
use crate::instances::state::RegionState;

/// The data that memory is attached to, for as long as its handle is there.
pub(super) struct Claim {
    pub(super) region: LogicalRegion,
    pub(super) field: FieldId,
    pub(super) points: Shape,
}

/// What a task has attached, in program order.
#[derive(Default)]
struct Claims(Mutex<Vec<Weak<Claim>>>);

impl Part for Claims {}

impl Claim {
    pub(super) fn field_name(&self) -> String {
        self.region.fields().name_of(self.field)
    }
}

/// Memory of the program's, of all runtimes of the process: the ends of ranges of addresses, by their beginnings.
static IN_USE: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// A range of addresses that is attached, until it is dropped.
pub(super) struct Range(usize);

impl Range {
    /// Takes a range of addresses.
    ///
    /// # Errors
    /// The first address that is taken already.
    pub(super) fn take(start: usize, bytes: usize) -> Result<Option<Self>, usize> {
        if bytes == 0 {
            return Ok(None);
        }
        let (mut in_use, end) = (IN_USE.lock(), start.saturating_add(bytes));
        if let Some((&other, &others_end)) = in_use.range(..end).next_back()
            && others_end > start
        {
            return Err(other.max(start));
        }
        in_use.insert(start, end);
        Ok(Some(Self(start)))
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        IN_USE.lock().remove(&self.0);
    }
}

impl ContextState {
    /// The task attaches memory to data, of which no part has other memory.
    pub(super) fn claim(&self, claim: Claim) -> Result<Arc<Claim>> {
        let claims = self.parts.attachments.get_or_init(Arc::<Claims>::default);
        let mut claims = claims.0.lock();
        claims.retain(|claim| claim.strong_count() > 0);
        let shapes = claim.region.space().forest().shapes();
        let overlaps = |other: &Claim| {
            other.region.tree().id() == claim.region.tree().id()
                && other.field == claim.field
                && shapes.overlaps(&other.points, &claim.points)
        };
        if claims.iter().filter_map(Weak::upgrade).any(|other| overlaps(&other)) {
            let (field, region) = (claim.field_name(), claim.region.to_string());
            return Err(AttachmentError::AlreadyAttached { field, region }.into());
        }
        let claim = Arc::new(claim);
        claims.push(Arc::downgrade(&claim));
        Ok(claim)
    }

    /// Refuses memory that was attached where other data of the region is known than the task's.
    pub(super) fn check_attached_here(
        &self,
        claim: &Claim,
        (bound, known): (&Bound, &Weak<RegionState>),
    ) -> Result<()> {
        if std::ptr::eq(Arc::as_ptr(&bound.parts[0].1), known.as_ptr()) {
            return Ok(());
        }
        let (task, field, region) = (self.name().to_owned(), claim.field_name(), claim.region.to_string());
        Err(AttachmentError::AttachedElsewhere { task, field, region }.into())
    }

    /// Refuses to destroy a region to which the task has attached memory.
    pub(crate) fn check_unattached(&self, tree: TreeId) -> Result<()> {
        self.refuse(|claim| claim.region.tree().id() == tree)
    }

    /// Refuses to free a field, of the field space with this number, to which the task has attached memory.
    pub(crate) fn check_field_unattached(&self, fields: u64, field: FieldId) -> Result<()> {
        self.refuse(|claim| claim.region.fields().id() == fields && claim.field == field)
    }

    fn refuse(&self, is_meant: impl Fn(&Claim) -> bool) -> Result<()> {
        let Some(claims) = self.parts.attachments.get::<Claims>() else { return Ok(()) };
        let claims = claims.0.lock();
        let attached = claims.iter().filter_map(Weak::upgrade).find(|claim| is_meant(claim));
        attached.map_or(Ok(()), |claim| {
            let (field, region) = (claim.field_name(), claim.region.root_region().to_string());
            Err(Error::from(AttachmentError::StillAttached { field, region }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_taken_until_it_is_dropped_and_none_takes_a_part_of_it() {
        let base = 1 << 60;
        let range = Range::take(base + 100, 50).unwrap().unwrap();
        assert!(Range::take(base, 0).unwrap().is_none());
        for (start, bytes, taken) in [(0, 101, 100), (120, 10, 120), (100, 50, 100), (149, 10, 149), (0, 1000, 100)] {
            assert_eq!(Range::take(base + start, bytes).err(), Some(base + taken));
        }
        let around = [Range::take(base, 100), Range::take(base + 150, 1)];
        assert!(around.iter().all(Result::is_ok));
        drop(range);
        assert!(Range::take(base + 120, 30).is_ok());
    }
}
