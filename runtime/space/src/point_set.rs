//! Lists of points that are numbered.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::{AnyPoint, AnyRect, IndexSpace};

/// Any points of one number of dimensions, numbered in their row-major order. Cheap to clone; sets with the same points
/// are equal.
///
/// ```
/// use maniple_space::{AnyPoint, IndexSpace, Point, PointSet};
///
/// let corners = IndexSpace::from_points([Point([0, 0]), Point([7, 7]), Point([0, 7])]);
/// let set = PointSet::from(&corners);
/// assert_eq!(set.number_of(AnyPoint::from([7, 7])), Some(2));
/// assert_eq!(set.points()[1], AnyPoint::from([0, 7]));
/// ```
#[derive(Clone, Debug)]
pub struct PointSet(Arc<Numbered>);

#[derive(Debug, PartialEq)]
struct Numbered {
    /// In row-major order.
    points: Box<[AnyPoint]>,
    bounds: AnyRect,
}

impl PointSet {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.points.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.points.is_empty()
    }

    /// All of them, in row-major order.
    #[must_use]
    pub fn points(&self) -> &[AnyPoint] {
        &self.0.points
    }

    /// The smallest rectangle around them.
    #[must_use]
    pub fn bounds(&self) -> AnyRect {
        self.0.bounds
    }

    /// The number of a point, if it is one of these.
    #[must_use]
    pub fn number_of(&self, point: AnyPoint) -> Option<usize> {
        self.0.points.binary_search_by(|other| other.coords().cmp(point.coords())).ok()
    }
}

impl<const D: usize> From<&IndexSpace<D>> for PointSet {
    fn from(space: &IndexSpace<D>) -> Self {
        let mut points: Vec<AnyPoint> = space.points().map(AnyPoint::from).collect();
        points.sort_unstable_by(|one, other| one.coords().cmp(other.coords()));
        Self(Arc::new(Numbered { points: points.into(), bounds: space.bounds().into() }))
    }
}

impl<const D: usize> From<IndexSpace<D>> for PointSet {
    fn from(space: IndexSpace<D>) -> Self {
        Self::from(&space)
    }
}

impl From<&Self> for PointSet {
    fn from(set: &Self) -> Self {
        set.clone()
    }
}

impl PartialEq for PointSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for PointSet {}

impl Hash for PointSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Sets that are launched over in turn differ in these, mostly.
        (self.0.points.len(), self.0.bounds).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Point;

    proptest! {
        #[test]
        fn points_are_numbered_in_row_major_order(coordinates in prop::collection::vec((-5_i64..5, -5_i64..5), 0..40)) {
            let space = IndexSpace::<2>::from_points(coordinates.iter().map(|&(row, column)| Point([row, column])).collect::<Vec<_>>());
            let (set, again) = (PointSet::from(&space), PointSet::from(space.clone()));
            let mut expected: Vec<AnyPoint> = coordinates.iter().map(|&(row, column)| AnyPoint::from([row, column])).collect();
            expected.sort_unstable_by_key(|point| (point[0], point[1]));
            expected.dedup();
            prop_assert_eq!(set.points(), &expected[..]);
            prop_assert_eq!(set.len() as u64, space.volume());
            for (number, &point) in expected.iter().enumerate() {
                prop_assert_eq!(set.number_of(point), Some(number));
            }
            prop_assert_eq!(set.number_of(AnyPoint::from([9, 9])), None);
            prop_assert_eq!(set.number_of(AnyPoint::from(0)), None);
            prop_assert_eq!(&set, &again);
        }
    }
}
