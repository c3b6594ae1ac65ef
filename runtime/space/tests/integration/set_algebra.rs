//! The algebra of index spaces agrees with that of sets of points.

use crate::model;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use maniple_space::{IndexSpace, Point, Rect};
use model::{anchor, canonical, points_of, points_of_rects, rects, some_rects, window};
use proptest::collection::vec;
use proptest::prelude::*;

in_each_dimension! {
    fn a_space_has_the_points_of_its_rectangles<const D: usize>(list in some_rects::<D>()) {
        let model = points_of_rects(&list);
        let space = IndexSpace::from_rects(list);
        prop_assert_eq!(points_of(&space), model.clone());
        prop_assert_eq!(space.volume(), model.len() as u64);
        prop_assert_eq!(space.is_empty(), model.is_empty());
        let hull = model.iter().fold(Rect::EMPTY, |hull, &point| hull.hull(&Rect::from_point(point)));
        prop_assert_eq!(space.bounds(), hull);
        prop_assert_eq!(space.is_dense(), hull.volume() == model.len() as u64);
    }

    fn equal_sets_have_the_same_canonical_rectangles<const D: usize>(list in some_rects::<D>()) {
        let model = points_of_rects(&list);
        let by_rects = IndexSpace::from_rects(list.iter().copied());
        let by_points = IndexSpace::from_points(model.iter().rev().copied());
        let one_by_one = list.iter().fold(IndexSpace::empty(), |sum, &rect| sum.union(&rect.into()));
        let expected = canonical(&model, 0);
        for space in [&by_rects, &by_points, &one_by_one] {
            prop_assert_eq!(space.rects(), &expected[..]);
        }
        let state = RandomState::new();
        prop_assert_eq!(&by_rects, &by_points);
        prop_assert_eq!(state.hash_one(&by_rects), state.hash_one(&by_points));
    }

    fn operations_are_those_on_sets<const D: usize>(
        (a, b) in anchor::<D>().prop_flat_map(|at| (rects(at), rects(at))),
    ) {
        let (x, y) = (points_of_rects(&a), points_of_rects(&b));
        let (a, b) = (IndexSpace::from_rects(a), IndexSpace::from_rects(b));
        for (result, expected) in [
            (a.union(&b), &x | &y),
            (a.intersection(&b), &x & &y),
            (a.difference(&b), &x - &y),
        ] {
            prop_assert_eq!(points_of(&result), expected.clone());
            prop_assert_eq!(result.rects(), canonical(&expected, 0));
        }
        prop_assert_eq!(a.overlaps(&b), !x.is_disjoint(&y));
        prop_assert_eq!(a.is_subset_of(&b), x.is_subset(&y));
        prop_assert!(a.intersection(&b).is_subset_of(&b));
        prop_assert!(b.is_subset_of(&a.union(&b)));
        prop_assert_eq!(a == b, x == y);
    }

    fn the_rectangles_that_touch_another_are_found_in_order<const D: usize>(
        (a, b) in anchor::<D>().prop_flat_map(|at| (rects(at), rects(at))),
    ) {
        let space = IndexSpace::from_rects(a);
        for rect in b {
            let mut found = Vec::new();
            space.for_each_touching(&rect, |number| found.push(number));
            let touches = |number: &usize| space.rects()[*number].overlaps(&rect);
            prop_assert_eq!(found, (0..space.rects().len()).filter(touches).collect::<Vec<_>>());
            for point in rect.points() {
                prop_assert_eq!(space.locate(point), space.rects().iter().position(|rect| rect.contains(point)));
            }
        }
    }

    fn a_union_of_many_is_the_union_of_all<const D: usize>(spaces in model::spaces::<D>()) {
        let expected: model::Points<D> = spaces.iter().flat_map(points_of).collect();
        let union = IndexSpace::union_all(&spaces);
        prop_assert_eq!(union.rects(), canonical(&expected, 0));
    }

    fn points_and_rows_come_in_row_major_order<const D: usize>(list in some_rects::<D>()) {
        let model: Vec<Point<D>> = points_of_rects(&list).into_iter().collect();
        let space = IndexSpace::from_rects(list);
        prop_assert_eq!(space.points().collect::<Vec<_>>(), model.clone());
        let rows: Vec<Rect<D>> = space.rows().collect();
        prop_assert_eq!(rows.iter().flat_map(Rect::points).collect::<Vec<_>>(), model);
        prop_assert!(rows.iter().all(|row| (0..D - 1).all(|d| row.extent(d) == 1)));
        prop_assert!(rows.is_sorted_by(|a, b| a.hi < b.lo));
    }

    fn membership_knows_every_point_and_its_neighbours<const D: usize>(
        (at, list) in anchor::<D>().prop_flat_map(|at| (Just(at), rects(at))),
    ) {
        let model = points_of_rects(&list);
        let space = IndexSpace::from_rects(list);
        let around = Rect { lo: at, hi: at }.grow(Point::splat(window(D)));
        let membership = space.membership();
        prop_assert_eq!(membership.is_dense(), space.is_dense());
        for point in around.points().step_by(if D > 2 { 7 } else { 1 }).chain(model.iter().copied()) {
            prop_assert_eq!(space.contains(point), model.contains(&point));
            prop_assert_eq!(membership.contains(point), model.contains(&point));
        }
    }

    fn membership_knows_points_that_are_far_apart<const D: usize>(
        list in vec((0..D, 0..20i64, 0..3i64), 1..40), far in prop::sample::select(vec![1i64 << 20, 1 << 39, 1 << 57])
    ) {
        let lo = |&(dim, times, length): &(usize, i64, i64)| {
            let mut lo = [length; D];
            lo[dim] = times * far;
            (lo, length)
        };
        let rects = list.iter().map(lo).map(|(lo, length)| Rect::new(lo, lo.map(|at| at + length)));
        let space = IndexSpace::from_rects(rects);
        let membership = space.membership();
        for rect in space.rects() {
            for point in rect.grow(Point::splat(1)).points() {
                prop_assert_eq!(membership.contains(point), space.contains(point));
                prop_assert_eq!(space.locate(point), space.rects().iter().position(|rect| rect.contains(point)));
            }
        }
    }

    fn a_rectangle_is_contained_if_all_its_points_are<const D: usize>(
        (list, probes) in anchor::<D>().prop_flat_map(|at| (rects(at), rects(at))),
    ) {
        let model = points_of_rects(&list);
        let space = IndexSpace::from_rects(list);
        for rect in probes.iter().chain(space.rects()) {
            let expected = rect.points().all(|point| model.contains(&point));
            prop_assert_eq!(space.contains_rect(rect), expected);
        }
    }

    fn a_covering_is_disjoint_and_covers<const D: usize>(
        list in some_rects::<D>(), max_rects in 0usize..6,
    ) {
        let space = IndexSpace::from_rects(list);
        let covering = space.covering(max_rects);
        prop_assert!(covering.len() <= max_rects.max(1));
        let volume: u64 = covering.iter().map(Rect::volume).sum();
        let covered = IndexSpace::from_rects(covering);
        prop_assert_eq!(covered.volume(), volume);
        prop_assert!(space.is_subset_of(&covered));
        prop_assert!(covered.is_subset_of(&space.bounds().into()));
        if space.rects().len() <= max_rects {
            prop_assert_eq!(covered, space);
        }
    }

    fn a_translation_moves_every_point_or_drops_it<const D: usize>(
        list in some_rects::<D>(),
        offset in proptest::array::uniform::<_, D>(prop_oneof![
            -3i64..4, Just(i64::MAX), Just(i64::MIN), Just(-i64::MAX)
        ]),
    ) {
        let space = IndexSpace::from_rects(list);
        let moved = points_of(&space).into_iter().filter_map(|point| {
            let mut moved = point;
            for d in 0..D {
                moved[d] = point[d].checked_add(offset[d])?;
            }
            Some(moved)
        });
        let expected: model::Points<D> = moved.collect();
        let moved = space.translate(Point(offset));
        prop_assert_eq!(moved.rects(), canonical(&expected, 0));
    }
}

#[test]
fn the_covering_of_intervals_keeps_the_widest_gaps() {
    let space = IndexSpace::from_rects([0..1, 3..4, 10..11, 12..13, 30..31].map(Rect::from));
    let expected = [Rect::new(0, 3), Rect::new(10, 12), Rect::new(30, 30)];
    assert_eq!(space.covering(3), expected);
}

#[test]
fn the_covering_of_two_clusters_is_their_two_bounding_boxes() {
    let cluster = |at: i64| [Rect::new([at, at], [at, at + 3]), Rect::new([at + 2, at], [at + 2, at])];
    let space = IndexSpace::from_rects([cluster(0), cluster(100)].concat());
    let expected = [Rect::new([0, 0], [2, 3]), Rect::new([100, 100], [102, 103])];
    assert_eq!(space.covering(2), expected);
}

#[test]
fn the_covering_cuts_where_the_two_bounding_boxes_are_smallest() {
    let block = Rect::new([0, 0], [9, 4]);
    let dashes = [Rect::new([10, 3], [10, 5]), Rect::new([10, 7], [10, 9])];
    let space = IndexSpace::from_rects([block, dashes[0], dashes[1]]);
    assert_eq!(space.covering(2), [block, Rect::new([10, 3], [10, 9])]);
}

#[test]
fn the_whole_grid_is_a_space() {
    let all = IndexSpace::from(Rect::<2>::new([i64::MIN; 2], [i64::MAX; 2]));
    assert_eq!(all.volume(), u64::MAX);
    let origin = IndexSpace::from(Rect::from_point(Point([0, 0])));
    let rest = all.difference(&origin);
    assert_eq!(rest.rects().len(), 4);
    assert!(!rest.contains(Point([0, 0])) && rest.contains(Point([0, i64::MAX])));
    assert!(!rest.membership().contains(Point([0, 0])));
    assert_eq!(rest.union(&origin), all);
}

#[test]
fn clones_share_one_membership_test() {
    let space = IndexSpace::from_points([1, 5, 9].map(Point::from));
    let clone = space.clone();
    assert!(std::ptr::eq(space.membership(), clone.membership()));
}

#[test]
fn a_membership_test_knows_all_of_a_long_row() {
    let space = IndexSpace::from_rects([Rect::new([0, 5], [1, 700]), Rect::new([1, 900], [1, 1000])]);
    let membership = space.membership();
    for point in space.bounds().grow(Point([1, 1])).points() {
        assert_eq!(membership.contains(point), space.contains(point), "{point}");
    }
}

#[test]
fn a_large_sparse_membership_is_searched_instead_of_mapped() {
    let far = 1i64 << 40;
    let space = IndexSpace::from_points((0..50).map(|i| Point([i * far, -i])));
    let membership = space.membership();
    for i in 0..50 {
        assert!(membership.contains(Point([i * far, -i])));
        assert!(!membership.contains(Point([i * far + 1, -i])));
        assert!(!membership.contains(Point([i * far, -i - 1])));
    }
}

#[test]
#[allow(clippy::mutable_key_type, reason = "what a space caches is no part of its value")]
fn spaces_can_be_keys_of_maps() {
    let odd = || IndexSpace::from_points([1, 3, 5].map(Point::from));
    let keys: HashSet<IndexSpace<1>> = [odd(), odd(), IndexSpace::empty()].into();
    assert_eq!(keys.len(), 2);
}

#[test]
fn a_long_list_is_shown_by_its_beginning() {
    assert_eq!(IndexSpace::<1>::empty().to_string(), "{}");
    let evens = IndexSpace::from_points((0..20).map(|i| Point([2 * i])));
    assert!(evens.to_string().starts_with("{(0)..=(0), (2)..=(2), "));
    assert!(evens.to_string().ends_with(", and 12 more}"));
}
