//! Making regions and what they are made of.

use std::any::TypeId;
use std::sync::Arc;

use maniple_region::{
    DEFAULT_MAX_FIELDS, FieldSpace, Fields, IndexSpaceNode, LogicalRegion, Partitioning, RegionError,
};
use maniple_space::{AnySpace, IndexSpace, Rect};

use crate::context::{Context, RegionFields, RegionKey, RegionRows};
use crate::data::regions::{Domain, Region};
use crate::support::error::Result;
use crate::task::migratable::short_name;

impl Context {
    /// The points 0 to `count` - 1, as the domain of launches and the colors of partitions.
    #[must_use]
    pub fn colors(&self, count: usize) -> Domain {
        count.into()
    }

    /// A new region with the rows 0 to `rows` - 1 and the fields of `F`. The task may do everything with it.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if `F` has more fields than a field space holds, or the rows are more than
    /// [`i64::MAX`].
    pub fn region<F: Fields>(&self, rows: usize) -> Result<Region<F>> {
        let end = i64::try_from(rows).map_err(|_| RegionError::TooManyRows { rows })?;
        self.region_over(Rect::from(0..end))
    }

    /// A new region with any rows and the fields of `F`. The task may do everything with it.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if `F` has more fields than a field space holds.
    pub fn region_over<F: Fields, const D: usize>(&self, rows: impl Into<IndexSpace<D>>) -> Result<Region<F, D>> {
        let rows: AnySpace = rows.into().into();
        let shape = self.state.core.forest().shapes().intern(&rows).id();
        let key = RegionKey { rows: RegionRows::Shape(shape), fields: RegionFields::Type(TypeId::of::<F>()) };
        let make = |cx: &Self| Ok(cx.region_of_rows::<F, D>(&cx.index_space(&rows))?.logical().clone());
        Ok(Region::from_logical(self.again(key, |_| true, make)?))
    }

    /// A new region over the rows of another and the fields of `F`: partitions of either's index space are good for
    /// both.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if `F` has more fields than a field space holds, or the other region's index space was
    /// destroyed.
    pub fn region_like<F: Fields, G, const D: usize>(&self, other: &Region<G, D>) -> Result<Region<F, D>> {
        self.state.core.forest().check_own_region(other.logical())?;
        let rows = other.logical().space();
        rows.check_alive(&*self.state)?;
        let key = RegionKey { rows: RegionRows::Space(rows.id()), fields: RegionFields::Type(TypeId::of::<F>()) };
        let make = |cx: &Self| Ok(cx.region_of_rows::<F, D>(rows)?.logical().clone());
        Ok(Region::from_logical(self.again(key, |known| known.space() == rows, make)?))
    }

    /// A region under the name of one that was destroyed, or else one that is made.
    fn again(
        &self,
        key: RegionKey,
        fits: impl Fn(&LogicalRegion) -> bool,
        make: impl FnOnce(&Self) -> Result<LogicalRegion>,
    ) -> Result<LogicalRegion> {
        self.state.core.check_process()?;
        if let Some(renewed) = self.state.renew_region(key, fits) {
            return Ok(renewed);
        }
        // The launcher of the task is told of what the task destroys from here on.
        self.state.makes();
        let made = make(self)?;
        self.state.may_renew(&made, key);
        Ok(made)
    }

    pub(crate) fn region_of_rows<F: Fields, const D: usize>(&self, rows: &IndexSpaceNode) -> Result<Region<F, D>> {
        self.state.core.check_process()?;
        let fields = self.field_space(DEFAULT_MAX_FIELDS);
        for field in F::descriptors() {
            fields.allocate(&field.name, field.ty)?;
        }
        let region = self.state.core.forest().region_of(short_name::<F>(), rows, &fields)?;
        self.state.add_created(&region);
        Ok(Region::from_logical(region))
    }

    /// A new index space.
    #[must_use]
    pub fn index_space(&self, points: &AnySpace) -> IndexSpaceNode {
        self.state.makes();
        self.state.core.forest().index_space(points)
    }

    /// A new field space without fields.
    #[must_use]
    pub fn field_space(&self, max_fields: usize) -> Arc<FieldSpace> {
        self.state.makes();
        let fields = self.state.core.forest().field_space(max_fields);
        self.state.note_fields(&fields);
        fields
    }

    /// A new region over an index space and a field space. Its data is distinct from any other's. The task may do
    /// everything with it.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if either space was destroyed.
    pub fn logical_region(&self, rows: &IndexSpaceNode, fields: &Arc<FieldSpace>) -> Result<LogicalRegion> {
        let key = RegionKey { rows: RegionRows::Space(rows.id()), fields: RegionFields::Space(fields.id()) };
        // Numbers of spaces of another runtime may be the same.
        let fits = |known: &LogicalRegion| known.space() == rows && Arc::ptr_eq(known.fields(), fields);
        self.again(key, fits, |cx| cx.logical_region_of(rows, fields))
    }

    pub(crate) fn logical_region_of(&self, rows: &IndexSpaceNode, fields: &Arc<FieldSpace>) -> Result<LogicalRegion> {
        self.state.core.check_process()?;
        rows.check_alive(&*self.state)?;
        fields.check_alive(&*self.state)?;
        let region = self.state.core.forest().region(rows, fields)?;
        self.state.add_created(&region);
        Ok(region)
    }

    /// Splits an index space: one piece for each color, in row-major order.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if the pieces are not as many as the colors or stick out of the space, or the space was
    /// destroyed.
    pub fn index_partition(
        &self,
        space: &IndexSpaceNode,
        colors: impl Into<Domain>,
        pieces: &[AnySpace],
    ) -> Result<Arc<Partitioning>> {
        self.state.core.check_process()?;
        self.state.core.forest().check_own(space)?;
        space.check_alive(&*self.state)?;
        Ok(self.state.core.forest().partition(space, colors.into().rect(), pieces)?)
    }
}
