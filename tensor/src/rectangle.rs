//! Boxes of coordinates.

use std::fmt;

/// All points from `low` to before `high`, dimension by dimension. Without dimensions it has one point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rectangle {
    /// The lowest coordinate in each dimension.
    pub low: Vec<i64>,
    /// The coordinate after the highest in each dimension.
    pub high: Vec<i64>,
}

impl Rectangle {
    /// The points whose coordinates are in `bounds`, from the first of each pair to before the second.
    pub fn new(bounds: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let (low, high) = bounds.into_iter().unzip();
        Self { low, high }
    }

    /// All points of a tensor with these extents.
    pub fn whole(extents: &[i64]) -> Self {
        Self { low: vec![0; extents.len()], high: extents.to_vec() }
    }

    /// No points, in a space of `order` dimensions. Without dimensions there is no such rectangle, and this one has a
    /// point.
    pub fn empty(order: usize) -> Self {
        Self { low: vec![0; order], high: vec![0; order] }
    }

    /// The number of dimensions.
    pub fn order(&self) -> usize {
        self.low.len()
    }

    /// The bounds of each dimension.
    pub fn bounds(&self) -> impl DoubleEndedIterator<Item = (i64, i64)> + '_ {
        self.low.iter().copied().zip(self.high.iter().copied())
    }

    /// The number of coordinates in each dimension.
    pub fn extents(&self) -> Vec<i64> {
        self.bounds().map(|(low, high)| (high - low).max(0)).collect()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.bounds().any(|(low, high)| high <= low)
    }

    /// The number of points.
    pub fn volume(&self) -> i64 {
        self.extents().into_iter().product()
    }

    /// Whether `point` is one of the points.
    pub fn contains(&self, point: &[i64]) -> bool {
        point.len() == self.order()
            && self.bounds().zip(point).all(|((low, high), &coordinate)| low <= coordinate && coordinate < high)
    }

    /// Whether all points of `other` are points of this one.
    pub fn covers(&self, other: &Self) -> bool {
        other.is_empty() || self.bounds().zip(other.bounds()).all(|((low, high), (from, to))| low <= from && to <= high)
    }

    /// Whether there are points in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.bounds().zip(other.bounds()).all(|((low, high), (from, to))| low.max(from) < high.min(to))
    }

    /// The points in both.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::new(self.bounds().zip(other.bounds()).map(|((low, high), (from, to))| (low.max(from), high.min(to))))
    }

    /// The points that are not in `other`, as disjoint rectangles.
    pub fn minus(&self, other: &Self) -> Vec<Self> {
        if self.is_empty() {
            return Vec::new();
        }
        if !self.overlaps(other) {
            return vec![self.clone()];
        }
        // What is cut off below and above, dimension by dimension.
        let (mut rest, mut parts) = (self.clone(), Vec::new());
        for dimension in 0..self.order() {
            let (low, high) = (other.low[dimension], other.high[dimension]);
            if rest.low[dimension] < low {
                let mut below = rest.clone();
                below.high[dimension] = low;
                rest.low[dimension] = low;
                parts.push(below);
            }
            if high < rest.high[dimension] {
                let mut above = rest.clone();
                above.low[dimension] = high;
                rest.high[dimension] = high;
                parts.push(above);
            }
        }
        parts
    }

    /// The smallest rectangle with all points of both.
    pub fn hull(&self, other: &Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            _ => Self::new(
                self.bounds().zip(other.bounds()).map(|((low, high), (from, to))| (low.min(from), high.max(to))),
            ),
        }
    }
}

/// Whether no two of these rectangles share a point.
pub(crate) fn are_disjoint<'a>(rectangles: impl Iterator<Item = &'a Rectangle>) -> bool {
    let mut all: Vec<&Rectangle> = rectangles.filter(|rectangle| !rectangle.is_empty()).collect();
    all.sort_unstable();
    // In the order of their first coordinates, those that begin after the end of one do not overlap with it.
    all.iter().enumerate().all(|(position, first)| {
        let mut near = all[position + 1..].iter().take_while(|next| next.order() == 0 || next.low[0] < first.high[0]);
        near.all(|next| !next.overlaps(first))
    })
}

impl fmt::Display for Rectangle {
    /// Writes the bounds of each dimension: `[0..3, 2..5]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (dimension, (low, high)) in self.bounds().enumerate() {
            write!(formatter, "{}{low}..{high}", if dimension > 0 { ", " } else { "" })?;
        }
        formatter.write_str("]")
    }
}
