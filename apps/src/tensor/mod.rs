//! Tensor algebra from the command line: statements in index notation, on all processors of all nodes.
//!
//! In reading order: [`options`]: what can be asked for; [`problem`]: the statement and the extents of its index
//! variables; `extents`, `declared`: its tensors; `types`: the type of its elements; [`mod@choose`]: the algorithm and
//! the grid; `values`: the operands' elements, `random` ones and those of files; here: what runs; [`sparse`]: what runs
//! on sparse tensors, `operands`: on which ones, `loops`: in which loops; `tasks`: both, as tasks; [`info`],
//! [`convert`]: what is in a file, and in another form; [`picture`]: how, drawn; [`check`]: whether the result is
//! right; [`report`]: what is printed.

mod blocks;
pub mod check;
pub mod choose;
pub mod convert;
mod declared;
mod extents;
pub mod info;
mod limit;
mod loops;
pub(crate) mod operands;
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
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use maniple::ProcessorKind;
use maniple::prelude::*;
use maniple_tensor::compute::{Planned, Statements};
use maniple_tensor::distributed::TensorMapper;
use maniple_tensor::files::TensorFile;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::substitute::use_library;

use self::choose::{Choices, Wishes, choose};
pub use self::options::{ABOUT, CommandLine, EXAMPLES, Options, Subcommand};
use self::problem::Problem;
pub use self::report::{Checked, Report};
use self::tasks::{Around, Made, Place, Tasks};
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::{place, workers_of_job};
use crate::verify::is_within;
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
    let inputs = operands::open(options)?;
    if sparse::is_asked_for(options, &inputs) {
        return sparse::run(options, inputs);
    }
    let problem = Problem::new(options, inputs)?;
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
            run_on(runtime, options, &problem, &choices)
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

/// Runs the statements by their plans, and compares and writes the results.
fn run_on(runtime: &Runtime, options: &Options, problem: &Problem, choices: &Choices) -> AppResult<Report> {
    let planned = choices.0.iter().map(|choice| Planned::dense(Arc::clone(&choice.plan)));
    let tasks = Tasks::of(Statements::new(planned.collect()));
    let is_made = |tensor: &TensorVariable| !problem.files.contains_key(tensor.name());
    let inputs = problem.program.inputs();
    let made = inputs.iter().filter(|tensor| is_made(tensor)).map(|tensor| (tensor.name().to_owned(), Made::Random));
    let made: BTreeMap<String, Made> = made.collect();
    let places: Vec<Place> = problem.divided.tensors().iter().filter_map(|tensor| choices.place(tensor)).collect();
    let outputs = options.output.iter().map(|(name, file)| {
        let result = problem.written(name.as_deref())?;
        Ok((result.name().to_owned(), file.clone()))
    });
    let outputs: Vec<(String, TensorFile)> = outputs.collect::<AppResult<_>>()?;
    let around = Around {
        given: &BTreeMap::new(),
        files: &problem.files,
        made: &made,
        places: &places,
        renews: true,
        outputs: &outputs,
        needs_all: options.verify,
    };
    let body = async |cx: &Context, runtime: &Runtime| {
        let outcome = tasks.run_on((cx, runtime), options, around).await?;
        let checked = match options.verify {
            true => Some(check::compared(cx, runtime, options, (problem, &outcome)).await?),
            false => None,
        };
        Ok((outcome, checked))
    };
    let (outcome, checked) = tasks::launched(runtime, &problem.text(), around, &body)?;
    if let Some(checked) = &checked
        && !is_within(checked.deviation, 1.0)
    {
        return Err(AppError::Verification(checked.wrong()));
    }
    for (name, file) in outputs.iter().filter(|_| runtime.node() == 0) {
        if let Some(result) = outcome.tensors.get(name).filter(|_| !outcome.done.written.contains_key(name)) {
            file.write(result)?;
        }
    }
    let moved = (runtime.nodes() > 1).then(|| outcome.done.sent[1].iter().sum());
    Ok(Report::new(problem, choices, &outcome.times, moved, checked))
}
