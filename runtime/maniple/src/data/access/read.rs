//! Reading.

use std::ops::Index;

use maniple_space::{IndexSpace, Point, Rect};

use super::{Column, Span};

/// Reads a field: `values[point]`.
pub struct Read<'a, T, const D: usize = 1> {
    column: Column<'a, T, D>,
}

impl<'a, T: Copy, const D: usize> Read<'a, T, D> {
    pub(crate) fn new(column: Column<'a, T, D>) -> Self {
        Self { column }
    }

    /// The points that can be read.
    #[must_use]
    pub fn space(&self) -> &'a IndexSpace<D> {
        self.column.space()
    }

    /// The value at a point; `None` if the region does not have the point.
    #[inline]
    #[must_use]
    pub fn get(&self, point: impl Into<Point<D>>) -> Option<T> {
        // SAFETY: the column's values are valid, and nothing changes them while this accessor lives.
        self.column.place(point.into()).map(|place| unsafe { place.read() })
    }

    /// A copy of all values, in the row-major order of their points.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        let mut values = Vec::with_capacity(self.space().volume() as usize);
        for row in self.space().rows() {
            values.extend_from_slice(&self.span(row));
        }
        values
    }

    /// The value at a point, for as long as the accessor could have lived.
    #[track_caller]
    pub(crate) fn into_ref(self, point: Point<D>) -> &'a T {
        // SAFETY: the column's values are valid, and nothing changes them during `'a`.
        unsafe { self.column.place_or_panic(point).as_ref() }
    }

    /// The values of a row: a rectangle that is one point wide in all dimensions but the last. The elements are in the
    /// order of the last coordinate. Costs nothing where the layout keeps them together, a copy otherwise.
    ///
    /// # Panics
    /// If the rectangle is no row, or the region lacks one of its points.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn span(&self, row: Rect<D>) -> Span<'_, T> {
        let (first, together) = self.column.row(&row);
        if together {
            // SAFETY: so many valid values follow each other from there, and nothing changes them while this accessor
            // lives.
            return Span::Direct(unsafe { std::slice::from_raw_parts(first.as_ptr(), row.volume() as usize) });
        }
        Span::Gathered(row.points().map(|point| self[point]).collect())
    }
}

impl<T: Copy, const D: usize, P: Into<Point<D>>> Index<P> for Read<'_, T, D> {
    type Output = T;

    /// # Panics
    /// If the region does not have the point.
    #[inline(always)]
    #[track_caller]
    fn index(&self, point: P) -> &T {
        // SAFETY: the column's values are valid, and nothing changes them while this accessor lives.
        unsafe { self.column.place_or_panic(point.into()).as_ref() }
    }
}
