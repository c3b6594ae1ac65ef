//! Tensor algebra from the command line: statements in index notation, on all processors of all nodes.
//!
//! The library computes, reads and writes: [`maniple_tensor::compute`] and [`maniple_tensor::files`]. In reading order:
//! [`options`]: what can be asked for; `declared`: the tensors of a statement; `operands`: their elements; [`problem`]:
//! the statement on dense tensors; here: how it runs; `sparse`: what runs on sparse tensors; `tasks`: both, as tasks;
//! [`info`], [`convert`]: what is in a file, and in another form; `picture`: how, drawn; `report`: what is printed.

pub mod convert;
mod declared;
pub mod info;
pub(crate) mod operands;
pub mod options;
mod picture;
pub mod problem;
mod report;
pub(crate) mod source;
mod sparse;
mod svg_file;
mod tasks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use maniple::ProcessorKind;
use maniple::prelude::*;
use maniple_tensor::choose::{Choices, ChooseError, Wishes, grid_text};
use maniple_tensor::compute::{Made, Planned, Sources, Statements, TensorPlace};
use maniple_tensor::distributed::{DistributedError, TensorMapper};
use maniple_tensor::generate::RandomElements;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::oracle::{self, Comparison, Elements};
use maniple_tensor::substitute::use_library;

pub use self::options::{ABOUT, CommandLine, EXAMPLES, Subcommand, TensorOptions};
use self::problem::TensorProblem;
pub use self::report::TensorReport;
use self::tasks::{Around, TaskOutcome};
use crate::error::{Error as AppError, Result as AppResult, usage};
use crate::options::{place, workers_of_job};
use crate::report::{bytes, counted, scientific, seconds};
use crate::verify::is_within;
use crate::warnings;

/// The advice to a user whose run found too little memory.
pub(crate) const ON_MEMORY: &str =
    "give data more memory with --memory, or take smaller tensors with --size; more nodes have more memory";

/// The advice to a user whose command line needs more memory than there is.
pub(crate) fn on_memory(line: &CommandLine) -> &'static str {
    let has_memory = |options: &TensorOptions| options.runtime.memory.is_some();
    match line {
        CommandLine::Statement(options) if options.input.is_empty() && has_memory(options) => ON_MEMORY,
        CommandLine::Statement(options) if options.input.is_empty() => {
            "data may take most of this machine's memory: take smaller tensors with --size, or formats that store less with --format, or start more nodes, which have more memory"
        }
        // Extents are those of files.
        CommandLine::Statement(options) if has_memory(options) => {
            "give data more memory with --memory; more nodes have more memory"
        }
        _ => {
            "data may take most of this machine's memory: take formats that store less with --format, or start more nodes, which have more memory"
        }
    }
}

/// The answer of `maniple tensor`.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The report of a computation.
    Report(Box<TensorReport>),
    /// An explanation of how a statement would be computed, or of the contents of a file.
    Explanation(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report(report) => report.fmt(f),
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
pub fn run(options: &TensorOptions) -> AppResult<Answer> {
    warnings::print();
    options.check()?;
    let inputs = operands::open(options)?;
    if sparse::is_asked_for(options, &inputs) {
        return sparse::run(options, inputs);
    }
    let problem = TensorProblem::new(options, inputs)?;
    if let Some(library) = &options.blas {
        use_library(library).map_err(usage)?;
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
            choices.all().try_for_each(|candidate| tasks::check_tasks(&candidate.plan))?;
            run_on(runtime, options, &problem, &choices)
        },
    )?;
    Ok(Answer::Report(Box::new(report)))
}

/// Chooses how statements run on so many processors, and draws it, if that is asked for.
fn plan(options: &TensorOptions, problem: &TensorProblem, processors: usize) -> AppResult<Choices> {
    let (rates, grid) = (options.rates()?, options.grid_extents());
    let wishes = Wishes {
        rates: &rates,
        algorithm: options.algorithm,
        grid: grid.as_deref(),
        chunk: options.chunk,
        places: &options.place,
        processors: processors as i64,
    };
    let choices = Choices::of(problem.divided.statements(), &problem.schedules, wishes).map_err(unsuitable)?;
    if let Some(file) = &options.draw {
        file.write(&picture::draw(problem, &choices))?;
    }
    Ok(choices)
}

/// The error of wishes that do not fit the statements, in terms of options.
fn unsuitable(error: ChooseError) -> AppError {
    AppError::Usage(match error {
        ChooseError::Grid { grid, known, .. } => format!(
            "--grid {}: of the grids for this statement, worth a look are {}; others need an --algorithm",
            grid_text(&grid),
            known.join(", ")
        ),
        ChooseError::Scheduled(wish) => format!("--schedule says how all statements run: leave --{wish} out"),
        ChooseError::Chunk => "--chunk is for --algorithm summa alone".to_owned(),
        ChooseError::Alone => "--grid is for several processors: --algorithm none uses one".to_owned(),
        ChooseError::Unfit(problem) => format!("--{problem}"),
        ChooseError::Schedule(error) => format!("--schedule: {error}"),
        other => other.to_string(),
    })
}

/// Runs the statements by their plans, and compares and writes the results.
fn run_on(
    runtime: &Runtime,
    options: &TensorOptions,
    problem: &TensorProblem,
    choices: &Choices,
) -> AppResult<TensorReport> {
    let planned = choices.all().map(|candidate| Planned::dense(Arc::new(candidate.plan.clone())));
    let statements = Statements::new(planned.collect());
    let inputs = problem.program.inputs();
    let made = inputs.iter().filter(|tensor| !problem.files.contains_key(tensor.name()));
    let made = made.map(|tensor| (tensor.name().to_owned(), Made::Random(options.runtime.seed))).collect();
    let place = |tensor: &TensorVariable| {
        let (placement, machine) = choices.place(tensor)?;
        Some(TensorPlace { tensor: tensor.name().to_owned(), placement: placement.clone(), machine: machine.clone() })
    };
    let places: Vec<TensorPlace> = problem.divided.tensors().iter().filter_map(place).collect();
    let given = BTreeMap::new();
    let sources = Sources { given: &given, files: &problem.files, made: &made, places: &places, renews: true };
    let around = Around { sources, outputs: &problem.outputs, needs_all: options.verify };
    let body = async |cx: &Context, runtime: &Runtime| {
        let outcome = tasks::run_on(cx, runtime, &statements, options, around).await?;
        let (started, seed) = (Instant::now(), options.runtime.seed);
        if !options.verify {
            return Ok((outcome, None));
        }
        let compared = compared(cx, runtime, problem, &outcome, seed).await?;
        Ok((outcome, Some((compared, started.elapsed()))))
    };
    let (outcome, checked) = tasks::launched(runtime, &report::text(&problem.program), around, &body)?;
    let checked = match checked {
        Some((compared, _)) if !is_within(compared.deviation, 1.0) => {
            return Err(AppError::Verification(wrong(&compared)));
        }
        Some((Comparison { count, is_exact, deviation }, time)) => {
            let elements = counted(count, "element", "elements");
            let found = match is_exact {
                true => "all equal".to_owned(),
                false => format!("largest error {} of what rounding can do", scientific(deviation)),
            };
            Some(format!("{elements} in {}: {found}", seconds(time)))
        }
        None => None,
    };
    for (name, file) in problem.outputs.iter().filter(|_| runtime.node() == 0) {
        if let Some(result) = outcome.tensors.get(name).filter(|_| !outcome.written.contains_key(name)) {
            file.write(result)?;
        }
    }
    let report = TensorReport::new("tensor", &problem.program)
        .line("elements", problem.elements())
        .line("algorithm", choices.name())
        .line("grid", grid_text(choices.grid()))
        .times(&outcome.times);
    let (unit, rate) = rate(problem, report.time.0.as_secs_f64().max(f64::MIN_POSITIVE));
    let moved = (runtime.nodes() > 1).then(|| bytes(outcome.sent[1].iter().sum()));
    Ok(report
        .line(unit, format_args!("{rate:.2}"))
        .maybe("multiplied by", choices.library().map(|(library, _)| library))
        .maybe("moved between nodes", moved)
        .maybe("verified", checked))
}

/// Compares the results with their definitions.
async fn compared(
    cx: &Context,
    runtime: &Runtime,
    problem: &TensorProblem,
    outcome: &TaskOutcome,
    seed: u64,
) -> Result<Comparison, DistributedError> {
    let random = |tensor: &TensorVariable, at: &[i64]| RandomElements::new(seed, tensor).get(tensor, at);
    let before = |tensor: &TensorVariable, at: &[i64]| {
        outcome.inputs.get(tensor.name()).map_or_else(|| random(tensor, at), |found| found.get(at))
    };
    let after = |tensor: &TensorVariable, at: &[i64]| {
        outcome.tensors.get(tensor.name()).map_or_else(|| random(tensor, at), |found| found.get(at))
    };
    let elements = Elements { before: &before, after: &after };
    Ok(oracle::compare(cx, runtime.node(), &problem.definitions, seed, elements).await?)
}

/// A description of results that are wrong.
fn wrong(compared: &Comparison) -> String {
    let elements = counted(compared.count, "element", "elements");
    match compared.is_exact {
        true => format!("of {elements} that were compared with the definition, some differ"),
        false => format!(
            "of {elements} that were compared with the definition, some differ by {} times as much as rounding can explain",
            scientific(compared.deviation)
        ),
    }
}

/// The number of operations for each byte above which arithmetic is the limit, and not memory.
const INTENSE: f64 = 2.0;

/// The rate of the computation and its unit: of arithmetic, or of bytes if memory is the limit.
fn rate(problem: &TensorProblem, seconds: f64) -> (&'static str, f64) {
    let (operations, bytes) = (problem.divided.operations(), problem.program.bytes());
    let is_exact = problem.program.statements().iter().all(|statement| statement.element().is_integer());
    match operations > INTENSE * bytes {
        true if is_exact => ("GOP/s", operations / seconds / 1e9),
        true => ("GFLOP/s", operations / seconds / 1e9),
        false => ("GB/s", bytes / seconds / 1e9),
    }
}
