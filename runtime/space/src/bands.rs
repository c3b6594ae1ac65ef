//! The canonical form of a set of points, and the sweeps that compute with it.
//!
//! A set is cut along dimension 0 into *bands*: the longest intervals over which the cross-section
//! (the set of points seen in the other dimensions) does not change. Each cross-section is written
//! the same way in one dimension less; in the last dimension the bands are the longest intervals
//! of points. The form is the D-dimensional relative of the y-x banded regions of the X server
//! (Adam de Boor, Joel McCormack; `miregion.c`), and has three uses:
//!
//! - equal sets have equal lists of rectangles, so equality and hashing are on the lists;
//! - every operation is one sweep over two lists per dimension, with no searching for neighbours;
//! - the list is sorted for a binary search by point ([`locate`]).
//!
//! At a dimension `dim`, a slice of rectangles handed to these functions always agrees in all
//! dimensions before `dim`, and is in canonical form from `dim` on.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use crate::{Point, Rect};

/// Which points an operation on two sets keeps.
#[derive(Clone, Copy)]
pub(crate) struct Keep {
    only_a: bool,
    only_b: bool,
    both: bool,
}

impl Keep {
    pub(crate) const UNION: Self = Self { only_a: true, only_b: true, both: true };
    pub(crate) const INTERSECTION: Self = Self { only_a: false, only_b: false, both: true };
    pub(crate) const DIFFERENCE: Self = Self { only_a: true, only_b: false, both: false };
}

/// One band: an interval of a dimension, and the rectangles of its cross-section.
pub(crate) struct Band<'a, const D: usize> {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
    pub(crate) section: &'a [Rect<D>],
}

/// The bands of a slice of rectangles along one dimension, in order.
pub(crate) struct Bands<'a, const D: usize> {
    rest: &'a [Rect<D>],
    dim: usize,
}

impl<'a, const D: usize> Bands<'a, D> {
    pub(crate) fn new(rects: &'a [Rect<D>], dim: usize) -> Self {
        Self { rest: rects, dim }
    }

    /// The next band that reaches `coordinate` or beyond. Cheap even if it skips many.
    #[inline]
    fn next_reaching(&mut self, coordinate: i64) -> Option<Band<'a, D>> {
        let dim = self.dim;
        self.rest = &self.rest[gallop(self.rest, |rect| rect.hi.0[dim] < coordinate)..];
        self.next()
    }
}

impl<'a, const D: usize> Iterator for Bands<'a, D> {
    type Item = Band<'a, D>;

    #[inline]
    fn next(&mut self) -> Option<Band<'a, D>> {
        let dim = self.dim;
        let first = self.rest.first()?;
        let (lo, hi) = (first.lo.0[dim], first.hi.0[dim]);
        let length = if dim + 1 == D { 1 } else { gallop(self.rest, |rect| rect.lo.0[dim] == lo) };
        let (section, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Band { lo, hi, section })
    }
}

/// The length of the prefix for which `holds`, found in a time logarithmic in that length.
#[inline]
fn gallop<T>(items: &[T], holds: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while step <= items.len() && holds(&items[step - 1]) {
        step *= 2;
    }
    let from = step / 2;
    let to = items.len().min(step);
    from + items[from..to].partition_point(holds)
}

/// Calls `visit(lo, hi, a, b)` for each interval of dimension `dim`, in order, over which the
/// cross-sections `a` and `b` of the two sets do not change and which `keep` does not rule out
/// from the outset. At least one of the two is not empty.
#[inline]
fn sweep<'a, const D: usize>(
    a: &'a [Rect<D>],
    b: &'a [Rect<D>],
    dim: usize,
    keep: Keep,
    mut visit: impl FnMut(i64, i64, &'a [Rect<D>], &'a [Rect<D>]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut rest_a, mut rest_b) = (Bands::new(a, dim), Bands::new(b, dim));
    let (mut next_a, mut next_b) = (rest_a.next(), rest_b.next());
    loop {
        match (&mut next_a, &mut next_b) {
            (Some(a), Some(b)) if a.lo <= b.hi && b.lo <= a.hi => {
                if a.lo < b.lo {
                    if keep.only_a {
                        visit(a.lo, b.lo - 1, a.section, &[])?;
                    }
                    a.lo = b.lo;
                } else if b.lo < a.lo {
                    if keep.only_b {
                        visit(b.lo, a.lo - 1, &[], b.section)?;
                    }
                    b.lo = a.lo;
                }
                let (a_hi, b_hi) = (a.hi, b.hi);
                let hi = a_hi.min(b_hi);
                visit(a.lo, hi, a.section, b.section)?;
                // A band that goes on ends above `hi`, so `hi + 1` exists.
                if a_hi > hi {
                    a.lo = hi + 1;
                } else {
                    next_a = rest_a.next();
                }
                if b_hi > hi {
                    b.lo = hi + 1;
                } else {
                    next_b = rest_b.next();
                }
            }
            (Some(a), other) if other.as_ref().is_none_or(|b| a.hi < b.lo) => {
                let target = other.as_ref().map(|b| b.lo);
                next_a = match (keep.only_a, target) {
                    (true, _) => {
                        visit(a.lo, a.hi, a.section, &[])?;
                        rest_a.next()
                    }
                    (false, Some(lo)) => rest_a.next_reaching(lo),
                    (false, None) => None,
                };
            }
            (other, Some(b)) => {
                let target = other.as_ref().map(|a| a.lo);
                next_b = match (keep.only_b, target) {
                    (true, _) => {
                        visit(b.lo, b.hi, &[], b.section)?;
                        rest_b.next()
                    }
                    (false, Some(lo)) => rest_b.next_reaching(lo),
                    (false, None) => None,
                };
            }
            (_, None) => return ControlFlow::Continue(()),
        }
    }
}

/// The set that `keep` makes of two sets, in canonical form.
pub(crate) fn combine<const D: usize>(a: &[Rect<D>], b: &[Rect<D>], keep: Keep) -> Vec<Rect<D>> {
    let kept_alone = |keeps: bool, rects: &[Rect<D>]| if keeps { rects.len() } else { 0 };
    let mut out = Vec::with_capacity(kept_alone(keep.only_a, a) + kept_alone(keep.only_b, b));
    combine_sections(a, b, 0, Rect::EMPTY, keep, &mut out);
    out
}

/// Appends to `out` the combination of two cross-sections at `dim`; `slab` holds the intervals of
/// the dimensions before.
fn combine_sections<const D: usize>(
    a: &[Rect<D>],
    b: &[Rect<D>],
    dim: usize,
    slab: Rect<D>,
    keep: Keep,
    out: &mut Vec<Rect<D>>,
) {
    let mut previous = out.len();
    let _ = sweep(a, b, dim, keep, |lo, hi, a, b| {
        let slab = slab.with_interval(dim, lo, hi);
        let start = out.len();
        match (a, b) {
            ([], section) | (section, []) => append_section(section, dim, slab, out),
            (a, b) if dim + 1 < D => combine_sections(a, b, dim + 1, slab, keep, out),
            _ if keep.both => out.push(slab),
            _ => {}
        }
        close_band(out, &mut previous, start, dim);
        ControlFlow::Continue(())
    });
}

/// Appends a cross-section seen from `dim`, placed in the slab's intervals up to `dim`.
pub(crate) fn append_section<const D: usize>(section: &[Rect<D>], dim: usize, slab: Rect<D>, out: &mut Vec<Rect<D>>) {
    out.extend(section.iter().map(|rect| {
        let mut placed = *rect;
        placed.lo.0[..=dim].copy_from_slice(&slab.lo.0[..=dim]);
        placed.hi.0[..=dim].copy_from_slice(&slab.hi.0[..=dim]);
        placed
    }));
}

/// Ends the band `out[start..]` at `dim`: joined to the band `out[*previous..start]` before it if
/// the two touch and have the same cross-section, else it becomes the previous band.
fn close_band<const D: usize>(out: &mut Vec<Rect<D>>, previous: &mut usize, start: usize, dim: usize) {
    if start == out.len() {
        return;
    }
    let (before, band) = out.split_at_mut(start);
    let before = &mut before[*previous..];
    if joins(before, band, dim) {
        let hi = band[0].hi.0[dim];
        before.iter_mut().for_each(|rect| rect.hi.0[dim] = hi);
        out.truncate(start);
    } else {
        *previous = start;
    }
}

/// Whether two bands touch along `dim` and have the same cross-section.
fn joins<const D: usize>(before: &[Rect<D>], band: &[Rect<D>], dim: usize) -> bool {
    before.len() == band.len()
        && before[0].hi.0[dim].checked_add(1) == Some(band[0].lo.0[dim])
        && before
            .iter()
            .zip(band)
            .all(|(a, b)| a.lo.0[dim + 1..] == b.lo.0[dim + 1..] && a.hi.0[dim + 1..] == b.hi.0[dim + 1..])
}

/// Whether the set that `keep` would make of two sets has a point. Stops at the first.
pub(crate) fn any<const D: usize>(a: &[Rect<D>], b: &[Rect<D>], keep: Keep) -> bool {
    any_in_sections(a, b, 0, keep).is_break()
}

fn any_in_sections<const D: usize>(a: &[Rect<D>], b: &[Rect<D>], dim: usize, keep: Keep) -> ControlFlow<()> {
    sweep(a, b, dim, keep, |_, _, a, b| {
        if a.is_empty() || b.is_empty() {
            ControlFlow::Break(())
        } else if dim + 1 < D {
            any_in_sections(a, b, dim + 1, keep)
        } else if keep.both {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
}

/// The canonical form of rectangles that are banded already, except that neighbouring bands may
/// have the same cross-section: rows of points in row-major order, for one.
///
/// The rectangles must be disjoint, sorted, and at every dimension either in the same interval or
/// in disjoint ones, given that they agree in the dimensions before.
pub(crate) fn coalesce<const D: usize>(rects: &[Rect<D>]) -> Vec<Rect<D>> {
    let mut out = Vec::with_capacity(if D == 1 { rects.len() } else { 0 });
    coalesce_sections(rects, 0, &mut out);
    out
}

fn coalesce_sections<const D: usize>(rects: &[Rect<D>], dim: usize, out: &mut Vec<Rect<D>>) {
    if dim + 1 == D {
        let first = out.len();
        for rect in rects {
            match out[first..].last_mut() {
                Some(last) if last.hi.0[dim].checked_add(1) == Some(rect.lo.0[dim]) => {
                    last.hi.0[dim] = rect.hi.0[dim];
                }
                _ => out.push(*rect),
            }
        }
        return;
    }
    let mut previous = out.len();
    for band in Bands::new(rects, dim) {
        let start = out.len();
        coalesce_sections(band.section, dim + 1, out);
        close_band(out, &mut previous, start, dim);
    }
}

/// The canonical form of any rectangles, overlapping or not, in any order.
///
/// Unions halves of the sorted list: `O(n log n)` for rectangles whose canonical form is not much
/// larger than the list.
pub(crate) fn from_any<const D: usize>(mut rects: Vec<Rect<D>>) -> Vec<Rect<D>> {
    rects.retain(|rect| !rect.is_empty());
    if !rects.is_sorted_by_key(|rect| rect.lo) {
        rects.sort_unstable_by_key(|rect| rect.lo);
    }
    if D == 1 {
        return join_sorted_intervals(rects);
    }
    union_halves(&rects)
}

fn union_halves<const D: usize>(rects: &[Rect<D>]) -> Vec<Rect<D>> {
    if is_banded(rects, 0) {
        return coalesce(rects);
    }
    let (a, b) = rects.split_at(rects.len() / 2);
    combine(&union_halves(a), &union_halves(b), Keep::UNION)
}

/// Joins the intervals that overlap or touch, in place.
fn join_sorted_intervals<const D: usize>(mut rects: Vec<Rect<D>>) -> Vec<Rect<D>> {
    rects.dedup_by(|next, last| {
        let joined = next.lo.0[0] <= last.hi.0[0].saturating_add(1);
        if joined {
            last.hi.0[0] = last.hi.0[0].max(next.hi.0[0]);
        }
        joined
    });
    rects
}

/// Whether sorted rectangles are disjoint and banded, as [`coalesce`] asks.
fn is_banded<const D: usize>(rects: &[Rect<D>], dim: usize) -> bool {
    let mut below: Option<i64> = None;
    Bands::new(rects, dim).all(|band| {
        let follows = below.is_none_or(|hi| hi < band.lo);
        below = Some(band.hi);
        follows
            && band.section.iter().all(|rect| rect.hi.0[dim] == band.hi)
            && (dim + 1 == D || is_banded(band.section, dim + 1))
    })
}

/// The number of points of a cross-section at `dim`, at most `u64::MAX`; 1 beyond the last
/// dimension.
pub(crate) fn section_volume<const D: usize>(section: &[Rect<D>], dim: usize) -> u64 {
    if dim == D {
        return 1;
    }
    let volume = |rect: &Rect<D>| (dim..D).fold(1u64, |v, d| v.saturating_mul(rect.extent(d)));
    section.iter().fold(0, |sum, rect| sum.saturating_add(volume(rect)))
}

/// How a rectangle of a canonical list lies to a point: before it, after it, or around it.
#[inline]
fn position<const D: usize>(rect: &Rect<D>, point: Point<D>) -> Ordering {
    for d in 0..D {
        if rect.hi.0[d] < point.0[d] {
            return Ordering::Less;
        }
        if rect.lo.0[d] > point.0[d] {
            return Ordering::Greater;
        }
    }
    Ordering::Equal
}

/// The rectangle of a canonical list that contains a point, in `O(log n)`.
#[inline]
pub(crate) fn locate<const D: usize>(rects: &[Rect<D>], point: Point<D>) -> Option<usize> {
    rects.binary_search_by(|rect| position(rect, point)).ok()
}

/// Calls `visit` with the number of each rectangle of a canonical list that shares a point with another rectangle, in
/// order. Logarithmic in what it skips.
pub(crate) fn for_each_touching<const D: usize>(rects: &[Rect<D>], rect: &Rect<D>, visit: &mut impl FnMut(usize)) {
    if !rect.is_empty() {
        touching_in_section(rects, 0, rect, 0, visit);
    }
}

/// The same for a cross-section at `dim`, whose first rectangle is number `first` of the list.
fn touching_in_section<const D: usize>(
    section: &[Rect<D>],
    first: usize,
    rect: &Rect<D>,
    dim: usize,
    visit: &mut impl FnMut(usize),
) {
    let (lo, hi) = (rect.lo.0[dim], rect.hi.0[dim]);
    let below = section.partition_point(|other| other.hi.0[dim] < lo);
    let mut number = first + below;
    for band in Bands::new(&section[below..], dim).take_while(|band| band.lo <= hi) {
        match dim + 1 < D {
            true => touching_in_section(band.section, number, rect, dim + 1, visit),
            false => visit(number),
        }
        number += band.section.len();
    }
}
