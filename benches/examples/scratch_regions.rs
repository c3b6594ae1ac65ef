//! Many tasks that each make a region and leave it behind, every other one by failing: memory has to stay as it is.
//!
//! `cargo run --release -p maniple-benches --example scratch_regions -- 1000000` says how much memory the process has
//! after each tenth of so many tasks (a million if none are given), and fails if it has grown by more than a tenth
//! since the second. In the first the reasons of the last 131,072 failed events fill their table.

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

#[task(leaf)]
fn fail(#[writes(value)] _cells: Piece<Cell>, number: usize) -> Result<()> {
    Err(Error::application(format!("leaf {number} fails on purpose")))
}

/// Makes a region and uses it. Every second one fails: of four that do, one by itself, one as a leaf task does that it
/// waits for, one as another does that it does not wait for, and one by a panic.
#[task]
async fn scratch(cx: &Context, number: usize) -> Result<()> {
    let cells = cx.region::<Cell>(100)?;
    cx.launch(set(&cells, number as f64)).await?;
    match number % 8 {
        0 => Err(Error::application(format!("task {number} fails on purpose"))),
        2 => cx.launch(fail(&cells, number)).await,
        4 => {
            cx.launch(fail(&cells, number));
            Ok(())
        }
        6 => panic!("task {number} panics on purpose"),
        _ => Ok(()),
    }
}

/// Bytes of the process in memory, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * text.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}

fn main() -> Result<()> {
    let tasks = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000_usize);
    let runtime = Runtime::builder().workers(2).build()?;
    runtime.run(async |cx| {
        let mut full = 0;
        for part in 0..10 {
            for number in part * (tasks / 10)..(part + 1) * (tasks / 10) {
                let future = cx.launch(scratch(number));
                let function = future.map(move |()| number);
                let (outcome, mapped) = (future.await, function.await);
                assert_eq!(outcome.is_err(), number.is_multiple_of(2), "{outcome:?}");
                assert_eq!(mapped.is_err(), outcome.is_err(), "{mapped:?}");
            }
            let Some(bytes) = resident() else { continue };
            let (done, data) = ((part + 1) * (tasks / 10), runtime.bytes_used(MemoryId(0)));
            println!("{done:>9} tasks: {bytes:>12} bytes, {data:>8} of them in regions");
            if part == 1 {
                full = bytes;
            }
            assert!(part < 2 || bytes <= full + full / 10, "memory grows");
        }
        Ok(())
    })
}
