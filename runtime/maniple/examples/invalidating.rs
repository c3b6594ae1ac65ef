//! Values of no more use: `invalidate` gives them up, and their memory goes to the operations that need it. A loop with
//! fills and invalidations is replayed.
//!
//! Run it with `cargo run -p maniple --example invalidating`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
    sum: f64,
}

#[task(leaf)]
fn add(#[reads(value)] near: Piece<Cell>, #[reduces(Sum, sum)] cells: Piece<Cell>) {
    for cell in cells.points() {
        let beside = [-1, 0, 1].map(|offset| near.value.get(cell[0] + offset).unwrap_or(0.0));
        cells.sum.fold(cell, beside.iter().sum());
    }
}

#[task(leaf)]
fn keep(
    #[reads(sum)]
    #[writes(value)]
    cells: Piece<Cell>,
) {
    cells.points().for_each(|cell| cells.value[cell] = cells.sum[cell] / 2.0);
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let (value, sum) = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let (tiles, near) = (cells.blocks([16])?, cells.tiles([16], [1])?);
        cx.fill(&cells, Cell::value, 1.0)?;
        for _ in 0..20 {
            cx.trace("step", |cx| -> Result<()> {
                cx.fill(&cells, Cell::sum, 0.0)?;
                cx.index_launch(tiles.colors(), add(&near, &tiles));
                cx.index_launch(tiles.colors(), keep(&tiles));
                // What reads the sums from here on finds zeros.
                cx.invalidate(&cells, Cell::sum)
            })?;
        }
        Ok((cx.map_read(&cells, Cell::value).await?[32], cx.map_read(&cells, Cell::sum).await?[32]))
    })?;
    println!("value {value:.1}, sum {sum}; {} of 20 steps were replayed", runtime.statistics().replays);
    assert!((value - 1.5_f64.powi(20)).abs() < 0.5 * value && sum == 0.0);
    assert!(runtime.statistics().replays > 10);
    Ok(())
}
