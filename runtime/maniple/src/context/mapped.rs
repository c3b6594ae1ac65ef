//! Inline mappings: one field of a region, which a task holds to look at.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use maniple_realm::UserEvent;
use maniple_region::{FieldId, FieldType, FieldValue, LogicalRegion};
use maniple_space::{IndexSpace, Point};

use crate::core::RuntimeCore;
use crate::data::access::{Column, Read, Rows, Write};
use crate::instances::instance::PhysicalInstance;

/// Held as long as a mapping is in use: its event triggers when that is over.
pub(crate) struct Hold {
    core: Arc<RuntimeCore>,
    released: UserEvent,
}

impl Hold {
    pub(crate) fn new(core: &Arc<RuntimeCore>, released: UserEvent) -> Self {
        Self { core: Arc::clone(core), released }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.core.realm().trigger(self.released);
    }
}

/// Data that a task has mapped for itself, with the privilege to read it. Dropping it releases the data.
///
/// `mapping[point]` is a value. Loops are faster with [`ReadMapping::values`], which looks up once where the field
/// lies.
///
/// ```
/// # use maniple::prelude::*;
/// # #[derive(Fields)]
/// # struct Cell { value: f64 }
/// # let runtime = Runtime::builder().workers(1).build()?;
/// # runtime.run(async |cx| {
/// let cells = cx.region::<Cell>(4)?;
/// cx.map_write(&cells, Cell::value).await?[2] = 1.5;
/// let values = cx.map_read(&cells, Cell::value).await?;
/// assert_eq!(values[2], 1.5);
/// assert_eq!(values.to_vec(), [0.0, 0.0, 1.5, 0.0]);
/// # Ok(())
/// # })?;
/// # Ok::<(), maniple::Error>(())
/// ```
pub struct ReadMapping<T, const D: usize> {
    mapped: Mapped,
    marker: PhantomData<fn() -> T>,
}

/// Data that a task has mapped for itself, with the privilege to write it. Dropping it releases the data.
///
/// `mapping[point]` is a value, to be read or changed. Loops are faster with [`WriteMapping::values`], which looks up
/// once where the field lies.
pub struct WriteMapping<T, const D: usize> {
    mapped: Mapped,
    marker: PhantomData<fn() -> T>,
}

/// One field of a region in an instance, held.
pub(crate) struct Mapped {
    region: LogicalRegion,
    field: FieldId,
    instance: Arc<PhysicalInstance>,
    /// Dropped last: then the data may be used by others.
    _hold: Arc<Hold>,
}

impl<T: FieldValue, const D: usize> ReadMapping<T, D> {
    pub(crate) fn new(mapped: Mapped) -> Self {
        Self { mapped, marker: PhantomData }
    }

    /// The points.
    #[must_use]
    pub fn space(&self) -> &IndexSpace<D> {
        self.mapped.space()
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> Read<'_, T, D> {
        Read::new(self.mapped.column())
    }

    /// The values in the row-major order of their points.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let values = self.values();
        values.space().points().map(move |point| values[point])
    }

    /// A copy of the values, in the row-major order of their points.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.values().to_vec()
    }
}

impl<T: FieldValue, const D: usize> WriteMapping<T, D> {
    pub(crate) fn new(mapped: Mapped) -> Self {
        Self { mapped, marker: PhantomData }
    }

    /// The points.
    #[must_use]
    pub fn space(&self) -> &IndexSpace<D> {
        self.mapped.space()
    }

    /// The values, to be changed.
    #[must_use]
    pub fn values(&mut self) -> Write<'_, T, D> {
        Write::new(self.mapped.column())
    }

    /// The values in the row-major order of their points.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let values = self.read();
        values.space().points().map(move |point| values[point])
    }

    /// A copy of the values, in the row-major order of their points.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.read().to_vec()
    }

    /// The values, which do not change as long as the mapping is borrowed.
    fn read(&self) -> Read<'_, T, D> {
        Read::new(self.mapped.column())
    }
}

impl Mapped {
    /// The instance holds the field of the region, which has been checked to be of the type and dimension that it is
    /// asked for with, and its data is there until the hold goes.
    pub(crate) fn new(region: LogicalRegion, field: FieldId, instance: Arc<PhysicalInstance>, hold: Arc<Hold>) -> Self {
        Self { region, field, instance, _hold: hold }
    }

    fn space<const D: usize>(&self) -> &IndexSpace<D> {
        self.region.space().space().typed().expect("the dimension was checked when the mapping was made")
    }

    /// All values, in the row-major order of their points.
    pub(crate) fn to_vec<T: FieldValue>(&self) -> Vec<T> {
        let (ty, space) = (FieldType::of::<T>(), self.region.space().space());
        // SAFETY: as in `column`.
        let rows = unsafe { Rows::new(self.instance.storage(), self.field, ty, space) };
        let rows = rows.expect("that the instance has the field was checked when the mapping was made");
        let mut all = Vec::with_capacity(rows.count());
        rows.for_each(&mut |_, values| match values.as_slice() {
            Some(values) => all.extend_from_slice(values),
            None => all.extend(values.typed::<T>()),
        });
        all
    }

    fn column<T: FieldValue, const D: usize>(&self) -> Column<'_, T, D> {
        // SAFETY: type and dimension were checked when the mapping was made; the data was there before that, and the
        // physical analysis keeps others away until `_hold` goes. A mapping for writing lends columns to write only
        // while it is borrowed mutably.
        let column = unsafe { Column::new(self.instance.storage(), self.field, self.space()) };
        column.expect("that the instance has the field was checked when the mapping was made")
    }
}

impl fmt::Display for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.region.fields().name_of(self.field), self.region)
    }
}

impl<T: FieldValue, const D: usize, P: Into<Point<D>>> Index<P> for ReadMapping<T, D> {
    type Output = T;

    /// # Panics
    /// If the region does not have the point.
    #[track_caller]
    fn index(&self, point: P) -> &T {
        self.values().into_ref(point.into())
    }
}

impl<T: FieldValue, const D: usize, P: Into<Point<D>>> Index<P> for WriteMapping<T, D> {
    type Output = T;

    /// # Panics
    /// If the region does not have the point.
    #[track_caller]
    fn index(&self, point: P) -> &T {
        self.read().into_ref(point.into())
    }
}

impl<T: FieldValue, const D: usize, P: Into<Point<D>>> IndexMut<P> for WriteMapping<T, D> {
    /// # Panics
    /// If the region does not have the point.
    #[track_caller]
    fn index_mut(&mut self, point: P) -> &mut T {
        self.values().into_mut(point.into())
    }
}

impl<T, const D: usize> fmt::Debug for ReadMapping<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadMapping({})", self.mapped)
    }
}

impl<T, const D: usize> fmt::Debug for WriteMapping<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteMapping({})", self.mapped)
    }
}
