//! The results of an index launch: each by its point, mapped, reduced, folded, scanned, and passed to another launch
//! point by point.
//!
//! Run it with `cargo run -p maniple --example future_map`.

use maniple::prelude::*;

#[task(leaf)]
fn length(#[point] line: Point<1>) -> u64 {
    [5, 0, 12, 7][line[0] as usize]
}

#[task(leaf)]
fn stars(count: u64) -> String {
    "*".repeat(count as usize)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let lengths = cx.index_launch(4, length());
        let bars = cx.index_launch(4, stars(&lengths)); // point p gets the length of point p
        for bar in bars.all().await? {
            println!("|{bar}");
        }

        let total = lengths.reduce(Sum);
        let longest = lengths.reduce(Max);
        let empty = lengths.fold(0, |empty, length| empty + u64::from(length == 0));
        assert_eq!((total.await?, longest.await?, empty.await?), (24, 12, 1));

        // Where each begins, if they are put one behind the other.
        let starts = lengths.exclusive_scan(Sum);
        assert_eq!(starts.all().await?, [0, 5, 5, 17]);

        let doubled = lengths.map(|length| 2 * length);
        assert_eq!(doubled.get(2)?.await?, 24);
        Ok(())
    })
}
