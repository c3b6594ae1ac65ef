//! Index launches over sets of points that are no rectangles.

use maniple::mapper::RandomMapper;
use maniple::prelude::*;
use maniple::{IndexSpace, PointSet};

#[derive(Fields)]
struct Cell {
    value: i64,
    seen: i64,
}

#[task(leaf)]
fn mark(#[point] tile: Point<2>, #[writes(value)] cells: Piece<Cell, 2>, before: i64) -> i64 {
    cells.points().for_each(|at| cells.value[at] += 100 * tile[0] + tile[1] + before);
    10 * tile[0] + tile[1]
}

#[task(leaf)]
fn number(#[point] tile: Point<2>) -> i64 {
    10 * tile[0] + tile[1]
}

#[task(leaf)]
fn choosy(#[point] tile: Point<2>) -> Result<i64> {
    if tile == Point([4, 1]) { Err(Error::application("not there")) } else { Ok(1) }
}

#[task(leaf)]
fn take(#[point] tile: Point<2>, value: i64) {
    assert_eq!(value, 10 * tile[0] + tile[1]);
}

#[task]
async fn nested(_cx: &Context, #[point] tile: Point<2>, #[writes(seen)] cells: Region<Cell, 2>) -> Result<i64> {
    assert_eq!(cells.bounds().lo, Point([tile[0] * 2, tile[1] * 2]));
    Ok(tile[0])
}

/// Tiles along a diagonal, one of them twice, and one that is far away from them.
fn set() -> PointSet {
    let points = [[4, 1], [1, 1], [2, 2], [0, 0], [3, 3], [2, 2], [0, 4]].map(Point);
    PointSet::from(&IndexSpace::from_points(points))
}

fn tiles(cx: &Context) -> Result<(maniple::Region<Cell, 2>, maniple::Partition<Cell, 2>)> {
    let cells = cx.region_over::<Cell, 2>(Rect::from_shape([10, 10]))?;
    let tiles = cells.blocks([2, 2])?;
    Ok((cells, tiles))
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn a_task_runs_at_each_point_of_the_set_and_at_no_other() {
    for seed in 0..5 {
        let runtime = Runtime::builder().workers(2).mapper(RandomMapper::new(seed)).build().unwrap();
        runtime
            .run(async |cx| {
                let (cells, tiles) = tiles(cx)?;
                for turn in 0..8 {
                    let found = cx.index_launch_over(set(), mark(&tiles, turn));
                    // In row-major order.
                    assert_eq!(found.all().await?, [0, 4, 11, 22, 33, 41]);
                    assert_eq!(found.get([4, 1])?.await?, 41);
                    assert_eq!(found.scan(Sum).get([2, 2])?.await?, 37);
                    assert_eq!(found.map(|number| number + 1).get([3, 3])?.await?, 34);
                    assert_eq!(found.reduce(Sum).await?, 111);
                    let missing = found.get([4, 4]).unwrap_err().to_string();
                    assert!(missing.contains("none of its 6 points"), "{missing}");
                    assert!(found.get(2).is_err());
                }
                let values = cx.map_read(&cells, Cell::value).await?;
                for at in cells.space().points() {
                    let tile = Point([at[0] / 2, at[1] / 2]);
                    let is_in = set().number_of(tile.into()).is_some();
                    assert_eq!(values[at], if is_in { 8 * (100 * tile[0] + tile[1]) + 28 } else { 0 }, "{at:?}");
                }
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn results_are_taken_point_by_point_over_the_same_set_and_no_other() {
    run(async |cx| {
        let numbers = cx.index_launch_over(set(), number());
        cx.index_launch_over(set(), take(&numbers)).await?;
        cx.index_launch_over(set(), take(numbers.map(|number| number))).await?;
        let other = PointSet::from(&IndexSpace::from_points([Point([0, 0])]));
        for refused in [
            cx.index_launch_over(&other, take(&numbers)).await,
            cx.index_launch(numbers.domain(), take(&numbers)).await,
            cx.index_launch_over(set(), take(cx.index_launch(Rect::from_shape([5, 5]), number()))).await,
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("which were launched over other points"), "{error}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn projections_get_the_points_of_the_set_and_what_interferes_is_refused() {
    run(async |cx| {
        let (cells, tiles) = tiles(cx)?;
        let turned = tiles.project(|tile| Point([tile[1], tile[0]]).into());
        cx.index_launch_over(set(), mark(&turned, 0)).await?;
        let values = cx.map_read(&cells, Cell::value).await?;
        assert_eq!((values[[8, 1]], values[[2, 9]], values[[8, 2]]), (4, 401, 0));
        drop(values);
        let one = tiles.project(|_| Point([1, 1]).into());
        let refused = cx.index_launch_over(set(), mark(&one, 0)).await;
        assert!(matches!(refused, Err(Error::PointsInterfere { .. })), "{refused:?}");
        let gone = tiles.project(|tile| Point([tile[0] + 1, tile[1]]).into());
        assert!(cx.index_launch_over(set(), mark(&gone, 0)).await.is_err());
        // Points that the partition does not have.
        let outside = IndexSpace::from_points([Point([0, 0]), Point([7, 7])]);
        let refused = cx.index_launch_over(outside, mark(&tiles, 0)).await.unwrap_err().to_string();
        assert!(refused.contains("(7, 7)"), "{refused}");
        assert_eq!(cx.index_launch_over(set(), nested(&tiles)).all().await?, [0, 0, 1, 2, 3, 4]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_failure_names_the_point_of_the_set() {
    run(async |cx| {
        let found = cx.index_launch_over(set(), choosy());
        assert_eq!(found.get([3, 3])?.await?, 1);
        let error = found.get([4, 1])?.await.unwrap_err().to_string();
        assert!(error.contains("point (4, 1)"), "{error}");
        assert!(found.await.is_err());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_set_without_points_launches_nothing_and_pieces_that_have_points_are_a_set() {
    run(async |cx| {
        let none = PointSet::from(&IndexSpace::<2>::from_points([]));
        assert!(none.is_empty());
        assert_eq!(cx.index_launch_over(none, number()).all().await?, []);
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([10, 10]))?;
        let some = cells.partition(Rect::from_shape([3, 3])).by(|color| match (color[0] + color[1]) % 2 {
            0 => Rect::new([color[0] * 3, color[1] * 3], [color[0] * 3 + 2, color[1] * 3 + 2]).into(),
            _ => IndexSpace::empty(),
        })?;
        let with_points = some.non_empty();
        assert_eq!(with_points.len(), 5);
        assert_eq!(cx.index_launch_over(&with_points, mark(&some, 0)).all().await?, [0, 2, 11, 20, 22]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn loops_over_sets_are_replayed_and_other_sets_are_other_launches() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime
        .run(async |cx| {
            let (cells, tiles) = tiles(cx)?;
            let sets = [set(), PointSet::from(&IndexSpace::from_points([Point([1, 0]), Point([3, 4])]))];
            for _ in 0..50 {
                cx.trace("turn", |cx| {
                    cx.index_launch_over(again(&sets[0]), mark(&tiles, 1));
                    cx.index_launch_over(&sets[1], mark(&tiles, 1));
                });
            }
            let values = cx.map_read(&cells, Cell::value).await?;
            assert_eq!((values[[0, 0]], values[[2, 0]], values[[6, 9]], values[[4, 4]]), (50, 5050, 15250, 10150));
            Ok(())
        })
        .unwrap();
    assert!(runtime.statistics().replays > 30, "{:?}", runtime.statistics());
}

/// The same set, made anew.
fn again(set: &PointSet) -> IndexSpace<2> {
    IndexSpace::from_points(set.points().iter().map(|point| Point([point[0], point[1]])).collect::<Vec<_>>())
}
