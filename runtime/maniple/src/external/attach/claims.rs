//! Claims of attachments: the data, and the addresses of the memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use maniple_realm::locks::Mutex;
use maniple_region::{FieldId, LogicalRegion, Shape, TreeId};

use crate::context::{ContextPart, ContextState};
use crate::core::{Claim, Claims, RuntimeCore};
use crate::support::error::{AttachmentError, Error, Result};

/// The attachments of a task.
struct Attachments {
    core: Weak<RuntimeCore>,
    own: Arc<Claims>,
}

impl ContextPart for Attachments {
    /// Leaves the attachments that are still there to the region, or to the launcher with the region.
    fn end(&self) -> Option<Error> {
        let left = self.own.take();
        if let Some(core) = self.core.upgrade().filter(|_| !left.is_empty()) {
            left.iter().for_each(|claim| core.left_attached.add(claim));
        }
        None
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
    /// The task attaches memory to these points of a field, of which none has other memory.
    pub(super) fn claim(&self, region: &LogicalRegion, field: FieldId, points: &Shape) -> Result<Arc<Claim>> {
        let new = || Arc::new(Attachments { core: Arc::downgrade(&self.core), own: Arc::default() });
        let Attachments { own, .. } = self.parts.attachments.get_or_init(new);
        let shapes = region.space().forest().shapes();
        let overlaps = |other: &Arc<Claim>| {
            other.region.tree().id() == region.tree().id()
                && other.field == field
                && shapes.overlaps(&other.points, points)
        };
        let is_of_made = self.check_created(region).is_ok();
        let (region, points, owner) = (region.clone(), points.clone(), Arc::downgrade(own));
        let claim = Claim { region, field, points, owner, is_of_made };
        if own.all().iter().any(overlaps) {
            let (field, region) = (claim.field_name(), claim.region.to_string());
            return Err(AttachmentError::AlreadyAttached { field, region }.into());
        }
        let claim = Arc::new(claim);
        own.add(&claim);
        Ok(claim)
    }

    /// Refuses memory that another task has attached, unless that has made the region and left it to this one. What a
    /// mapper decides does not matter, by which tasks may know the same data.
    pub(super) fn check_attached_here(&self, claim: &Claim) -> Result<()> {
        let own = self.parts.attachments.get::<Attachments>();
        let is_own = own.is_some_and(|own| std::ptr::eq(Arc::as_ptr(&own.own), claim.owner.as_ptr()));
        if is_own || claim.is_of_made && self.check_created(&claim.region).is_ok() {
            return Ok(());
        }
        let (task, field, region) = (self.name().to_owned(), claim.field_name(), claim.region.to_string());
        Err(AttachmentError::AttachedElsewhere { task, field, region }.into())
    }

    /// Refuses to destroy a region to which memory is attached: by the task, or by another one that has ended and left
    /// the handle.
    pub(crate) fn check_unattached(&self, tree: TreeId) -> Result<()> {
        self.refuse(|claim| claim.region.tree().id() == tree)
    }

    /// The same of freeing a field, of the field space with this number.
    pub(crate) fn check_field_unattached(&self, fields: u64, field: FieldId) -> Result<()> {
        self.refuse(|claim| claim.region.fields().id() == fields && claim.field == field)
    }

    fn refuse(&self, is_meant: impl Fn(&Claim) -> bool) -> Result<()> {
        let own = self.parts.attachments.get::<Attachments>().map(|own| own.own.all());
        let mut all = own.into_iter().flatten().chain(self.core.left_attached.all());
        let attached = all.find(|claim| is_meant(claim));
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
