//! Which points to store for those that are wanted.
//!
//! One rectangle is the fastest to access, and the more there are the longer it takes to find a point's and the more
//! has to be known of them. So gaps between rectangles are stored too, as long as what that takes stays within bounds:
//! memory follows the number of points, wherever they are.

use maniple_space::{AnySpace, IndexSpace, Point, Rect, for_dimension};

/// The bytes that an instance may have whatever part of them is used: one page of memory.
const SMALL_BYTES: u64 = 4096;

/// The bytes that a rectangle may take to have one fewer: twice what it takes to know its corners, its rank, and its
/// place in the table by which it is found.
const RECT_BYTES: u64 = 64;

/// The points of an instance that is to store some points, with values of so many bytes a point: all of them, and some
/// between them. The instance takes at most twice the bytes of the points and 64 for each rectangle, or a page.
#[must_use]
pub fn with_gaps(points: &AnySpace, bytes_of_point: usize) -> AnySpace {
    if points.is_dense() {
        return points.clone();
    }
    for_dimension!(points, |points| with_gaps_of(points, bytes_of_point as u64).into())
}

/// A rectangle with room for so many points around it, on both sides of each dimension. None if the points are no
/// rectangle, or there are no numbers for points around them. No points have none around them.
#[must_use]
pub fn padded(points: &AnySpace, pad: u32) -> Option<AnySpace> {
    fn of<const D: usize>(points: &IndexSpace<D>, pad: i64) -> Option<AnySpace> {
        let bounds = points.bounds();
        let has_ends = |d: usize| bounds.lo[d].checked_sub(pad).is_some() && bounds.hi[d].checked_add(pad).is_some();
        let has_room = bounds.is_empty() || (0..D).all(has_ends);
        has_room.then(|| IndexSpace::from(bounds.grow(Point([pad; D]))).into())
    }
    if !points.is_dense() {
        return None;
    }
    for_dimension!(points, |points| of(points, pad.into()))
}

/// Whether an instance that stores these points, and is for some of them, has [room](padded) for so many points around
/// those.
#[must_use]
pub fn has_room(stored: &AnySpace, points: &AnySpace, pad: u32) -> bool {
    padded(points, pad).is_some_and(|wide| stored.is_dense() && wide.is_subset_of(stored).unwrap_or(false))
}

/// Some of the points wanted, and how many rectangles they are.
#[derive(Clone, Copy)]
struct GapPart {
    points: u64,
    rects: u64,
}

impl GapPart {
    /// Whether so many points may be stored for them.
    fn affords(self, stored: u64, bytes_of_point: u64) -> bool {
        let most = self.points.saturating_mul(2).saturating_mul(bytes_of_point).saturating_add(self.rects * RECT_BYTES);
        stored.saturating_mul(bytes_of_point) <= most
    }
}

/// Whether an instance that stores some points, [with gaps](with_gaps), keeps a part of them in one rectangle, if the
/// part is a rectangle; true of other parts, which lie in one only by chance. Logarithmic in the number of rectangles.
/// The answer may be false if gaps between other points join the rectangles that the part lies in.
#[must_use]
pub fn keeps_in_one(points: &AnySpace, bytes_of_point: usize, part: &AnySpace) -> bool {
    lies_in_one(points, part) || for_dimension!(points, |points| fills_bounds(points, bytes_of_point as u64))
}

/// Whether a part of some points lies in one of their rectangles, if it is a rectangle itself; true of other parts.
pub(super) fn lies_in_one(points: &AnySpace, part: &AnySpace) -> bool {
    if points.is_dense() || !part.is_dense() || part.is_empty() {
        return true;
    }
    for_dimension!(part, |part| {
        let bounds = part.bounds();
        points.typed().is_ok_and(|points| {
            let number = points.locate(bounds.lo);
            number.is_some_and(|number| points.rects()[number].contains_rect(&bounds))
        })
    })
}

/// Whether all points within the bounds are stored.
fn fills_bounds<const D: usize>(points: &IndexSpace<D>, bytes_of_point: u64) -> bool {
    let stored = points.bounds().volume();
    let all = GapPart { points: points.volume(), rects: points.rects().len() as u64 };
    stored.saturating_mul(bytes_of_point) <= SMALL_BYTES || all.affords(stored, bytes_of_point)
}

fn with_gaps_of<const D: usize>(points: &IndexSpace<D>, bytes_of_point: u64) -> IndexSpace<D> {
    if fills_bounds(points, bytes_of_point) {
        return points.bounds().into();
    }
    let rects = points.rects();
    // The rectangles so far, and what the last of them was made of.
    let mut filled: Vec<Rect<D>> = Vec::new();
    let mut part = GapPart { points: 0, rects: 0 };
    for rect in rects {
        let joined = GapPart { points: part.points.saturating_add(rect.volume()), rects: part.rects + 1 };
        if let Some(last) = filled.last_mut()
            && (0..D - 1).all(|d| last.lo.0[d] == rect.lo.0[d])
            && joined.affords(last.hull(rect).volume(), bytes_of_point)
        {
            *last = last.hull(rect);
            part = joined;
            continue;
        }
        filled.push(*rect);
        part = GapPart { points: rect.volume(), rects: 1 };
    }
    match filled.len() == rects.len() {
        true => points.clone(),
        false => IndexSpace::from_rects(filled),
    }
}
