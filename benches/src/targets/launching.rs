//! Cost of a launch to the task that launches, whatever the number of its points.

use maniple::prelude::*;
use rustix::time::ClockId;

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target, seconds_of};
use crate::error::Result as BenchResult;
use crate::median;

/// Target for the cost of analyzing a launch.
pub const TARGET: Target = Target {
    name: "launching",
    about: "an untraced index launch of 10 and of 10,000 points, and one of many in a row, of 4 points and 4 requirements: what the call takes of the launching thread's time",
    measure,
};

#[derive(Fields)]
struct Cell {
    value: u8,
    read: f64,
    written: f64,
    sum: f64,
    whole: f64,
}

#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] += 1);
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

const FEW: usize = 10;
const MANY: usize = 10_000;

/// Launches of each kind in a round.
const LAUNCHES: u64 = 6;

fn measure(effort: Effort) -> BenchResult<Findings> {
    let runtime = Runtime::builder().workers(effort.cores).tracing(false).build()?;
    let new = |round| (round * LAUNCHES..(round + 1) * LAUNCHES).collect();
    let known = |_| vec![0; LAUNCHES as usize];
    let (cold, warm) = (times(&runtime, effort.rounds, new)?, times(&runtime, effort.rounds, known)?);
    let mut rows = Vec::new();
    for (what, [few, many]) in [("launch sites cold", cold.map(median)), ("launch sites warm", warm.map(median))] {
        rows.push(Row::new(format!("call of an index launch of {FEW} points, {what}"), few, "us"));
        let row = Row::new(format!("the same, {MANY} points against {FEW}, {what}"), many / few, "times");
        rows.push(row.must(Bound::AtMost(1.2)).aim(Bound::AtMost(1.0)));
    }
    let what = format!("call of an index launch of {PIECES} points and 4 requirements, one of {IN_A_ROW} in a row");
    let row = Row::new(what, median(times_in_a_row(&runtime, effort.rounds)?), "us");
    rows.push(row.must(Bound::AtMost(4.0)).aim(Bound::AtMost(2.0)));
    Ok(Findings { rows, details: Vec::new() })
}

const PIECES: usize = 4;
const IN_A_ROW: usize = 100;

/// The microseconds of one of many launches, each of which finds what the one before left in the caches.
fn times_in_a_row(runtime: &Runtime, rounds: usize) -> Result<Vec<f64>> {
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(PIECES).equal()?;
        let mut times = Vec::new();
        for _ in 0..10 * rounds {
            let started = seconds_of(ClockId::ThreadCPUTime);
            for _ in 0..IN_A_ROW {
                cx.index_launch(PIECES, four(&pieces, &pieces, &pieces, &cells));
            }
            times.push(1e6 * (seconds_of(ClockId::ThreadCPUTime) - started) / IN_A_ROW as f64);
            cx.execution_fence().await?;
        }
        Ok(times)
    })
}

/// The microseconds of launches of few and of many points, with the tags that each round is to have: a launch whose tag
/// is new is new to the runtime.
fn times(runtime: &Runtime, rounds: usize, tags: impl Fn(u64) -> Vec<u64>) -> Result<[Vec<f64>; 2]> {
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(MANY)?;
        let pieces = [cells.partition(FEW).equal()?, cells.partition(MANY).equal()?];
        let mut times: [Vec<f64>; 2] = Default::default();
        for round in 0..rounds as u64 {
            for (times, pieces) in times.iter_mut().zip(&pieces) {
                times.push(1e6 * launch(cx, pieces, &tags(round)).await?);
            }
        }
        Ok(times)
    })
}

/// The time that the launching task has on a core for a launch: what workers do meanwhile does not count.
async fn launch(cx: &Context, pieces: &Partition<Cell>, tags: &[u64]) -> Result<f64> {
    let started = seconds_of(ClockId::ThreadCPUTime);
    let launched: Vec<_> = tags.iter().map(|&tag| cx.index_launch(pieces.colors(), touch(pieces).tag(tag))).collect();
    let seconds = seconds_of(ClockId::ThreadCPUTime) - started;
    for launch in &launched {
        launch.clone().await?;
    }
    Ok(seconds / launched.len() as f64)
}
