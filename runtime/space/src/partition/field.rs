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

    /// Appends the values of `len` points from `start` along the last dimension to a vector. Partitioning operators read fields that have no [rows](Self::row) by this, some hundred
    /// points at a time.
    fn append_row(&self, start: Point<D>, len: usize, values: &mut Vec<T>) {
        values.extend((0..len).map(|number| {
            let mut at = start;
            at.0[D - 1] += number as i64;
            self.read(at)
        }));
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

/// How many values are read at a time: they stay in the first-level cache.
const CHUNK: u64 = 512;

/// Calls `visit(point, value)` for every point of a space in row-major order.
#[inline]
pub(crate) fn for_each_value<T: Copy, const D: usize>(
    space: &IndexSpace<D>,
    field: &impl FieldRead<T, D>,
    mut visit: impl FnMut(Point<D>, T),
) {
    let mut chunk = Vec::new();
    for row in space.rows() {
        let len = usize::try_from(row.extent(D - 1)).unwrap_or(usize::MAX);
        match field.row(row.lo, len) {
            Some(values) => {
                debug_assert_eq!(values.len(), len, "a row holds the values that were asked for");
                let mut at = row.lo;
                for &value in values {
                    visit(at, value);
                    at.0[D - 1] = at.0[D - 1].wrapping_add(1);
                }
            }
            None => {
                let (mut at, mut left) = (row.lo, row.extent(D - 1));
                while left > 0 {
                    let len = left.min(CHUNK) as usize;
                    chunk.clear();
                    field.append_row(at, len, &mut chunk);
                    debug_assert_eq!(chunk.len(), len, "a row has the values that were asked for");
                    for &value in &chunk {
                        visit(at, value);
                        at.0[D - 1] = at.0[D - 1].wrapping_add(1);
                    }
                    left -= len as u64;
                }
            }
        }
    }
}
