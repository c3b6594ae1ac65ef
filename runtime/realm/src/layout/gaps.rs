//! Which points to store for those that are wanted.
//!
//! One rectangle is the fastest to access, and the more there are the longer it takes to find a point's and the more has to
//! be known of them. So gaps between rectangles are stored too, as long as what that takes stays within bounds: memory
//! follows the number of points, wherever they are.

use maniple_space::{AnySpace, IndexSpace, Rect, for_dimension};

/// The bytes that an instance may have whatever part of them is used: one page of memory.
const SMALL_BYTES: u64 = 4096;

/// The points of an instance that is to store some points, with values of so many bytes a point: all of them, and some
/// between them. At most as many again, or all within their bounds if that takes a page of memory or less.
#[must_use]
pub fn with_gaps(points: &AnySpace, bytes_of_point: usize) -> AnySpace {
    if points.is_dense() {
        return points.clone();
    }
    for_dimension!(points, |points| with_gaps_of(points, bytes_of_point as u64).into())
}

fn with_gaps_of<const D: usize>(points: &IndexSpace<D>, bytes_of_point: u64) -> IndexSpace<D> {
    let bounds = points.bounds();
    let is_small = bounds.volume().saturating_mul(bytes_of_point) <= SMALL_BYTES;
    if is_small || bounds.volume() <= points.volume().saturating_mul(2) {
        return bounds.into();
    }
    let mut filled: Vec<Rect<D>> = Vec::new();
    // Along the last dimension: how many points the last of `filled` has been made of.
    let mut used = 0u64;
    for rect in points.rects() {
        let length = rect.extent(D - 1);
        if let Some(last) = filled.last_mut()
            && (0..D - 1).all(|d| last.lo.0[d] == rect.lo.0[d])
            && last.hull(rect).extent(D - 1) <= 2 * (used + length)
        {
            *last = last.hull(rect);
            used += length;
            continue;
        }
        filled.push(*rect);
        used = length;
    }
    match filled.len() == points.rects().len() {
        true => points.clone(),
        false => IndexSpace::from_rects(filled),
    }
}
