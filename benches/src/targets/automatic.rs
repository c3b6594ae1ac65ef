//! Programs without a mark against the same with their iterations marked as traces.
//!
//! Each program runs from its beginning for several numbers of iterations. What the iterations between two of these numbers take is the difference:
//! how a program begins and ends does not count.

use std::sync::Arc;

use maniple::Runtime;
use maniple_apps::cg;
use maniple_apps::cg::sparse::{Entry, Sparse};
use maniple_apps::stencil::{self, Extents};

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target, tiny_circuit, without_progress};
use crate::error::Result;
use crate::median;
use crate::table::{Table, figure};

/// What finding traces costs.
pub const TARGET: Target = Target {
    name: "automatic",
    about: "circuit, cg and stencil of 16 tiny pieces, without a mark and with iterations marked as traces: the speed of one relative to the other",
    measure,
};

/// A program that is run for about so many iterations, marked or not. Gives how many there were, and the seconds that they took.
type Iterate = dyn Fn(&Runtime, usize, bool) -> Result<(usize, f64)>;

/// Numbers of iterations after which a program ends.
const ENDS: [usize; 7] = [1, 25, 50, 100, 200, 400, 800];

/// From here on automatic traces are to be nearly as good.
const FOUND: usize = 100;

const WANTED: f64 = 0.9;

fn measure(effort: Effort) -> Result<Findings> {
    let runtime = Runtime::builder().workers(effort.cores).build()?;
    let mut findings = Findings::default();
    for (name, program) in [("circuit", circuit()), ("cg", conjugate_gradients()), ("stencil", stencil())] {
        let windows = windows(&runtime, &*program, effort.rounds)?;
        let speed = speed_after(&windows, FOUND);
        let what = format!("{name} without a mark, from iteration {FOUND} on: speed relative to marked");
        findings.rows.push(Row::new(what, speed, "times").must(Bound::AtLeast(WANTED)));
        let what = format!("{name} without a mark: from which iteration on it has {WANTED} of the speed");
        findings.rows.push(Row::new(what, found_at(&windows), "").must(Bound::AtMost(FOUND as f64)));
        findings.details.push(table(name, &windows));
    }
    Ok(findings)
}

/// A stretch of iterations.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: usize,
    to: usize,
    /// Seconds without a mark.
    found: f64,
    /// Seconds with marks.
    marked: f64,
}

fn windows(runtime: &Runtime, program: &Iterate, rounds: usize) -> Result<Vec<Window>> {
    let mut times = vec![(0, Vec::new(), Vec::new()); ENDS.len()];
    for _ in 0..rounds {
        for (&end, (iterations, found, marked)) in ENDS.iter().zip(&mut times) {
            let (number, seconds) = program(runtime, end, false)?;
            *iterations = number;
            found.push(seconds);
            marked.push(program(runtime, end, true)?.1);
        }
    }
    let times = times.into_iter().map(|(iterations, found, marked)| (iterations, median(found), median(marked)));
    let mut times: Vec<_> = times.collect();
    times.dedup_by_key(|(iterations, ..)| *iterations);
    let pairs = times.windows(2);
    Ok(pairs
        .map(|pair| Window {
            from: pair[0].0,
            to: pair[1].0,
            found: pair[1].1 - pair[0].1,
            marked: pair[1].2 - pair[0].2,
        })
        .collect())
}

/// The speed without a mark relative to that with marks, in all iterations from one on.
fn speed_after(windows: &[Window], from: usize) -> f64 {
    let late = windows.iter().filter(|window| window.from >= from);
    let (found, marked) = late.fold((0.0, 0.0), |(found, marked), one| (found + one.found, marked + one.marked));
    marked / found
}

/// The iteration at which a window begins that has the speed which is wanted, and so has all that follows. Not a number if there is none.
fn found_at(windows: &[Window]) -> f64 {
    let has_speed =
        |window: &&Window| window.marked / window.found >= WANTED && speed_after(windows, window.from) >= WANTED;
    let late = windows.iter().find(has_speed);
    late.map_or(f64::NAN, |window| window.from as f64)
}

fn table(name: &str, windows: &[Window]) -> Table {
    let title = format!("{name}, 16 tiny pieces: time of an iteration");
    let mut table = Table::new(title, &["iterations", "no mark us", "marked us", "relative speed"]);
    for window in windows {
        let each = |seconds: f64| figure(seconds * 1e6 / (window.to - window.from) as f64);
        let speed = figure(window.marked / window.found);
        table.row([format!("{} to {}", window.from, window.to), each(window.found), each(window.marked), speed]);
    }
    table
}

fn circuit() -> Box<Iterate> {
    Box::new(|runtime, steps, trace| {
        let options = maniple_apps::circuit::Options { trace, ..tiny_circuit(steps) };
        let report = maniple_apps::circuit::run_on(runtime, &options)?;
        Ok((report.steps, report.time.as_secs_f64()))
    })
}

fn stencil() -> Box<Iterate> {
    Box::new(|runtime, steps, trace| {
        let options = stencil::Options {
            size: Extents { rows: 32, columns: 32 },
            tiles: Some(Extents { rows: 4, columns: 4 }),
            steps,
            trace,
            runtime: without_progress(),
            ..stencil::Options::default()
        };
        let report = stencil::run_on(runtime, &options)?;
        Ok((report.steps, report.time.as_secs_f64()))
    })
}

fn conjugate_gradients() -> Box<Iterate> {
    let matrix = Arc::new(chain(4096));
    Box::new(move |runtime, iterations, trace| {
        let options = cg::Options {
            max_iterations: Some(iterations),
            pieces: Some(16),
            trace,
            runtime: without_progress(),
            ..cg::Options::default()
        };
        let (iterations, time) = cg::iterate(runtime, &options, &matrix)?;
        Ok((iterations, time.as_secs_f64()))
    })
}

/// A chain of springs, as a matrix: small, and yet the iteration takes half as many steps as there are rows.
fn chain(rows: u32) -> Sparse {
    let diagonal = (0..rows).map(|row| Entry { row, column: row, value: 2.0 });
    let beside = (1..rows).map(|row| Entry { row, column: row - 1, value: -1.0 });
    let beside = beside.flat_map(|entry| [entry, entry.mirrored()]);
    Sparse::from_entries(rows as usize, diagonal.chain(beside).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of ten iterations each, with so many seconds without a mark where marked ones take one.
    fn windows_of(found: &[f64]) -> Vec<Window> {
        let window = |(number, &found)| Window { from: 10 * number, to: 10 * (number + 1), found, marked: 1.0 };
        found.iter().enumerate().map(window).collect()
    }

    #[test]
    fn a_trace_is_found_where_the_speed_is_reached_and_kept() {
        assert_eq!(found_at(&windows_of(&[9.0, 2.0, 1.0, 1.0])), 20.0);
        assert_eq!(found_at(&windows_of(&[1.0, 1.0])), 0.0);
        // Once by chance does not count.
        assert_eq!(found_at(&windows_of(&[1.0, 9.0, 1.0])), 20.0);
        assert!(found_at(&windows_of(&[2.0, 2.0])).is_nan());
    }

    #[test]
    fn the_speed_is_that_of_all_iterations_from_one_on() {
        assert_eq!(speed_after(&windows_of(&[9.0, 1.0, 3.0]), 10), 0.5);
    }
}
