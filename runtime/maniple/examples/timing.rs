//! Times in program order: a program times a part of itself, and launches what comes after without waiting for it.
//!
//! Run it with `cargo run -p maniple --example timing`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

/// Each part of the program works on the results of the one before.
#[task(leaf)]
fn work(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = (0..100_000).fold(cells.value[cell], |sum, step| sum ^ step));
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(16)?;
        let pieces = cells.partition(4).equal()?;
        let mut times = vec![cx.time()];
        for _ in 0..3 {
            cx.index_launch(4, work(&pieces));
            times.push(cx.time());
        }
        // Nothing was waited for so far.
        let mut all = Vec::new();
        for time in times {
            all.push(time.await?);
        }
        for (number, pair) in all.windows(2).enumerate() {
            println!("part {number} took {:?}", pair[1] - pair[0]);
        }
        assert!(all.is_sorted());
        let one = cx.launch(work(&cells));
        println!("one task was over after {:?}", cx.time_after(&one).await? - all[3]);
        Ok(())
    })
}
