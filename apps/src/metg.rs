//! The minimum effective task granularity (Slaughter et al. 2020, section 4): how short tasks may be before half of the time is lost.
//!
//! Task Bench runs with ever shorter tasks. Of each length, *granularity* is the time that a processor spends a task, and *efficiency* the part of
//! it that the same work takes where tasks are long. METG(50%) is the smallest granularity at which the efficiency is still a half.

use std::fmt;
use std::time::Duration;

use clap::Args;
use maniple::ProcessorKind;

use crate::error::Result;
use crate::options::{RuntimeOptions, default_from_command_line, positive, worker_count};
use crate::progress::Progress;
use crate::taskbench::graph::Pattern;
use crate::taskbench::kernel::KernelKind;
use crate::taskbench::{self, Configuration};

/// What `maniple run metg` teaches.
pub const ABOUT: &str = "\
Find the smallest tasks that are worth their cost: METG(50%), the minimum effective task granularity of Task Bench.

Task Bench's kernel compute_bound runs with fewer and fewer iterations a task. The first run, with very long tasks, shows what an iteration \
takes when the runtime's own work does not count. As tasks get shorter, it takes a larger and larger part of the time that the cores spend a \
task, the granularity. METG(50%) is the smallest granularity at which half of the time is still spent on iterations: a program whose tasks are \
longer loses less than half.

Each run is one of `maniple run taskbench` on a runtime of its own; of a few, the fastest counts. It takes about a minute.";

/// What `maniple run metg` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple run metg                                 a stencil, two points wide
  maniple run metg --type all_to_all --width 8 --verbose
  maniple run metg --type nearest --radix 5 --width 4 --cores 4";

/// What to measure, and how long.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What tasks depend on: one of the patterns of `maniple run taskbench`
    #[arg(long = "type", value_name = "PATTERN", default_value_t = Pattern::Stencil1d)]
    pub pattern: Pattern,

    /// Tasks of a step
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive, allow_hyphen_values = true)]
    pub width: usize,

    /// On how many tasks a task depends, where the pattern leaves that open
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive, allow_hyphen_values = true)]
    pub radix: usize,

    /// After how many steps the dependences repeat, where the pattern leaves that open
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub period: Option<usize>,

    /// Cores whose time counts, and workers unless --workers says otherwise [default: the workers]
    #[arg(long, value_name = "N", value_parser = worker_count, allow_hyphen_values = true)]
    pub cores: Option<usize>,

    /// Runs for each length of tasks, of which the fastest counts
    #[arg(long, visible_alias = "reps", value_name = "N", default_value_t = 3, value_parser = positive, allow_hyphen_values = true)]
    pub repetitions: usize,

    /// Seconds that a run should take if nothing were lost
    #[arg(long, value_name = "SECONDS", default_value_t = 0.4, value_parser = budget, allow_hyphen_values = true)]
    pub budget: f64,

    /// Print what was measured for each length of tasks
    #[arg(long)]
    pub verbose: bool,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(Options);

fn budget(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "it must be a number of seconds between 0 and 3600".to_owned())
}

/// Tasks of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Iterations of a task.
    pub iterations: i64,
    /// Seconds that a core spends a task.
    pub granularity: f64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pattern.
    pub pattern: Pattern,
    /// Tasks of a step.
    pub width: usize,
    /// Cores whose time counts.
    pub cores: usize,
    /// From long tasks to short ones.
    pub rows: Vec<Row>,
    /// Whether the rows are printed.
    pub verbose: bool,
}

impl Report {
    /// The part of a row's time that is spent on iterations, if they are as fast as in the best row.
    #[must_use]
    pub fn efficiency(&self, row: Row) -> f64 {
        let iteration = |row: &Row| row.granularity / row.iterations as f64;
        let fastest = self.rows.iter().map(iteration).fold(f64::INFINITY, f64::min);
        row.iterations as f64 * fastest / row.granularity
    }

    /// METG(50%) in seconds: the granularity of the shortest tasks that are efficient. There are always some: the fastest iterations are.
    #[must_use]
    pub fn metg(&self) -> Option<f64> {
        let shortest = self.rows.iter().rev().find(|row| self.efficiency(**row) >= 0.5);
        shortest.map(|row| row.granularity)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = |seconds: f64| seconds * 1e6;
        for row in self.rows.iter().filter(|_| self.verbose) {
            let (granularity, percent) = (microseconds(row.granularity), 100.0 * self.efficiency(*row));
            let iterations = row.iterations;
            writeln!(f, "iter {iterations:8}  granularity {granularity:10.2} us  efficiency {percent:5.1}%")?;
        }
        let metg = self.metg().map_or_else(|| "nan".to_owned(), |seconds| format!("{:.2}", microseconds(seconds)));
        writeln!(f, "METG(50%) {metg} us  ({}, width {}, {} cores)", self.pattern, self.width, self.cores)
    }
}

/// Measures METG(50%) of Task Bench on this runtime.
///
/// # Errors
/// As [`taskbench::run`].
pub fn run(options: &Options) -> Result<Report> {
    let mut runtime = options.runtime.clone();
    runtime.workers = runtime.workers.or(options.cores);
    let workers = || runtime.machine().processors_of(ProcessorKind::Cpu).count();
    let cores = options.cores.unwrap_or_else(workers);
    let progress = Progress::iterations(&runtime);
    let sweep = Sweep { width: options.width, cores, repetitions: options.repetitions, budget: options.budget };
    let rows = sweep.rows(|iterations, steps| {
        progress.set(iterations as usize, || "a task".to_owned());
        // A runtime for each run, so that nothing that one leaves behind helps or hurts the next.
        let report = taskbench::run_on(&runtime.start()?, options.configuration(iterations, steps)?)?;
        Ok((report.elapsed, report.totals.tasks))
    })?;
    Ok(Report { pattern: options.pattern, width: options.width, cores, rows, verbose: options.verbose })
}

impl Options {
    /// The graph whose tasks have so many iterations, as Task Bench's flags give it.
    fn configuration(&self, iterations: i64, steps: i64) -> Result<Configuration> {
        let Self { pattern, width, radix, .. } = self;
        let period = self.period.map_or_else(String::new, |period| format!(" -period {period}"));
        let flags = format!(
            "-steps {steps} -width {width} -type {pattern} -radix {radix} -kernel {} -iter {iterations}{period}",
            KernelKind::ComputeBound
        );
        taskbench::flags::parse(&flags.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }
}

/// Iterations of the long tasks that show what one takes.
const LONG: i64 = 1 << 20;

/// Iterations of the longest tasks after that.
const FIRST: i64 = 1 << 17;

/// What a task costs beside its iterations, in seconds: a guess, from which only the number of steps follows.
const OVERHEAD: f64 = 2e-6;

/// Where the efficiency has fallen below this, the half is far behind.
const ENOUGH: f64 = 0.2;

/// How lengths of tasks are tried.
struct Sweep {
    width: usize,
    cores: usize,
    repetitions: usize,
    budget: f64,
}

impl Sweep {
    /// Tries shorter and shorter tasks. `run` gets iterations and steps, and tells how long all tasks took, and how many there were.
    fn rows(&self, mut run: impl FnMut(i64, i64) -> Result<(Duration, u128)>) -> Result<Vec<Row>> {
        let mut row = |iterations, steps| self.fastest(iterations, || run(iterations, steps));
        let long = row(LONG, 4)?;
        let iteration = long.granularity / LONG as f64;
        let mut rows = vec![long];
        let mut iterations = FIRST;
        while iterations >= 1 {
            let found = row(iterations, self.steps(iterations as f64 * iteration))?;
            rows.push(found);
            if iterations as f64 * iteration / found.granularity < ENOUGH {
                break;
            }
            iterations /= 2;
        }
        Ok(rows)
    }

    /// So many steps that tasks with so many seconds of work fill the budget.
    fn steps(&self, work: f64) -> i64 {
        let steps = self.budget * self.cores as f64 / (self.width as f64 * (work + OVERHEAD));
        (steps as i64).clamp(10, 20_000)
    }

    fn fastest(&self, iterations: i64, mut run: impl FnMut() -> Result<(Duration, u128)>) -> Result<Row> {
        let mut granularity = f64::INFINITY;
        for _ in 0..self.repetitions {
            let (elapsed, tasks) = run()?;
            granularity = granularity.min(elapsed.as_secs_f64() * self.cores as f64 / tasks as f64);
        }
        Ok(Row { iterations, granularity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which an iteration takes a nanosecond of a core, and a task so many seconds besides.
    fn report(overhead: f64, cores: usize, budget: f64) -> (Report, Vec<(i64, i64)>) {
        let mut runs = Vec::new();
        let (width, repetitions) = (2, 2);
        let rows = Sweep { width, cores, repetitions, budget }.rows(|iterations, steps| {
            runs.push((iterations, steps));
            let tasks = steps * width as i64;
            // The first of two runs is disturbed.
            let disturbed = if runs.len() % 2 == 1 { 3.0 } else { 1.0 };
            let task = (iterations as f64 * 1e-9 + overhead) * disturbed;
            Ok((Duration::from_secs_f64(task * tasks as f64 / cores as f64), tasks as u128))
        });
        let rows = rows.expect("nothing fails");
        (Report { pattern: Pattern::Stencil1d, width, cores, rows, verbose: false }, runs)
    }

    #[test]
    fn the_smallest_tasks_that_are_efficient_are_found() {
        // 4.1 us of work are more than the overhead, 2.05 us are less.
        let (report, _) = report(3e-6, 2, 0.4);
        let metg = report.metg().expect("long tasks are efficient");
        assert!((metg - 7.096e-6).abs() < 1e-8, "{metg}");
        assert_eq!(report.to_string(), "METG(50%) 7.10 us  (stencil_1d, width 2, 2 cores)\n");
    }

    #[test]
    fn the_sweep_ends_where_most_of_the_time_is_lost() {
        let (report, runs) = report(3e-6, 2, 0.4);
        let iterations: Vec<i64> = report.rows.iter().map(|row| row.iterations).collect();
        assert_eq!(iterations, [1 << 20, 131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048, 1024, 512]);
        assert_eq!(runs.len(), 2 * iterations.len(), "each length as often as asked");
    }

    #[test]
    fn without_overhead_the_sweep_goes_down_to_single_iterations() {
        let (report, _) = report(0.0, 1, 0.4);
        assert_eq!(report.rows.last().map(|row| row.iterations), Some(1));
        assert!(report.metg().is_some_and(|metg| metg < 2e-9));
    }

    #[test]
    fn steps_fill_the_budget_within_limits() {
        let sweep = |budget| Sweep { width: 2, cores: 2, repetitions: 1, budget };
        assert_eq!(sweep(0.4).steps(98e-6), 4000);
        assert_eq!(sweep(0.4).steps(0.0), 20_000);
        assert_eq!(sweep(0.0).steps(98e-6), 10);
    }

    #[test]
    fn every_row_can_be_printed() {
        let rows = vec![Row { iterations: 4, granularity: 4e-6 }, Row { iterations: 1, granularity: 2.5e-6 }];
        let report = Report { pattern: Pattern::Fft, width: 8, cores: 4, rows, verbose: true };
        let expected = "iter        4  granularity       4.00 us  efficiency 100.0%\n\
                        iter        1  granularity       2.50 us  efficiency  40.0%\n\
                        METG(50%) 4.00 us  (fft, width 8, 4 cores)\n";
        assert_eq!(report.to_string(), expected);
    }
}
