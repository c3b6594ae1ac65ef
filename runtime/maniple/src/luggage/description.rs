//! What another node is told of a task besides its values. All nodes run the same program: they agree on what the path means.

use maniple_space::{AnyPoint, AnyRect, AnySpace};
use serde::{Deserialize, Serialize};

/// A leaf task.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// Its path.
    pub(super) path: String,
    /// Which implementation.
    pub(super) variant: usize,
    pub(super) point: Vec<i64>,
    pub(super) domain: Points,
    pub(super) is_index_launch: bool,
    pub(super) priority: i32,
    pub(super) arguments: Vec<u8>,
    /// The points of each requirement.
    pub(super) regions: Vec<Points>,
}

/// A set of points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Points {
    dim: usize,
    /// The lowest and the highest point of each rectangle, coordinate by coordinate.
    corners: Vec<i64>,
}

impl Points {
    pub(super) fn of(space: &AnySpace) -> Self {
        Self::of_rects(space.dim(), space.rects())
    }

    pub(crate) fn of_rect(rect: AnyRect) -> Self {
        Self::of_rects(rect.dim(), std::iter::once(rect))
    }

    fn of_rects(dim: usize, rects: impl Iterator<Item = AnyRect>) -> Self {
        let coordinates = |rect: AnyRect| [rect.lo(), rect.hi()].into_iter().flat_map(|p| p.coords().to_vec());
        Self { dim, corners: rects.flat_map(coordinates).collect() }
    }

    /// The rectangles. None if that makes no sense.
    fn rects(&self) -> Option<Vec<AnyRect>> {
        let rect = |corners: &[i64]| {
            let (lo, hi) = corners.split_at(self.dim);
            AnyRect::new(AnyPoint::new(lo).ok()?, AnyPoint::new(hi).ok()?).ok()
        };
        let is_whole = self.dim > 0 && self.corners.len().is_multiple_of(2 * self.dim);
        is_whole.then(|| self.corners.chunks(2 * self.dim).map(rect).collect())?
    }

    pub(super) fn space(&self) -> Option<AnySpace> {
        let rects: Vec<AnySpace> = self.rects()?.into_iter().map(AnySpace::from).collect();
        AnySpace::union_all(self.dim, &rects).ok()
    }

    pub(crate) fn rect(&self) -> Option<AnyRect> {
        match self.rects()?[..] {
            [rect] => Some(rect),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use maniple_space::{IndexSpace, Rect};

    use super::*;

    #[test]
    fn points_arrive_as_they_left() {
        let some = IndexSpace::<2>::from_rects([Rect::new([0, 0], [3, 1]), Rect::new([2, -5], [9, 0])]);
        for space in [AnySpace::from(some), AnySpace::empty(3).unwrap(), AnySpace::from(Rect::<1>::from(3..5))] {
            assert_eq!(Points::of(&space).space(), Some(space));
        }
        let rect = AnyRect::from(Rect::<3>::new([1, 2, 3], [4, 5, 6]));
        assert_eq!(Points::of_rect(rect).rect(), Some(rect));
    }

    #[test]
    fn nonsense_is_no_set_of_points() {
        for (dim, corners) in [(0, vec![]), (1, vec![1]), (2, vec![1, 2, 3]), (9, vec![0; 18])] {
            assert_eq!(Points { dim, corners }.space(), None);
        }
    }
}
