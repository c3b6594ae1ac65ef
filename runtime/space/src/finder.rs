//! Which rectangle of many a point is in, fast enough for the inner loop of a task.

use crate::{Point, Rect, bands};

/// A table of the rectangles of a canonical list by their first coordinates: a few bytes for each.
///
/// The bounds are cut along dimension 0 into stripes of equal width, about as many as there are rectangles. Where these
/// are spread evenly, a stripe has few of them; where they crowd, what is left is a binary search.
#[derive(Debug)]
pub(crate) struct Finder {
    lo: i64,
    /// The binary logarithm of a stripe's width.
    shift: u32,
    /// The rectangles that reach each stripe, from the first to before another.
    stripes: Box<[(u32, u32)]>,
}

impl Finder {
    /// The table of at least one rectangle.
    pub(crate) fn new<const D: usize>(rects: &[Rect<D>]) -> Self {
        let (lo, last) = (rects[0].lo.0[0], rects[rects.len() - 1].hi.0[0]);
        let width = last.wrapping_sub(lo) as u64;
        let shift = (0..63).find(|shift| width >> shift < rects.len() as u64).unwrap_or(63);
        let (mut first, mut end) = (0, 0);
        let stripes = (0..=width >> shift).map(|stripe| {
            let begin = lo.wrapping_add((stripe << shift) as i64);
            let last = begin.saturating_add(((1u64 << shift) - 1) as i64);
            while rects[first].hi.0[0] < begin {
                first += 1;
            }
            while end < rects.len() && rects[end].lo.0[0] <= last {
                end += 1;
            }
            (first as u32, end as u32)
        });
        Self { lo, shift, stripes: stripes.collect() }
    }

    /// The number of the rectangle that has a point within the bounds, if one has.
    #[inline]
    pub(crate) fn locate<const D: usize>(&self, rects: &[Rect<D>], point: Point<D>) -> Option<usize> {
        let stripe = (point.0[0].wrapping_sub(self.lo) as u64 >> self.shift) as usize;
        let &(from, end) = self.stripes.get(stripe)?;
        let from = from as usize;
        bands::locate(&rects[from..end as usize], point).map(|number| from + number)
    }
}
