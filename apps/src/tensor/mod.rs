//! Tensor algebra from the command line: statements in index notation, on all processors of all nodes.
//!
//! In reading order: [`options`]: what can be asked for; [`problem`]: the statement and the extents of its index
//! variables; `types`: the type of its elements; [`mod@choose`]: the algorithm and the grid; [`values`]: the operands'
//! elements, [`random`] ones and those of files; [`files`]: those in files; here: what runs; [`sparse`]: what runs on
//! sparse tensors, [`operands`]: on which ones, `loops`: in which loops, and `tasks`: as tasks; [`info`], [`convert`]:
//! what is in a file, and in another form; [`picture`]: how, drawn; [`check`]: whether the result is right; [`report`]:
//! what is printed.

mod blocks;
pub mod check;
pub mod choose;
pub mod convert;
pub mod files;
pub mod info;
mod limit;
mod loops;
pub mod operands;
pub mod options;
pub mod picture;
pub mod problem;
pub mod random;
pub mod report;
pub(crate) mod source;
pub mod sparse;
pub mod split;
mod svg_file;
mod tasks;
mod types;
pub mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maniple::ProcessorKind;
use maniple::prelude::*;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, TensorMapper, Writers, is_stored_as_npy};
use maniple_tensor::element::Scalar;
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::placement::{Placed, Placement};
use maniple_tensor::plan::Plan;
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::substitute::use_library;
use maniple_tensor::with_element;

use self::choose::{Choices, Wishes, choose};
use self::files::{Array, TensorFile};
pub use self::options::{ABOUT, CommandLine, EXAMPLES, Options, Subcommand};
use self::problem::{Input, Problem};
pub use self::report::{Checked, Report};
use self::values::Values;
use crate::error::{Error as AppError, Result as AppResult, refused_file};
use crate::options::{place, workers_of_job};
use crate::output;
use crate::progress::Progress;
use crate::verify::{is_within, worse};
use crate::warnings;

/// The advice to a user whose run found too little memory.
pub(crate) const ON_MEMORY: &str =
    "give data more memory with --memory, or take smaller tensors with --size; more nodes have more memory";

/// The same where extents are those of files.
const ON_MEMORY_OF_FILES: &str = "give data more memory with --memory; more nodes have more memory";

/// The same where data may take most of the machine's memory, as it may without `--memory`.
const ON_ALL_MEMORY: &str = "data may take most of this machine's memory: take smaller tensors with --size, or formats that store less with --format, or start more nodes, which have more memory";

/// The same where extents are those of files.
const ON_ALL_MEMORY_OF_FILES: &str = "data may take most of this machine's memory: take formats that store less with --format, or start more nodes, which have more memory";

/// The advice to a user whose command line needs more memory than there is.
pub(crate) fn on_memory(line: &CommandLine) -> &'static str {
    let CommandLine::Statement(options) = line else { return ON_ALL_MEMORY_OF_FILES };
    match (options.runtime.memory.is_some(), options.input.is_empty()) {
        (true, true) => ON_MEMORY,
        (true, false) => ON_MEMORY_OF_FILES,
        (false, true) => ON_ALL_MEMORY,
        (false, false) => ON_ALL_MEMORY_OF_FILES,
    }
}

/// The answer of `maniple tensor`.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The report of a computation.
    Report(Box<Report>),
    /// The report of a computation with sparse tensors.
    Sparse(Box<sparse::Report>),
    /// An explanation of how a statement would be computed, or of the contents of a file.
    Explanation(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report(report) => report.fmt(f),
            Self::Sparse(report) => report.fmt(f),
            Self::Explanation(text) => f.write_str(text),
        }
    }
}

/// Computes a statement, or looks at or converts a file.
///
/// # Errors
/// As of [`run`], [`info::run`] and [`convert::run`].
pub fn answer(line: &CommandLine) -> AppResult<Answer> {
    match line {
        CommandLine::Statement(options) => run(options),
        CommandLine::File(file) => match &**file {
            Subcommand::Info(options) => info::run(options).map(Answer::Explanation),
            Subcommand::Convert(options) => convert::run(options).map(Answer::Explanation),
        },
    }
}

/// Computes a statement and, if asked to, compares the result with the definition; or tells how it would do so.
///
/// # Errors
/// [`AppError::Usage`] if the statement, the algorithm and the grid do not fit each other, [`AppError::Verification`]
/// if the result is wrong, [`AppError::Input`] and [`AppError::Write`] for files, [`AppError::Runtime`] if a task
/// fails, for instance for want of memory.
pub fn run(options: &Options) -> AppResult<Answer> {
    warnings::print();
    options.check()?;
    if sparse::is_asked_for(options) {
        return sparse::run(options);
    }
    let problem = Problem::new(options)?;
    if let Some(library) = &options.blas {
        use_library(library).map_err(|error| AppError::Usage(error.to_string()))?;
    }
    if options.explain {
        let processors = match place().nodes {
            1 => options.runtime.machine().processors_of(ProcessorKind::Cpu).count(),
            // Those of the others too: it takes a job to ask them.
            _ => workers_of_job(&options.runtime.start()?)?,
        };
        return Ok(Answer::Explanation(plan(options, &problem, processors)?.explain()));
    }
    let report = options.runtime.run_by(
        || Box::new(TensorMapper::new()),
        |runtime| {
            let processors = workers_of_job(runtime)?;
            let choices = plan(options, &problem, processors)?;
            choices.check()?;
            run_on(runtime, &Task { options, problem: &problem, choices: &choices, processors })
        },
    )?;
    Ok(Answer::Report(Box::new(report)))
}

/// How to run it on so many processors. Draws it, if that is asked for.
fn plan(options: &Options, problem: &Problem, processors: usize) -> AppResult<Choices> {
    let (grid, processors, rates) = (options.grid.as_ref(), processors as i64, options.rates()?);
    let wishes = Wishes {
        rates: &rates,
        algorithm: options.algorithm,
        grid,
        chunk: options.chunk,
        places: &options.place,
        processors,
    };
    let choices = choose(problem, wishes)?;
    if let Some(file) = &options.draw {
        file.write(&picture::draw(problem, &choices))?;
    }
    Ok(choices)
}

fn run_on(runtime: &Runtime, task: &Task<'_>) -> AppResult<Report> {
    // Errors name the statement, and not lines of this program.
    let text = task.problem.text();
    let (report, results) = runtime.run(async |cx| refused_file(task.run(&cx.at(&text), runtime).await))??;
    if let Some(checked) = &report.checked
        && !is_within(checked.deviation, 1.0)
    {
        return Err(AppError::Verification(checked.wrong()));
    }
    for (name, file) in task.options.output.iter().filter(|_| runtime.node() == 0) {
        if let Some(result) = results.get(task.problem.written(name.as_deref())?.name()) {
            file.write(result)?;
        }
    }
    Ok(report)
}

/// The computation that runs on the runtime.
struct Task<'a> {
    options: &'a Options,
    problem: &'a Problem,
    choices: &'a Choices,
    /// The processors of the job.
    processors: usize,
}

/// A tensor, its elements before anything was computed, the pieces in which they are made, and where they are.
struct Operand {
    tensor: Tensor,
    values: Option<Values>,
    /// The elements before, if tasks have read the tensor and a statement assigns to it.
    before: Option<Tensor>,
    pieces: Vec<Rectangle>,
    placement: Option<(Placement, Machine)>,
}

impl Task<'_> {
    async fn run(&self, cx: &Context, runtime: &Runtime) -> Result<(Report, Results), DistributedError> {
        let variables = self.problem.divided.tensors();
        let mut operands: Vec<Operand> = Vec::new();
        for variable in &variables {
            operands.push(self.operand(cx, variable).await?);
        }
        let tensors: Vec<&Tensor> = operands.iter().map(|operand| &operand.tensor).collect();
        let plans: Vec<Arc<Plan>> = self.choices.0.iter().map(|choice| Arc::clone(&choice.plan)).collect();
        let computation = Computation::in_order(cx, &plans, &tensors).await?;
        let is_short = self.options.runtime.memory.is_some() && cx.nodes() > 1;
        let progress = Progress::steps(self.options.repeat + 1, &self.options.runtime);
        let (mut times, mut moved) = (Vec::new(), 0);
        for repeat in 0..=self.options.repeat {
            for operand in &operands {
                self.prepare(cx, operand).await?;
            }
            cx.execution_fence().await?;
            let (started, before) = (Instant::now(), runtime.statistics().parcel_bytes_sent);
            match is_short {
                true => computation.run_in_steps(cx).await?,
                false => computation.launch(cx)?.await?,
            }
            times.push(started.elapsed());
            moved = runtime.statistics().parcel_bytes_sent - before;
            progress.set(repeat + 1, String::new);
        }
        drop(progress);
        // The slowest node says how long it took.
        let times = cx.per_node(times).fold(Vec::new(), slowest).await?;
        let moved = cx.per_node(moved).reduce(Sum).await?;
        let mut results = Results::new();
        for variable in self.problem.program.results() {
            let last = || self.problem.program.results().last().cloned();
            let is_written = |name: &Option<String>| match name {
                Some(name) => name == variable.name(),
                None => last().as_ref() == Some(&variable),
            };
            let mut is_wanted = self.options.verify;
            for (_, file) in self.options.output.iter().filter(|(name, _)| is_written(name)) {
                let operand = operands.iter().find(|operand| *operand.tensor.variable() == variable);
                is_wanted |= match operand.filter(|_| !self.options.verify) {
                    Some(operand) => !self.store_by_tasks(cx, &operand.tensor, file).await?,
                    None => true,
                };
            }
            if is_wanted {
                results.insert(variable.name().to_owned(), self.result(cx, &operands, &variable).await?);
            }
        }
        let checked = match self.options.verify {
            true => Some(self.check(cx, runtime, &operands, &results).await?),
            false => None,
        };
        let moved = (runtime.nodes() > 1).then_some(moved);
        Ok((Report::new(self.problem, self.choices, &times, moved, checked), results))
    }

    /// A result, whole.
    async fn result(
        &self,
        cx: &Context,
        operands: &[Operand],
        result: &TensorVariable,
    ) -> Result<Array, DistributedError> {
        let Some(Operand { tensor, .. }) = operands.iter().find(|operand| operand.tensor.variable() == result) else {
            return Err(DistributedError::Missing { tensor: result.name().to_owned(), given: String::new() });
        };
        let dimensions = result.dimensions().to_vec();
        with_element!(result.element(), T => Ok(Array::new::<T>(dimensions, tensor.read_elements(cx).await?)))
    }

    async fn operand(&self, cx: &Context, variable: &TensorVariable) -> Result<Operand, DistributedError> {
        let placement = self.choices.place(variable).map(|(placement, machine)| (placement.clone(), machine.clone()));
        let (program, inputs) = (&self.problem.program, &self.problem.inputs);
        let is_read = program.inputs().contains(variable);
        let (tensor, values) = match inputs.get(variable.name()).filter(|_| is_read) {
            Some(Input::ByTasks(file)) => (Tensor::read_entries(cx, variable, file).await?.0, None),
            Some(Input::Whole(array)) => (Tensor::new(cx, variable)?, Some(Values::Given(array.clone()))),
            None => (Tensor::new(cx, variable)?, is_read.then(|| Values::random(self.options.runtime.seed, variable))),
        };
        let before = match is_read && values.is_none() && program.results().contains(variable) {
            true => Some(tensor.snapshot(cx, &variable.renamed(&format!("{}_before", variable.name()))).await?),
            false => None,
        };
        let pieces = placement.as_ref().and_then(|(placement, machine)| pieces(variable, placement, machine));
        let pieces = pieces.unwrap_or_else(|| tensor.slabs(self.processors));
        Ok(Operand { tensor, values, before, pieces, placement })
    }

    /// Makes a tensor's elements anew, where they are placed.
    async fn prepare(&self, cx: &Context, operand: &Operand) -> Result<(), DistributedError> {
        if let Some(values) = &operand.values {
            values.put(cx, &operand.tensor, &operand.pieces)?;
        }
        if let Some(before) = &operand.before {
            operand.tensor.copy_from(cx, before).await?;
        }
        match &operand.placement {
            Some((placement, machine)) => operand.tensor.place(cx, placement, machine)?.await,
            None => Ok(()),
        }
    }

    /// Has tasks write a result to a file, each node its part, if there are several nodes and the file can be written
    /// so. Whether it is.
    async fn store_by_tasks(&self, cx: &Context, tensor: &Tensor, file: &TensorFile) -> Result<bool, DistributedError> {
        let is_by_tasks = cx.nodes() > 1
            && file.is_numpy()
            && !output::is_special(file.path())
            && is_stored_as_npy(tensor.variable().format());
        if is_by_tasks {
            let writers = if self.options.serial_writes { Writers::InTurn } else { Writers::Together };
            tensor.store_npy(cx, file.path(), writers).await?;
        }
        Ok(is_by_tasks)
    }

    async fn check(
        &self,
        cx: &Context,
        runtime: &Runtime,
        operands: &[Operand],
        results: &Results,
    ) -> Result<Checked, DistributedError> {
        let started = Instant::now();
        let senseless = |error: String| Error::from_task(Senseless(error));
        let definitions = self.problem.definitions().map_err(|error| senseless(error.to_string()))?;
        let (mut count, mut largest, mut is_exact) = (0, 0.0, true);
        for definition in &definitions {
            let target = definition.left().tensor.name();
            let chosen = check::chosen(definition, self.options.runtime.seed);
            count += chosen.len();
            is_exact &= definition.element().is_integer();
            // Each node looks at some of them.
            let own = chosen.into_iter().skip(runtime.node()).step_by(runtime.nodes());
            let load = |variable: &TensorVariable, coordinates: &[i64]| {
                if let Some(result) = results.get(variable.name()).filter(|_| variable.name() != target) {
                    return result.at(coordinates).unwrap_or(Scalar::I32(0));
                }
                let operand = operands.iter().find(|operand| operand.tensor.variable() == variable);
                let values = operand.and_then(|operand| operand.values.as_ref());
                values.map_or(Scalar::I32(0), |values| values.get(variable, coordinates))
            };
            let found = |number: i64| {
                results.get(target).and_then(|found| found.get(number as usize)).unwrap_or(Scalar::I32(0))
            };
            let deviation = check::largest_deviation(definition, own, found, &load).map_err(senseless)?;
            largest = worse(largest, cx.per_node(deviation).fold(0.0, worse).await?);
        }
        Ok(Checked { count, deviation: largest, time: started.elapsed(), is_exact })
    }
}

/// The results, by name.
type Results = BTreeMap<String, Array>;

/// The pieces of a tensor where it is placed.
fn pieces(variable: &TensorVariable, placement: &Placement, machine: &Machine) -> Option<Vec<Rectangle>> {
    let placed = Placed::new(placement, &Rectangle::whole(variable.dimensions()), machine).ok()?;
    let piece = |point: Vec<usize>| placed.piece(&point).rectangles().collect::<Vec<_>>();
    Some(placed.machine().points().flat_map(piece).collect())
}

/// The definition has no value.
#[derive(Debug, thiserror::Error)]
#[error("the result cannot be compared with the definition: {0}")]
struct Senseless(String);

fn slowest(so_far: Vec<Duration>, times: Vec<Duration>) -> Vec<Duration> {
    match so_far.is_empty() {
        true => times,
        false => so_far.into_iter().zip(times).map(|(a, b)| a.max(b)).collect(),
    }
}
