//! Partitions of a region: into equal pieces, weighted ones, blocks, and any sets of points.
//!
//! Run it with `cargo run -p maniple --example partitions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>, by: f64) {
    for cell in cells.points() {
        cells.value[cell] += by;
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let equal = cells.partition(4).equal()?; // 25 each
        let weighted = cells.partition(2).weighted(&[1, 3])?; // 25 and 75
        let blocks = cells.blocks([30])?; // 30, 30, 30 and 10
        let ends = cells.partition(2).by(|end| {
            let first = if end == 0.into() { 0 } else { 95 };
            Rect::from(first..first + 5).into()
        })?;
        assert!(blocks.is_disjoint() && blocks.is_complete());
        assert!(ends.is_disjoint() && !ends.is_complete());

        // All are views of the same data. The runtime finds from the points which tasks have to wait for which.
        cx.index_launch(4, increase(&equal, 1.0));
        cx.index_launch(2, increase(&weighted, 10.0));
        cx.index_launch(blocks.colors(), increase(&blocks, 100.0));
        cx.index_launch(2, increase(&ends, 1_000.0));

        let values = cx.map_read(&cells, Cell::value).await?;
        println!("an end: {}, the middle: {}", values[0], values[50]);
        assert_eq!((values[0], values[50]), (1_111.0, 111.0));
        Ok(())
    })
}
