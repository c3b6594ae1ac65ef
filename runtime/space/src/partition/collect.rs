//! Gathering points into pieces.

use super::field::{Values, numbered_rows};
use super::runs::RunFinder;
use crate::bitmap::{Linear, append_rows};
use crate::{IndexSpace, Membership, Point, Rect};

/// The points of each of some pieces, as runs `[first, last]` of the [numbers](Values) that they have in a source.
pub(crate) struct Runs(Vec<Vec<[i64; 2]>>);

impl Runs {
    pub(crate) fn new(pieces: usize) -> Self {
        Self(vec![Vec::new(); pieces])
    }

    /// Adds a point to a piece. It must follow those that it has.
    #[inline]
    pub(crate) fn push(&mut self, piece: usize, number: i64) {
        self.push_run(piece, [number; 2]);
    }

    /// Adds points to a piece. They must follow those that it has.
    #[inline]
    pub(crate) fn push_run(&mut self, piece: usize, [first, last]: [i64; 2]) {
        let runs = &mut self.0[piece];
        match runs.last_mut() {
            Some(open) if open[1].wrapping_add(1) == first => open[1] = last,
            _ => runs.push([first, last]),
        }
    }

    /// The pieces, of a source.
    pub(crate) fn into_spaces<const D: usize>(self, source: &IndexSpace<D>) -> Vec<IndexSpace<D>> {
        if D == 1 {
            let space = |runs: Vec<[i64; 2]>| IndexSpace::from_canonical(bytemuck::cast_slice(&runs));
            return self.0.into_iter().map(space).collect();
        }
        let (bounds, mut rows) = (source.bounds(), Vec::new());
        let numbered = if Linear::fitting(&bounds).is_some() { Vec::new() } else { numbered_rows(source).collect() };
        let space = |runs: Vec<[i64; 2]>| {
            rows.clear();
            for [first, last] in runs {
                if numbered.is_empty() {
                    append_rows(&bounds, first as u64, last as u64, &mut rows);
                } else {
                    append_numbered(&numbered, first, last, &mut rows);
                }
            }
            space_of_rows(&rows)
        };
        self.0.into_iter().map(space).collect()
    }
}

/// Appends the parts of rows that hold the points `first..=last`.
fn append_numbered<const D: usize>(numbered: &[(i64, Rect<D>)], first: i64, last: i64, rows: &mut Vec<Rect<D>>) {
    let begin = numbered.partition_point(|row| row.0 <= first) - 1;
    for &(number, row) in numbered[begin..].iter().take_while(|row| row.0 <= last) {
        let lo = row.lo[D - 1];
        let from = lo.wrapping_add(first.max(number) - number);
        let to = row.hi[D - 1].min(lo.saturating_add(last - number));
        rows.push(row.with_interval(D - 1, from, to));
    }
}

/// The space of rows in row-major order, with a gap between those that follow each other along the last dimension.
fn space_of_rows<const D: usize>(rows: &[Rect<D>]) -> IndexSpace<D> {
    if D == 1 { IndexSpace::from_canonical(rows) } else { IndexSpace::from_banded(rows) }
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
        let linear = Linear::fitting(target.bounds());
        Self {
            target,
            linear: linear.unwrap_or_else(|| Linear::of(target.bounds())),
            ranks: Vec::new(),
            points: linear.is_none().then(Vec::new),
            finder: RunFinder::default(),
            rows: Vec::new(),
        }
    }

    /// The set of those pointers that are in the target.
    pub(crate) fn of(&mut self, pointers: &impl Values<Point<D>>) -> IndexSpace<D> {
        let (target, linear) = (self.target, self.linear);
        if let Some(points) = &mut self.points {
            pointers.for_each(|_, pointer| {
                if target.contains(pointer) {
                    points.push(pointer);
                }
            });
            return IndexSpace::from_points(points.drain(..));
        }
        let (bounds, rows) = (target.bounds(), &mut self.rows);
        rows.clear();
        if let Some(marks) = self.finder.marks(bounds.volume(), pointers.count()) {
            pointers.for_each(|_, pointer| {
                if target.contains(pointer) {
                    marks.set(linear.rank(pointer));
                }
            });
            marks.take_runs(bounds.volume(), |first, last| append_rows(bounds, first, last, rows));
        } else {
            pointers.for_each(|_, pointer| {
                if target.contains(pointer) {
                    self.ranks.push(linear.rank(pointer));
                }
            });
            self.finder.for_each_run(&mut self.ranks, |first, last| append_rows(bounds, first, last, rows));
            self.ranks.clear();
        }
        space_of_rows(rows)
    }
}
