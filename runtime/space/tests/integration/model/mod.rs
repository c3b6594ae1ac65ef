//! The model that index spaces are checked against: a set of points, one by one.

use std::collections::BTreeSet;

use maniple_space::{IndexSpace, Point, Rect};
use proptest::collection::vec;
use proptest::prelude::*;

pub type Points<const D: usize> = BTreeSet<Point<D>>;

/// The width of the window in which points lie, such that models stay small in any dimension.
pub const fn window(dimensions: usize) -> i64 {
    [24, 9, 5, 4][dimensions - 1]
}

/// The first point of the window, which lies around the origin, or at either end of the coordinates in some dimensions.
pub fn anchor<const D: usize>() -> impl Strategy<Value = Point<D>> {
    let end = window(D) - 1;
    let usual = Just([-end / 2; D]);
    let extreme = vec(prop_oneof![Just(i64::MIN), Just(i64::MAX - end), Just(-end / 2)], D)
        .prop_map(|at| std::array::from_fn(|d| at[d]));
    prop_oneof![3 => usual, 1 => extreme].prop_map(Point)
}

/// Rectangles within the window from `anchor`: some empty, many that touch, nest or overlap.
pub fn rects<const D: usize>(anchor: Point<D>) -> impl Strategy<Value = Vec<Rect<D>>> {
    let interval = (0..window(D), -1..window(D) / 2);
    let rect = vec(interval, D).prop_map(move |intervals| {
        let mut rect = Rect::from_point(anchor);
        for (d, &(first, length)) in intervals.iter().enumerate() {
            let last = (first + length).min(window(D) - 1);
            // Saturates for an empty interval at the lower end of the coordinates, which becomes
            // one of a single point.
            rect = rect.with_interval(d, anchor[d] + first, anchor[d].saturating_add(last));
        }
        rect
    });
    vec(rect, 0..7)
}

/// Rectangles in a window anywhere.
pub fn some_rects<const D: usize>() -> impl Strategy<Value = Vec<Rect<D>>> {
    anchor().prop_flat_map(rects)
}

/// A space near the origin.
pub fn space<const D: usize>() -> impl Strategy<Value = IndexSpace<D>> {
    rects(Point::ZERO).prop_map(IndexSpace::from_rects)
}

/// Several spaces near the origin.
pub fn spaces<const D: usize>() -> impl Strategy<Value = Vec<IndexSpace<D>>> {
    vec(space(), 0..6)
}

pub fn points_of_rects<const D: usize>(rects: &[Rect<D>]) -> Points<D> {
    rects.iter().flat_map(Rect::points).collect()
}

/// The points of a space, after checking that its rectangles are disjoint.
pub fn points_of<const D: usize>(space: &IndexSpace<D>) -> Points<D> {
    let points = points_of_rects(space.rects());
    let total: u64 = space.rects().iter().map(Rect::volume).sum();
    assert_eq!(total, points.len() as u64, "the rectangles of {space} are disjoint");
    points
}

/// The canonical form, by its definition: for each coordinate of dimension `dim` the
/// cross-section, then neighbours with equal cross-sections joined.
pub fn canonical<const D: usize>(points: &Points<D>, dim: usize) -> Vec<Rect<D>> {
    let coordinates: BTreeSet<i64> = points.iter().map(|point| point[dim]).collect();
    let mut bands: Vec<(i64, i64, Vec<Rect<D>>)> = Vec::new();
    for at in coordinates {
        let section: Points<D> = points
            .iter()
            .filter(|point| point[dim] == at)
            .map(|point| {
                let mut flat = *point;
                flat[dim] = 0;
                flat
            })
            .collect();
        let rects = if dim + 1 == D { vec![Rect::from_point(Point::ZERO)] } else { canonical(&section, dim + 1) };
        match bands.last_mut() {
            Some((_, hi, before)) if *hi + 1 == at && *before == rects => *hi = at,
            _ => bands.push((at, at, rects)),
        }
    }
    bands
        .into_iter()
        .flat_map(|(lo, hi, rects)| rects.into_iter().map(move |rect| rect.with_interval(dim, lo, hi)))
        .collect()
}

/// Runs a generic property as a test for each number of dimensions.
#[macro_export]
macro_rules! in_each_dimension {
    ($($(#[$meta:meta])* fn $name:ident<const $d:ident: usize>($($arg:pat in $strategy:expr),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            mod $name {
                use super::*;
                fn property<const $d: usize>(runner: &mut proptest::test_runner::TestRunner) {
                    let outcome = runner.run(&($($strategy,)*), |($($arg,)*)| {
                        $body
                        Ok(())
                    });
                    if let Err(failure) = outcome {
                        panic!("in {} dimension(s): {failure}", $d);
                    }
                }
                fn runner() -> proptest::test_runner::TestRunner {
                    proptest::test_runner::TestRunner::new(proptest::prelude::ProptestConfig::with_cases(200))
                }
                #[test]
                fn in_1_dimension() { property::<1>(&mut runner()); }
                #[test]
                fn in_2_dimensions() { property::<2>(&mut runner()); }
                #[test]
                fn in_3_dimensions() { property::<3>(&mut runner()); }
                #[test]
                fn in_4_dimensions() { property::<4>(&mut runner()); }
            }
        )*
    };
}
