//! Reading the data that a partition depends on.

use crate::bitmap::Linear;
use crate::{IndexSpace, Point, Rect};

/// A field over `D`-dimensional points: colors, pointers or ranges that decide a partition.
///
/// A closure from a point to a value is a field; [`SliceField`] is one over an array. Give the
/// closure's argument its type: `|p: Point<2>| p[0] % 3`.
pub trait FieldRead<T: Copy, const D: usize> {
    /// The value at a point. May panic, or return any value, for a point without one.
    fn read(&self, at: Point<D>) -> T;

    /// The values of `len` points from `start` along the last dimension, if they are stored one
    /// after another. Partitioning operators then read them without a call each.
    fn row(&self, start: Point<D>, len: usize) -> Option<&[T]> {
        let _ = (start, len);
        None
    }
}

impl<T: Copy, const D: usize, F: Fn(Point<D>) -> T> FieldRead<T, D> for F {
    #[inline]
    fn read(&self, at: Point<D>) -> T {
        self(at)
    }
}

/// A field whose values for the points of a rectangle lie in a slice, in row-major order.
///
/// ```
/// use maniple_space::partition::{FieldRead, SliceField};
/// use maniple_space::{Point, Rect};
/// let field = SliceField::new(Rect::new([10, 0], [11, 2]), &[1, 2, 3, 4, 5, 6]);
/// assert_eq!(field.read(Point([11, 0])), 4);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SliceField<'a, T, const D: usize> {
    rect: Rect<D>,
    linear: Linear<D>,
    values: &'a [T],
}

impl<'a, T, const D: usize> SliceField<'a, T, D> {
    /// The field over a rectangle with the given values.
    ///
    /// # Panics
    /// When there are not as many values as points.
    pub fn new(rect: Rect<D>, values: &'a [T]) -> Self {
        assert_eq!(values.len() as u64, rect.volume(), "expected one value for each point of {rect}");
        Self { rect, linear: Linear::of(&rect), values }
    }
}

impl<T: Copy, const D: usize> FieldRead<T, D> for SliceField<'_, T, D> {
    /// Panics for a point outside the rectangle.
    #[inline]
    fn read(&self, at: Point<D>) -> T {
        assert!(self.rect.contains(at), "{at} is outside the field's rectangle {}", self.rect);
        self.values[self.linear.rank(at) as usize]
    }

    #[inline]
    fn row(&self, start: Point<D>, len: usize) -> Option<&[T]> {
        let past_end = (self.rect.hi.0[D - 1].wrapping_sub(start.0[D - 1]) as u64) < len as u64 - 1;
        if len == 0 || !self.rect.contains(start) || past_end {
            return None;
        }
        let first = self.linear.rank(start) as usize;
        self.values.get(first..first + len)
    }
}

/// The input of the operators: the values of a field at the points of a space, in row-major order, with the points'
/// numbers.
///
/// In one dimension a number is the point's coordinate. In more it is the rank in the space's bounds, or, where these
/// have too many points, the rank among the points of the space. So numbers have no dimension, and neither has what
/// deals with them.
pub(crate) trait Values<T> {
    /// The number of points, at most `u64::MAX`.
    fn count(&self) -> u64;

    /// Calls `visit(number, value)` for every point, in order.
    fn for_each(&self, visit: impl FnMut(i64, T));
}

/// The rows of a space, each with the number of its first point.
#[inline]
pub(super) fn numbered_rows<const D: usize>(space: &IndexSpace<D>) -> impl Iterator<Item = (i64, Rect<D>)> {
    let (ranks, mut count) = (Linear::fitting(&space.bounds()), 0i64);
    space.rows().map(move |row| {
        let number = match ranks {
            _ if D == 1 => row.lo[0],
            Some(ranks) => ranks.rank(row.lo) as i64,
            None => count,
        };
        count = count.wrapping_add_unsigned(row.extent(D - 1));
        (number, row)
    })
}

/// A field at the points of a space.
pub(crate) struct At<'a, F, const D: usize>(pub(crate) &'a F, pub(crate) &'a IndexSpace<D>);

impl<T: Copy, F: FieldRead<T, D>, const D: usize> Values<T> for At<'_, F, D> {
    fn count(&self) -> u64 {
        self.1.volume()
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(i64, T)) {
        let &Self(field, space) = self;
        for (mut number, row) in numbered_rows(space) {
            let mut next = |value| {
                visit(number, value);
                number = number.wrapping_add(1);
            };
            let len = usize::try_from(row.extent(D - 1)).unwrap_or(usize::MAX);
            match field.row(row.lo, len) {
                Some(values) => {
                    debug_assert_eq!(values.len(), len, "a row holds the values that were asked for");
                    values.iter().for_each(|&value| next(value));
                }
                None => row.points().for_each(|at| next(field.read(at))),
            }
        }
    }
}
