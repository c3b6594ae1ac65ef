//! Coordinates, split into ranges.

use std::ops::Range;

/// For each level, the ranges that its coordinates are split into; some may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    /// For each level where its ranges begin, and where the last one ends.
    bounds: Vec<Vec<u64>>,
}

/// Ranges that do not follow each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("level {level} is split at {points:?}: give numbers that do not descend, from {} to {}", .range.start, .range.end)]
pub struct SplitError {
    /// The level.
    pub level: usize,
    /// The points.
    pub points: Vec<u64>,
    /// The coordinates of the level.
    pub range: Range<u64>,
}

impl Splits {
    /// One range for each level.
    #[must_use]
    pub fn none(ranges: &[Range<u64>]) -> Self {
        Self { bounds: ranges.iter().map(|range| vec![range.start, range.end.max(range.start)]).collect() }
    }

    /// Splits a level into equal ranges: they begin at `extent * r / count`, rounded down, for each range `r`.
    ///
    /// # Panics
    /// If there is no such level.
    #[must_use]
    pub fn into_equal(mut self, level: usize, count: u64) -> Self {
        let (start, end) = self.ends(level);
        let bound =
            |range: u64| start + (u128::from(end - start) * u128::from(range) / u128::from(count.max(1))) as u64;
        self.bounds[level] = (0..=count.max(1)).map(bound).collect();
        self
    }

    /// Splits a level at points: each begins a range, and the first range begins before all of them.
    ///
    /// # Errors
    /// [`SplitError`] if points descend or are outside of the coordinates of the level.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn at(mut self, level: usize, points: &[u64]) -> Result<Self, SplitError> {
        let (start, end) = self.ends(level);
        let bounds: Vec<u64> = [start].into_iter().chain(points.iter().copied()).chain([end]).collect();
        match bounds.is_sorted() {
            true => self.bounds[level] = bounds,
            false => return Err(SplitError { level, points: points.to_vec(), range: start..end }),
        }
        Ok(self)
    }

    fn ends(&self, level: usize) -> (u64, u64) {
        let bounds = &self.bounds[level];
        (bounds.first().copied().unwrap_or(0), bounds.last().copied().unwrap_or(0))
    }

    /// How many ranges a level has.
    ///
    /// # Panics
    /// If there is no such level.
    #[must_use]
    pub fn count(&self, level: usize) -> u64 {
        self.bounds[level].len() as u64 - 1
    }

    /// A range of a level.
    ///
    /// # Panics
    /// If there is no such level or range.
    #[must_use]
    pub fn range(&self, level: usize, range: u64) -> Range<u64> {
        self.bounds[level][range as usize]..self.bounds[level][range as usize + 1]
    }

    /// How many levels are split.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.bounds.len()
    }

    /// The range that has a coordinate, at `from` or after it; the last one for coordinates beyond all.
    pub(super) fn advance(&self, level: usize, from: u64, coordinate: u64) -> u64 {
        let later = &self.bounds[level][from as usize + 1..];
        from + later.iter().take_while(|end| **end <= coordinate).count().min(later.len() - 1) as u64
    }

    /// The range of each coordinate.
    ///
    /// # Panics
    /// If there is not a coordinate for each level.
    #[must_use]
    pub fn of(&self, at: &[u64]) -> Vec<u64> {
        let range =
            |(bounds, at): (&Vec<u64>, &u64)| bounds[1..bounds.len() - 1].partition_point(|start| start <= at) as u64;
        self.bounds.iter().zip(at).map(range).collect()
    }

    /// All blocks, as the numbers of their ranges, the last level fastest.
    pub fn blocks(&self) -> impl Iterator<Item = Vec<u64>> {
        let total = (0..self.levels()).fold(1_u64, |total, level| total.saturating_mul(self.count(level)));
        (0..total).map(|mut number| {
            let mut block = vec![0; self.levels()];
            for level in (0..self.levels()).rev() {
                block[level] = number % self.count(level);
                number /= self.count(level);
            }
            block
        })
    }
}
