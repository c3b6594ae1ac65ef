//! The minimum effective task granularity (Slaughter et al. 2020, section 4): how short tasks may be before half of the
//! time is lost.
//!
//! Task Bench runs with ever shorter tasks. Of each length, *granularity* is the time that a processor spends a task,
//! and *efficiency* the part of it that the same work takes where tasks are long. METG(50%) is the smallest granularity
//! at which the efficiency is still a half.
//!
//! [`sweep`]: which lengths of tasks are tried, and what follows from the times; here: the sweep over this runtime.

pub mod sweep;

use std::fmt;

use clap::Args;
use maniple::ProcessorKind;

use self::sweep::{Curve, Sweep};
use crate::error::{Error, Result};
use crate::options::{
    MOST_PIECES, RuntimeOptions, default_from_command_line, piece_count, place, positive, whole, worker_count,
    workers_of_job,
};
use crate::progress::Progress;
use crate::taskbench::flags::complete;
use crate::taskbench::graph::{Graph, Pattern};
use crate::taskbench::kernel::KernelKind;
use crate::taskbench::{self, Configuration};

/// The long description of `maniple run metg`, which its `--help` shows.
pub const ABOUT: &str = "\
Find the smallest tasks that are worth their cost: METG(50%), the minimum effective task granularity of Task Bench.

Task Bench's kernel compute_bound runs with fewer and fewer iterations a task. The first run, with very long tasks, shows what an iteration \
takes when the runtime's own work does not count. As tasks get shorter, it takes a larger and larger part of the time that the cores spend a \
task, the granularity. METG(50%) is the smallest granularity at which half of the time is still spent on iterations: a program whose tasks are \
longer loses less than half.

Each run is one of `maniple run taskbench` on a runtime of its own; of a few, the fastest counts. It takes about a minute.";

/// The examples that `maniple run metg --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run metg                                 a stencil, two points wide
  maniple run metg --type all_to_all --width 8 --verbose
  maniple run metg --type nearest --radix 5 --width 4 --cores 4";

/// The graphs to measure, and how long.
#[derive(Args, Clone, Debug)]
pub struct MetgOptions {
    /// Dependences of tasks: one of the patterns of `maniple run taskbench`
    #[arg(long = "type", value_name = "PATTERN", default_value_t = Pattern::Stencil1d)]
    pub pattern: Pattern,

    /// Tasks of a step
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = piece_count, allow_hyphen_values = true)]
    pub width: usize,

    /// On how many tasks a task depends, where the pattern leaves that open
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = radix, allow_hyphen_values = true)]
    pub radix: usize,

    /// After how many steps the dependences repeat, where the pattern leaves that open
    #[arg(long, value_name = "N", value_parser = piece_count, allow_hyphen_values = true)]
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

default_from_command_line!(MetgOptions);

fn radix(text: &str) -> Result<usize, String> {
    whole(0, MOST_PIECES as u64, text).map(|number| number as usize)
}

fn budget(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "it must be a number of seconds between 0 and 3600".to_owned())
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct MetgReport {
    /// The pattern.
    pub pattern: Pattern,
    /// Tasks of a step.
    pub width: usize,
    /// Cores whose time counts.
    pub cores: usize,
    /// The granularity of tasks of each length.
    pub curve: Curve,
    /// Whether all of that is printed.
    pub verbose: bool,
}

impl fmt::Display for MetgReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = |seconds: f64| seconds * 1e6;
        for row in self.curve.rows.iter().filter(|_| self.verbose) {
            let (granularity, percent) = (microseconds(row.granularity), 100.0 * self.curve.efficiency(*row));
            let iterations = row.iterations;
            writeln!(f, "iter {iterations:8}  granularity {granularity:10.2} us  efficiency {percent:5.1}%")?;
        }
        let metg =
            self.curve.metg().map_or_else(|| "nan".to_owned(), |seconds| format!("{:.2}", microseconds(seconds)));
        writeln!(f, "METG(50%) {metg} us  ({}, width {}, {} cores)", self.pattern, self.width, self.cores)
    }
}

/// Measures METG(50%) of Task Bench on this runtime.
///
/// # Errors
/// As [`taskbench::run`]; [`Error::Usage`] if a record or a profile is asked for, which one run has and not a hundred.
pub fn run(options: &MetgOptions) -> Result<MetgReport> {
    if options.runtime.record.is_wanted() || options.runtime.profile.is_some() {
        let problem = "--check, --graph and --profile are about a single run: give them to `maniple run taskbench`";
        return Err(Error::Usage(problem.to_owned()));
    }
    if std::env::var_os("MANIPLE_PROFILE").is_some_and(|file| !file.is_empty()) {
        let problem = "a profile is of a single run, and would slow all of these: unset MANIPLE_PROFILE, or profile `maniple run taskbench`";
        return Err(Error::Usage(problem.to_owned()));
    }
    let mut runtime = options.runtime.clone();
    runtime.workers = runtime.workers.or(options.cores);
    // A runtime for each run, so that nothing that one leaves behind helps or hurts the next; but a process joins its
    // job once.
    let of_job = (place().nodes > 1).then(|| runtime.start()).transpose()?;
    let cores = match (options.cores, &of_job) {
        (Some(cores), _) => cores,
        (None, Some(of_job)) => workers_of_job(of_job)?,
        (None, None) => runtime.machine().processors_of(ProcessorKind::Cpu).count(),
    };
    let progress = Progress::iterations(&runtime);
    let sweep = Sweep::new(options.width, cores, options.repetitions, options.budget);
    let curve = sweep.of(|iterations, steps| -> Result<_> {
        progress.set(iterations as usize, || "a task".to_owned());
        let configuration = options.configuration(iterations, steps)?;
        let report = match &of_job {
            Some(runtime) => taskbench::run_on(runtime, configuration)?,
            None => taskbench::run_on(&runtime.start()?, configuration)?,
        };
        Ok((report.elapsed, report.totals.tasks))
    })?;
    Ok(MetgReport { pattern: options.pattern, width: options.width, cores, curve, verbose: options.verbose })
}

impl MetgOptions {
    /// The graph whose tasks have so many iterations.
    fn configuration(&self, iterations: i64, steps: i64) -> Result<Configuration> {
        let &Self { pattern, width, radix, period, .. } = self;
        let (width, radix, period) = (width as i64, radix as i64, period.map(|period| period as i64));
        let mut graph = Graph { steps, width, radix, pattern, ..Graph::new(0) };
        (graph.kernel.kind, graph.kernel.iterations) = (KernelKind::ComputeBound, iterations);
        // Options here have the names of Task Bench's flags, with one dash more.
        let graph = complete(graph, period).map_err(|problem| Error::Usage(problem.said("--")))?;
        Ok(Configuration { graphs: vec![graph], ..Configuration::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::sweep::SweepRow;
    use super::*;

    #[test]
    fn every_row_can_be_printed() {
        let rows = vec![SweepRow { iterations: 4, granularity: 4e-6 }, SweepRow { iterations: 1, granularity: 2.5e-6 }];
        let report = MetgReport { pattern: Pattern::Fft, width: 8, cores: 4, curve: Curve { rows }, verbose: true };
        let expected = "iter        4  granularity       4.00 us  efficiency 100.0%\n\
                        iter        1  granularity       2.50 us  efficiency  40.0%\n\
                        METG(50%) 4.00 us  (fft, width 8, 4 cores)\n";
        assert_eq!(report.to_string(), expected);
    }
}
