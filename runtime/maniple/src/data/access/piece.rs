//! The region behind a task's parameter.

use std::marker::PhantomData;

use maniple_region::LogicalRegion;
use maniple_space::{IndexSpace, Point, Rect};

use crate::data::regions::Region;

/// The part of a region that a task got for one of its parameters: which points it has.
pub struct PieceInfo<'a, F, const D: usize = 1> {
    region: &'a LogicalRegion,
    space: &'a IndexSpace<D>,
    marker: PhantomData<fn() -> F>,
}

impl<'a, F: 'static, const D: usize> PieceInfo<'a, F, D> {
    pub(crate) fn new(region: &'a LogicalRegion, space: &'a IndexSpace<D>) -> Self {
        Self { region, space, marker: PhantomData }
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> Region<F, D> {
        Region::from_logical(self.region.clone())
    }

    /// The points.
    #[must_use]
    pub fn space(&self) -> &'a IndexSpace<D> {
        self.space
    }

    /// The smallest rectangle around the points.
    #[must_use]
    pub fn bounds(&self) -> Rect<D> {
        self.space.bounds()
    }

    /// The number of points.
    #[must_use]
    pub fn volume(&self) -> u64 {
        self.space.volume()
    }

    /// The points, in row-major order.
    pub fn points(&self) -> impl Iterator<Item = Point<D>> + use<'a, F, D> {
        self.space.points()
    }

    /// The points as rectangles that do not overlap.
    #[must_use]
    pub fn rects(&self) -> &'a [Rect<D>] {
        self.space.rects()
    }

    /// The points as rows along the last dimension, for [spans](super::Read::span).
    pub fn rows(&self) -> impl Iterator<Item = Rect<D>> + use<'a, F, D> {
        self.space.rows()
    }
}
