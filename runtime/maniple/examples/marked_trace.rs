//! A marked trace: launches that repeat are recorded once and then replayed without analysis.
//!
//! Run it with `cargo run -p maniple --example marked_trace`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: u64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>, by: u64) {
    for cell in cells.points() {
        cells.value[cell] += by;
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let pieces = cells.partition(4).equal()?;
        for step in 0..50 {
            cx.trace("step", |cx| {
                cx.index_launch(4, increase(&pieces, step)); // arguments may differ
            });
        }
        assert_eq!(cx.map_read(&cells, Cell::value).await?[99], 49 * 50 / 2);

        // A strict trace tells when a run differs from the first one.
        cx.strict_trace("strict", |cx| _ = cx.index_launch(4, increase(&pieces, 1)))?;
        let other = cx.strict_trace("strict", |cx| _ = cx.launch(increase(&cells, 1)));
        let differs = other.expect_err("the first run launched something else");
        println!("{differs}");
        assert!(matches!(differs, Error::TraceDiffers { .. }));
        Ok(())
    })?;
    let statistics = runtime.statistics();
    println!("{} recording(s), {} replays", statistics.recordings, statistics.replays);
    assert!(statistics.replays >= 40);
    Ok(())
}
