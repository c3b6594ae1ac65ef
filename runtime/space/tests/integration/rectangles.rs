//! The rules of points and rectangles.

use maniple_space::{IndexSpace, Point, Rect};
use proptest::prelude::*;

#[test]
fn all_empty_rectangles_are_equal() {
    let strange = Rect::new([5, 0], [4, 100]);
    assert_eq!(strange, Rect::EMPTY);
    assert_eq!(strange.volume(), 0);
    assert_eq!(strange.points().len(), 0);
    assert_eq!(Rect::<2>::from_shape([3, -7]), Rect::EMPTY);
    assert_eq!(Rect::from(4..4), Rect::EMPTY);
    assert_eq!(Rect::from(i64::MIN..i64::MIN), Rect::EMPTY);
    assert_eq!(strange.grow(Point::splat(100)), Rect::EMPTY);
    assert_ne!(Rect::from(0..1), Rect::EMPTY);
}

#[test]
fn an_empty_rectangle_is_in_every_other_and_overlaps_none() {
    let some = Rect::from_shape([2, 2]);
    assert!(some.contains_rect(&Rect::EMPTY));
    assert!(Rect::<2>::EMPTY.contains_rect(&Rect::EMPTY));
    assert!(!some.overlaps(&Rect::EMPTY));
    assert_eq!(some.hull(&Rect::EMPTY), some);
    assert_eq!(Rect::EMPTY.hull(&some), some);
}

#[test]
fn the_ends_of_the_coordinates_do_not_overflow() {
    let all = Rect::<1>::new(i64::MIN, i64::MAX);
    assert_eq!(all.volume(), u64::MAX);
    assert_eq!(all.grow(Point::splat(1)), all);
    assert_eq!(all.linear(Point([i64::MAX])), u64::MAX);
    assert_eq!(all.delinear(u64::MAX), Point([i64::MAX]));
    assert_eq!(all.delinear(0), Point([i64::MIN]));
    assert_eq!(all.translate(Point([1])), Rect::new(i64::MIN + 1, i64::MAX));
    assert_eq!(all.translate(Point([i64::MIN])), Rect::new(i64::MIN, -1));
    assert_eq!(all.split_at(0, i64::MIN), (Rect::EMPTY, all));
    let last = Rect::<1>::from_point(Point([i64::MAX]));
    assert_eq!(last.points().collect::<Vec<_>>(), [Point([i64::MAX])]);
    assert_eq!(last.translate(Point([1])), Rect::EMPTY);
    let all = Rect::<2>::new([i64::MIN; 2], [i64::MAX; 2]);
    assert_eq!(all.volume(), u64::MAX);
    assert_eq!(all.points().next(), Some(Point([i64::MIN; 2])));
}

#[test]
fn points_print_as_tuples() {
    assert_eq!(Point([1, 2]).to_string(), "(1, 2)");
    assert_eq!(format!("{:?}", Point([-1])), "(-1)");
    assert_eq!(Rect::new([0, 0], [1, 2]).to_string(), "(0, 0)..=(1, 2)");
    assert_eq!(Rect::<3>::EMPTY.to_string(), "empty");
}

#[test]
fn points_and_rectangles_are_plain_bytes() {
    let rect = Rect::new([1, 2], [3, 4]);
    let words: &[i64] = bytemuck::cast_slice(std::slice::from_ref(&rect));
    assert_eq!(words, [1, 2, 3, 4]);
}

fn rect() -> impl Strategy<Value = Rect<3>> {
    (prop::array::uniform3(-3i64..4), prop::array::uniform3(0i64..4))
        .prop_map(|(lo, extent)| Rect::new(lo, Point(lo) + Point(extent) - Point::splat(1)))
}

proptest! {
    #[test]
    fn linear_numbers_the_points_in_order(rect in rect()) {
        prop_assert_eq!(rect.points().len() as u64, rect.volume());
        for (rank, point) in rect.points().enumerate() {
            prop_assert_eq!(rect.linear(point), rank as u64);
            prop_assert_eq!(rect.delinear(rank as u64), point);
        }
        prop_assert!(rect.points().is_sorted());
    }

    #[test]
    fn rectangle_operations_are_those_on_points(a in rect(), b in rect()) {
        for point in a.hull(&b).grow(Point::splat(1)).points() {
            let (in_a, in_b) = (a.contains(point), b.contains(point));
            prop_assert_eq!(a.intersection(&b).contains(point), in_a && in_b);
            prop_assert!(a.hull(&b).contains(point) || !(in_a || in_b));
        }
        prop_assert_eq!(a.overlaps(&b), a.points().any(|point| b.contains(point)));
        prop_assert_eq!(a.contains_rect(&b), b.points().all(|point| a.contains(point)));
    }

    #[test]
    fn a_split_gives_the_points_below_and_the_rest(rect in rect(), d in 0usize..3, at in -5i64..6) {
        let (below, above) = rect.split_at(d, at);
        for point in rect.points() {
            prop_assert_eq!(below.contains(point), point[d] < at);
            prop_assert_eq!(above.contains(point), point[d] >= at);
        }
        prop_assert_eq!(below.volume() + above.volume(), rect.volume());
    }
}

#[test]
fn a_volume_beyond_64_bits_is_said_to_be_so() {
    let line = Rect::new([i64::MIN], [i64::MAX]);
    assert_eq!((line.volume(), line.checked_volume()), (u64::MAX, None));
    assert_eq!(line.points().size_hint(), (usize::MAX, None));
    let short = Rect::new([i64::MIN], [i64::MAX - 1]);
    assert_eq!((short.volume(), short.checked_volume()), (u64::MAX, Some(u64::MAX)));
    assert_eq!(short.points().len(), usize::MAX);
    // A dimension without points makes up for all others.
    assert_eq!(Rect::new([i64::MIN, i64::MIN, 1], [i64::MAX, i64::MAX, 0]).checked_volume(), Some(0));
    assert_eq!(Rect::from_shape([1 << 40, 1 << 40]).checked_volume(), None);
    let two = IndexSpace::from_rects([short, Rect::new([i64::MAX], [i64::MAX])]);
    assert_eq!((two.volume(), two.checked_volume()), (u64::MAX, None));
    let apart = IndexSpace::from_rects([Rect::new([i64::MIN], [-1]), Rect::new([1], [i64::MAX])]);
    assert_eq!((apart.volume(), apart.checked_volume()), (u64::MAX, Some(u64::MAX)));
    let sparse = IndexSpace::from_rects([Rect::new([i64::MIN, 0], [-1, 1]), Rect::new([1, 0], [i64::MAX, 0])]);
    assert_eq!((sparse.volume(), sparse.checked_volume()), (u64::MAX, None));
    assert_eq!(maniple_space::AnySpace::from(sparse).checked_volume(), None);
    assert_eq!(maniple_space::AnyRect::from(line).checked_volume(), None);
}
