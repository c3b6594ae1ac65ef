//! The privilege to discard: a task that overwrites everything neither waits for old values nor has them copied.
//!
//! Run it with `cargo run -p maniple --example discarding`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn fail(#[writes(value)] _cells: Piece<Cell>) -> Result<()> {
    Err(Error::application("the old values are lost"))
}

/// Writes every value without looking at the old ones.
#[task(leaf)]
fn initialise(#[discards(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] = cell[0] as f64;
    }
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(fail(&cells));
        assert!(cx.launch(sum(&cells)).await.is_err()); // it needs values that could not be computed

        cx.launch(initialise(&cells)); // and this one doesn't
        let sum = cx.launch(sum(&cells)).await?;
        println!("the sum of the new values is {sum}");
        assert_eq!(sum, 45.0);
        Ok(())
    })
}
