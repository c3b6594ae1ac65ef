//! The part of a tensor that a processor holds.

use super::Cut;
use crate::rectangle::Rectangle;

/// A part of a tensor: the points whose index in each dimension is in one of some intervals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// For each dimension, intervals in ascending order, neither empty nor touching: lowest index, and the one after
    /// the highest.
    dimensions: Vec<Vec<(i64, i64)>>,
    /// Whether there is nothing at all: needed for tensors without dimensions.
    nothing: bool,
}

impl Piece {
    /// All points of `domain`.
    pub(super) fn whole(domain: &Rectangle) -> Self {
        let interval = |(low, high)| if low < high { vec![(low, high)] } else { Vec::new() };
        Self { dimensions: domain.bounds().map(interval).collect(), nothing: false }
    }

    /// No point of a tensor of `rank` dimensions.
    pub(super) fn nothing(rank: usize) -> Self {
        Self { dimensions: vec![Vec::new(); rank], nothing: true }
    }

    /// Whether it has no points.
    pub fn is_empty(&self) -> bool {
        self.nothing || self.dimensions.iter().any(Vec::is_empty)
    }

    /// How many points it has.
    pub fn volume(&self) -> u128 {
        if self.is_empty() {
            return 0;
        }
        self.dimensions.iter().map(|intervals| count(intervals)).fold(1, u128::saturating_mul)
    }

    /// The intervals of each dimension.
    pub fn dimensions(&self) -> &[Vec<(i64, i64)>] {
        &self.dimensions
    }

    /// Whether `point` is in it.
    pub fn contains(&self, point: &[i64]) -> bool {
        !self.is_empty()
            && point.len() == self.dimensions.len()
            && point
                .iter()
                .zip(&self.dimensions)
                .all(|(index, intervals)| intervals.iter().any(|(low, high)| (low..high).contains(&index)))
    }

    /// The rectangles that it consists of, the last dimension running fastest. A piece of a tensor without dimensions
    /// is one without dimensions, or none.
    pub fn rectangles(&self) -> impl Iterator<Item = Rectangle> + '_ {
        let count = if self.is_empty() { 0 } else { self.dimensions.iter().map(Vec::len).product() };
        (0..count).map(|mut number: usize| {
            let mut rectangle = vec![(0, 0); self.dimensions.len()];
            for (bounds, intervals) in rectangle.iter_mut().zip(&self.dimensions).rev() {
                *bounds = intervals[number % intervals.len()];
                number /= intervals.len();
            }
            Rectangle::new(rectangle)
        })
    }

    /// The points of it that are in `rectangle`.
    pub fn within(&self, rectangle: &Rectangle) -> Self {
        let clip = |(intervals, (low, high)): (&Vec<(i64, i64)>, (i64, i64))| {
            let clipped = intervals.iter().map(|&(from, to)| (from.max(low), to.min(high)));
            clipped.filter(|(from, to)| from < to).collect()
        };
        Self { dimensions: self.dimensions.iter().zip(rectangle.bounds()).map(clip).collect(), nothing: self.nothing }
    }

    /// Keeps in `dimension` what processor `index` of `extent` gets.
    pub(super) fn cut(&mut self, dimension: usize, cut: Cut, index: usize, extent: usize) {
        let intervals = &self.dimensions[dimension];
        let count = count(intervals);
        let (index, extent) = (index as u128, extent as u128);
        // Positions among the indices that are there: so a piece of a piece needs no rule of its own.
        self.dimensions[dimension] = match cut {
            Cut::Blocked | Cut::Positions => {
                let block = count.div_ceil(extent);
                positions(intervals, index.saturating_mul(block), (index + 1).saturating_mul(block))
            }
            Cut::Cyclic(block) => {
                let block = block as u128;
                let mut kept: Vec<(i64, i64)> = Vec::new();
                let mut from = index.saturating_mul(block);
                while from < count {
                    for (low, high) in positions(intervals, from, from + block) {
                        match kept.last_mut() {
                            Some(last) if last.1 == low => last.1 = high,
                            _ => kept.push((low, high)),
                        }
                    }
                    from = from.saturating_add(block.saturating_mul(extent));
                }
                kept
            }
        };
    }

    pub(super) fn keep_nothing(&mut self) {
        *self = Self::nothing(self.dimensions.len());
    }
}

fn count(intervals: &[(i64, i64)]) -> u128 {
    intervals.iter().map(|(low, high)| high.abs_diff(*low) as u128).sum()
}

/// The indices at the positions from `from` to `to` (excluded) of all that are in `intervals`.
fn positions(intervals: &[(i64, i64)], from: u128, to: u128) -> Vec<(i64, i64)> {
    let mut kept = Vec::new();
    let mut before = 0_u128;
    for &(low, high) in intervals {
        let length = high.abs_diff(low) as u128;
        let (start, end) = (from.saturating_sub(before).min(length), to.saturating_sub(before).min(length));
        if start < end {
            // Both are at most `length`, so they stay within the interval.
            kept.push((low.wrapping_add(start as i64), low.wrapping_add(end as i64)));
        }
        before += length;
    }
    kept
}
