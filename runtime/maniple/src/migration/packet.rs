//! Packets: tasks that migrate to another node, as they are sent. All nodes run the same program: they agree on what
//! the path means.

use bytes::Bytes;
use maniple_space::{AnyPoint, AnyRect, AnySpace};
use serde::{Deserialize, Serialize};

/// Tasks of one launch that migrate to another node together: points that are mapped there, or leaf tasks that were
/// mapped here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskPacket {
    /// The task's path.
    pub(crate) path: String,
    /// All points of the launch.
    pub(crate) domain: Points,
    /// The slice of it that the tasks belong to.
    pub(crate) points: Points,
    pub(crate) is_index_launch: bool,
    pub(crate) tag: u64,
    /// The number of the mapper that the launch is for.
    pub(crate) mapper: u16,
    pub(crate) arguments: Vec<u8>,
    pub(crate) reason: Reason,
    /// How often the tasks have been sent.
    pub(crate) hops: u32,
    /// Leaf tasks with their data, whose values come with the packet; if there are none, all `points` are to run, and
    /// have no regions.
    pub(crate) leaves: Vec<LeafPoint>,
}

/// Why tasks migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reason {
    /// The mapper has selected a node for a task.
    Selected,
    /// The mapper has sliced the launch; the receiver's mapper is to slice this slice again, or not.
    Sliced { recurse: bool },
    /// The other node has sent a steal request.
    Stolen,
}

/// A leaf task of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeafPoint {
    /// Which implementation.
    pub(crate) variant: usize,
    pub(crate) priority: i32,
    pub(crate) point: Vec<i64>,
    /// The points of each requirement.
    pub(crate) regions: Vec<Points>,
    /// The number of bytes of the packet's values that are the task's.
    pub(crate) bytes: usize,
}

impl TaskPacket {
    /// The number of tasks, which is that of the results: 0 if the packet makes no sense.
    pub(crate) fn tasks(&self) -> usize {
        match self.leaves.len() {
            0 => self.rects().map_or(0, |(_, points)| points.volume() as usize),
            leaves => leaves,
        }
    }

    /// The domain of the launch, and the slice of it. None if they make no sense.
    pub(crate) fn rects(&self) -> Option<(AnyRect, AnyRect)> {
        let (domain, points) = (self.domain.rect()?, self.points.rect()?);
        let is_within = !points.is_empty() && domain.contains_rect(&points).unwrap_or(false);
        is_within.then_some((domain, points))
    }

    /// Whether statistics count the packet as a slice of an index launch.
    pub(crate) fn is_slice(&self) -> bool {
        match self.reason {
            Reason::Selected => false,
            Reason::Sliced { .. } => true,
            Reason::Stolen => self.is_index_launch && self.leaves.len() != 1,
        }
    }

    /// Whether the receiver's mapper is to slice the packet again.
    pub(crate) fn is_sliced_again(&self) -> bool {
        self.reason == Reason::Sliced { recurse: true }
    }

    /// The leaf tasks, each with its values. None if there are not so many values.
    pub(crate) fn leaf_values(&self, mut values: Bytes) -> Option<Vec<(&LeafPoint, Bytes)>> {
        let one = |leaf: &'_ LeafPoint| (leaf.bytes <= values.len()).then(|| values.split_to(leaf.bytes));
        let values: Vec<Bytes> = self.leaves.iter().map(one).collect::<Option<_>>()?;
        Some(self.leaves.iter().zip(values).collect())
    }
}

/// A set of points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Points {
    dim: usize,
    /// The lowest and the highest point of each rectangle, coordinate by coordinate.
    corners: Vec<i64>,
}

impl Points {
    pub(crate) fn of(space: &AnySpace) -> Self {
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

    pub(crate) fn space(&self) -> Option<AnySpace> {
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
    fn points_arrive_as_they_were_sent() {
        let some = IndexSpace::<2>::from_rects([Rect::new([0, 0], [3, 1]), Rect::new([2, -5], [9, 0])]);
        for space in [AnySpace::from(some), AnySpace::empty(3).unwrap(), AnySpace::from(Rect::<1>::from(3..5))] {
            assert_eq!(Points::of(&space).space(), Some(space));
        }
        let rect = AnyRect::from(Rect::<3>::new([1, 2, 3], [4, 5, 6]));
        assert_eq!(Points::of_rect(rect).rect(), Some(rect));
    }

    #[test]
    fn a_slice_is_part_of_its_launch() {
        let rect = |from: i64, to: i64| AnyRect::from(Rect::<1>::from(from..to));
        let plane = AnyRect::from(Rect::<2>::new([0, 0], [3, 3]));
        let packet = |domain, points| TaskPacket {
            path: "task".to_owned(),
            domain: Points::of_rect(domain),
            points: Points::of_rect(points),
            is_index_launch: true,
            tag: 0,
            mapper: 0,
            arguments: Vec::new(),
            reason: Reason::Stolen,
            hops: 1,
            leaves: Vec::new(),
        };
        let good = packet(rect(0, 9), rect(3, 5));
        assert_eq!((good.rects(), good.tasks()), (Some((rect(0, 9), rect(3, 5))), 2));
        for (domain, points) in [(rect(0, 9), rect(3, 10)), (rect(0, 9), rect(3, 3)), (rect(0, 9), plane)] {
            assert_eq!(packet(domain, points).tasks(), 0);
        }
    }

    #[test]
    fn nonsense_is_no_set_of_points() {
        for (dim, corners) in [(0, vec![]), (1, vec![1]), (2, vec![1, 2, 3]), (9, vec![0; 18])] {
            assert_eq!(Points { dim, corners }.space(), None);
        }
    }
}
