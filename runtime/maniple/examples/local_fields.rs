//! Local fields: temporary values beside those of a region, which end with the task that makes them or before.
//!
//! Run it with `cargo run -p maniple --example local_fields`.

use maniple::LocalField;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
    next: Ptr<Cell>,
}

#[task(leaf)]
fn link(#[discards(value, next)] cells: Piece<Cell>, count: i64) {
    for cell in cells.points() {
        cells.value[cell] = cell[0];
        cells.next[cell] = Ptr::new(((cell[0] + 1) % count).into());
    }
}

/// Each cell gets the value of the next, which is not to be overwritten meanwhile.
fn rotate(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let values: LocalField<Cell, i64> = cx.local_field(cells, "values")?;
    cx.gather(cells.field(Cell::value), cells.field(Cell::next), cells.field(*values));
    cx.copy(cells.field(*values), cells.field(Cell::value));
    Ok(())
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let values = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.launch(link(&cells, 8));
        for _ in 0..50 {
            cx.trace("rotate", |cx| rotate(cx, &cells))?;
        }
        // One field was made, and used fifty times.
        println!("fields: {}", cells.logical().fields().fields().len());
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
    })?;
    println!("{values:?}; {} of 50 turns were replayed", runtime.statistics().replays);
    assert_eq!(values, [2, 3, 4, 5, 6, 7, 0, 1]);
    assert!(runtime.statistics().replays > 40);
    Ok(())
}
