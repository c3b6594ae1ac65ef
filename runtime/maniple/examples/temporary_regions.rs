//! Temporary data: scratch regions that are dropped, regions and partitions that are destroyed, and fields that are
//! freed leave their names to the next, so that loops with them are replayed.
//!
//! Run it with `cargo run -p maniple --example temporary_regions`.

use maniple::prelude::*;
use maniple::{Field, FieldType};

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

/// With a scratch region over the rows of the cells: their partitions are good for it. It ends when it is dropped; what
/// was launched goes on undisturbed.
fn with_scratch(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let (tiles, near) = (cells.blocks([16])?, cells.tiles([16], [1])?);
    let slopes = cx.scratch_like::<Slope, _, _>(cells)?;
    let steps = slopes.split_like(&tiles)?;
    cx.index_launch(tiles.colors(), differ(&near, &steps));
    cx.index_launch(tiles.colors(), descend(&steps, &tiles));
    cx.destroy_partition(&near)?;
    cx.destroy_partition(&tiles)
}

/// With a region of its own, as a library's function may make that knows nothing of the loop which calls it.
fn with_region(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let (tiles, near) = (cells.blocks([16])?, cells.tiles([16], [1])?);
    let slopes = cx.region::<Slope>(64)?;
    let parts = slopes.blocks([16])?;
    cx.index_launch(tiles.colors(), differ(&near, &parts));
    cx.index_launch(tiles.colors(), descend(&parts, &tiles));
    cx.destroy_region(&slopes)?;
    cx.destroy_partition(&near)?;
    cx.destroy_partition(&tiles)
}

/// With a field that is allocated and freed.
fn with_field(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let fields = cells.logical().fields();
    let half = Field::<Cell, f64>::new(fields.allocate("half", FieldType::of::<f64>())?);
    cx.fill(cells, half, 0.5)?;
    cx.contribute(Sum, cells.field(half), cells.field(Cell::value));
    cx.free_field(fields, half.id())
}

fn main() -> Result<()> {
    for step in [with_scratch, with_region, with_field] {
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
    }
    Ok(())
}
