//! Temporary data: a scratch region takes over the name and the memory of one that was dropped, so that a loop with temporary regions is replayed.
//!
//! Run it with `cargo run -p maniple --example temporary_regions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[derive(Fields)]
struct Slope {
    slope: f64,
}

#[task(leaf)]
fn differ(#[reads(value)] near: Piece<Cell>, #[discards(slope)] slopes: Piece<Slope>) {
    for cell in slopes.points() {
        let after = near.value.get(cell[0] + 1).unwrap_or(near.value[cell]);
        slopes.slope[cell] = after - near.value[cell];
    }
}

#[task(leaf)]
fn descend(#[reads(slope)] slopes: Piece<Slope>, #[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] += 0.5 * slopes.slope[cell]);
}

#[task(leaf)]
fn ascend(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0] as f64);
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let first = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let (tiles, near) = (cells.blocks([16])?, cells.tiles([16], [1])?);
        cx.index_launch(tiles.colors(), ascend(&tiles));
        for _ in 0..50 {
            cx.trace("step", |cx| -> Result<()> {
                // Over the rows of the cells, so that their partitions are good for it.
                let slopes = cx.scratch_like::<Slope, _, _>(&cells)?;
                let steps = slopes.split_like(&tiles)?;
                cx.index_launch(tiles.colors(), differ(&near, &steps));
                cx.index_launch(tiles.colors(), descend(&steps, &tiles));
                // Dropped here: what was launched goes on undisturbed.
                Ok(())
            })?;
        }
        Ok(cx.map_read(&cells, Cell::value).await?[0])
    })?;
    println!("the first cell is {first}; {} of 50 steps were replayed", runtime.statistics().replays);
    assert_eq!(first, 25.0);
    assert!(runtime.statistics().replays > 40);
    Ok(())
}
