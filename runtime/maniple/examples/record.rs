//! A record of a run: proof that everything was ordered as it had to be, and a picture of what waited for what.
//!
//! Run it with `cargo run -p maniple --example record -- launches.svg`.

use maniple::prelude::*;
use maniple::record::{Graph, check};

#[derive(Fields)]
struct Cell {
    value: f64,
    sum: f64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] += 1.0;
    }
}

#[task(leaf)]
fn add(#[reads(value)] cells: Piece<Cell>, #[reduces(Sum, sum)] first: Piece<Cell>) {
    for cell in cells.points() {
        first.sum.fold(0, cells.value[cell]);
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().record_operations(true).build()?;
    let sum = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?.named("cells");
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, increase(&halves));
        cx.index_launch(2, add(&halves, &cells));
        Ok(cx.map_read(&cells, Cell::sum).await?[0])
    })?;
    assert_eq!(sum, 100.0);

    let record = runtime.take_record(); // while nothing runs
    let proof = check(&record)?;
    println!("of {} operations {} pairs must be in order, and are", record.operations.len(), proof.pairs);
    assert!(proof.pairs >= 2);

    let graph = Graph::of_launches(&record, false);
    assert_eq!(graph.edges[0].labels, ["value of region `cells`"]);
    if let Some(file) = std::env::args().nth(1) {
        std::fs::write(file, graph.to_svg()?)?;
    }
    Ok(())
}
