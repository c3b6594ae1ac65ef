//! Launches over sets of points on several nodes: what programs compute is what they compute on one.

use maniple::mapper::{Sharding, TaskInfo};
use maniple::prelude::*;
use maniple::{IndexSpace, PointSet};
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn add(#[point] tile: Point<2>, #[writes(value)] cells: Piece<Cell, 2>, what: i64) -> i64 {
    cells.points().for_each(|at| cells.value[at] += what + tile[0] - tile[1]);
    tile[0] * 10 + tile[1]
}

#[task(leaf)]
fn spread(#[reads(value)] around: Piece<Cell, 2>, #[writes(other)] cells: Piece<Cell, 2>) {
    for at in cells.points() {
        let value = |row: i64, column: i64| around.value.get(Point([at[0] + row, at[1] + column])).unwrap_or(0);
        cells.other[at] += value(-1, 0) + 2 * value(1, 0) + 3 * value(0, -1) + 5 * value(0, 1);
    }
}

#[task]
async fn inner(cx: &Context, #[writes(value)] cells: Region<Cell, 2>, points: i64) -> Result<i64> {
    let rows = cells.blocks([1, 100])?;
    let some = IndexSpace::from_points((0..points).map(|row| Point([row * 2, 0])).collect::<Vec<_>>());
    cx.index_launch_over(some, add(&rows, 1)).reduce(Sum).await
}

fn cyclic(_: usize, _: &TaskInfo<'_>, _: usize) -> Sharding {
    Sharding::Cyclic
}

fn set(seed: i64) -> PointSet {
    let points = Rect::from_shape([5, 5]).points().filter(|at| (at[0] * 7 + at[1] * 3 + seed) % 4 < 2);
    PointSet::from(&IndexSpace::from_points(points.collect::<Vec<_>>()))
}

async fn program(cx: &Context) -> Result<Vec<i64>> {
    let cells = cx.region_over::<Cell, 2>(Rect::from_shape([20, 20]))?;
    let (tiles, around) = (cells.blocks([4, 4])?, cells.tiles([4, 4], [1, 1])?);
    let mut seen = Vec::new();
    for turn in 0..6 {
        let set = set(turn % 2);
        let numbers = cx.index_launch_over(&set, add(&tiles, turn));
        cx.index_launch_over(&set, spread(&around, &tiles));
        let scanned = numbers.exclusive_scan(Sum);
        let again = cx.index_launch_over(&set, add(&tiles, &scanned));
        seen.extend([numbers.reduce(Sum).await?, again.reduce(Max).await?]);
        seen.push(numbers.get(set.points()[2])?.await?);
        seen.extend(scanned.all().await?);
    }
    seen.push(cx.launch(inner(&cells, 5)).await?);
    seen.extend(cx.map_read(&cells, Cell::value).await?.to_vec());
    seen.extend(cx.map_read(&cells, Cell::other).await?.to_vec());
    Ok(seen)
}

#[test]
fn launches_over_sets_on_several_nodes_give_what_they_give_on_one() {
    let expected = on_nodes(Nodes::new(1), async |cx: &Context, _| program(cx).await).remove(0).unwrap();
    for nodes in [2, 3, 5, 16] {
        for job in [Nodes::new(nodes), Nodes::new(nodes).dealt(cyclic)] {
            for seen in on_nodes(job, async |cx: &Context, _| program(cx).await) {
                assert_eq!(seen.unwrap(), expected, "on {nodes} nodes");
            }
        }
    }
}
