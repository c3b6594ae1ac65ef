//! How short tasks may be: METG(50%) of several programs, side by side.
//!
//! Lengths of tasks are halved from run to run. METG(50%) is the granularity of the shortest that are efficient, as
//! `maniple run metg` prints it; where the efficiency crosses a half between two lengths is also told, and compared.

use std::time::Duration;

use maniple_apps::metg::sweep::{Curve, Run, Sweep};

use super::{Contest, Contestant, Effort};
use crate::error::{Error, Result};
use crate::table::{Table, figure};

/// Iterations of the longest tasks, after those of the first run: some ten microseconds, which is what the slowest
/// rivals need.
const FIRST: i64 = 1 << 15;

/// Measures the programs of a contest whose sizes are width, steps and iterations of a task. The width is the number of
/// cores.
pub(super) fn table(contest: &Contest, contestants: Vec<Contestant>, cores: usize, effort: Effort) -> Table {
    let width = cores.max(2);
    let sweep = Sweep { first: FIRST, ..Sweep::new(width, cores, effort.rounds, effort.budget) };
    let names: Vec<String> = contestants.iter().map(|contestant| contestant.name().to_owned()).collect();
    let runs = contestants.into_iter().map(|mut contestant| {
        let run = move |iterations: i64, steps: i64| {
            let size = [width as u64, steps as u64, iterations as u64];
            let tasks = (contest.answer)(&size);
            let seconds = contestant.run(&size, tasks)?.seconds;
            // The sweep counts the time of all cores. A contestant that keeps fewer busy is not charged for the others.
            let charged = seconds * contestant.cores() as f64 / cores as f64;
            Ok((Duration::from_secs_f64(charged), u128::from(tasks)))
        };
        Box::new(run) as Run<'_, Error>
    });
    let curves = sweep.side_by_side(runs.collect());
    let columns = ["", "METG(50%) us", "interpolated us", "ours / this"];
    let mut table = Table::new(format!("{}, {width} wide", contest.title), &columns);
    let ours = curves.first().map_or(f64::NAN, crossing);
    for (name, curve) in names.into_iter().zip(&curves) {
        let cells = match curve {
            Ok(found) => {
                let metg = found.metg().unwrap_or(f64::NAN);
                [metg * 1e6, crossing(curve) * 1e6, ours / crossing(curve)].map(figure).to_vec()
            }
            Err(error) => vec![format!("failed: {error}")],
        };
        table.row([name].into_iter().chain(cells));
    }
    table
}

fn crossing(curve: &Result<Curve>) -> f64 {
    curve.as_ref().ok().and_then(Curve::crossing).unwrap_or(f64::NAN)
}
