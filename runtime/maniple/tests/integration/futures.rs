//! Functions of results that are still to come.

use std::sync::{Condvar, Mutex};

use maniple::prelude::*;

#[task(leaf)]
fn number(#[point] point: Point<1>) -> i64 {
    point[0]
}

#[task(leaf)]
fn all_but_two(#[point] point: Point<1>) -> Result<i64> {
    if point[0] == 2 { Err(Error::application("two")) } else { Ok(point[0]) }
}

#[task(leaf)]
fn same_as(#[point] point: Point<1>, value: String) -> bool {
    value == format!("<{}>", point[0])
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn a_map_of_futures_is_mapped_point_by_point() {
    let outcome = run(async |cx| {
        let texts = cx.index_launch(5, number()).map(|number| format!("<{number}>"));
        assert_eq!(texts.domain(), Domain::from(5).rect());
        let fit = cx.index_launch(5, same_as(&texts)).all().await?;
        Ok((fit, texts.get(3)?.await?, texts.map(|text| text.len() as u64).reduce(Sum).await?))
    });
    assert_eq!(outcome.unwrap(), (vec![true; 5], "<3>".to_owned(), 15));
}

#[test]
fn a_point_that_failed_stays_a_failure_and_the_others_are_mapped() {
    let outcome = run(async |cx| {
        let doubled = cx.index_launch(4, all_but_two()).map(|number| 2 * number);
        assert_eq!(doubled.get(3)?.await?, 6);
        let error = doubled.get(2)?.await.unwrap_err();
        assert!(matches!(error, Error::TaskFailed { .. }), "{error}");
        assert!(doubled.all().await.is_err() && doubled.await.is_err());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_function_that_panics_at_one_point_fails_that_point() {
    let outcome = run(async |cx| {
        let inverse = cx.index_launch(3, number()).map(|number| 6 / number);
        assert_eq!(inverse.get(2)?.await?, 3);
        let error = inverse.await.unwrap_err();
        assert!(matches!(error, Error::Panicked { point: Some(_), .. }), "{error}");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_launch_that_was_refused_is_refused_after_mapping_too() {
    let outcome = run(async |cx| cx.index_launch(usize::MAX, number()).map(|number| number).await);
    assert!(matches!(outcome, Err(Error::Launch { .. })), "{outcome:?}");
}

#[task(leaf)]
fn next(number: i64) -> i64 {
    number + 1
}

#[test]
fn a_result_of_one_runtime_is_no_argument_of_another() {
    let other = Runtime::builder().workers(1).build().unwrap();
    let theirs = other.run(async |cx| Ok(cx.launch(next(1)))).unwrap();
    let outcome = run(async |cx| {
        let own = cx.launch(next(5));
        for refused in
            [cx.launch(next(&theirs)), own.zip_with(&theirs, |a, b| a + b), theirs.zip_with(&own, |a, b| a + b)]
        {
            let error = refused.await.unwrap_err().to_string();
            assert!(error.contains("runtime") && error.contains("`.await`"), "{error}");
        }
        let value = theirs.await?;
        cx.launch(next(value)).await
    });
    assert_eq!(outcome.unwrap(), 3);
}

#[task(leaf)]
fn choosy(#[point] point: Point<1>) -> i64 {
    assert_ne!(point[0], 1, "not here");
    10 * point[0]
}

#[task(leaf)]
fn choosy_without_value(#[point] point: Point<1>) {
    assert_ne!(point[0], 1, "not here");
}

#[task(leaf)]
fn take(value: i64) -> i64 {
    value + 1
}

#[task(leaf)]
fn take_nothing(nothing: ()) -> i64 {
    let () = nothing;
    1
}

/// The points at which the failure of point 1 of `choosy` is seen, if `take` is given each point's result.
async fn failures(per_point: FutureMap<i64>) -> Result<Vec<bool>> {
    let mut failed = Vec::new();
    for point in per_point.domain().points() {
        let result = per_point.get(point)?.await;
        if let Err(error) = &result {
            assert!(error.to_string().contains("not here"), "{error}");
        }
        failed.push(result.is_err());
    }
    Ok(failed)
}

/// Takes single points of a launch of which another point fails.
async fn take_single_points(cx: &Context) -> Result<()> {
    let map = cx.index_launch(3, choosy());
    let first = || map.get(0);
    let (passed, forked) = (cx.index_launch(2, take(first()?)), cx.launch(take(&first()?)));
    let (mapped, zipped) = (first()?.map(|value| value + 5), first()?.zip_with(&map.get(2)?, |a, b| a + b));
    let per_point = cx.index_launch(3, take(&map));
    let units = cx.index_launch(3, choosy_without_value());
    let (unit, per_unit) = (cx.launch(take_nothing(units.get(2)?)), cx.index_launch(3, take_nothing(&units)));
    assert_eq!((passed.all().await?, forked.await?), (vec![1, 1], 1));
    assert_eq!((mapped.await?, zipped.await?, first()?.await?), (5, 20, 0));
    assert_eq!((unit.await?, units.get(0)?.await?), (1, ()));
    assert!(cx.launch(take(map.get(1)?)).await.is_err() && map.get(1)?.map(|value| value).await.is_err());
    assert_eq!(failures(per_point).await?, [false, true, false]);
    assert_eq!(failures(per_unit).await?, [false, true, false]);
    Ok(())
}

#[test]
fn what_takes_one_point_fails_with_that_point_alone() {
    run(async |cx| take_single_points(cx).await).unwrap();
}

#[test]
fn in_a_traced_loop_too() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        for step in 0..8 {
            let launched = cx.trace("step", |cx| {
                let map = cx.index_launch(3, fails_from(1, step));
                Ok::<_, Error>((map.clone(), cx.index_launch(3, take(&map)), cx.index_launch(2, take(map.get(2)?))))
            });
            let (map, per_point, single) = launched?;
            assert_eq!(single.all().await?, [21, 21]);
            let expected = step >= 5;
            assert_eq!(map.get(1)?.await.is_err(), expected);
            assert_eq!(failures(per_point).await?, [false, expected, false]);
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(runtime.statistics().replays > 0, "{:?}", runtime.statistics());
}

#[task(leaf)]
fn fails_from(#[point] point: Point<1>, at: i64, step: i64) -> i64 {
    assert!(point[0] != at || step < 5, "not here");
    10 * point[0]
}

/// The number of releases, for which the last point of `held` waits.
static RELEASED: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

fn release() {
    *RELEASED.0.lock().unwrap() += 1;
    RELEASED.1.notify_all();
}

fn wait_for_release(number: usize) {
    let released = RELEASED.1.wait_while(RELEASED.0.lock().unwrap(), |released| *released < number);
    drop(released.unwrap());
}

#[task(leaf)]
fn held(#[point] point: Point<1>, number: usize) -> i64 {
    if point[0] == 3 {
        wait_for_release(number);
    }
    point[0]
}

#[task(leaf)]
fn held_without_value(#[point] point: Point<1>, number: usize) {
    if point[0] == 3 {
        wait_for_release(number);
    }
}

/// This hangs if something that takes another point waits for the last one, which is held until all of it is there. In
/// replays some of it does.
#[test]
fn what_takes_one_point_is_there_when_that_point_has_ended() {
    let runtime = Runtime::builder().workers(4).tracing(false).build().unwrap();
    let outcome = runtime.run(async |cx| {
        for number in 1..=100 {
            let map = cx.index_launch(4, held(number));
            let units = cx.index_launch(4, held_without_value(number));
            let (passed, forked) = (cx.index_launch(2, take(map.get(0)?)), cx.launch(take(map.get(1)?)));
            let (mapped, zipped) = (map.get(2)?.map(|value| value), map.get(0)?.zip_with(&map.get(1)?, |a, b| a + b));
            let per_point = cx.index_launch(4, take(&map));
            assert_eq!((map.get(0)?.await?, passed.all().await?, forked.await?), (0, vec![1, 1], 2));
            assert_eq!((mapped.await?, zipped.await?, per_point.get(1)?.await?), (2, 1, 2));
            assert_eq!((units.get(2)?.await?, cx.launch(take_nothing(units.get(1)?)).await?), ((), 1));
            assert!(!map.get(3)?.is_ready() && map.get(0)?.is_ready());
            release();
            assert_eq!(per_point.get(3)?.await?, 4);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn points_that_a_launch_did_not_have_are_told_of() {
    let outcome = run(async |cx| {
        let map = cx.index_launch(3, choosy());
        let error = map.get(3).unwrap_err().to_string();
        assert!(error.contains("choosy") && error.contains("(3)"), "{error}");
        assert!(map.get([0, 0]).is_err());
        let per_point = cx.index_launch(4, take(&map));
        let error = per_point.get(3)?.await.unwrap_err().to_string();
        assert!(error.contains("has no point (3)"), "{error}");
        assert_eq!(per_point.get(2)?.await?, 21);
        assert!(map.await.is_err());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_launch_of_no_points_has_results_that_are_none() {
    let outcome = run(async |cx| {
        let map = cx.index_launch(0, number());
        assert_eq!(map.all().await?, []);
        assert_eq!(
            (map.reduce(Sum).await?, map.reduce(Min).await?, map.fold(7, |a, b| a + b).await?),
            (0, i64::MAX, 7)
        );
        assert_eq!(map.map(|number| number).all().await?, []);
        assert_eq!(cx.index_launch(0, take(&map)).all().await?, []);
        assert!(map.get(0).is_err());
        map.await
    });
    outcome.unwrap();
}

#[task(leaf)]
fn square(#[point] point: Point<2>) -> i64 {
    10 * point[0] + point[1]
}

#[test]
fn results_are_scanned_in_row_major_order_with_themselves_and_without() {
    run(async |cx| {
        let squares = cx.index_launch(Rect::new([1, 2], [3, 4]), square());
        let expected = [12, 13, 14, 22, 23, 24, 32, 33, 34];
        let sums: Vec<i64> = (0..expected.len()).map(|end| expected[..end].iter().sum()).collect();
        let scanned = squares.exclusive_scan(Sum);
        assert_eq!((scanned.domain(), scanned.all().await?), (squares.domain(), sums.clone()));
        let with: Vec<i64> = sums.iter().zip(expected).map(|(sum, value)| sum + value).collect();
        assert_eq!(squares.scan(Sum).all().await?, with);
        assert_eq!(squares.scan(Max).all().await?, expected);
        assert_eq!(squares.exclusive_scan(Max).get([1, 2])?.await?, i64::MIN);
        // What comes of them is passed on, point by point.
        let next = cx.index_launch(squares.domain(), next(&scanned)).all().await?;
        assert!(next.iter().zip(sums).all(|(next, sum)| *next == sum + 1));
        assert_eq!(cx.index_launch(1, number()).exclusive_scan(Sum).all().await?, [0]);
        assert_eq!(cx.index_launch(0, number()).scan(Sum).all().await?, []);
        Ok(())
    })
    .unwrap();
}

/// Adds, but not to 3.
#[derive(Clone, Copy)]
struct Picky;

impl ReductionOperator<i64> for Picky {
    type Rhs = i64;

    fn identity() -> i64 {
        0
    }

    fn apply(lhs: &mut i64, rhs: i64) {
        Self::fold(lhs, rhs);
    }

    fn fold(left: &mut i64, right: i64) {
        assert_ne!(*left, 3, "it is three");
        *left += right;
    }
}

#[test]
fn a_scan_fails_from_the_first_failure_on_and_not_before() {
    run(async |cx| {
        let values = cx.index_launch(5, all_but_two());
        for (scanned, sound) in [(values.scan(Sum), 2), (values.exclusive_scan(Sum), 3)] {
            for point in 0..5_i64 {
                let found = scanned.get(point)?.await;
                match point < sound {
                    true => assert!(found.is_ok(), "{point}"),
                    false => assert!(found.unwrap_err().to_string().contains("two"), "{point}"),
                }
            }
            assert!(scanned.await.is_err());
        }
        let panicking = cx.index_launch(5, number()).scan(Picky);
        assert_eq!(panicking.get(2)?.await?, 3);
        for point in [3, 4] {
            let error = panicking.get(point)?.await.unwrap_err();
            assert!(matches!(error, Error::Panicked { .. }) && error.to_string().contains("it is three"), "{error}");
        }
        Ok(())
    })
    .unwrap();
    let outcome = run(async |cx| cx.index_launch(usize::MAX, number()).scan(Sum).await);
    assert!(matches!(outcome, Err(Error::Launch { .. })), "{outcome:?}");
}
