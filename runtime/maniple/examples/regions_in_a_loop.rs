//! Regions that a loop makes, splits and destroys: those of the next iteration take over their names, so that the loop is replayed.
//!
//! Run it with `cargo run -p maniple --example regions_in_a_loop`.

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

/// A library's function, which knows nothing of the loop that calls it.
fn step(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let (tiles, near) = (cells.blocks([16])?, cells.tiles([16], [1])?);
    let slopes = cx.region::<Slope>(64)?;
    let parts = slopes.blocks([16])?;
    cx.index_launch(tiles.colors(), differ(&near, &parts));
    cx.index_launch(tiles.colors(), descend(&parts, &tiles));
    // What was launched goes on undisturbed.
    cx.destroy_region(&slopes)?;
    cx.destroy_partition(&near)?;
    cx.destroy_partition(&tiles)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let first = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        cx.launch(ascend(&cells));
        for _ in 0..50 {
            cx.trace("step", |cx| step(cx, &cells))?;
        }
        Ok(cx.map_read(&cells, Cell::value).await?[0])
    })?;
    println!("the first cell is {first}; {} of 50 steps were replayed", runtime.statistics().replays);
    assert_eq!(first, 25.0);
    assert!(runtime.statistics().replays > 40);
    Ok(())
}
