//! Destroying regions, partitions, spaces and fields.

use std::sync::Arc;

use maniple_region::deletion::{Deletions, Tombstone};
use maniple_region::{FieldId, FieldSpace, IndexSpaceNode, LogicalRegion, Partitioning, RegionError, endings};

use crate::context::{Context, ContextState};
use crate::deletions::{ALWAYS, Inherited, Name};
use crate::error::Result;

impl ContextState {
    /// What is destroyed for a task that this one has launched as its launch with this number.
    #[inline]
    pub(crate) fn bequeath(&self, launch: u64) -> Option<Arc<Inherited>> {
        match self.own_deletions().filter(|log| log.is_used()) {
            None => self.inherited.clone(),
            Some(log) => Some(Arc::new(Inherited { log: Arc::clone(log), launch, above: self.inherited.clone() })),
        }
    }

    /// The task has ended: its launcher comes to know what it has destroyed.
    pub(crate) fn hand_up_deletions(&self, parent: &Self) {
        if let (Some(log), Some(first)) = (self.own_deletions().filter(|log| log.is_used()), self.first_made()) {
            parent.deletions().absorb(log, first);
        }
    }

    fn times_destroyed(&self, name: Name) -> u32 {
        let own = self.own_deletions().map_or(0, |log| log.times(name, ALWAYS));
        self.inherited.as_ref().map_or(own, |inherited| own.max(inherited.times(name)))
    }

    fn note_deletion(&self, name: Name, (tombstone, times): (Tombstone, u32)) {
        let number = self.number_launch();
        self.deletions().add(name, tombstone, (number, times), self.in_flight.count() == 0);
        endings::count();
    }

    /// Refuses to destroy what is destroyed for this task.
    fn check_not_destroyed(&self, number: u64, what: &dyn ToString) -> Result<()> {
        if self.is_destroyed(number) {
            return Err(RegionError::Destroyed { what: what.to_string() }.into());
        }
        Ok(())
    }
}

impl Deletions for ContextState {
    fn is_destroyed(&self, number: u64) -> bool {
        self.times_destroyed((number, None)) > 0
    }

    fn times_freed(&self, fields: u64, field: FieldId) -> u32 {
        self.times_destroyed((fields, Some(field)))
    }
}

/// Deletions take place in the order of the program, as launches do: tasks that were launched before, and those that they launch, go on undisturbed, whenever they run; the task itself
/// cannot use the name from then on, nor can those that it launches later.
impl Context {
    /// Destroys a region with everything below it. Operations launched before are not disturbed; its memory goes when they have ended. In a program on several nodes
    /// all have to destroy the same regions in the same order.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, or ended with an earlier run; [`crate::Error::NotTheMaker`] if another task made it.
    pub fn destroy_region(&self, region: impl AsRef<LogicalRegion>) -> Result<()> {
        let region = region.as_ref();
        self.state.check_created(region)?;
        self.state.note_deletion((region.tree().id().0, None), (region.tree().mark_destroyed(), 1));
        self.state.forget(region);
        Ok(())
    }

    /// Destroys a partition with everything below it: this task, and those that it launches from now on, cannot launch anything on it. Operations launched
    /// before are not disturbed.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_partition(&self, partition: impl AsRef<Partitioning>) -> Result<()> {
        let partition = partition.as_ref();
        self.state.core.forest().check_own(partition.parent())?;
        self.state.check_not_destroyed(partition.id().0, partition)?;
        self.state.note_deletion((partition.id().0, None), (partition.mark_destroyed(), 1));
        Ok(())
    }

    /// Destroys an index space with everything below it: this task, and those that it launches from now on, cannot make anything of it, nor launch on what was made of
    /// it. Operations launched before are not disturbed.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, or is a piece of a partition.
    pub fn destroy_index_space(&self, space: &IndexSpaceNode) -> Result<()> {
        self.state.core.forest().check_own(space)?;
        self.state.check_not_destroyed(space.id().0, space)?;
        self.state.note_deletion((space.id().0, None), (space.mark_destroyed()?, 1));
        Ok(())
    }

    /// Destroys a field space: this task, and those that it launches from now on, cannot make a region of it. Regions that exist keep working.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_field_space(&self, fields: &FieldSpace) -> Result<()> {
        fields.check_alive(&*self.state)?;
        self.state.note_deletion((fields.id(), None), (fields.mark_destroyed(), 1));
        Ok(())
    }

    /// Frees a field: this task, and those that it launches from now on, cannot use it, and its id may be given to a new field. Operations launched before are not
    /// disturbed. The fields of a field space should be freed by one task, the one that made it.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # use maniple::FieldType;
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let fields = cx.field_space(1);
    /// let old = fields.allocate("old", FieldType::of::<f64>())?;
    /// cx.free_field(&fields, old)?;
    /// assert_eq!(fields.allocate("new", FieldType::of::<f64>())?, old);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Region`] if there is no such field, or it was freed before.
    pub fn free_field(&self, fields: &FieldSpace, field: FieldId) -> Result<()> {
        if !fields.has(field, &*self.state) {
            return Err(RegionError::NoSuchField { field }.into());
        }
        self.state.note_deletion((fields.id(), Some(field)), fields.mark_freed(field)?);
        Ok(())
    }
}
