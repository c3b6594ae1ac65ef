//! Scratch regions: temporary data of a task, whose names and instances are used again.
//!
//! A scratch region that is dropped is kept by its task, [invalidated](Context::invalidate), for the next one over the
//! same rows with the same fields, and so are the partitions of rows of its own. So launches on it repeat, and are
//! replayed. It is destroyed by being dropped, and ends with its task, where a [region](Context::region) is returned or
//! [destroyed](Context::destroy_region).

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use maniple_region::{FieldSpace, Fields, IndexSpaceNode, LogicalRegion, RegionError, Target};
use maniple_space::{AnySpace, IndexSpace, Rect};

use crate::context::{Context, ContextState, RegionFields, RegionKey, RegionRows};
use crate::data::regions::{IntoTarget, Region};
use crate::support::error::Result;

/// A region for temporary data, until it is dropped: see [`Context::scratch`].
///
/// It can be used wherever a `&Region` can. Partitions of it, and clones of the region itself, are of no use once it is
/// dropped: its rows may be those of another scratch region by then.
pub struct Scratch<F, const D: usize = 1> {
    region: Region<F, D>,
    key: RegionKey,
    context: Weak<ContextState>,
}

impl Context {
    /// A region for temporary data, with the rows 0 to `rows` - 1 and the fields of `F`. All values are zero, as in a
    /// [new region](Self::region).
    ///
    /// When it is dropped, its data is given up, at this place in program order and without waiting: operations
    /// launched before are not disturbed. The next scratch region of this task with the same rows and fields takes over
    /// its name, and the instances that still have memory. So a loop that makes one in each iteration is replayed like
    /// one that uses the same region throughout, in a [trace](Self::trace) or not. All scratch regions of a task end
    /// with it, wherever they are held.
    ///
    /// In a program on several nodes all have to make and drop scratch regions in the same order, as they launch in the
    /// same order.
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
    /// fn double(#[discards(value)] to: Piece<Cell>, #[reads(value)] from: Piece<Cell>) {
    ///     to.points().for_each(|point| to.value[point] = 2.0 * from.value[point]);
    /// }
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// let last = runtime.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(4)?;
    ///     cx.fill(&cells, Cell::value, 1.0)?;
    ///     for _ in 0..30 {
    ///         cx.trace("step", |cx| -> Result<()> {
    ///             let twice = cx.scratch_like::<Cell, _, _>(&cells)?;
    ///             cx.launch(double(&twice, &cells));
    ///             cx.copy(twice.field(Cell::value), cells.field(Cell::value));
    ///             Ok(())
    ///         })?;
    ///     }
    ///     Ok(cx.map_read(&cells, Cell::value).await?[0])
    /// })?;
    /// assert_eq!(last, 2_f64.powi(30));
    /// assert!(runtime.statistics().replays > 20);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::region`].
    pub fn scratch<F: Fields>(&self, rows: usize) -> Result<Scratch<F>> {
        let end = i64::try_from(rows).map_err(|_| RegionError::TooManyRows { rows })?;
        self.scratch_over(Rect::from(0..end))
    }

    /// A region for temporary data, with any rows: see [`Context::scratch`].
    ///
    /// # Errors
    /// As [`Context::region_over`].
    pub fn scratch_over<F: Fields, const D: usize>(&self, rows: impl Into<IndexSpace<D>>) -> Result<Scratch<F, D>> {
        let rows: AnySpace = rows.into().into();
        let shape = self.state.core.forest().shapes().intern(&rows).id();
        let key = RegionKey { rows: RegionRows::Shape(shape), fields: RegionFields::Type(TypeId::of::<F>()) };
        self.scratch_with(key, |cx| Ok(cx.region_of_rows::<F, D>(&cx.index_space(&rows))?.logical().clone()))
    }

    /// A region for temporary data over the rows of another: partitions of either's index space are good for both, see
    /// [`Region::split_like`]. As it has fields of its own, it serves for temporary fields of the other region too.
    ///
    /// # Errors
    /// As [`Context::region_like`].
    pub fn scratch_like<F: Fields, G, const D: usize>(&self, other: &Region<G, D>) -> Result<Scratch<F, D>> {
        self.state.core.forest().check_own_region(other.logical())?;
        let rows = other.logical().space();
        rows.check_alive(&*self.state)?;
        let key = RegionKey { rows: RegionRows::Space(rows.id()), fields: RegionFields::Type(TypeId::of::<F>()) };
        self.scratch_with(key, |cx| Ok(cx.region_of_rows::<F, D>(rows)?.logical().clone()))
    }

    /// A region for temporary data over an index space and a field space that are known only at run time: see
    /// [`Context::scratch`].
    ///
    /// # Errors
    /// As [`Context::logical_region`], or [`Error::Launch`](crate::Error::Launch) if the space has another dimension.
    pub fn scratch_region<const D: usize>(
        &self,
        rows: &IndexSpaceNode,
        fields: &Arc<FieldSpace>,
    ) -> Result<Scratch<(), D>> {
        self.state.core.forest().check_own(rows)?;
        rows.check_alive(&*self.state)?;
        fields.check_alive(&*self.state)?;
        let key = RegionKey { rows: RegionRows::Space(rows.id()), fields: RegionFields::Space(fields.id()) };
        self.scratch_with(key, |cx| cx.logical_region_of(rows, fields))
    }

    /// One that was dropped, or a new one.
    fn scratch_with<F, const D: usize>(
        &self,
        key: RegionKey,
        make: impl FnOnce(&Self) -> Result<LogicalRegion>,
    ) -> Result<Scratch<F, D>> {
        self.state.core.check_process()?;
        let logical = match self.state.take_scratch(key) {
            Some(known) => known,
            None => {
                let made = make(self)?;
                self.state.mark_scratch(&made, key);
                made
            }
        };
        let region = Region::try_from_logical(logical)?;
        Ok(Scratch { region, key, context: Arc::downgrade(&self.state) })
    }
}

impl<F, const D: usize> Deref for Scratch<F, D> {
    type Target = Region<F, D>;

    fn deref(&self) -> &Region<F, D> {
        &self.region
    }
}

impl<F, const D: usize> AsRef<LogicalRegion> for Scratch<F, D> {
    fn as_ref(&self) -> &LogicalRegion {
        self.region.logical()
    }
}

impl<F, const D: usize> IntoTarget<F, D> for &Scratch<F, D> {
    fn into_target(self) -> Target {
        self.region.into_target()
    }
}

impl<F, const D: usize> fmt::Debug for Scratch<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scratch({})", self.region.logical())
    }
}

impl<F, const D: usize> Drop for Scratch<F, D> {
    /// Gives up the data. What cannot be given up now, as the task holds it mapped, has attached memory to it or has
    /// destroyed it, is not used again, and ends with the task at the latest.
    fn drop(&mut self) {
        let Some(state) = self.context.upgrade() else { return };
        let (context, region) = (Context::of(Arc::clone(&state)), self.region.logical());
        let is_free = state.check_unattached(region.tree().id()).is_ok()
            && context.invalidate_fields(region, &region.fields().fields_for(&*state)).is_ok();
        if is_free && let Some(oldest) = state.keep_scratch(self.key, region) {
            // It fails if the program has done so.
            let _ = context.destroy_region(&oldest);
        }
    }
}
