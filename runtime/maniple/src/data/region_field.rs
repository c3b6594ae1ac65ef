//! One field of a region, as operations on whole fields name it.

use maniple_region::Field;

use super::regions::Region;

/// A field of a region: what [`Context::copy`](crate::Context::copy) and other operations on whole fields are about.
pub struct RegionField<'a, F, T, const D: usize = 1> {
    pub(crate) region: &'a Region<F, D>,
    pub(crate) field: Field<F, T>,
}

impl<F, const D: usize> Region<F, D> {
    /// A field of the region, for operations on whole fields.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { old: f64, new: f64 }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region::<Cell>(10)?;
    /// cx.copy(cells.field(Cell::new), cells.field(Cell::old));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[must_use]
    pub fn field<T>(&self, field: Field<F, T>) -> RegionField<'_, F, T, D> {
        RegionField { region: self, field }
    }
}
