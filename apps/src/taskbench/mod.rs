//! Task Bench (Slaughter et al. 2020): graphs of tasks that do nothing but depend on each other, to measure what a
//! runtime costs.
//!
//! [`graph`], [`dependences`] and [`hash`]: which tasks there are and what each depends on; [`point`]: what a task
//! reads and writes, and how a wrong value is noticed; [`kernel`], [`compute`] and [`scratch`]: what it
//! computes; [`tasks`]: the graph as a region and launches; [`flags`] and [`report`]: what Task Bench is told, and what
//! it prints; here: what is run, and how it is timed.

pub mod dependences;
pub mod flags;
pub mod graph;
pub mod point;
pub mod report;
pub mod tasks;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use maniple::prelude::*;
pub use maniple_tasks::taskbench::{compute, hash, kernel, scratch};

use self::graph::Graph;
use self::report::{TaskbenchReport, Totals};
use self::tasks::Tasks;
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::{RuntimeOptions, default_from_command_line};
use crate::progress::Progress;

/// The long description of `maniple run taskbench`, which its `--help` shows.
pub const ABOUT: &str = "\
Run Task Bench: graphs of tasks that depend on each other in one of several patterns, to measure what a task costs.

A graph has STEPS rows of WIDTH tasks. A task depends on some of the tasks of the row before, reads what they wrote, computes for a while, \
and writes its own step and point for others to read. Every task checks every value that it reads: a task that ran too early, or was \
given another's data, ends the program with an error.

All rows are run twice; the second time is measured. `maniple run metg` finds the smallest tasks that are still worth their cost.

The flags are those of Task Bench and have one dash; two do as well. They may be mixed with the options, and what they do not know they ignore, with \
a warning.";

/// The examples that `maniple run taskbench --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run taskbench -type stencil_1d -steps 1000 -width 2
  maniple run taskbench -type fft -width 16 -kernel compute_bound -iter 1000
  maniple run taskbench -type nearest -radix 5 -and -type tree -width 8
  maniple run taskbench -kernel memory_bound -scratch 65536 -iter 16 -width 4
  maniple run taskbench --workers 1 -type dom -vv
  maniple run taskbench --check -type fft -steps 100   prove it right";

/// The flags, and examples.
#[must_use]
pub fn long_help() -> String {
    format!("{}{EXAMPLES}", flags::help())
}

/// The advice to a user whose run found too little memory.
pub(crate) const ON_MEMORY: &str = "\
give data more memory with --memory, or take a smaller graph with -width, -output, -scratch or -fields";

/// How many fields the steps write in turn: a step may write while the one before is still being read.
pub const FIELDS: usize = 2;

/// The graphs to run.
#[derive(Args, Clone, Debug)]
#[command(override_usage = "maniple run taskbench [OPTIONS] [FLAGS]...")]
pub struct TaskbenchOptions {
    /// Task Bench's own flags, each with one dash.
    #[arg(last = true, hide = true)]
    pub flags: Vec<String>,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(TaskbenchOptions);

/// The configuration of a run of Task Bench.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The graphs, which run side by side.
    pub graphs: Vec<Graph>,
    /// How much is printed about the graphs: 1 for dependences, 2 also for reverse dependences.
    pub verbosity: u32,
    /// For how many machines transfers are estimated.
    pub nodes: Option<i64>,
    /// How many fields the steps write in turn: at least 2.
    pub fields: usize,
    /// Whether it is checked that every task has run.
    pub validates: bool,
    /// Words that are no flags of Task Bench.
    pub ignored: Vec<String>,
}

impl Default for Configuration {
    /// Task Bench's default graph.
    fn default() -> Self {
        let (graphs, ignored) = (vec![Graph::new(0)], Vec::new());
        Self { graphs, verbosity: 0, nodes: None, fields: FIELDS, validates: true, ignored }
    }
}

/// Runs the graphs that the flags describe.
///
/// # Errors
/// [`AppError::Usage`] if the flags make no sense; else as [`run_on`].
pub fn run(options: &TaskbenchOptions) -> AppResult<TaskbenchReport> {
    let configuration = flags::parse(&options.flags)?;
    if !configuration.ignored.is_empty() {
        let ignored = configuration.ignored.join(" ");
        let _ = writeln!(io::stderr(), "warning: Task Bench has no `{ignored}`: ignored; --help lists its flags");
    }
    let steps = configuration.graphs.iter().map(|graph| graph.steps.max(0) as usize).max().unwrap_or(0);
    options.runtime.run(|runtime| run_showing(runtime, configuration, Some(Progress::steps(steps, &options.runtime))))
}

/// Runs graphs on a runtime that was started before.
///
/// # Errors
/// [`AppError::Runtime`] if a task finds a wrong input or fails otherwise, for instance for want of memory;
/// [`AppError::Verification`] if a task was left out.
pub fn run_on(runtime: &Runtime, configuration: Configuration) -> AppResult<TaskbenchReport> {
    run_showing(runtime, configuration, None)
}

/// The same, showing how far it is until it begins to measure.
fn run_showing(
    runtime: &Runtime,
    configuration: Configuration,
    mut progress: Option<Progress>,
) -> AppResult<TaskbenchReport> {
    let totals = Totals::of(&configuration);
    let (elapsed, tasks) = runtime.run(async |cx| measure(cx, &configuration, runtime, progress.take()).await)?;
    if configuration.validates && u128::from(tasks) != totals.tasks {
        return Err(AppError::Verification(format!("the graphs have {} tasks, but {tasks} have run", totals.tasks)));
    }
    Ok(TaskbenchReport { configuration, totals, elapsed })
}

/// Runs all steps twice; of the second time, how long it took and how many tasks ran. The first time may take much
/// longer, and only then is its progress shown.
async fn measure(
    cx: &Context,
    configuration: &Configuration,
    runtime: &Runtime,
    progress: Option<Progress>,
) -> Result<(Duration, u64)> {
    let graphs = configuration.graphs.iter();
    let graphs: Vec<Tasks> = graphs.map(|graph| Tasks::new(cx, graph, configuration.fields)).collect::<Result<_>>()?;
    graphs.iter().for_each(|graph| graph.prepare(cx));
    launch_steps(cx, &graphs, progress.as_ref());
    cx.execution_fence().await?;
    drop(progress);
    let (started, before) = (Instant::now(), runtime.statistics().tasks);
    launch_steps(cx, &graphs, None);
    cx.execution_fence().await?;
    // Of the slowest node: what is run next may depend on it, and has to be the same on all.
    let elapsed = cx.per_node(started.elapsed().as_secs_f64()).reduce(Max).await?;
    let tasks = cx.per_node(runtime.statistics().tasks - before).reduce(Sum).await?;
    Ok((Duration::from_secs_f64(elapsed), tasks))
}

/// Launches the steps of all graphs, in turn.
fn launch_steps(cx: &Context, graphs: &[Tasks], progress: Option<&Progress>) {
    let steps = graphs.iter().map(Tasks::steps).max().unwrap_or(0);
    // Of a long run, few steps are told of: that costs more than a tiny task.
    let stride = steps / 128 + 1;
    for step in 0..steps {
        let mut last = None;
        for graph in graphs.iter().filter(|graph| step < graph.steps()) {
            last = Some(graph.launch(cx, step));
        }
        if let (Some(progress), Some(last), true) = (progress, last, (step + 1) % stride == 0) {
            progress.advance_by_after(stride as u64, &last);
        }
    }
}
