//! What a launch costs the task that launches, whatever the number of its points.

use std::time::Instant;

use maniple::prelude::*;

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target};
use crate::error::Result as BenchResult;
use crate::median;

/// What the analysis of a launch costs.
pub const TARGET: Target = Target {
    name: "launching",
    about: "an untraced index launch of 10 and of 10,000 points: the time until the call returns, with nothing else under way",
    measure,
};

#[derive(Fields)]
struct Cell {
    value: u8,
}

#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] += 1);
}

const FEW: usize = 10;
const MANY: usize = 10_000;

/// Launches of each kind in a round.
const LAUNCHES: u64 = 10;

fn measure(effort: Effort) -> BenchResult<Findings> {
    let runtime = Runtime::builder().workers(effort.cores).tracing(false).build()?;
    let (cold, warm) = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(MANY)?;
        let (few, many) = (cells.partition(FEW).equal()?, cells.partition(MANY).equal()?);
        let (mut cold, mut warm): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
        for number in 0..effort.rounds as u64 * LAUNCHES {
            // The first launch with a tag is new to the runtime, the third one no more.
            for times in [Some(&mut cold), None, Some(&mut warm)] {
                let seconds = [launch(cx, &few, number).await?, launch(cx, &many, number).await?];
                times.into_iter().flatten().zip(seconds).for_each(|(times, seconds)| times.push(seconds * 1e6));
            }
        }
        Ok((cold, warm))
    })?;
    let mut rows = Vec::new();
    for (what, [few, many]) in [("launch sites cold", cold.map(median)), ("launch sites warm", warm.map(median))] {
        rows.push(Row::new(format!("call of an index launch of {FEW} points, {what}"), few, "us"));
        let row = Row::new(format!("the same, {MANY} points against {FEW}, {what}"), many / few, "times");
        rows.push(row.must(Bound::AtMost(1.2)).aim(Bound::AtMost(1.0)));
    }
    Ok(Findings { rows, details: Vec::new() })
}

/// Seconds that the launching task needs for a launch.
async fn launch(cx: &Context, pieces: &Partition<Cell>, tag: u64) -> Result<f64> {
    let started = Instant::now();
    let launched = cx.index_launch(pieces.colors(), touch(pieces).tag(tag));
    let seconds = started.elapsed().as_secs_f64();
    launched.await?;
    Ok(seconds)
}
