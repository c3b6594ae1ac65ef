//! Launches over sets of points: only the tiles of a grid that something happens in are worked on.
//!
//! Run it with `cargo run -p maniple --example sparse_launch`.

use maniple::prelude::*;
use maniple::{IndexSpace, PointSet};

const TILES: i64 = 16;
const SIDE: i64 = 8;

#[derive(Fields)]
struct Cell {
    heat: f64,
    next: f64,
}

#[task(leaf)]
fn spread(#[reads(heat)] around: Piece<Cell, 2>, #[discards(next)] tile: Piece<Cell, 2>) {
    for at in tile.points() {
        let heat = |row: i64, column: i64| around.heat.get(Point([at[0] + row, at[1] + column])).unwrap_or(0.0);
        tile.next[at] = 0.2 * (heat(0, 0) + heat(1, 0) + heat(-1, 0) + heat(0, 1) + heat(0, -1));
    }
}

/// Whether there is any heat in a tile: the point of the task is that of the set.
#[task(leaf)]
fn keep(
    #[point] point: Point<2>,
    #[reads(next)]
    #[writes(heat)]
    tile: Piece<Cell, 2>,
) -> (Point<2>, bool) {
    for at in tile.points() {
        tile.heat[at] = tile.next[at];
    }
    (point, tile.points().any(|at| tile.heat[at] > 0.0))
}

/// The tiles where there is heat, and those beside them.
fn grown(hot: impl IntoIterator<Item = Point<2>>) -> PointSet {
    let beside = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]];
    let all = hot.into_iter().flat_map(|tile| beside.map(|[row, column]| Point([tile[0] + row, tile[1] + column])));
    let is_there = |tile: &Point<2>| (0..TILES).contains(&tile[0]) && (0..TILES).contains(&tile[1]);
    PointSet::from(&IndexSpace::from_points(all.filter(is_there).collect::<Vec<_>>()))
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let (total, tasks) = runtime.run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([TILES * SIDE; 2]))?;
        let tiles = cells.blocks([SIDE; 2])?;
        let around = cells.around(&tiles, [1; 2])?;
        let middle = TILES / 2;
        cx.map_write(&cells, Cell::heat).await?[[middle * SIDE, middle * SIDE]] = 1.0;
        let mut active = grown([Point([middle, middle])]);
        let mut tasks = 0;
        for step in 0..2 * SIDE {
            tasks += 2 * active.len();
            cx.index_launch_over(&active, spread(&around, &tiles));
            let hot = cx.index_launch_over(&active, keep(&tiles)).all().await?;
            active = grown(hot.into_iter().filter(|(_, is_hot)| *is_hot).map(|(tile, _)| tile));
            if step % SIDE == 0 {
                println!("after {step} steps {} of {} tiles are worked on", active.len(), TILES * TILES);
            }
        }
        Ok((cx.map_read(&cells, Cell::heat).await?.to_vec().iter().sum::<f64>(), tasks))
    })?;
    println!("{tasks} tasks, and the heat is {total:.6}");
    // No heat is lost, and few tasks have run.
    assert!((total - 1.0).abs() < 1e-9 && (tasks as i64) < 2 * 2 * SIDE * TILES * TILES / 5);
    Ok(())
}
