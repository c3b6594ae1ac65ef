//! What nodes tell each other of slices. All run the same program: they agree on what the path means.

use maniple_space::AnyRect;
use serde::{Deserialize, Serialize};

use super::Arrived;
use crate::error::Error;
use crate::luggage::Points;

/// A slice.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    path: String,
    /// All points of the launch.
    domain: Points,
    /// Those of the slice.
    points: Points,
    pub(super) arguments: Vec<u8>,
    pub(super) tag: u64,
    recurse: bool,
    hops: u32,
}

/// What has come of a point: the bytes of its value.
pub(crate) type Outcome = Result<Vec<u8>, Error>;

impl Description {
    pub(super) fn new(
        path: &str,
        (domain, points): (AnyRect, AnyRect),
        (arguments, tag): (Vec<u8>, u64),
        Arrived { recurse, hops }: Arrived,
    ) -> Self {
        let (domain, points) = (Points::of_rect(domain), Points::of_rect(points));
        Self { path: path.to_owned(), domain, points, arguments, tag, recurse, hops }
    }

    /// The domain of the launch, and the points of it that are the slice. None if that makes no sense.
    pub(super) fn rects(&self) -> Option<(AnyRect, AnyRect)> {
        let (domain, points) = (self.domain.rect()?, self.points.rect()?);
        let is_within = !points.is_empty() && domain.contains_rect(&points).unwrap_or(false);
        is_within.then_some((domain, points))
    }

    /// The task's path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// What is said of the points if none is run, for this reason.
    pub(crate) fn refused(&self, error: &Error) -> Vec<Outcome> {
        let points = self.rects().map_or(1, |(_, points)| points.volume());
        (0..points).map(|_| Err(error.clone())).collect()
    }

    pub(super) fn arrived(&self) -> Arrived {
        Arrived { recurse: self.recurse, hops: self.hops }
    }
}

#[cfg(test)]
mod tests {
    use maniple_space::Rect;

    use super::*;

    #[test]
    fn a_slice_is_part_of_its_launch() {
        let rect = |from: i64, to: i64| AnyRect::from(Rect::<1>::from(from..to));
        let plane = AnyRect::from(Rect::<2>::new([0, 0], [3, 3]));
        let rects = |domain, points| {
            Description::new("task", (domain, points), (Vec::new(), 0), Arrived { recurse: true, hops: 1 }).rects()
        };
        assert_eq!(rects(rect(0, 9), rect(3, 5)), Some((rect(0, 9), rect(3, 5))));
        for (domain, points) in [(rect(0, 9), rect(3, 10)), (rect(0, 9), rect(3, 3)), (rect(0, 9), plane)] {
            assert_eq!(rects(domain, points), None);
        }
    }
}
