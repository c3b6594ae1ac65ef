//! A rectangle: a dense box of points.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::FusedIterator;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::Point;

/// All points `p` with `lo[d] <= p[d] <= hi[d]` in every dimension `d`.
///
/// Both bounds are inclusive, so the whole range of `i64` can be named. A rectangle whose `lo`
/// exceeds its `hi` in any dimension is empty; all empty rectangles are equal. No method
/// overflows or panics on bounds near `i64::MIN` or `i64::MAX`.
///
/// ```
/// use maniple_space::{Point, Rect};
/// let a = Rect::from_shape([4, 4]);
/// let b = Rect::new([2, 2], [9, 9]);
/// assert_eq!(a.intersection(&b), Rect::new([2, 2], [3, 3]));
/// assert_eq!(a.volume(), 16);
/// assert_eq!(a.linear(Point([1, 2])), 6);
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rect<const D: usize> {
    /// The smallest coordinate in each dimension.
    pub lo: Point<D>,
    /// The largest coordinate in each dimension, itself included.
    pub hi: Point<D>,
}

// SAFETY: two points in `repr(C)`; all-zero bytes are two origins.
unsafe impl<const D: usize> Zeroable for Rect<D> {}
// SAFETY: two arrays of `i64` in `repr(C)`: no padding, every bit pattern is a value.
unsafe impl<const D: usize> Pod for Rect<D> {}

impl<const D: usize> Rect<D> {
    /// The rectangle without points.
    pub const EMPTY: Self = Self { lo: Point([0; D]), hi: Point([-1; D]) };

    /// The rectangle between two corners, both included.
    #[inline]
    pub fn new(lo: impl Into<Point<D>>, hi: impl Into<Point<D>>) -> Self {
        Self { lo: lo.into(), hi: hi.into() }
    }

    /// The rectangle from the origin with `shape[d]` points along dimension `d`; empty when any
    /// of them is zero or negative.
    #[inline]
    pub fn from_shape(shape: [i64; D]) -> Self {
        Self { lo: Point::ZERO, hi: Point(shape.map(|n| n.saturating_sub(1))) }
    }

    /// The rectangle of one point.
    #[inline]
    pub fn from_point(point: Point<D>) -> Self {
        Self { lo: point, hi: point }
    }

    /// Whether the rectangle has no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        (0..D).any(|d| self.lo.0[d] > self.hi.0[d])
    }

    /// The number of points along one dimension, at most `u64::MAX`; 0 where `lo` exceeds `hi`.
    #[inline]
    pub fn extent(&self, dimension: usize) -> u64 {
        let (lo, hi) = (self.lo.0[dimension], self.hi.0[dimension]);
        if lo > hi { 0 } else { (hi.wrapping_sub(lo) as u64).saturating_add(1) }
    }

    /// The number of points, at most `u64::MAX`: see [`checked_volume`](Self::checked_volume).
    #[inline]
    pub fn volume(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        (0..D).fold(1u64, |volume, d| volume.saturating_mul(self.extent(d)))
    }

    /// The number of points; none if it is 2^64 or more.
    pub fn checked_volume(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        (0..D).try_fold(1u64, |volume, d| {
            let last = self.hi.0[d].wrapping_sub(self.lo.0[d]) as u64;
            volume.checked_mul(last.checked_add(1)?)
        })
    }

    /// Whether the point lies inside.
    #[inline]
    pub fn contains(&self, point: Point<D>) -> bool {
        // No early exit: a handful of compares without branches is what hot loops want.
        (0..D).fold(true, |inside, d| inside & (self.lo.0[d] <= point.0[d]) & (point.0[d] <= self.hi.0[d]))
    }

    /// Whether every point of `other` lies inside; true of an empty `other`.
    #[inline]
    pub fn contains_rect(&self, other: &Self) -> bool {
        other.is_empty() || (0..D).all(|d| self.lo.0[d] <= other.lo.0[d] && other.hi.0[d] <= self.hi.0[d])
    }

    /// Whether the two have a point in common.
    #[inline]
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The points in both.
    #[inline]
    pub fn intersection(&self, other: &Self) -> Self {
        Self { lo: self.lo.zip_with(other.lo, i64::max), hi: self.hi.zip_with(other.hi, i64::min) }
    }

    /// The smallest rectangle that contains both.
    #[inline]
    pub fn hull(&self, other: &Self) -> Self {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        Self { lo: self.lo.zip_with(other.lo, i64::min), hi: self.hi.zip_with(other.hi, i64::max) }
    }

    /// The rectangle moved by `offset`. Points that would leave the range of `i64` are dropped.
    #[inline]
    pub fn translate(&self, offset: Point<D>) -> Self {
        let mut moved = *self;
        for d in 0..D {
            let (lo, hi) = (self.lo.0[d].checked_add(offset.0[d]), self.hi.0[d].checked_add(offset.0[d]));
            let forward = offset.0[d] > 0;
            (moved.lo.0[d], moved.hi.0[d]) = match (lo, hi) {
                (Some(lo), Some(hi)) => (lo, hi),
                (Some(lo), None) if forward => (lo, i64::MAX),
                (None, Some(hi)) if !forward => (i64::MIN, hi),
                _ => return Self::EMPTY,
            };
        }
        moved
    }

    /// The rectangle widened by `halo[d]` on both sides of each dimension `d`, shrunk where
    /// `halo[d]` is negative. Bounds stop at the ends of `i64`; an empty rectangle stays empty.
    #[inline]
    pub fn grow(&self, halo: Point<D>) -> Self {
        if self.is_empty() {
            return Self::EMPTY;
        }
        Self { lo: self.lo.zip_with(halo, i64::saturating_sub), hi: self.hi.zip_with(halo, i64::saturating_add) }
    }

    /// The points below `coordinate` along one dimension, and the points from `coordinate` on.
    #[inline]
    pub fn split_at(&self, dimension: usize, coordinate: i64) -> (Self, Self) {
        let (mut below, mut above) = (*self, *self);
        match coordinate.checked_sub(1) {
            Some(last) => below.hi.0[dimension] = last.min(self.hi.0[dimension]),
            None => below = Self::EMPTY,
        }
        above.lo.0[dimension] = coordinate.max(self.lo.0[dimension]);
        (below, above)
    }

    /// The rectangle with the interval `[lo, hi]` in one dimension, otherwise the same.
    #[inline]
    pub fn with_interval(mut self, dimension: usize, lo: i64, hi: i64) -> Self {
        self.lo.0[dimension] = lo;
        self.hi.0[dimension] = hi;
        self
    }

    /// The dimension with the most points; the first of them on a tie.
    #[inline]
    pub fn widest_dimension(&self) -> usize {
        (1..D).fold(0, |widest, d| if self.extent(d) > self.extent(widest) { d } else { widest })
    }

    /// The rank of a point of the rectangle in row-major order: `lo` has 0, `hi` has
    /// `volume() - 1`. Meaningless for a point outside, and for ranks beyond `u64`.
    #[inline]
    pub fn linear(&self, point: Point<D>) -> u64 {
        let mut rank = 0u64;
        for d in 0..D {
            let extent = (self.hi.0[d].wrapping_sub(self.lo.0[d]) as u64).wrapping_add(1);
            let offset = point.0[d].wrapping_sub(self.lo.0[d]) as u64;
            rank = rank.wrapping_mul(extent).wrapping_add(offset);
        }
        rank
    }

    /// The point with a rank in row-major order: the inverse of [`linear`](Self::linear).
    /// Meaningless for a rank of `volume()` or more.
    #[inline]
    pub fn delinear(&self, rank: u64) -> Point<D> {
        let mut rest = rank;
        let mut point = self.lo;
        for d in (0..D).rev() {
            let last = self.hi.0[d].wrapping_sub(self.lo.0[d]) as u64;
            let offset;
            // The full range of `i64` has 2^64 points, which no `u64` can divide by.
            (rest, offset) = match last.checked_add(1) {
                Some(0) | None => (0, rest),
                Some(extent) => (rest / extent, rest % extent),
            };
            point.0[d] = self.lo.0[d].wrapping_add(offset as i64);
        }
        point
    }

    /// The points in row-major order.
    #[inline]
    pub fn points(&self) -> RectPoints<D> {
        RectPoints { rect: *self, next: (!self.is_empty()).then_some(self.lo), left: self.checked_volume() }
    }
}

/// The points of a rectangle in row-major order; made by [`Rect::points`]. Of one of 2^64 points or more, `len` panics.
#[derive(Clone, Debug)]
pub struct RectPoints<const D: usize> {
    rect: Rect<D>,
    next: Option<Point<D>>,
    /// None if those are, or were, too many to be counted.
    left: Option<u64>,
}

impl<const D: usize> Iterator for RectPoints<D> {
    type Item = Point<D>;

    #[inline]
    fn next(&mut self) -> Option<Point<D>> {
        let point = self.next?;
        self.left = self.left.map(|left| left - 1);
        self.next = None;
        let mut following = point;
        for d in (0..D).rev() {
            if point.0[d] < self.rect.hi.0[d] {
                following.0[d] += 1;
                self.next = Some(following);
                break;
            }
            following.0[d] = self.rect.lo.0[d];
        }
        Some(point)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.left.map(usize::try_from) {
            Some(Ok(left)) => (left, Some(left)),
            _ => (usize::MAX, None),
        }
    }
}

impl<const D: usize> ExactSizeIterator for RectPoints<D> {}
impl<const D: usize> FusedIterator for RectPoints<D> {}

impl<const D: usize> IntoIterator for Rect<D> {
    type Item = Point<D>;
    type IntoIter = RectPoints<D>;

    fn into_iter(self) -> RectPoints<D> {
        self.points()
    }
}

impl<const D: usize> Default for Rect<D> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<Range<i64>> for Rect<1> {
    #[inline]
    fn from(range: Range<i64>) -> Self {
        if range.is_empty() { Self::EMPTY } else { Self::new(range.start, range.end - 1) }
    }
}

impl<const D: usize> PartialEq for Rect<D> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        (self.lo == other.lo && self.hi == other.hi) || (self.is_empty() && other.is_empty())
    }
}

impl<const D: usize> Eq for Rect<D> {}

impl<const D: usize> Hash for Rect<D> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = if self.is_empty() { Self::EMPTY } else { *self };
        normal.lo.hash(state);
        normal.hi.hash(state);
    }
}

impl<const D: usize> fmt::Display for Rect<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str("empty") } else { write!(f, "{}..={}", self.lo, self.hi) }
    }
}

impl<const D: usize> fmt::Debug for Rect<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
