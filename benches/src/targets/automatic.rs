//! Programs without a mark against the same with their iterations marked as traces.
//!
//! Each program runs from its beginning for several numbers of iterations, with and without marks in turn. What the
//! iterations between two of these numbers take is the difference within one such round: how a program begins and ends
//! does not count, and what the machine does to a round it does to both. The figures are medians of the rounds.

use std::sync::Arc;

use maniple::Runtime;
use maniple_apps::cg;
use maniple_apps::cg::matrix::{Matrix, from_entries};
use maniple_apps::cg::problem::CgProblem;
use maniple_apps::stencil::{self, Extents};
use maniple_tensor::storage::EntryList;

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target, tiny_circuit, without_progress};
use crate::error::Result;
use crate::median;
use crate::table::{Table, figure};

/// Target for the cost of finding traces.
pub const TARGET: Target = Target {
    name: "automatic",
    about: "circuit, cg and stencil of 16 tiny pieces, without a mark and with iterations marked as traces: the speed of one relative to the other",
    measure,
};

/// A program that is run for about so many iterations, marked or not. Gives how many there were, and the seconds that
/// they took.
type Iterate = dyn Fn(&Runtime, usize, bool) -> Result<(usize, f64)>;

/// Numbers of iterations after which a program ends.
const ENDS: [usize; 6] = [1, 25, 50, 100, 1000, 3000];

/// From here on automatic traces are to be nearly as good.
const FOUND: usize = 100;

const WANTED: f64 = 0.9;

/// So many times as many rounds as elsewhere: what is wanted lies closer to what is found than one round to the next.
const MORE_ROUNDS: usize = 4;

fn measure(effort: Effort) -> Result<Findings> {
    let runtime = Runtime::builder().workers(effort.cores).build()?;
    let mut findings = Findings::default();
    for (name, program) in [("circuit", circuit()), ("cg", conjugate_gradients()), ("stencil", stencil())] {
        let rounds = rounds(&runtime, &*program, MORE_ROUNDS * effort.rounds)?;
        let speed = speed_after(&rounds, FOUND);
        let what = format!("{name} without a mark, from iteration {FOUND} on: speed relative to marked");
        findings.rows.push(Row::new(what, speed, "times").must(Bound::AtLeast(WANTED)));
        let what = format!("{name} without a mark: from which iteration on it has {WANTED} of the speed");
        findings.rows.push(Row::new(what, found_at(&rounds), "").must(Bound::AtMost(FOUND as f64)));
        findings.details.push(table(name, &rounds));
    }
    Ok(findings)
}

/// A program that ran from its beginning, with and without marks.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Iterations that it had.
    end: usize,
    /// Seconds without a mark.
    found: f64,
    /// Seconds with marks.
    marked: f64,
}

/// Runs of more and more iterations, one after the other.
type Round = Vec<Run>;

fn rounds(runtime: &Runtime, program: &Iterate, rounds: usize) -> Result<Vec<Round>> {
    let run = |&end: &usize| {
        let (end, found) = program(runtime, end, false)?;
        let (_, marked) = program(runtime, end, true)?;
        Ok(Run { end, found, marked })
    };
    let round = |_| {
        let mut round = ENDS.iter().map(run).collect::<Result<Round>>()?;
        // A program that has its answer ends earlier.
        round.dedup_by_key(|run| run.end);
        Ok(round)
    };
    (0..rounds).map(round).collect()
}

/// A stretch of iterations: what all rounds have to say of it.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: usize,
    to: usize,
    /// Seconds without a mark.
    found: f64,
    /// Seconds with marks.
    marked: f64,
    /// The speed without a mark relative to that with marks.
    speed: f64,
}

impl Window {
    /// From the end of one run of each round to that of another.
    fn between(rounds: &[Round], first: usize, last: usize) -> Self {
        let found = |round: &Round| round[last].found - round[first].found;
        let marked = |round: &Round| round[last].marked - round[first].marked;
        Window {
            from: rounds[0][first].end,
            to: rounds[0][last].end,
            found: median(rounds.iter().map(found).collect()),
            marked: median(rounds.iter().map(marked).collect()),
            speed: median(rounds.iter().map(|round| marked(round) / found(round)).collect()),
        }
    }
}

/// The stretches between two numbers of iterations that follow each other.
fn windows(rounds: &[Round]) -> impl Iterator<Item = Window> {
    (1..rounds[0].len()).map(|last| Window::between(rounds, last - 1, last))
}

/// The speed without a mark relative to that with marks, in all iterations from one on.
fn speed_after(rounds: &[Round], from: usize) -> f64 {
    let ends = &rounds[0];
    let first = ends.iter().position(|run| run.end >= from);
    first.map_or(f64::NAN, |first| Window::between(rounds, first, ends.len() - 1).speed)
}

/// The iteration at which a window begins that has the speed which is wanted, and so has all that follows. Not a number
/// if there is none.
fn found_at(rounds: &[Round]) -> f64 {
    let has_speed = |window: &Window| window.speed >= WANTED && speed_after(rounds, window.from) >= WANTED;
    windows(rounds).find(has_speed).map_or(f64::NAN, |window| window.from as f64)
}

fn table(name: &str, rounds: &[Round]) -> Table {
    let title = format!("{name}, 16 tiny pieces: time of an iteration");
    let mut table = Table::new(title, &["iterations", "no mark us", "marked us", "relative speed"]);
    for window in windows(rounds) {
        let each = |seconds: f64| figure(seconds * 1e6 / (window.to - window.from) as f64);
        let range = format!("{} to {}", window.from, window.to);
        table.row([range, each(window.found), each(window.marked), figure(window.speed)]);
    }
    table
}

fn circuit() -> Box<Iterate> {
    Box::new(|runtime, steps, trace| {
        let options = maniple_apps::circuit::CircuitOptions { trace, ..tiny_circuit(steps) };
        let report = maniple_apps::circuit::run_on(runtime, &options)?;
        Ok((report.steps, report.time.as_secs_f64()))
    })
}

fn stencil() -> Box<Iterate> {
    Box::new(|runtime, steps, trace| {
        let options = stencil::StencilOptions {
            size: Extents { rows: 32, columns: 32 },
            tiles: Some(Extents { rows: 4, columns: 4 }),
            steps,
            trace,
            runtime: without_progress(),
            ..stencil::StencilOptions::default()
        };
        let report = stencil::run_on(runtime, &options)?;
        Ok((report.steps, report.time.as_secs_f64()))
    })
}

fn conjugate_gradients() -> Box<Iterate> {
    let chain = CgProblem::given("a chain", &Arc::new(chain(4096)));
    Box::new(move |runtime, iterations, trace| {
        let options = cg::CgOptions {
            max_iterations: Some(iterations),
            pieces: Some(16),
            trace,
            runtime: without_progress(),
            ..cg::CgOptions::default()
        };
        let (iterations, time) = cg::iterate(runtime, &options, &chain)?;
        Ok((iterations, time.as_secs_f64()))
    })
}

/// A chain of springs, as a matrix: small, and yet the iteration takes half as many steps as there are rows.
fn chain(rows: i64) -> Matrix {
    let mut entries = EntryList::new(2);
    for row in 0..rows {
        entries.push(&[row, row], 2.0);
        if row > 0 {
            entries.push(&[row, row - 1], -1.0);
            entries.push(&[row - 1, row], -1.0);
        }
    }
    from_entries(rows as usize, entries).expect("the matrix fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round whose windows of ten iterations each take so many seconds without a mark where marked ones take one.
    fn round_of(found: &[f64]) -> Round {
        let start = Run { end: 0, found: 0.0, marked: 0.0 };
        let later = found.iter().scan(start, |run, &found| {
            *run = Run { end: run.end + 10, found: run.found + found, marked: run.marked + 1.0 };
            Some(*run)
        });
        std::iter::once(start).chain(later).collect()
    }

    #[test]
    fn a_trace_is_found_where_the_speed_is_reached_and_kept() {
        assert_eq!(found_at(&[round_of(&[9.0, 2.0, 1.0, 1.0])]), 20.0);
        assert_eq!(found_at(&[round_of(&[1.0, 1.0])]), 0.0);
        // Once by chance does not count.
        assert_eq!(found_at(&[round_of(&[1.0, 9.0, 1.0])]), 20.0);
        assert!(found_at(&[round_of(&[2.0, 2.0])]).is_nan());
    }

    #[test]
    fn the_speed_is_that_of_all_iterations_from_one_on() {
        assert_eq!(speed_after(&[round_of(&[9.0, 1.0, 3.0])], 10), 0.5);
        assert!(speed_after(&[round_of(&[1.0])], 11).is_nan());
    }

    #[test]
    fn a_round_that_something_else_slows_down_does_not_count() {
        let slow = round_of(&[1.0, 100.0]);
        assert_eq!(speed_after(&[round_of(&[1.0, 2.0]), slow, round_of(&[1.0, 2.0])], 10), 0.5);
    }
}
