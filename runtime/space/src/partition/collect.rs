//! Gathering points into pieces.

use super::field::{FieldRead, for_each_value};
use super::runs::RunFinder;
use crate::bitmap::{Linear, append_rows};
use crate::{IndexSpace, Membership, Point, Rect};

/// A growing list of rows for each piece, fed with points in row-major order.
pub(crate) struct RowLists<const D: usize>(Vec<Vec<Rect<D>>>);

impl<const D: usize> RowLists<D> {
    pub(crate) fn new(pieces: usize) -> Self {
        Self(vec![Vec::new(); pieces])
    }

    /// Adds a point to a piece. It must follow the piece's points so far in row-major order.
    #[inline]
    pub(crate) fn push(&mut self, piece: usize, at: Point<D>) {
        self.push_row(piece, Rect::from_point(at));
    }

    /// Adds the points of a row to a piece. They must follow the piece's points so far in row-major order.
    #[inline]
    pub(crate) fn push_row(&mut self, piece: usize, row: Rect<D>) {
        let rows = &mut self.0[piece];
        match rows.last_mut() {
            Some(last) if follows(last.hi, row.lo) => last.hi = row.hi,
            _ => rows.push(row),
        }
    }

    pub(crate) fn into_spaces(self) -> Vec<IndexSpace<D>> {
        let space = |rows: Vec<Rect<D>>| {
            if D == 1 { IndexSpace::from_canonical(rows) } else { IndexSpace::from_banded(&rows) }
        };
        self.0.into_iter().map(space).collect()
    }
}

/// Whether `next` is the point after `last` in the same row.
#[inline]
pub(super) fn follows<const D: usize>(last: Point<D>, next: Point<D>) -> bool {
    last.0[..D - 1] == next.0[..D - 1] && last.0[D - 1].checked_add(1) == Some(next.0[D - 1])
}

/// The set of pointers found in a field, gathered in any order with repetitions, one piece after
/// another.
///
/// Pointers within a target of less than 2^64 points are kept as their ranks in its bounds: marked
/// in a bitmap where that is little for so many, and else listed.
pub(crate) struct PointerSet<'a, const D: usize> {
    target: &'a Membership<D>,
    linear: Linear<D>,
    ranks: Vec<u64>,
    /// The pointers themselves, if ranks do not fit.
    points: Option<Vec<Point<D>>>,
    finder: RunFinder,
    /// A buffer for the rows of one set.
    rows: Vec<Rect<D>>,
}

impl<'a, const D: usize> PointerSet<'a, D> {
    /// The empty set of pointers into `target`.
    pub(crate) fn new(target: &'a Membership<D>) -> Self {
        let bounds = target.bounds();
        // In one dimension a rank is a difference of coordinates, which always fits.
        let fits = D == 1 || bounds.volume() < u64::MAX;
        Self {
            target,
            linear: Linear::of(bounds),
            ranks: Vec::new(),
            points: (!fits).then(Vec::new),
            finder: RunFinder::default(),
            rows: Vec::new(),
        }
    }

    /// The set of those pointers of a field's points that are in the target.
    pub(crate) fn of<const S: usize>(
        &mut self,
        source: &IndexSpace<S>,
        field: &impl FieldRead<Point<D>, S>,
    ) -> IndexSpace<D> {
        let (target, linear) = (self.target, self.linear);
        if let Some(points) = &mut self.points {
            for_each_value(source, field, |_, pointer| {
                if target.contains(pointer) {
                    points.push(pointer);
                }
            });
            return IndexSpace::from_points(points.drain(..));
        }
        let (bounds, rows) = (target.bounds(), &mut self.rows);
        rows.clear();
        if let Some(marks) = self.finder.marks(bounds.volume(), source.volume()) {
            for_each_value(source, field, |_, pointer| {
                if target.contains(pointer) {
                    marks.set(linear.rank(pointer));
                }
            });
            marks.take_runs(bounds.volume(), |first, last| append_rows(bounds, first, last, rows));
        } else {
            for_each_value(source, field, |_, pointer| {
                if target.contains(pointer) {
                    self.ranks.push(linear.rank(pointer));
                }
            });
            self.finder.for_each_run(&mut self.ranks, |first, last| append_rows(bounds, first, last, rows));
            self.ranks.clear();
        }
        if D == 1 { IndexSpace::from_canonical(rows) } else { IndexSpace::from_banded(rows) }
    }
}
