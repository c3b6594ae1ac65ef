//! A task that launches tasks, waits for what they find, and decides by it.
//!
//! Run it with `cargo run -p maniple --example nested_tasks`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn halve(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] /= 2.0;
    }
}

#[task(leaf)]
fn largest(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).fold(f64::NEG_INFINITY, f64::max)
}

/// Halves its cells until all are below a limit. It holds them by name, to launch on; while it waits its worker runs
/// other tasks.
#[task]
async fn shrink(cx: &Context, #[writes(value)] cells: Region<Cell>, limit: f64) -> Result<u32> {
    let parts = cells.partition(4).equal()?;
    let mut steps = 0;
    while cx.index_launch(4, largest(&parts)).reduce(Max).await? >= limit {
        cx.index_launch(4, halve(&parts));
        steps += 1;
    }
    Ok(steps)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let halves = cells.partition(2).equal()?;
        cx.fill(&halves.piece(0)?, Cell::value, 100.0)?;
        cx.fill(&halves.piece(1)?, Cell::value, 5.0)?;

        // Both points are in their loops at once, each at its own pace.
        let steps = cx.index_launch(2, shrink(&halves, 1.0)).all().await?;
        println!("the halves took {steps:?} steps");
        assert_eq!(steps, [7, 3]);
        Ok(())
    })
}
