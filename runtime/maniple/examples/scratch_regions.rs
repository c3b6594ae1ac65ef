//! Many tasks that each make a region and leave it behind, every other one by failing: memory has to stay as it is.
//!
//! `cargo run --release -p maniple --example scratch_regions -- 1000000` says how much memory the process has after each tenth of so many tasks (20,000 if nobody
//! says), and fails if it has grown by more than a tenth since the first.

#![allow(clippy::print_stdout)] // that is what it is for

use maniple::prelude::*;
use maniple::{Error, MemoryId};

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn set(#[writes(value)] cells: Piece<Cell>, what: f64) {
    cells.points().for_each(|point| cells.value[point] = what);
}

#[task]
async fn scratch(cx: &Context, number: usize) -> Result<()> {
    let cells = cx.region::<Cell>(100)?;
    cx.launch(set(&cells, number as f64)).await?;
    if number.is_multiple_of(2) { Err(Error::application(format!("task {number} fails on purpose"))) } else { Ok(()) }
}

/// Bytes of the process in memory, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * text.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}

fn main() -> Result<()> {
    let tasks = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000_usize);
    let runtime = Runtime::builder().workers(2).build()?;
    runtime.run(async |cx| {
        let mut first = None;
        for part in 0..10 {
            for number in part * (tasks / 10)..(part + 1) * (tasks / 10) {
                let outcome = cx.launch(scratch(number)).await;
                assert_eq!(outcome.is_err(), number.is_multiple_of(2), "{outcome:?}");
            }
            let Some(bytes) = resident() else { continue };
            let (done, data) = ((part + 1) * (tasks / 10), runtime.bytes_used(MemoryId(0)));
            println!("{done:>9} tasks: {bytes:>12} bytes, {data:>8} of them in regions");
            let first = *first.get_or_insert(bytes);
            assert!(bytes <= first + first / 10, "memory grows");
        }
        Ok(())
    })
}
