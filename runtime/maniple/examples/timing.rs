//! Times in program order: a program times a part of itself, and launches what comes after without waiting for it.
//!
//! Run it with `cargo run -p maniple --example timing`.

use maniple::prelude::*;

#[task(leaf)]
fn work(point: i64) -> i64 {
    (0..100_000).fold(point, |sum, step| sum ^ step)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let mut times = vec![cx.time()];
        for _ in 0..3 {
            cx.index_launch(16, work(7));
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
        let one = cx.launch(work(1));
        println!("one task was over after {:?}", cx.time_after(&one).await? - all[3]);
        Ok(())
    })
}
