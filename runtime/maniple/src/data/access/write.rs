//! Reading and writing.

use std::ops::{Index, IndexMut};

use maniple_space::{IndexSpace, Point, Rect};

use super::{Column, Span, SpanMut};

/// Reads and writes a field: `values[point] = 1.0`.
///
/// Of a field that the task *discards*, values are unspecified until they have been written.
pub struct Write<'a, T, const D: usize = 1> {
    column: Column<'a, T, D>,
}

impl<'a, T: Copy, const D: usize> Write<'a, T, D> {
    /// The column must be the only way to its values.
    pub(crate) fn new(column: Column<'a, T, D>) -> Self {
        Self { column }
    }

    /// The points that can be read and written.
    #[must_use]
    pub fn space(&self) -> &'a IndexSpace<D> {
        self.column.space()
    }

    /// The value at a point; `None` if the region does not have the point.
    #[inline]
    #[must_use]
    pub fn get(&self, point: impl Into<Point<D>>) -> Option<T> {
        // SAFETY: the column's values are valid, and only this accessor changes them.
        self.column.place(point.into()).map(|place| unsafe { place.read() })
    }

    /// Changes the value at a point; false if the region does not have the point.
    #[inline]
    pub fn set(&mut self, point: impl Into<Point<D>>, value: T) -> bool {
        let place = self.column.place(point.into());
        place.is_some_and(|place| {
            // SAFETY: the place is in the region, and only this accessor, borrowed mutably, touches it.
            unsafe { place.write(value) };
            true
        })
    }

    /// The value at a point, for as long as the accessor could have lived.
    #[track_caller]
    pub(crate) fn into_mut(self, point: Point<D>) -> &'a mut T {
        // SAFETY: the column's values are valid; only this accessor touches them during `'a`, and it ends here.
        unsafe { self.column.place_or_panic(point).as_mut() }
    }

    /// Writes one value at all points.
    pub fn fill(&mut self, value: T) {
        let space = self.column.space();
        for row in space.rows() {
            self.span_mut(row).fill(value);
        }
    }

    /// The values of a row, as [`Read::span`](super::Read::span).
    ///
    /// # Panics
    /// If the rectangle is no row, or the region lacks one of its points.
    #[must_use]
    #[track_caller]
    pub fn span(&self, row: Rect<D>) -> Span<'_, T> {
        let (first, together) = self.column.row(&row);
        if together {
            // SAFETY: so many valid values follow each other from there; this accessor is borrowed, so nothing else
            // changes them.
            return Span::Direct(unsafe { std::slice::from_raw_parts(first.as_ptr(), row.volume() as usize) });
        }
        Span::Gathered(row.points().map(|point| self[point]).collect())
    }

    /// The values of a row, to be changed: a rectangle that is one point wide in all dimensions but the last. The
    /// elements are in the order of the last coordinate. Costs nothing where the layout keeps them together; otherwise
    /// a copy, which is written back when dropped.
    ///
    /// # Panics
    /// If the rectangle is no row, or the region lacks one of its points.
    #[must_use]
    #[track_caller]
    pub fn span_mut(&mut self, row: Rect<D>) -> SpanMut<'_, T> {
        let (first, together) = self.column.row(&row);
        if together {
            // SAFETY: so many valid values follow each other from there; this accessor, the only way to them, is
            // borrowed mutably.
            let values = unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), row.volume() as usize) };
            return SpanMut::direct(values);
        }
        let values = row.points().map(|point| self[point]).collect();
        SpanMut::staged(values, move |values| {
            for (point, &value) in row.points().zip(values) {
                self[point] = value;
            }
        })
    }
}

impl<T: Copy, const D: usize, P: Into<Point<D>>> Index<P> for Write<'_, T, D> {
    type Output = T;

    /// # Panics
    /// If the region does not have the point.
    #[inline(always)]
    #[track_caller]
    fn index(&self, point: P) -> &T {
        // SAFETY: the column's values are valid; only this accessor changes them, and it is borrowed.
        unsafe { self.column.place_or_panic(point.into()).as_ref() }
    }
}

impl<T: Copy, const D: usize, P: Into<Point<D>>> IndexMut<P> for Write<'_, T, D> {
    /// # Panics
    /// If the region does not have the point.
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, point: P) -> &mut T {
        // SAFETY: the column's values are valid; only this accessor touches them, and it is borrowed mutably.
        unsafe { self.column.place_or_panic(point.into()).as_mut() }
    }
}
