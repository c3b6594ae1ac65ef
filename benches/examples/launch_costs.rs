//! Costs of launches, to be counted in instructions: wall time says little on a machine that does other things too.
//!
//! `cargo build --release -p maniple-benches --example launch_costs`, then
//! `valgrind --tool=callgrind --separate-threads=yes launch_costs WHAT COUNT`. The instructions of a launch are the
//! difference of two runs with different counts, divided by the difference of the counts. The program itself prints
//! allocations, of which the same holds.
//!
//! *index*: an index launch of 4 points that read a field of their pieces, write one, add to one, and read a fourth as
//! a whole; *cold*: the same, each with a tag of its own; *point*: a single task that reads one field of a region and
//! writes another one; *cold-point*: the same, each with a tag of its own; *tree*: a task without regions that launches
//! others, 177 in all. A fence comes after every 100 launches.

#![allow(clippy::print_stdout)] // that is what it is for

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::prelude::*;
use mimalloc::MiMalloc;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is left to another allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Fields)]
struct Cell {
    read: f64,
    written: f64,
    sum: f64,
    whole: f64,
}

#[task(leaf)]
fn four(
    #[reads(read)] read: Piece<Cell>,
    #[writes(written)] written: Piece<Cell>,
    #[reduces(Sum, sum)] sum: Piece<Cell>,
    #[reads(whole)] whole: Piece<Cell>,
) {
    let _ = (read, written, sum, whole);
}

#[task(leaf)]
fn two(
    #[reads(read)]
    #[writes(written)]
    cells: Piece<Cell>,
) {
    let _ = cells;
}

#[task]
async fn fibonacci(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let (left, right) = (cx.launch(fibonacci(n - 1)), cx.launch(fibonacci(n - 2)));
    Ok(left.await? + right.await?)
}

const POINTS: usize = 4;
const BETWEEN_FENCES: usize = 100;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "index".to_owned());
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let allocations = Runtime::builder().workers(1).tracing(false).build()?.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(POINTS).equal()?;
        let launch = |number: usize| {
            let tag = number as u64;
            match what.as_str() {
                "index" => drop(cx.index_launch(POINTS, four(&pieces, &pieces, &pieces, &cells))),
                "cold" => drop(cx.index_launch(POINTS, four(&pieces, &pieces, &pieces, &cells).tag(tag))),
                "point" => drop(cx.launch(two(&cells))),
                "cold-point" => drop(cx.launch(two(&cells).tag(tag))),
                "tree" => drop(cx.launch(fibonacci(10))),
                _ => panic!("expected index, cold, point, cold-point or tree, found {what}"),
            }
        };
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for number in 0..count {
            launch(number);
            if (number + 1).is_multiple_of(BETWEEN_FENCES) {
                cx.execution_fence().await?;
            }
        }
        cx.execution_fence().await?;
        Ok(ALLOCATIONS.load(Ordering::Relaxed) - before)
    })?;
    println!("{what}: {count} launches, {allocations} allocations");
    Ok(())
}
