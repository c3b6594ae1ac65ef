//! Local fields: temporary values beside those of a region, which end with the task that makes them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use maniple_region::{Field, FieldMask, FieldType, FieldValue, LogicalRegion};

use crate::context::{Context, ContextState, Local};
use crate::data::regions::Region;
use crate::support::error::Result;

/// A field for temporary values, until it is dropped: see [`Context::local_field`].
///
/// It can be used as `*field` wherever a [`Field`] can. Copies of that are of no use once it is dropped: the id may be
/// that of another field by then.
pub struct LocalField<F, T> {
    field: Field<F, T>,
    region: LogicalRegion,
    local: Local,
    context: Weak<ContextState>,
}

impl Context {
    /// A field of a region that this task has made, for temporary values. All values are zero. It is freed when it is
    /// dropped, and at the latest with the task; what the task returns or hands to others does not have it, unless they
    /// name it.
    ///
    /// The next local field of the region with the same name and type takes over its id, without waiting. So a loop
    /// that makes one in each iteration is replayed like one that has the field throughout. For temporary values beside
    /// a region that another task has made there are [scratch regions over its rows](Self::scratch_like).
    ///
    /// In a program on several nodes all have to make and drop local fields in the same order, as they launch in the
    /// same order.
    ///
    /// ```
    /// use maniple::prelude::*;
    /// use maniple::LocalField;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     value: f64,
    /// }
    ///
    /// Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(4)?;
    ///     cx.fill(&cells, Cell::value, 3.0)?;
    ///     let before: LocalField<Cell, f64> = cx.local_field(&cells, "before")?;
    ///     cx.copy(cells.field(Cell::value), cells.field(*before));
    ///     cx.fill(&cells, Cell::value, 5.0)?;
    ///     assert_eq!(cx.map_read(&cells, *before).await?[0], 3.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotTheMaker`](crate::Error::NotTheMaker) if another task has made the region;
    /// [`Error::Region`](crate::Error::Region) if it was destroyed, or has as many fields as it can have.
    pub fn local_field<T: FieldValue, F, const D: usize>(
        &self,
        region: &Region<F, D>,
        name: &str,
    ) -> Result<LocalField<F, T>> {
        self.state.core.check_process()?;
        let region = region.logical().root_region();
        self.state.check_created(&region)?;
        let (fields, ty) = (region.fields(), FieldType::of::<T>());
        let local = match self.state.take_local_field(fields, name, ty) {
            Some(known) => known,
            None => self.state.mark_local_field(fields, fields.allocate(name, ty)?),
        };
        let context = Arc::downgrade(&self.state);
        Ok(LocalField { field: Field::new(local.field), region, local, context })
    }
}

impl<F, T> Deref for LocalField<F, T> {
    type Target = Field<F, T>;

    fn deref(&self) -> &Field<F, T> {
        &self.field
    }
}

impl<F, T> fmt::Debug for LocalField<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalField({} of {})", self.local.fields.name_of(self.local.field), self.region)
    }
}

impl<F, T> Drop for LocalField<F, T> {
    /// Gives up the values. What the task holds mapped, or has attached memory to, stays until the task ends.
    fn drop(&mut self) {
        let Some(state) = self.context.upgrade() else { return };
        let (context, local) = (Context::of(Arc::clone(&state)), &self.local);
        if !state.is_there(local) || state.check_field_unattached(local.fields.id(), local.field).is_err() {
            return;
        }
        // Another region with the same fields may have values in it.
        if !state.has_own_fields(&self.region) {
            return state.free_local_field(local);
        }
        if self.region.check_alive(&*state).is_err() {
            // The region was destroyed, and its values with it.
            return state.free_local_field(local);
        }
        if context.invalidate_fields(&self.region, &FieldMask::of(local.field)).is_ok() {
            state.keep_local_field(local);
        }
    }
}
