//! One bit for each point of a rectangle.

use crate::rows::Rows;
use crate::{Point, Rect};

/// The row-major rank of points in a rectangle, with the multiplications prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear<const D: usize> {
    lo: Point<D>,
    strides: [u64; D],
}

impl<const D: usize> Linear<D> {
    pub(crate) fn of(rect: &Rect<D>) -> Self {
        let mut strides = [1u64; D];
        for d in (0..D.saturating_sub(1)).rev() {
            strides[d] = strides[d + 1].wrapping_mul(rect.extent(d + 1));
        }
        Self { lo: rect.lo, strides }
    }

    /// The ranks of a rectangle's points, if they fit 64 bits.
    pub(crate) fn fitting(rect: &Rect<D>) -> Option<Self> {
        // In one dimension a rank is a difference of coordinates, which always fits.
        (D == 1 || rect.volume() < u64::MAX).then(|| Self::of(rect))
    }

    /// The rank of a point of the rectangle.
    #[inline]
    pub(crate) fn rank(&self, point: Point<D>) -> u64 {
        (0..D).fold(0u64, |rank, d| {
            let offset = point.0[d].wrapping_sub(self.lo.0[d]) as u64;
            rank.wrapping_add(offset.wrapping_mul(self.strides[d]))
        })
    }
}

/// Sets the bits `from..=to` of a bitmap.
pub(crate) fn set_range(words: &mut [u64], from: u64, to: u64) {
    let (first, last) = ((from / 64) as usize, (to / 64) as usize);
    let head = u64::MAX << (from % 64);
    let tail = u64::MAX >> (63 - to % 64);
    if first == last {
        words[first] |= head & tail;
    } else {
        words[first] |= head;
        words[first + 1..last].fill(u64::MAX);
        words[last] |= tail;
    }
}

/// Whether a bit is set.
#[inline]
pub(crate) fn get(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 != 0
}

/// Turns the words of a bitmap, fed in ascending order, into its longest runs of set bits.
#[derive(Default)]
pub(crate) struct RunJoiner {
    /// The run that the next word may continue.
    open: Option<(u64, u64)>,
}

impl RunJoiner {
    /// Calls `visit(first, last)` for each run that a word shows to have ended.
    #[inline]
    pub(crate) fn push(&mut self, word: u64, bits: u64, mut visit: impl FnMut(u64, u64)) {
        let (mut bits, mut at) = (bits, word * 64);
        while bits != 0 {
            let clear = bits.trailing_zeros();
            bits >>= clear;
            let set = bits.trailing_ones();
            bits = bits.checked_shr(set).unwrap_or(0);
            let first = at + u64::from(clear);
            at = first + u64::from(set);
            match &mut self.open {
                Some((_, last)) if *last + 1 == first => *last = at - 1,
                open => {
                    if let Some((first, last)) = open.replace((first, at - 1)) {
                        visit(first, last);
                    }
                }
            }
        }
    }

    /// Calls `visit(first, last)` for the last run, if there is any.
    pub(crate) fn finish(self, mut visit: impl FnMut(u64, u64)) {
        if let Some((first, last)) = self.open {
            visit(first, last);
        }
    }
}

/// Appends the rows of a rectangle that hold the points with the ranks `first..=last`.
#[inline]
pub(crate) fn append_rows<const D: usize>(rect: &Rect<D>, first: u64, last: u64, rows: &mut Vec<Rect<D>>) {
    if D == 1 {
        let at = |rank: u64| rect.lo.0[0].wrapping_add(rank as i64);
        rows.push(Rect::from_point(rect.lo).with_interval(0, at(first), at(last)));
        return;
    }
    let mut first = first;
    loop {
        let lo = rect.delinear(first);
        let to_row_end = rect.hi.0[D - 1].wrapping_sub(lo.0[D - 1]) as u64;
        let length = to_row_end.min(last - first);
        let mut hi = lo;
        hi.0[D - 1] = lo.0[D - 1].wrapping_add(length as i64);
        rows.push(Rect { lo, hi });
        if length == last - first {
            return;
        }
        first += length + 1;
    }
}

/// The rows, in row-major order, of the union of rectangles within `bounds`, by way of a bitmap
/// of the bounds.
pub(crate) fn rows_of_union<'a, const D: usize>(
    bounds: &Rect<D>,
    rects: impl Iterator<Item = &'a Rect<D>>,
) -> Vec<Rect<D>> {
    let linear = Linear::of(bounds);
    let mut words = vec![0u64; bounds.volume().div_ceil(64) as usize];
    for row in rects.flat_map(|rect| Rows::new(std::slice::from_ref(rect))) {
        set_range(&mut words, linear.rank(row.lo), linear.rank(row.hi));
    }
    let mut rows = Vec::new();
    let mut joiner = RunJoiner::default();
    for (word, &bits) in (0u64..).zip(&words) {
        joiner.push(word, bits, |first, last| append_rows(bounds, first, last, &mut rows));
    }
    joiner.finish(|first, last| append_rows(bounds, first, last, &mut rows));
    rows
}
