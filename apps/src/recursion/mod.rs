//! Trees of tasks whose shape is not known before: Fibonacci numbers, queens on a board, adaptive quadrature.
//!
//! [`tasks`]: the recursions; here: what to compute, and whether it is right. Tasks have no regions, so there is
//! nothing to analyse: workers steal them from each other, and nodes that have nothing to do take them from others.

use std::fmt;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use maniple::prelude::*;
pub use maniple_tasks::recursion as tasks;

use self::tasks::{Board, Interval, fibonacci, integral_of_spikes, quadrature, queens};
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::{RuntimeOptions, default_from_command_line};
use crate::report::{ReportTable, amount, rate, scientific, seconds};
use crate::verify::is_within;

/// The long description of `maniple run recursion`, which its `--help` shows.
pub const ABOUT: &str = "\
Run a tree of tasks: each launches the tasks below it and adds up what they give. Nobody knows before how large the branches are.

  fibonacci    the Nth Fibonacci number by its definition: tasks that do nothing else, to see what a task costs
  queens       in how many ways N queens can stand on a board without attacking each other: a task for each beginning of 4 rows or less
  quadrature   the integral of a function with narrow peaks, to N digits: intervals are halved where it is steep

Idle workers take tasks from others, the oldest first, which is the largest part of what is left; idle nodes take them from other nodes. How many tasks each node has \
run is printed. The results are compared with what is known: the sequence, the counts (OEIS A000170), the integral in closed form.";

/// The examples that `maniple run recursion --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run recursion                          the 30th Fibonacci number
  maniple run recursion queens --size 13         73,712 solutions
  maniple run recursion quadrature --size 12
  maniple launch -n 2 -- maniple run recursion queens";

/// Which tree to run.
#[derive(Args, Clone, Debug)]
pub struct RecursionOptions {
    /// Function to compute
    #[arg(value_enum, default_value_t = FunctionKind::Fibonacci)]
    pub kind: FunctionKind,

    /// How large: the number, the board, or the digits [default: 30, 12, 10]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32))]
    pub size: Option<u32>,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(RecursionOptions);

/// Functions that can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FunctionKind {
    /// Fibonacci numbers.
    Fibonacci,
    /// Queens on a board.
    Queens,
    /// An integral.
    Quadrature,
}

/// Solutions for boards of 0, 1, 2, ... rows (OEIS A000170).
const QUEENS: [u64; 18] =
    [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365_596, 2_279_184, 14_772_512, 95_815_104];

/// Beginnings of so many rows are tasks.
const ROWS: u32 = 4;

/// A tree that can be run and checked.
#[derive(Clone, Copy, Debug)]
enum Tree {
    Fibonacci(u32),
    Queens(u32),
    Quadrature(u32),
}

/// The result of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeValue {
    /// A number or a count.
    Whole(u64),
    /// An integral.
    Real(f64),
}

impl fmt::Display for TreeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
        }
    }
}

/// A tree that was run.
#[derive(Clone, Debug)]
pub struct RecursionReport {
    /// The description of the computation.
    pub what: String,
    /// The result.
    pub value: TreeValue,
    /// The tasks that each node has run.
    pub tasks: Vec<u64>,
    /// How long it took.
    pub time: Duration,
}

impl fmt::Display for RecursionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.tasks.iter().sum();
        let nodes: Vec<String> = self.tasks.iter().map(u64::to_string).collect();
        let table = ReportTable::new()
            .line("result", self.value)
            .line("tasks run", all)
            .maybe("by each node", (nodes.len() > 1).then(|| nodes.join(", ")))
            .line("time", seconds(self.time))
            .line("tasks/s", amount(rate(all, self.time)));
        write!(f, "{}\n{table}", self.what)
    }
}

impl Tree {
    fn new(options: &RecursionOptions) -> AppResult<Self> {
        let limited = |name: &str, default, range: std::ops::RangeInclusive<u32>| {
            let size = options.size.unwrap_or(default);
            let (first, last) = (range.start(), range.end());
            let expected = || AppError::Usage(format!("--size {size} for {name}: it must be {first} to {last}"));
            range.contains(&size).then_some(size).ok_or_else(expected)
        };
        Ok(match options.kind {
            FunctionKind::Fibonacci => Self::Fibonacci(limited("fibonacci", 30, 0..=90)?),
            FunctionKind::Queens => Self::Queens(limited("queens", 12, 0..=QUEENS.len() as u32 - 1)?),
            FunctionKind::Quadrature => Self::Quadrature(limited("quadrature", 10, 1..=13)?),
        })
    }

    async fn compute(self, cx: &Context) -> Result<TreeValue> {
        Ok(match self {
            Self::Fibonacci(n) => TreeValue::Whole(cx.launch(fibonacci(n)).await?),
            Self::Queens(size) => TreeValue::Whole(cx.launch(queens(Board::new(size), ROWS.min(size))).await?),
            Self::Quadrature(digits) => {
                TreeValue::Real(cx.launch(quadrature(Interval::new(0.0, 1.0), tolerance(digits))).await?)
            }
        })
    }

    /// Compares with what is known.
    fn check(self, value: TreeValue) -> AppResult<()> {
        let expected = match self {
            Self::Fibonacci(n) => TreeValue::Whole((0..n).fold((0, 1), |(a, b): (u64, u64), _| (b, a + b)).0),
            Self::Queens(size) => TreeValue::Whole(QUEENS[size as usize]),
            Self::Quadrature(_) => TreeValue::Real(integral_of_spikes()),
        };
        let is_right = match (self, value, expected) {
            (Self::Quadrature(digits), TreeValue::Real(value), TreeValue::Real(expected)) => {
                // The estimate of the error is one; rounding adds to it.
                is_within((value - expected).abs(), 10.0 * tolerance(digits) + 1e-13)
            }
            _ => value == expected,
        };
        let wrong = || AppError::Verification(format!("the result is {value}, where {expected} is right"));
        is_right.then_some(()).ok_or_else(wrong)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fibonacci(n) => write!(f, "Fibonacci number {n}"),
            Self::Queens(size) => write!(f, "{size} queens"),
            Self::Quadrature(digits) => write!(f, "an integral to {}", scientific(tolerance(*digits))),
        }
    }
}

fn tolerance(digits: u32) -> f64 {
    10_f64.powi(-(digits as i32))
}

/// Runs a tree and checks its result.
///
/// # Errors
/// [`AppError::Usage`] if the size is out of bounds, [`AppError::Verification`] if the result is wrong,
/// [`AppError::Runtime`] if a task fails.
pub fn run(options: &RecursionOptions) -> AppResult<RecursionReport> {
    let tree = Tree::new(options)?;
    options.runtime.run(|runtime| {
        let (value, tasks, time) = runtime.run(async |cx| measure(cx, tree, runtime).await)?;
        tree.check(value)?;
        Ok(RecursionReport { what: tree.to_string(), value, tasks, time })
    })
}

async fn measure(cx: &Context, tree: Tree, runtime: &Runtime) -> Result<(TreeValue, Vec<u64>, Duration)> {
    let before = runtime.statistics().tasks;
    // All nodes are there.
    cx.per_node(0_u64).reduce(Sum).await?;
    let started = Instant::now();
    let value = tree.compute(cx).await?;
    let time = started.elapsed();
    let counts = cx.per_node(runtime.statistics().tasks - before);
    let mut tasks = Vec::new();
    for node in 0..runtime.nodes() {
        tasks.push(counts.get(node as i64)?.await?);
    }
    Ok((value, tasks, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_gives_what_is_known() {
        for (kind, size) in [
            (FunctionKind::Fibonacci, 15),
            (FunctionKind::Queens, 8),
            (FunctionKind::Queens, 3),
            (FunctionKind::Quadrature, 8),
        ] {
            let report = run(&RecursionOptions { kind, size: Some(size), ..RecursionOptions::default() });
            assert!(report.is_ok_and(|report| report.tasks[0] > 1), "{kind:?}");
        }
    }

    #[test]
    fn sizes_out_of_bounds_are_refused() {
        for (kind, size) in [(FunctionKind::Fibonacci, 91), (FunctionKind::Queens, 18), (FunctionKind::Quadrature, 0)] {
            let refused = run(&RecursionOptions { kind, size: Some(size), ..RecursionOptions::default() });
            assert!(matches!(refused, Err(AppError::Usage(text)) if text.contains("must be")), "{kind:?}");
        }
    }

    #[test]
    fn wrong_results_are_found_out() {
        assert!(Tree::Fibonacci(10).check(TreeValue::Whole(54)).is_err());
        assert!(Tree::Quadrature(8).check(TreeValue::Real(integral_of_spikes() + 1e-6)).is_err());
    }
}
