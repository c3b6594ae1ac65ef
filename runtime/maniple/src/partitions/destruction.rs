//! Destroying regions, partitions, spaces and fields.

use maniple_region::{FieldId, FieldSpace, IndexSpaceNode, LogicalRegion, Partitioning, RegionError};

use crate::context::Context;
use crate::support::error::{Error, Result};

/// Deletions take place in the order of the program, as launches do: tasks that were launched before, and those that
/// they launch, go on undisturbed, whenever they run; the task itself cannot use the name from then on, nor can those
/// that it launches later.
impl Context {
    /// Destroys a region with all its partitions. Operations launched before are not disturbed; its memory goes when
    /// they have ended. In a program on several nodes all have to destroy the same regions in the same order.
    ///
    /// A loop that makes a region, uses it and destroys it in each iteration is replayed like one that uses the same
    /// region throughout, in a [trace](Self::trace) or not: the next region that the task makes with the same rows and
    /// fields takes over the name, as does a partition of it into the same pieces. While it is replayed the memory
    /// stays, until something else needs it. What was destroyed remains so.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, ended with an earlier run, or is a piece of a partition,
    /// which lives as long as that; [`crate::Error::NotTheMaker`] if another task made it; [`crate::Error::Attachment`]
    /// if memory is attached to some of its values.
    pub fn destroy_region(&self, region: impl AsRef<LogicalRegion>) -> Result<()> {
        let region = region.as_ref();
        self.state.core.check_process()?;
        self.state.check_created(region)?;
        if let Some(partition) = region.space().partition().filter(|_| *region != region.root_region()) {
            return Err(RegionError::PieceDestroyed { partition: partition.to_string() }.into());
        }
        self.state.check_unattached(region.tree().id())?;
        // Where it is held mapped, nothing is given up.
        let is_put_aside = self.state.is_to_be_renewed(region) && self.give_up(&region.root_region()).is_ok();
        self.state.note_deletion((region.tree().name_number(), None), region.tree().mark_destroyed(), 1);
        match is_put_aside {
            true => self.state.put_aside(region),
            false => self.state.forget(region),
        }
        Ok(())
    }

    /// Destroys a partition with everything below it: this task, and those that it launches from now on, cannot launch
    /// anything on it. Operations launched before are not disturbed. In a loop the next partition into the same pieces
    /// takes over its name, as with [regions](Self::destroy_region).
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_partition(&self, partition: impl AsRef<Partitioning>) -> Result<()> {
        let partition = partition.as_ref();
        self.state.core.check_process()?;
        self.state.core.forest().check_own(partition.parent())?;
        self.state.check_not_destroyed(partition.name_number(), partition)?;
        self.state.note_deletion((partition.name_number(), None), partition.mark_destroyed(), 1);
        self.state.renew_partition(partition);
        Ok(())
    }

    /// Destroys an index space with everything below it: this task, and those that it launches from now on, cannot make
    /// anything of it, nor launch on what was made of it. Operations launched before are not disturbed.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, or is a piece of a partition.
    pub fn destroy_index_space(&self, space: &IndexSpaceNode) -> Result<()> {
        self.state.core.check_process()?;
        self.state.core.forest().check_own(space)?;
        self.state.check_not_destroyed(space.id().0, space)?;
        self.state.note_deletion((space.id().0, None), space.mark_destroyed()?, 1);
        Ok(())
    }

    /// Destroys a field space: this task, and those that it launches from now on, cannot make a region of it. Regions
    /// that exist keep working.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_field_space(&self, fields: &FieldSpace) -> Result<()> {
        self.state.core.check_process()?;
        fields.check_alive(&*self.state)?;
        self.state.note_deletion((fields.id(), None), fields.mark_destroyed(), 1);
        Ok(())
    }

    /// Frees a field: this task, and those that it launches from now on, cannot use it, and its id may be given to a
    /// new field. Operations launched before are not disturbed. The fields of a field space are freed by one task: the
    /// one that made it, or its parent once it has ended. For others, which may run at any time, the id would be a
    /// field or not as the timing wants it.
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
    /// [`crate::Error::Region`] if there is no such field, or it was freed before; [`crate::Error::NotTheMaker`] if
    /// another task made the field space; [`crate::Error::Attachment`] if memory is attached to some of its values.
    pub fn free_field(&self, fields: &FieldSpace, field: FieldId) -> Result<()> {
        self.state.core.check_process()?;
        if !fields.has(field, &*self.state) {
            return Err(RegionError::NoSuchField { field }.into());
        }
        if !self.state.made_fields(fields) {
            let what = format!("field `{}` of field space {}", fields.name_of(field), fields.id());
            return Err(Error::NotTheMaker { task: self.task().to_owned(), region: what });
        }
        self.state.check_field_unattached(fields.id(), field)?;
        self.state.note_freed_field(fields, field)
    }
}
