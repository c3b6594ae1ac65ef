//! Points, rectangles and spaces whose number of dimensions is known only at run time.
//!
//! The typed forms convert to these with `From` and back with `TryFrom`. More than four dimensions, or none,
//! are refused by the compiler: the conversions are not instantiated for them.

use std::any::Any;
use std::fmt;
use std::ops::Index;

use crate::point::write_coordinates;
use crate::space::write_rects;
use crate::{IndexSpace, Point, Rect};

/// The largest number of dimensions.
pub const MAX_DIMENSIONS: usize = 4;

/// Two things of different dimension were brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} dimension(s), found {found}; give both sides the same number of dimensions (1 to 4)")]
pub struct DimensionMismatch {
    /// The number of dimensions that was asked for.
    pub expected: usize,
    /// The number of dimensions of what was given.
    pub found: usize,
}

fn check(expected: usize, found: usize) -> Result<(), DimensionMismatch> {
    if expected == found { Ok(()) } else { Err(DimensionMismatch { expected, found }) }
}

fn widen<const D: usize>(coordinates: [i64; D]) -> [i64; MAX_DIMENSIONS] {
    const { assert!(1 <= D && D <= MAX_DIMENSIONS, "points have 1 to 4 dimensions") };
    let mut wide = [0; MAX_DIMENSIONS];
    wide[..D].copy_from_slice(&coordinates);
    wide
}

fn narrow<const D: usize>(wide: &[i64; MAX_DIMENSIONS]) -> [i64; D] {
    std::array::from_fn(|d| wide[d])
}

/// A point of 1 to 4 dimensions. Ordered by the number of dimensions, then row-major.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnyPoint {
    dim: u8,
    coords: [i64; MAX_DIMENSIONS],
}

impl AnyPoint {
    /// The point with the given coordinates.
    ///
    /// # Errors
    /// When there are none or more than four.
    pub fn new(coordinates: &[i64]) -> Result<Self, DimensionMismatch> {
        let found = coordinates.len();
        check(found.clamp(1, MAX_DIMENSIONS), found)?;
        let mut coords = [0; MAX_DIMENSIONS];
        coords[..found].copy_from_slice(coordinates);
        Ok(Self { dim: found as u8, coords })
    }

    /// The number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        self.dim.into()
    }

    /// The coordinates, as many as there are dimensions.
    #[inline]
    pub fn coords(&self) -> &[i64] {
        &self.coords[..self.dim()]
    }

    /// The point with its dimension in the type.
    ///
    /// # Errors
    /// When it has another number of dimensions.
    #[inline]
    pub fn typed<const D: usize>(&self) -> Result<Point<D>, DimensionMismatch> {
        check(D, self.dim())?;
        Ok(Point(narrow(&self.coords)))
    }
}

impl Index<usize> for AnyPoint {
    type Output = i64;

    /// A coordinate.
    ///
    /// # Panics
    /// If the point has fewer dimensions.
    #[inline]
    #[track_caller]
    fn index(&self, dimension: usize) -> &i64 {
        &self.coords()[dimension]
    }
}

impl<const D: usize> From<Point<D>> for AnyPoint {
    #[inline]
    fn from(point: Point<D>) -> Self {
        Self { dim: D as u8, coords: widen(point.0) }
    }
}

impl<const D: usize> From<[i64; D]> for AnyPoint {
    #[inline]
    fn from(coordinates: [i64; D]) -> Self {
        Point(coordinates).into()
    }
}

impl From<i64> for AnyPoint {
    #[inline]
    fn from(coordinate: i64) -> Self {
        Point([coordinate]).into()
    }
}

impl<const D: usize> TryFrom<AnyPoint> for Point<D> {
    type Error = DimensionMismatch;

    #[inline]
    fn try_from(point: AnyPoint) -> Result<Self, DimensionMismatch> {
        point.typed()
    }
}

impl fmt::Display for AnyPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_coordinates(f, self.coords())
    }
}

impl fmt::Debug for AnyPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rectangle of 1 to 4 dimensions, bounds included. All empty ones of a dimension are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnyRect {
    lo: AnyPoint,
    hi: AnyPoint,
}

impl AnyRect {
    /// The rectangle between two corners, both included.
    ///
    /// # Errors
    /// When the corners differ in their number of dimensions.
    pub fn new(lo: AnyPoint, hi: AnyPoint) -> Result<Self, DimensionMismatch> {
        check(lo.dim(), hi.dim())?;
        let rect = Self { lo, hi };
        Ok(if rect.is_empty() { Self::empty(lo.dim) } else { rect })
    }

    fn empty(dim: u8) -> Self {
        let mut hi = [0; MAX_DIMENSIONS];
        hi[..dim.into()].fill(-1);
        Self { lo: AnyPoint { dim, coords: [0; MAX_DIMENSIONS] }, hi: AnyPoint { dim, coords: hi } }
    }

    /// The number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        self.lo.dim()
    }

    /// The smallest coordinate in each dimension.
    #[inline]
    pub fn lo(&self) -> AnyPoint {
        self.lo
    }

    /// The largest coordinate in each dimension, itself included.
    #[inline]
    pub fn hi(&self) -> AnyPoint {
        self.hi
    }

    /// Whether the rectangle has no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lo.coords().iter().zip(self.hi.coords()).any(|(lo, hi)| lo > hi)
    }

    /// The number of points, at most `u64::MAX`.
    pub fn volume(&self) -> u64 {
        for_dimension!(self.dim(), D => self.typed_rect::<D>().volume())
    }

    /// The number of points; none if it is 2^64 or more.
    pub fn checked_volume(&self) -> Option<u64> {
        for_dimension!(self.dim(), D => self.typed_rect::<D>().checked_volume())
    }

    /// Whether a point lies inside; false for a point of another number of dimensions.
    #[inline]
    pub fn contains(&self, point: AnyPoint) -> bool {
        let bounds = self.lo.coords().iter().zip(self.hi.coords());
        self.dim() == point.dim() && bounds.zip(point.coords()).all(|((lo, hi), at)| lo <= at && at <= hi)
    }

    /// Whether the two have a point in common; false when their dimensions differ.
    #[inline]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.dim() == other.dim()
            && (0..self.dim())
                .all(|d| self.lo.coords[d].max(other.lo.coords[d]) <= self.hi.coords[d].min(other.hi.coords[d]))
    }

    /// Whether every point of `other` lies inside; true of an empty `other`.
    ///
    /// # Errors
    /// When the rectangles differ in their number of dimensions.
    pub fn contains_rect(&self, other: &Self) -> Result<bool, DimensionMismatch> {
        check(self.dim(), other.dim())?;
        Ok(for_dimension!(self.dim(), D => {
            self.typed_rect::<D>().contains_rect(&other.typed_rect())
        }))
    }

    /// The points in both.
    ///
    /// # Errors
    /// When the rectangles differ in their number of dimensions.
    pub fn intersection(&self, other: &Self) -> Result<Self, DimensionMismatch> {
        check(self.dim(), other.dim())?;
        Ok(for_dimension!(self.dim(), D => {
            self.typed_rect::<D>().intersection(&other.typed_rect()).into()
        }))
    }

    /// The smallest rectangle that contains both.
    ///
    /// # Errors
    /// When the rectangles differ in their number of dimensions.
    pub fn hull(&self, other: &Self) -> Result<Self, DimensionMismatch> {
        check(self.dim(), other.dim())?;
        Ok(for_dimension!(self.dim(), D => self.typed_rect::<D>().hull(&other.typed_rect()).into()))
    }

    /// The points in row-major order.
    pub fn points(&self) -> impl Iterator<Item = AnyPoint> + use<> {
        let volume = self.volume();
        let rect = *self;
        (0..volume).map(move |rank| for_dimension!(rect.dim(), D => rect.typed_rect::<D>().delinear(rank).into()))
    }

    /// The rank of a point of the rectangle in row-major order; meaningless for a point outside, or of another
    /// dimension.
    pub fn linear(&self, point: AnyPoint) -> u64 {
        for_dimension!(self.dim(), D => self.typed_rect::<D>().linear(Point(narrow(&point.coords))))
    }

    /// The point with a rank in row-major order: the inverse of [`linear`](Self::linear). Meaningless for a rank of
    /// `volume()` or more.
    pub fn delinear(&self, rank: u64) -> AnyPoint {
        for_dimension!(self.dim(), D => self.typed_rect::<D>().delinear(rank).into())
    }

    /// Disjoint rectangles with together the same points: as many as asked for, or one a point if there are fewer, of
    /// about the same volume. Cuts across the widest dimension first.
    pub fn split(&self, parts: usize) -> Vec<Self> {
        for_dimension!(self.dim(), D => {
            let mut pieces = Vec::new();
            split(self.typed_rect::<D>(), parts.max(1), &mut pieces);
            pieces.into_iter().map(Self::from).collect()
        })
    }

    /// The rectangle with its dimension in the type.
    ///
    /// # Errors
    /// When it has another number of dimensions.
    #[inline]
    pub fn typed<const D: usize>(&self) -> Result<Rect<D>, DimensionMismatch> {
        check(D, self.dim())?;
        Ok(self.typed_rect())
    }

    /// The typed rectangle, once the dimension is known to be right.
    #[inline]
    fn typed_rect<const D: usize>(&self) -> Rect<D> {
        Rect { lo: Point(narrow(&self.lo.coords)), hi: Point(narrow(&self.hi.coords)) }
    }
}

/// Halves a rectangle, and the number of parts with it, until one part is left.
fn split<const D: usize>(rect: Rect<D>, parts: usize, pieces: &mut Vec<Rect<D>>) {
    let parts = (parts as u64).min(rect.volume());
    if parts <= 1 {
        return pieces.push(rect);
    }
    let dimension = rect.widest_dimension();
    let share = u128::from(rect.extent(dimension)) * u128::from(parts / 2) / u128::from(parts);
    let cut = rect.lo[dimension].wrapping_add_unsigned((share as u64).max(1));
    let (low, high) = rect.split_at(dimension, cut);
    // The halves may be unlike: neither gets more parts than it has points.
    let below = (parts / 2).min(low.volume()).max(parts.saturating_sub(high.volume()));
    split(low, below as usize, pieces);
    split(high, (parts - below) as usize, pieces);
}

impl<const D: usize> From<Rect<D>> for AnyRect {
    #[inline]
    fn from(rect: Rect<D>) -> Self {
        let normal = if rect.is_empty() { Rect::EMPTY } else { rect };
        Self { lo: normal.lo.into(), hi: normal.hi.into() }
    }
}

impl<const D: usize> TryFrom<AnyRect> for Rect<D> {
    type Error = DimensionMismatch;

    #[inline]
    fn try_from(rect: AnyRect) -> Result<Self, DimensionMismatch> {
        rect.typed()
    }
}

impl fmt::Display for AnyRect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str("empty") } else { write!(f, "{}..={}", self.lo, self.hi) }
    }
}

impl fmt::Debug for AnyRect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An index space of 1 to 4 dimensions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AnySpace {
    /// A space of one dimension.
    D1(IndexSpace<1>),
    /// A space of two dimensions.
    D2(IndexSpace<2>),
    /// A space of three dimensions.
    D3(IndexSpace<3>),
    /// A space of four dimensions.
    D4(IndexSpace<4>),
}

/// Runs an expression with a number of dimensions as a constant, or with the typed space inside
/// an [`AnySpace`](crate::AnySpace).
///
/// ```
/// use maniple_space::{for_dimension, AnySpace, IndexSpace, Point, Rect};
/// let space = AnySpace::from(IndexSpace::from(Rect::from_shape([3, 4])));
/// let corners = for_dimension!(&space, |typed| typed.bounds().points().len());
/// assert_eq!(corners, 12);
/// let zeros = for_dimension!(space.dim(), D => Point::<D>::ZERO.0.len());
/// assert_eq!(zeros, 2);
/// ```
///
/// # Panics
/// The form with a number panics unless it is 1 to 4.
#[macro_export]
macro_rules! for_dimension {
    ($space:expr, |$typed:pat_param| $body:expr) => {
        match $space {
            $crate::AnySpace::D1($typed) => $body,
            $crate::AnySpace::D2($typed) => $body,
            $crate::AnySpace::D3($typed) => $body,
            $crate::AnySpace::D4($typed) => $body,
        }
    };
    ($dim:expr, $constant:ident => $body:expr) => {
        match $dim {
            1 => {
                const $constant: usize = 1;
                $body
            }
            2 => {
                const $constant: usize = 2;
                $body
            }
            3 => {
                const $constant: usize = 3;
                $body
            }
            4 => {
                const $constant: usize = 4;
                $body
            }
            other => panic!("expected 1 to 4 dimensions, found {other}"),
        }
    };
}
use for_dimension;

/// The spaces with their dimension in the type; clones of handles, not of points.
pub(crate) fn typed_list<'a, const D: usize>(
    spaces: impl IntoIterator<Item = &'a AnySpace>,
) -> Result<Vec<IndexSpace<D>>, DimensionMismatch> {
    spaces.into_iter().map(|space| space.typed().cloned()).collect()
}

/// Runs an expression with the two typed spaces inside, if they have the same dimension.
macro_rules! for_both {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $body:expr) => {
        match ($a, $b) {
            (AnySpace::D1($x), AnySpace::D1($y)) => Ok($body),
            (AnySpace::D2($x), AnySpace::D2($y)) => Ok($body),
            (AnySpace::D3($x), AnySpace::D3($y)) => Ok($body),
            (AnySpace::D4($x), AnySpace::D4($y)) => Ok($body),
            (a, b) => Err(DimensionMismatch { expected: a.dim(), found: b.dim() }),
        }
    };
}

/// The same value, if `A` and `B` are the same type.
fn same_type<A: 'static, B: 'static>(value: A) -> Option<B> {
    let mut value = Some(value);
    (&mut value as &mut dyn Any).downcast_mut::<Option<B>>()?.take()
}

impl AnySpace {
    /// The space without points in a number of dimensions.
    ///
    /// # Errors
    /// When there are none or more than four.
    pub fn empty(dim: usize) -> Result<Self, DimensionMismatch> {
        check(dim.clamp(1, MAX_DIMENSIONS), dim)?;
        Ok(for_dimension!(dim, D => IndexSpace::<D>::empty().into()))
    }

    /// The number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        match self {
            Self::D1(_) => 1,
            Self::D2(_) => 2,
            Self::D3(_) => 3,
            Self::D4(_) => 4,
        }
    }

    /// The space with its dimension in the type.
    ///
    /// # Errors
    /// When it has another number of dimensions.
    #[inline]
    pub fn typed<const D: usize>(&self) -> Result<&IndexSpace<D>, DimensionMismatch> {
        for_dimension!(self, |space| (space as &dyn Any).downcast_ref())
            .ok_or(DimensionMismatch { expected: D, found: self.dim() })
    }

    /// The smallest rectangle around the points.
    #[inline]
    pub fn bounds(&self) -> AnyRect {
        for_dimension!(self, |space| space.bounds().into())
    }

    /// Whether the points are exactly those of the bounds; true of an empty space.
    #[inline]
    pub fn is_dense(&self) -> bool {
        for_dimension!(self, |space| space.is_dense())
    }

    /// Whether there are no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        for_dimension!(self, |space| space.is_empty())
    }

    /// The number of points, at most `u64::MAX`.
    #[inline]
    pub fn volume(&self) -> u64 {
        for_dimension!(self, |space| space.volume())
    }

    /// The number of points; none if it is 2^64 or more.
    pub fn checked_volume(&self) -> Option<u64> {
        for_dimension!(self, |space| space.checked_volume())
    }

    /// The number of rectangles in the canonical form.
    #[inline]
    pub fn rect_count(&self) -> usize {
        for_dimension!(self, |space| space.rects().len())
    }

    /// Whether a point is in the space; false for a point of another number of dimensions.
    #[inline]
    pub fn contains(&self, point: AnyPoint) -> bool {
        for_dimension!(self, |space| point.typed().is_ok_and(|point| space.contains(point)))
    }

    /// The rectangles of the canonical form, in order.
    pub fn rects(&self) -> Box<dyn ExactSizeIterator<Item = AnyRect> + '_> {
        for_dimension!(self, |space| Box::new(space.rects().iter().map(|&rect| rect.into())))
    }

    /// The points in row-major order.
    pub fn points(&self) -> Box<dyn Iterator<Item = AnyPoint> + '_> {
        for_dimension!(self, |space| Box::new(space.points().map(AnyPoint::from)))
    }

    /// The points in either space.
    ///
    /// # Errors
    /// When the spaces differ in their number of dimensions.
    pub fn union(&self, other: &Self) -> Result<Self, DimensionMismatch> {
        for_both!(self, other, |a, b| a.union(b).into())
    }

    /// The points in both spaces.
    ///
    /// # Errors
    /// When the spaces differ in their number of dimensions.
    pub fn intersection(&self, other: &Self) -> Result<Self, DimensionMismatch> {
        for_both!(self, other, |a, b| a.intersection(b).into())
    }

    /// The points of this space that are not in the other.
    ///
    /// # Errors
    /// When the spaces differ in their number of dimensions.
    pub fn difference(&self, other: &Self) -> Result<Self, DimensionMismatch> {
        for_both!(self, other, |a, b| a.difference(b).into())
    }

    /// Whether all points of this space are in the other.
    ///
    /// # Errors
    /// When the spaces differ in their number of dimensions.
    pub fn is_subset_of(&self, other: &Self) -> Result<bool, DimensionMismatch> {
        for_both!(self, other, |a, b| a.is_subset_of(b))
    }

    /// Whether the two have a point in common.
    ///
    /// # Errors
    /// When the spaces differ in their number of dimensions.
    pub fn overlaps(&self, other: &Self) -> Result<bool, DimensionMismatch> {
        for_both!(self, other, |a, b| a.overlaps(b))
    }
}

impl<const D: usize> From<IndexSpace<D>> for AnySpace {
    #[inline]
    fn from(space: IndexSpace<D>) -> Self {
        const { assert!(1 <= D && D <= MAX_DIMENSIONS, "index spaces have 1 to 4 dimensions") };
        let erased = match D {
            1 => same_type(space).map(Self::D1),
            2 => same_type(space).map(Self::D2),
            3 => same_type(space).map(Self::D3),
            _ => same_type(space).map(Self::D4),
        };
        erased.expect("the arm is chosen by D, so the type is IndexSpace<D>")
    }
}

impl<const D: usize> From<Rect<D>> for AnySpace {
    #[inline]
    fn from(rect: Rect<D>) -> Self {
        IndexSpace::from(rect).into()
    }
}

impl From<AnyRect> for AnySpace {
    fn from(rect: AnyRect) -> Self {
        for_dimension!(rect.dim(), D => rect.typed_rect::<D>().into())
    }
}

impl<const D: usize> TryFrom<AnySpace> for IndexSpace<D> {
    type Error = DimensionMismatch;

    #[inline]
    fn try_from(space: AnySpace) -> Result<Self, DimensionMismatch> {
        space.typed().cloned()
    }
}

impl fmt::Display for AnySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rects(f, self.rects())
    }
}

impl fmt::Debug for AnySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
