//! Visiting an index space row by row, in row-major order of points.

use std::iter::FusedIterator;

use crate::rect::RectPoints;
use crate::{Point, Rect};

/// The rows of an index space in row-major order; made by [`IndexSpace::rows`].
///
/// A row is a rectangle one point thick in every dimension but the last. Rows are as long as they
/// can be, so two rows of the same line are at least one point apart.
///
/// [`IndexSpace::rows`]: crate::IndexSpace::rows
#[derive(Clone, Debug)]
pub struct Rows<'a, const D: usize> {
    /// The space in canonical form.
    rects: &'a [Rect<D>],
    /// The rectangle that gives the next row.
    next: usize,
    /// The coordinates of the next row in all dimensions but the last.
    at: Point<D>,
    /// For each dimension but the last, the rectangles of the band being visited.
    start: [usize; D],
    end: [usize; D],
}

impl<'a, const D: usize> Rows<'a, D> {
    pub(crate) fn new(rects: &'a [Rect<D>]) -> Self {
        let mut rows = Self { rects, next: 0, at: Point::ZERO, start: [0; D], end: [0; D] };
        if !rects.is_empty() {
            rows.enter(0, rects.len());
        }
        rows
    }

    /// Starts the bands that begin at rectangle `next`, from a dimension on; `end` bounds them.
    fn enter(&mut self, dimension: usize, mut end: usize) {
        for d in dimension..D - 1 {
            let lo = self.rects[self.next].lo.0[d];
            let length = self.rects[self.next..end].iter().take_while(|rect| rect.lo.0[d] == lo).count();
            end = self.next + length;
            (self.start[d], self.end[d], self.at.0[d]) = (self.next, end, lo);
        }
    }

    /// Moves to the row after the one just given.
    fn advance(&mut self) {
        self.next += 1;
        for d in (0..D - 1).rev() {
            if self.next < self.end[d] {
                return self.enter(d + 1, self.end[d]);
            }
            if self.at.0[d] < self.rects[self.start[d]].hi.0[d] {
                self.at.0[d] += 1;
                self.next = self.start[d];
                return self.enter(d + 1, self.end[d]);
            }
        }
        if self.next < self.rects.len() {
            self.enter(0, self.rects.len());
        }
    }
}

impl<const D: usize> Iterator for Rows<'_, D> {
    type Item = Rect<D>;

    #[inline]
    fn next(&mut self) -> Option<Rect<D>> {
        let rect = self.rects.get(self.next)?;
        let (mut lo, mut hi) = (self.at, self.at);
        lo.0[D - 1] = rect.lo.0[D - 1];
        hi.0[D - 1] = rect.hi.0[D - 1];
        self.advance();
        Some(Rect { lo, hi })
    }
}

impl<const D: usize> FusedIterator for Rows<'_, D> {}

/// The points of an index space in row-major order; made by [`IndexSpace::points`].
///
/// [`IndexSpace::points`]: crate::IndexSpace::points
#[derive(Clone, Debug)]
pub struct Points<'a, const D: usize> {
    rows: Rows<'a, D>,
    row: RectPoints<D>,
}

impl<'a, const D: usize> Points<'a, D> {
    pub(crate) fn new(rects: &'a [Rect<D>]) -> Self {
        Self { rows: Rows::new(rects), row: Rect::EMPTY.points() }
    }
}

impl<const D: usize> Iterator for Points<'_, D> {
    type Item = Point<D>;

    #[inline]
    fn next(&mut self) -> Option<Point<D>> {
        loop {
            if let Some(point) = self.row.next() {
                return Some(point);
            }
            self.row = self.rows.next()?.points();
        }
    }
}

impl<const D: usize> FusedIterator for Points<'_, D> {}
