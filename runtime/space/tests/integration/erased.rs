//! Dimension-erased forms mean what their typed forms mean.

use crate::model;
use std::collections::HashSet;

use maniple_space::{AnyPoint, AnyRect, AnySpace, DimensionMismatch, IndexSpace, Point, Rect};
use model::{anchor, rects, space};
use proptest::prelude::*;

in_each_dimension! {
    fn a_space_survives_erasure<const D: usize>(a in space::<D>(), b in space::<D>()) {
        let (x, y) = (AnySpace::from(a.clone()), AnySpace::from(b.clone()));
        prop_assert_eq!(x.dim(), D);
        prop_assert_eq!(x.typed::<D>(), Ok(&a));
        prop_assert_eq!(IndexSpace::try_from(x.clone()), Ok(a.clone()));
        prop_assert_eq!(x.union(&y), Ok(a.union(&b).into()));
        prop_assert_eq!(x.intersection(&y), Ok(a.intersection(&b).into()));
        prop_assert_eq!(x.difference(&y), Ok(a.difference(&b).into()));
        prop_assert_eq!(x.overlaps(&y), Ok(a.overlaps(&b)));
        prop_assert_eq!(x.is_subset_of(&y), Ok(a.is_subset_of(&b)));
        prop_assert_eq!(x == y, a == b);
        prop_assert_eq!(x.volume(), a.volume());
        prop_assert_eq!(x.is_empty(), a.is_empty());
        prop_assert_eq!(x.is_dense(), a.is_dense());
        prop_assert_eq!(x.rect_count(), a.rects().len());
        prop_assert_eq!(x.bounds(), AnyRect::from(a.bounds()));
        prop_assert!(x.rects().eq(a.rects().iter().map(|&rect| AnyRect::from(rect))));
        prop_assert!(x.points().eq(a.points().map(AnyPoint::from)));
        prop_assert!(b.points().all(|at| x.contains(at.into()) == a.contains(at)));
        prop_assert_eq!(x.to_string(), a.to_string());
    }

    fn a_rectangle_survives_erasure<const D: usize>(
        list in anchor::<D>().prop_flat_map(rects),
    ) {
        for (a, b) in list.iter().zip(list.iter().rev()) {
            let (x, y) = (AnyRect::from(*a), AnyRect::from(*b));
            prop_assert_eq!(Rect::try_from(x), Ok(*a));
            prop_assert_eq!(AnyRect::new(a.lo.into(), a.hi.into()), Ok(x));
            prop_assert_eq!(x.volume(), a.volume());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.overlaps(&y), a.overlaps(b));
            prop_assert_eq!(x.contains_rect(&y), Ok(a.contains_rect(b)));
            prop_assert_eq!(x.intersection(&y), Ok(a.intersection(b).into()));
            prop_assert_eq!(x.hull(&y), Ok(a.hull(b).into()));
            prop_assert!(x.points().eq(a.points().map(AnyPoint::from)));
            for point in b.points() {
                prop_assert_eq!(x.contains(point.into()), a.contains(point));
                prop_assert_eq!(y.linear(point.into()), b.linear(point));
            }
            prop_assert_eq!(x.to_string(), a.to_string());
        }
    }
}

#[test]
fn dimensions_that_differ_are_an_error() {
    let line = AnySpace::from(Rect::from(0..3));
    let plane = AnySpace::from(Rect::from_shape([3, 3]));
    let error = DimensionMismatch { expected: 1, found: 2 };
    assert_eq!(line.union(&plane), Err(error));
    assert_eq!(line.overlaps(&plane), Err(error));
    assert_eq!(plane.typed::<1>(), Err(error));
    assert_eq!(Point::<1>::try_from(AnyPoint::from([1, 2])), Err(error));
    assert_eq!(AnyRect::new(1.into(), [1, 2].into()), Err(error));
    assert!(!line.contains([1, 1].into()));
    assert_eq!(
        error.to_string(),
        "expected 1 dimension(s), found 2; give both sides the same number of dimensions (1 to 4)"
    );
}

#[test]
fn no_dimension_and_a_fifth_are_an_error() {
    assert!(AnyPoint::new(&[]).is_err() && AnyPoint::new(&[0; 5]).is_err());
    assert!(AnySpace::empty(0).is_err() && AnySpace::empty(5).is_err());
    assert_eq!(AnySpace::empty(3), Ok(IndexSpace::<3>::empty().into()));
}

#[test]
fn erased_points_are_ordered_like_typed_ones_and_hashed() {
    let points: Vec<AnyPoint> = Rect::from_shape([2, 3]).points().map(AnyPoint::from).collect();
    assert!(points.is_sorted());
    let distinct: HashSet<AnyPoint> = points.iter().chain(&points).copied().collect();
    assert_eq!(distinct.len(), 6);
    assert_ne!(AnyPoint::from(1), AnyPoint::from([1, 0]));
    assert_eq!(AnyPoint::from([4, 5]).coords(), [4, 5]);
    assert_eq!(AnyPoint::from([4, 5])[1], 5);
}

#[test]
#[should_panic(expected = "index out of bounds: the len is 2 but the index is 2")]
fn an_erased_point_has_no_more_coordinates_than_dimensions() {
    let _ = AnyPoint::from([4, 5])[2];
}
