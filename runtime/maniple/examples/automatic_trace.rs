//! Automatic traces: the runtime finds by itself that a loop repeats, and replays it.
//!
//! Run it with `cargo run -p maniple --example automatic_trace`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn scale(#[writes(value)] cells: Piece<Cell>, factor: f64) {
    for cell in cells.points() {
        cells.value[cell] *= factor;
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let pieces = cells.partition(4).equal()?;
        cx.fill(&cells, Cell::value, 1.0)?;
        for _ in 0..1_000 {
            cx.index_launch(4, scale(&pieces, 2.0));
            cx.index_launch(4, scale(&pieces, 0.5));
        }
        assert_eq!(cx.map_read(&cells, Cell::value).await?[7], 1.0);
        Ok(())
    })?;
    let statistics = runtime.statistics();
    println!("{} launches, with {} replays", statistics.launches, statistics.replays);
    assert!(statistics.replays > 0);
    Ok(())
}
