//! Regions and partitions with the types of their fields.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use maniple_realm::pressure;
use maniple_region::{Affine, LogicalPartition, LogicalRegion, Partitioning, Projection, RegionError, Target};
use maniple_space::{AnyPoint, AnyRect, AnySpace, IndexSpace, PointSet, Rect, for_dimension, partition};

use crate::support::error::{Error, Result};

/// A region whose fields are the members of `F`: rows are the points of an index space of `D` dimensions, columns the
/// fields.
///
/// A name for data, cheap to clone. Data comes into being when tasks write it; before, every value is zero.
pub struct Region<F, const D: usize = 1> {
    logical: LogicalRegion,
    marker: PhantomData<fn() -> F>,
}

/// Parts of a [`Region`], one for each color.
pub struct Partition<F, const D: usize = 1> {
    logical: LogicalPartition,
    marker: PhantomData<fn() -> F>,
}

/// The points of an index launch, or the colors of a partition: a rectangle of one to four dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain(AnyRect);

impl Domain {
    /// The rectangle.
    #[must_use]
    pub fn rect(self) -> AnyRect {
        self.0
    }

    /// The number of points.
    #[must_use]
    pub fn volume(self) -> u64 {
        self.0.volume()
    }
}

impl From<&Self> for Domain {
    fn from(domain: &Self) -> Self {
        *domain
    }
}

impl<const D: usize> From<Rect<D>> for Domain {
    fn from(rect: Rect<D>) -> Self {
        Self(rect.into())
    }
}

impl From<AnyRect> for Domain {
    fn from(rect: AnyRect) -> Self {
        Self(rect)
    }
}

impl From<Range<i64>> for Domain {
    fn from(range: Range<i64>) -> Self {
        Self(Rect::<1>::from(range).into())
    }
}

impl From<usize> for Domain {
    /// The points 0 to `count` - 1.
    fn from(count: usize) -> Self {
        Self(Rect::<1>::from(0..i64::try_from(count).unwrap_or(i64::MAX)).into())
    }
}

impl<F, const D: usize> Region<F, D> {
    pub(crate) fn from_logical(logical: LogicalRegion) -> Self {
        Self { logical, marker: PhantomData }
    }

    /// A region known only at run time. Its fields must be those of `F`, which is not checked here but when a field is
    /// accessed.
    ///
    /// # Errors
    /// [`Error::Launch`] if it has another dimension.
    pub fn try_from_logical(logical: LogicalRegion) -> Result<Self> {
        match logical.space().space().typed::<D>() {
            Ok(_) => Ok(Self::from_logical(logical)),
            Err(error) => Err(Error::launch(&logical.to_string(), error.to_string())),
        }
    }

    /// Names the region in messages: ``region `nodes` ``. Of a piece, names the whole region that it is a part of. The
    /// first name stays; without one, messages say what a row is, with a number: `Node region 3`.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.logical.tree().set_name(name);
        self
    }

    /// The region without its types.
    #[must_use]
    pub fn logical(&self) -> &LogicalRegion {
        &self.logical
    }

    /// The points.
    #[must_use]
    pub fn space(&self) -> &IndexSpace<D> {
        self.logical.space().space().typed().expect("the dimension was checked when the handle was made")
    }

    /// The smallest rectangle around the points.
    #[must_use]
    pub fn bounds(&self) -> Rect<D> {
        self.space().bounds()
    }

    /// The number of points.
    #[must_use]
    pub fn volume(&self) -> u64 {
        self.space().volume()
    }

    /// Starts partitioning the region: one piece for each color.
    pub fn partition(&self, colors: impl Into<Domain>) -> Partitioner<F, D> {
        Partitioner { region: self.clone(), colors: colors.into() }
    }

    /// Cuts the region into blocks of the given shape, from its lowest corner on; the last in a dimension may be
    /// smaller. The colors are the blocks' coordinates. A region without rows has one block, which is empty.
    ///
    /// # Errors
    /// [`Error::Partition`] if a side is not positive.
    pub fn blocks(&self, shape: [i64; D]) -> Result<Partition<F, D>> {
        let (colors, pieces) = partition::blocks(self.space(), shape).map_err(partition_error)?;
        self.partition_into(colors.into(), pieces)
    }

    /// Cuts the region into tiles of the given shape, each grown on all sides by `halo` and clipped to the region. A
    /// region without rows has one tile, which is empty.
    ///
    /// # Errors
    /// [`Error::Partition`] if a side is not positive or the halo is negative.
    pub fn tiles(&self, shape: [i64; D], halo: [i64; D]) -> Result<Partition<F, D>> {
        let (colors, pieces) = partition::tiles(self.space(), shape, halo).map_err(partition_error)?;
        self.partition_into(colors.into(), pieces)
    }

    /// The pieces of another partition, each grown on all sides by `halo` and clipped to this region: tiles of a part
    /// of the region with a halo that reaches out of the part, or a halo around pieces of any shape.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region_over::<Cell, 2>(Rect::from_shape([102, 102]))?;
    /// let inside = cells.part(Rect::new([1, 1], [100, 100]))?;
    /// let tiles = inside.blocks([50, 100])?;
    /// let around = cells.around(&tiles, [1, 1])?;
    /// assert_eq!(around.piece([1, 0])?.bounds(), Rect::new([50, 0], [101, 101]));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Partition`] if the halo is negative.
    pub fn around<G>(&self, pieces: &Partition<G, D>, halo: [i64; D]) -> Result<Partition<F, D>> {
        let around: Vec<IndexSpace<D>> = pieces.pieces().cloned().collect();
        let around = partition::around(self.space(), &around, halo).map_err(partition_error)?;
        self.partition_into(pieces.colors(), around)
    }

    /// The part of the region with these points: the only piece of a partition of its own. Two parts with the same
    /// points are two names for the same data.
    ///
    /// # Errors
    /// [`Error::Region`] if they are not all in the region.
    pub fn part(&self, points: impl Into<IndexSpace<D>>) -> Result<Self> {
        self.partition_into(1.into(), vec![points.into()])?.piece(0)
    }

    /// This region split as another one over the same index space is (see [`crate::Context::region_like`]).
    ///
    /// # Errors
    /// [`Error::Region`] if the partition splits another index space, or the region was destroyed.
    pub fn split_like<G>(&self, other: &Partition<G, D>) -> Result<Partition<F, D>> {
        self.logical.tree().check_run()?;
        let partition = self.logical.partition(other.logical.partitioning()).map_err(|error| match error {
            RegionError::OtherParent { space, .. } => RegionError::OtherParent {
                partition: other.logical.to_string(),
                parent: other.logical.parent().to_string(),
                space,
            },
            other => other,
        })?;
        Ok(Partition::from_logical(partition))
    }

    /// A partition into pieces that the caller made, in row-major order of the colors.
    ///
    /// # Errors
    /// [`Error::Partition`] if there are no colors; [`Error::Region`] if the pieces are not as many as the colors, or
    /// stick out of the region, or the region was destroyed.
    pub fn partition_into(&self, colors: Domain, pieces: Vec<IndexSpace<D>>) -> Result<Partition<F, D>> {
        partition::checked_pieces(colors.rect().volume()).map_err(partition_error)?;
        self.partition_of(colors, pieces)
    }

    /// The same, which may make no pieces.
    pub(crate) fn partition_of(&self, colors: Domain, pieces: Vec<IndexSpace<D>>) -> Result<Partition<F, D>> {
        let pieces: Vec<AnySpace> = pieces.into_iter().map(AnySpace::from).collect();
        self.partition_erased(colors, &pieces)
    }

    fn partition_erased(&self, colors: Domain, pieces: &[AnySpace]) -> Result<Partition<F, D>> {
        Ok(Partition::from_logical(partition_erased(&self.logical, colors, pieces)?))
    }
}

/// A partition of a region into pieces, in row-major order of the colors.
///
/// # Errors
/// The errors of [`Region::partition_into`].
pub(crate) fn partition_erased(
    region: &LogicalRegion,
    colors: Domain,
    pieces: &[AnySpace],
) -> Result<LogicalPartition> {
    region.tree().check_run()?;
    pressure::check(pieces.len()).map_err(partition_error)?;
    let partitioning = region.space().forest().partition(region.space(), colors.rect(), pieces);
    let partitioning = partitioning.map_err(|error| match error {
        RegionError::PieceOutsideParent { color, .. } => {
            RegionError::PieceOutsideParent { color, parent: region.to_string() }
        }
        other => other,
    })?;
    Ok(region.partition(&partitioning)?)
}

/// Makes a partition of a region: see [`Region::partition`].
#[must_use]
pub struct Partitioner<F, const D: usize> {
    region: Region<F, D>,
    colors: Domain,
}

impl<F, const D: usize> Partitioner<F, D> {
    /// Pieces of equal volume, to within one point, in row-major order.
    ///
    /// # Errors
    /// [`Error::Partition`] if there are no colors.
    pub fn equal(self) -> Result<Partition<F, D>> {
        let pieces = partition::equal(self.region.space(), self.colors.volume() as usize).map_err(partition_error)?;
        self.region.partition_into(self.colors, pieces)
    }

    /// Pieces of volumes in proportion to weights, in row-major order.
    ///
    /// # Errors
    /// [`Error::Partition`] if the weights are not as many as the colors, or all zero.
    pub fn weighted(self, weights: &[u64]) -> Result<Partition<F, D>> {
        let pieces = partition::weighted(self.region.space(), weights).map_err(partition_error)?;
        self.region.partition_into(self.colors, pieces)
    }

    /// The pieces that a function gives for each color, clipped to the region: halos may reach over its edge.
    /// [`by_coloring`](Self::by_coloring) and [`Region::part`] are told which points there are, and refuse those that
    /// the region does not have.
    ///
    /// # Errors
    /// [`Error::Partition`] if there are no colors, or more than 2^26. Pieces may overlap and leave points out.
    pub fn by(self, mut piece: impl FnMut(AnyPoint) -> IndexSpace<D>) -> Result<Partition<F, D>> {
        partition::checked_pieces(self.colors.volume()).map_err(partition_error)?;
        let clipped = |color| piece(color).intersection(self.region.space());
        let pieces = self.colors.rect().points().map(clipped).collect();
        self.region.partition_into(self.colors, pieces)
    }

    /// Rectangles with their colors' numbers: the piece of a color is the union of its rectangles.
    ///
    /// # Errors
    /// [`Error::Partition`] if a color is out of range or a rectangle sticks out of the region.
    pub fn by_coloring(self, coloring: &[(usize, Rect<D>)]) -> Result<Partition<F, D>> {
        let colors = self.colors.volume() as usize;
        let pieces = partition::by_coloring(self.region.space(), colors, coloring.iter().copied());
        self.region.partition_into(self.colors, pieces.map_err(partition_error)?)
    }

    /// For each color the points that a partition of another region of the tree (or any pieces of the same dimension)
    /// has for it, as far as this region has them.
    ///
    /// # Errors
    /// [`Error::Launch`] if the other partition has other colors.
    pub fn within<G>(self, other: &Partition<G, D>) -> Result<Partition<F, D>> {
        if other.colors() != self.colors {
            let problem = format!("the partition has the colors {}, not {}", other.colors().rect(), self.colors.rect());
            return Err(Error::launch("partition", problem));
        }
        let pieces = other.pieces().map(|piece| piece.intersection(self.region.space())).collect();
        self.region.partition_into(self.colors, pieces)
    }
}

impl<F, const D: usize> Partition<F, D> {
    pub(crate) fn from_logical(logical: LogicalPartition) -> Self {
        Self { logical, marker: PhantomData }
    }

    /// A partition known only at run time. The fields of its region must be those of `F`, which is not checked here but
    /// when a field is accessed.
    ///
    /// # Errors
    /// [`Error::Launch`] if it has another dimension.
    pub fn try_from_logical(logical: LogicalPartition) -> Result<Self> {
        match logical.parent().space().space().typed::<D>() {
            Ok(_) => Ok(Self::from_logical(logical)),
            Err(error) => Err(Error::launch(&logical.to_string(), error.to_string())),
        }
    }

    /// Names the partition in messages: ``partition `halves` of Node region 3``. The first name stays.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.logical.partitioning().set_name(name);
        self
    }

    /// The partition without its types.
    #[must_use]
    pub fn logical(&self) -> &LogicalPartition {
        &self.logical
    }

    /// The region that is split.
    #[must_use]
    pub fn parent(&self) -> Region<F, D> {
        Region::from_logical(self.logical.parent())
    }

    /// The colors.
    #[must_use]
    pub fn colors(&self) -> Domain {
        Domain(self.logical.partitioning().colors())
    }

    /// The colors of the pieces that have points: for a launch [over those](crate::Context::index_launch_over) alone.
    #[must_use]
    pub fn non_empty(&self) -> PointSet {
        let colors = self.logical.partitioning().colors();
        let with_points = || colors.points().zip(self.pieces()).filter(|(_, piece)| !piece.is_empty());
        for_dimension!(colors.dim(), C => {
            let points = with_points().map(|(color, _)| color.typed::<C>().expect("colors have one number of dimensions"));
            PointSet::from(&IndexSpace::<C>::from_points(points.collect::<Vec<_>>()))
        })
    }

    /// The region of a color.
    ///
    /// # Errors
    /// [`Error::Region`] if there is no such color.
    pub fn piece(&self, color: impl Into<AnyPoint>) -> Result<Region<F, D>> {
        Ok(Region::from_logical(self.logical.piece(color.into())?))
    }

    /// The points of all pieces, in row-major order of the colors.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = &IndexSpace<D>> {
        let pieces = self.logical.partitioning().pieces().iter();
        pieces.map(|shape| shape.space().typed().expect("the pieces have their parent's dimension"))
    }

    /// Whether no two pieces share a point. Computed once.
    #[must_use]
    pub fn is_disjoint(&self) -> bool {
        self.logical.partitioning().is_disjoint()
    }

    /// Whether every point of the parent is in a piece. Computed once.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.logical.partitioning().is_complete()
    }

    /// All points that are in some piece.
    #[must_use]
    pub fn union_of_pieces(&self) -> &IndexSpace<D> {
        self.logical.partitioning().union().space().typed().expect("the pieces have their parent's dimension")
    }

    /// Splits each piece by another partition: for each color the partition of that piece.
    ///
    /// # Errors
    /// [`Error::Region`] if something was destroyed, or all together would have more than 2^26 pieces.
    pub fn cross<G>(&self, other: &Partition<G, D>) -> Result<Vec<Self>> {
        let mine: Vec<IndexSpace<D>> = self.pieces().cloned().collect();
        let others: Vec<IndexSpace<D>> = other.pieces().cloned().collect();
        let all = (mine.len() as u64).saturating_mul(others.len() as u64);
        partition::checked_pieces(all.max(1)).map_err(partition_error)?;
        let crossed = partition::cross_product(&mine, &others);
        let colors = self.colors().rect().points();
        colors.zip(crossed).map(|(color, pieces)| self.piece(color)?.partition_into(other.colors(), pieces)).collect()
    }

    /// The partition with a projection: point `p` of an index launch gets the piece of color `color(p)`. The function
    /// must be pure.
    pub fn project(&self, color: impl Fn(AnyPoint) -> AnyPoint + Send + Sync + 'static) -> Projected<F, D> {
        self.project_by(Projection::Color(Arc::new(color)))
    }

    /// The partition with a projection that is plain data: point `p` of an index launch gets the piece of color
    /// `matrix * p + offset`, around the colors or not.
    ///
    /// ```
    /// # use maniple::Affine;
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: i64 }
    /// # #[task(leaf)]
    /// # fn first(#[reads(value)] cells: Piece<Cell>) -> i64 { cells.points().map(|cell| cell[0]).min().unwrap_or(-1) }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let pieces = cx.region::<Cell>(8)?.partition(4).equal()?;
    /// let next = pieces.affine(Affine::shift([1]).around()); // the neighbour on a ring
    /// let firsts = cx.index_launch(4, first(&next));
    /// # assert_eq!((firsts.get(0)?.await?, firsts.get(3)?.await?), (2, 0));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    pub fn affine(&self, affine: Affine) -> Projected<F, D> {
        self.project_by(Projection::Affine(affine))
    }

    /// The partition with any projection.
    pub fn project_by(&self, projection: Projection) -> Projected<F, D> {
        Projected { target: Target::Partition(self.logical.clone(), projection), marker: PhantomData }
    }
}

/// A partition with a projection from the points of a launch to its pieces.
pub struct Projected<F, const D: usize = 1> {
    target: Target,
    marker: PhantomData<fn() -> F>,
}

/// An argument for a region parameter: a region (for all points the same), a partition (for each point its piece), or a
/// partition with a projection.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a region of `{F}`",
    label = "expected a region or partition of `{F}`",
    note = "`IntoTarget<{F}, {D}>` is implemented for `&Region<{F}, {D}>`, `&Partition<{F}, {D}>` and what `Partition::project` gives"
)]
pub trait IntoTarget<F, const D: usize> {
    /// The data of the requirements.
    fn into_target(self) -> Target;
}

impl<F, const D: usize> IntoTarget<F, D> for &Region<F, D> {
    fn into_target(self) -> Target {
        self.logical.clone().into()
    }
}

impl<F, const D: usize> IntoTarget<F, D> for &Partition<F, D> {
    fn into_target(self) -> Target {
        self.logical.clone().into()
    }
}

impl<F, const D: usize> IntoTarget<F, D> for Projected<F, D> {
    fn into_target(self) -> Target {
        self.target
    }
}

impl<F, const D: usize> IntoTarget<F, D> for &Projected<F, D> {
    fn into_target(self) -> Target {
        self.target.clone()
    }
}

pub(crate) fn partition_error(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Partition(Arc::new(error))
}

impl<F, const D: usize> AsRef<LogicalRegion> for Region<F, D> {
    fn as_ref(&self) -> &LogicalRegion {
        &self.logical
    }
}

impl<F, const D: usize> AsRef<Partitioning> for Partition<F, D> {
    fn as_ref(&self) -> &Partitioning {
        self.logical.partitioning()
    }
}

impl<F, const D: usize> Clone for Region<F, D> {
    fn clone(&self) -> Self {
        Self::from_logical(self.logical.clone())
    }
}

impl<F, const D: usize> Clone for Partition<F, D> {
    fn clone(&self) -> Self {
        Self::from_logical(self.logical.clone())
    }
}

impl<F, const D: usize> fmt::Debug for Region<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.logical, f)
    }
}

impl<F, const D: usize> fmt::Debug for Partition<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.logical, f)
    }
}
