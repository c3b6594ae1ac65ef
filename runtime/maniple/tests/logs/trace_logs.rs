//! The log says of a trace that is not replayed which it is, why not, and what to do.

use crate::log;
use maniple::prelude::*;
use tracing::Level;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value[point] += amount);
}

#[task(leaf)]
fn double(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] *= 2);
}

#[task]
async fn launch(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<()> {
    cx.launch(double(&cells)).await
}

/// That one line has all these words.
fn says(lines: &[String], words: &[&str]) {
    assert!(lines.iter().any(|line| words.iter().all(|word| line.contains(word))), "{words:?} {lines:#?}");
}

#[test]
fn a_run_that_is_not_replayed_is_logged_with_what_kept_it_from_that() {
    let log = log::keep(Level::DEBUG);
    let runtime = Runtime::builder().workers(2).automatic_tracing(false).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let (halves, quarters) = (cells.partition(2).equal()?, cells.partition(4).equal()?);
        let step = |name: &'static str, second: i64| {
            cx.trace(name, |cx| {
                cx.index_launch(2, add(&halves, 1));
                match second {
                    0 => drop(cx.index_launch(2, double(&halves))),
                    1 => drop(cx.index_launch(4, double(&quarters))),
                    2 => drop(cx.index_launch(2, add(&halves, 2))),
                    _ => {}
                }
            });
        };
        for (name, second) in [("domain", 1), ("task", 2), ("end", 3)] {
            while runtime.statistics().replays == 0 {
                step(name, 0);
                cx.execution_fence().await?;
            }
            let before = runtime.statistics().replays_given_up;
            // The first of these may find the recording unfit.
            while runtime.statistics().replays_given_up == before {
                step(name, 0);
                step(name, second);
                cx.execution_fence().await?;
            }
        }
        let lines = log.take();
        let differs = ["launch: 1", "launches: 2", "launch the same in each run"];
        says(&lines, &["trace `domain`", "expected", "`double` over", "found", differs[0], differs[1], differs[2]]);
        says(&lines, &["trace `task`", "task `double`", "task `add`", differs[0], differs[1], differs[2]]);
        says(&lines, &["trace `end`", "task `double`", "the end of the run", differs[0], differs[1], differs[2]]);

        for _ in 0..5 {
            cx.trace("launches", |cx| drop(cx.launch(launch(&cells))));
            cx.execution_fence().await?;
        }
        says(&log.take(), &["trace `launches`", "it launched a task that launches tasks", "make it a leaf"]);

        for run in 0..20 {
            cx.trace("elsewhere", |cx| drop(cx.index_launch(2, add(&halves, 1))));
            cx.execution_fence().await?;
            if run == 10 {
                cx.fill(&cells, Cell::value, 3)?;
            }
        }
        says(&log.take(), &["trace `elsewhere`", "does not fit", "field(s) value of"]);
        Ok(())
    });
    outcome.unwrap();
}
