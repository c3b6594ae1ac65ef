//! A point of a `D`-dimensional grid.

use std::fmt;
use std::ops::{Add, Index, IndexMut, Sub};

use bytemuck::{Pod, Zeroable};

/// A point with `D` signed 64-bit coordinates.
///
/// Points are ordered row-major: the first dimension decides first, so that a sorted list of
/// points visits the last dimension fastest, as a C array is laid out.
///
/// ```
/// use maniple_space::Point;
/// let p = Point([1, 2]) + Point([10, 20]);
/// assert_eq!(p[1], 22);
/// assert!(Point([0, 9]) < Point([1, 0]));
/// assert_eq!(p.to_string(), "(11, 22)");
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point<const D: usize>(pub [i64; D]);

// SAFETY: a transparent wrapper of an array of `i64`, for which all-zero bytes are a value.
unsafe impl<const D: usize> Zeroable for Point<D> {}
// SAFETY: a transparent wrapper of an array of `i64`: no padding, every bit pattern is a value.
unsafe impl<const D: usize> Pod for Point<D> {}

impl<const D: usize> Point<D> {
    /// The origin.
    pub const ZERO: Self = Self([0; D]);

    /// The point with the same coordinate in every dimension.
    #[inline]
    pub const fn splat(coordinate: i64) -> Self {
        Self([coordinate; D])
    }

    /// The coordinates combined dimension by dimension.
    #[inline]
    pub(crate) fn zip_with(self, other: Self, combine: impl Fn(i64, i64) -> i64) -> Self {
        Self(std::array::from_fn(|d| combine(self.0[d], other.0[d])))
    }
}

impl<const D: usize> Default for Point<D> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<const D: usize> Index<usize> for Point<D> {
    type Output = i64;

    #[inline]
    fn index(&self, dimension: usize) -> &i64 {
        &self.0[dimension]
    }
}

impl<const D: usize> IndexMut<usize> for Point<D> {
    #[inline]
    fn index_mut(&mut self, dimension: usize) -> &mut i64 {
        &mut self.0[dimension]
    }
}

impl<const D: usize> Add for Point<D> {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        self.zip_with(other, |a, b| a + b)
    }
}

impl<const D: usize> Sub for Point<D> {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.zip_with(other, |a, b| a - b)
    }
}

impl<const D: usize> From<[i64; D]> for Point<D> {
    #[inline]
    fn from(coordinates: [i64; D]) -> Self {
        Self(coordinates)
    }
}

impl From<i64> for Point<1> {
    #[inline]
    fn from(coordinate: i64) -> Self {
        Self([coordinate])
    }
}

/// Writes `(c0, c1, ...)`.
pub(crate) fn write_coordinates(f: &mut fmt::Formatter<'_>, coordinates: &[i64]) -> fmt::Result {
    f.write_str("(")?;
    for (d, coordinate) in coordinates.iter().enumerate() {
        if d > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{coordinate}")?;
    }
    f.write_str(")")
}

impl<const D: usize> fmt::Display for Point<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_coordinates(f, &self.0)
    }
}

impl<const D: usize> fmt::Debug for Point<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_coordinates(f, &self.0)
    }
}
