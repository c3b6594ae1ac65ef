//! Costs of a fill, an invalidation and a temporary region in a loop that is replayed.
//!
//! `cargo run --release -p maniple-benches --example filled_traces -- 20000` prints nanoseconds of the launching task
//! for each launch of a step, of three launches over four pieces, and of the whole program: with launches alone, with a
//! fill before them, with an invalidation after them, and with a scratch region in place of a region that stays. For
//! comparison, the same with a fill that differs from step to step, which ends a replay. Wanted: all but the last as
//! without a fill, but for the filling itself.

#![allow(clippy::print_stdout)] // that is what it is for

use std::time::Instant;

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
    other: f64,
}

#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>) {
    let first = cells.bounds().lo;
    cells.value[first] += 1.0;
}

/// The operation of a step besides its launches.
#[derive(Clone, Copy, PartialEq)]
enum Extra {
    Nothing,
    Fill,
    Invalidation,
    Scratch,
    OtherFill,
}

const EXTRAS: [(&str, Extra); 5] = [
    ("launches alone", Extra::Nothing),
    ("a fill", Extra::Fill),
    ("an invalidation", Extra::Invalidation),
    ("a scratch region", Extra::Scratch),
    ("a fill that differs", Extra::OtherFill),
];

const LAUNCHES: usize = 3;

fn measure(extra: Extra, steps: usize) -> Result<(f64, f64, u64)> {
    let runtime = Runtime::builder().workers(2).build()?;
    let (launching, all) = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(4).equal()?;
        let (mut began, mut launching) = (Instant::now(), 0.0);
        for step in 0..2 * steps {
            if step == steps {
                cx.execution_fence().await?;
                (began, launching) = (Instant::now(), 0.0);
            }
            let before = Instant::now();
            cx.trace("step", |cx| -> Result<()> {
                match extra {
                    Extra::Fill => cx.fill(&cells, Cell::other, 1.0)?,
                    Extra::OtherFill => cx.fill(&cells, Cell::other, step as f64)?,
                    _ => {}
                }
                let scratch = (extra == Extra::Scratch).then(|| cx.scratch_like::<Cell, _, _>(&cells)).transpose()?;
                let pieces = match &scratch {
                    Some(scratch) => &scratch.split_like(&pieces)?,
                    None => &pieces,
                };
                (0..LAUNCHES).for_each(|_| _ = cx.index_launch(4, touch(pieces)));
                if extra == Extra::Invalidation {
                    cx.invalidate(&cells, Cell::other)?;
                }
                Ok(())
            })?;
            launching += before.elapsed().as_secs_f64();
        }
        cx.execution_fence().await?;
        Ok((launching, began.elapsed().as_secs_f64()))
    })?;
    let launch = 1e9 / (steps * LAUNCHES) as f64;
    Ok((launching * launch, all * launch, runtime.statistics().replays))
}

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(20_000);
    println!(
        "{steps} steps of {LAUNCHES} launches of 4 tasks; ns a launch, of the launching task and of all; best of 5"
    );
    let mut base = None;
    for (name, extra) in EXTRAS {
        let steps = if extra == Extra::OtherFill { steps / 10 } else { steps };
        let mut best = (f64::MAX, f64::MAX, 0);
        for _ in 0..5 {
            let (launching, all, replays) = measure(extra, steps)?;
            best = (best.0.min(launching), best.1.min(all), replays);
        }
        let ratio = best.1 / *base.get_or_insert(best.1);
        println!("{name:>20}: {:8.0} {:8.0}   {ratio:5.2} times   {} replays", best.0, best.1, best.2);
    }
    Ok(())
}
