//! Solves a sparse symmetric positive definite system by conjugate gradients (Hestenes and Stiefel 1952) with Jacobi's
//! preconditioner.
//!
//! [`problem`], [`matrix`], [`matrix_market`]: the matrix, of which each node makes or reads a part;
//! [`mod@rows`], [`tasks`]: vectors as fields of a region, and what is computed with them; [`scalars`]: the scalars
//! between the tasks; `system`: how rows are split, and what is launched, among it the product of the matrix and a
//! vector, a statement in index notation; here: what is solved, and whether the result is right.

pub mod matrix;
pub mod matrix_market;
pub mod problem;
mod system;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use maniple::{Context, Runtime};
pub use maniple_tasks::cg::{rows, scalars, tasks};
use maniple_tensor::distributed::DistributedError;

use self::problem::CgProblem;
use self::system::{End, Limits, SolverOutcome, System};
use crate::error::{Error, Result, refused_file};
use crate::options::{RuntimeOptions, default_from_command_line, piece_count, positive, workers_of_job};
use crate::progress::Progress;
use crate::report::{ReportTable, counted, scientific, seconds};
use maniple_tensor::files::InputError;

/// The long description of `maniple run cg`, which its `--help` shows.
pub const ABOUT: &str = "\
Solve a sparse symmetric positive definite system A x = b by conjugate gradients, with Jacobi's preconditioner.

A is the five-point discretisation of a Poisson problem, or any such matrix in a Matrix Market file; b is all ones. Rows are cut into \
pieces with about as many entries each. Which entries of the matrix a piece has, and which elements of the vector these are multiplied with, \
are images of the data, so that only what is needed moves.

An iteration is four launches with a task for each piece: A times the direction, their inner product, the step, the next direction. Inner products are futures: \
they are summed, divided and passed to the next tasks without anybody waiting, and the program looks at the residual a few iterations \
behind. Iterations launched beyond convergence take steps of length zero, so looking late changes nothing.

When the residual of the iteration is small enough, b - A x is computed anew; if rounding has kept that larger, as it does on ill-conditioned \
matrices, the iteration starts again from there. What is printed is computed once more from the answer.

On several nodes each makes or reads a part of the matrix, and none has all of it, but of a file in the layout `array`, which has all elements. Pipes are read by one node alone.

A file may give an entry several times: the values add up. That the matrix is positive definite is not checked beyond its diagonal: an \
indefinite one is refused when an iteration meets a direction that shows it, but may be solved by luck before.";

/// The advice to a user whose run found too little memory.
pub(crate) fn on_memory(options: &CgOptions) -> &'static str {
    match options.matrix {
        Some(_) => {
            "give data more memory with --memory; the mapper `default` needs least, however many --pieces there are"
        }
        None => {
            "give data more memory with --memory, or take a smaller problem with --poisson; the mapper `default` needs least, however \
             many --pieces there are"
        }
    }
}

/// The examples that `maniple run cg --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run cg                                  Poisson on 300 x 300 unknowns
  maniple run cg --poisson 1000 --tolerance 1e-6  larger, and less exact
  maniple run cg --matrix bcsstk13.mtx            from https://sparse.tamu.edu
  maniple run cg --matrix 1138_bus.mtx --pieces 8 --mapper piecewise";

/// The system to solve, and how well.
#[derive(Args, Clone, Debug)]
pub struct CgOptions {
    /// Solve with the symmetric matrix of a Matrix Market file, of at most 4294967295 rows
    #[arg(long, value_name = "FILE", conflicts_with = "poisson")]
    pub matrix: Option<PathBuf>,

    /// Solve the Poisson problem on a square of N x N unknowns, N at most 65535
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = positive, allow_hyphen_values = true)]
    pub poisson: usize,

    /// How small the norm of b - A x must be, relative to that of b
    #[arg(long, value_name = "T", default_value_t = 1e-8, value_parser = tolerance, allow_hyphen_values = true)]
    pub tolerance: f64,

    /// Give up after so many iterations [default: 10 for each row, but at least 1000]
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub max_iterations: Option<usize>,

    /// Pieces that the rows are split into: at most 1048576, and no more than rows [default: one a processor]
    #[arg(long, value_name = "N", value_parser = piece_count, allow_hyphen_values = true)]
    pub pieces: Option<usize>,

    /// Mark an iteration as a trace, to be recorded and replayed, instead of leaving it to the runtime to find that
    /// iterations repeat
    #[arg(long, conflicts_with = "no_tracing")]
    pub trace: bool,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(CgOptions);

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "it must be a number between 0 and 1, such as 1e-8".to_owned())
}

/// The result of a run: the system, and how it was solved.
#[derive(Clone, Debug)]
pub struct CgReport {
    /// The matrix.
    pub matrix: String,
    /// Its rows.
    pub rows: usize,
    /// Its entries, both sides of the diagonal.
    pub entries: usize,
    /// The pieces of the rows.
    pub pieces: usize,
    /// Iterations until the tolerance was reached.
    pub iterations: usize,
    /// How often the iteration began anew because rounding had carried its residual away from b - A x.
    pub restarts: usize,
    /// The norm of b - A x relative to that of b, computed anew from x.
    pub residual: f64,
    /// How long the iteration took.
    pub time: Duration,
}

impl fmt::Display for CgReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.time / self.iterations.max(1) as u32;
        let (rows, entries) = (counted(self.rows, "row", "rows"), counted(self.entries, "entry", "entries"));
        let table = ReportTable::new()
            .line("matrix", format_args!("{} ({rows}, {entries})", self.matrix))
            .line("pieces", self.pieces)
            .line("iterations", self.iterations)
            .maybe("restarts", (self.restarts > 0).then_some(self.restarts))
            .line("relative residual", format_args!("{} (|b - A x| / |b|, computed anew)", scientific(self.residual)))
            .line("time", format_args!("{} ({} an iteration)", seconds(self.time), seconds(each)));
        write!(f, "cg\n{table}")
    }
}

/// Solves a system whose right-hand side is all ones.
///
/// # Errors
/// [`Error::Input`] if the matrix can't be read or is not symmetric, [`Error::Usage`] if there are more pieces than
/// rows, [`Error::NoConvergence`] if the tolerance was not reached, [`Error::Runtime`] if a task fails.
pub fn run(options: &CgOptions) -> Result<CgReport> {
    let problem = match &options.matrix {
        Some(file) => CgProblem::file(file)?,
        None => CgProblem::poisson(options.poisson)?,
    };
    problem.check_room(options.runtime.capacity())?;
    options.runtime.run(|runtime| solve(runtime, options, &problem))
}

/// Solves a system on a runtime that was started before. The options' matrix is not looked at; of their runtime, only
/// what is said of progress counts.
///
/// # Errors
/// As [`run`].
pub fn solve(runtime: &Runtime, options: &CgOptions, problem: &CgProblem) -> Result<CgReport> {
    let Attempt { pieces, entries, outcome, time, residual } = attempt(runtime, options, problem)?;
    let residual = (residual / problem.rows() as f64).sqrt();
    check(&outcome, residual, options.tolerance, problem.name())?;
    let SolverOutcome { iterations, restarts, .. } = outcome;
    let (matrix, rows) = (problem.name().to_owned(), problem.rows());
    Ok(CgReport { matrix, rows, entries, pieces, iterations, restarts, residual, time })
}

/// Iterates on a system without asking what has become of it: what [`solve`] does before it looks at the answer. Gives
/// how many iterations there were, at most as many as the options allow, and how long they took.
///
/// # Errors
/// [`Error::Input`] if a file can't be read or its matrix not be solved, [`Error::Usage`] if there are more pieces than
/// rows, [`Error::Runtime`] if a task fails.
pub fn iterate(runtime: &Runtime, options: &CgOptions, problem: &CgProblem) -> Result<(usize, Duration)> {
    let attempt = attempt(runtime, options, problem)?;
    Ok((attempt.outcome.iterations, attempt.time))
}

/// The outcome of an iteration, before its answer is checked.
struct Attempt {
    pieces: usize,
    entries: usize,
    outcome: SolverOutcome,
    time: Duration,
    /// The square of the norm of b - A x, where b is all ones.
    residual: f64,
}

fn attempt(runtime: &Runtime, options: &CgOptions, problem: &CgProblem) -> Result<Attempt> {
    let (rows, name) = (problem.rows(), problem.name());
    let pieces = match options.pieces {
        Some(pieces) => pieces,
        None => workers_of_job(runtime)?.clamp(1, rows),
    };
    if pieces > rows {
        let rows = counted(rows, "row", "rows");
        return Err(Error::Usage(format!("{pieces} pieces are more than the {rows} of {name}")));
    }
    runtime.run(async |cx| refused_file(attempt_in(cx, options, problem, pieces).await))?
}

async fn attempt_in(
    cx: &Context,
    options: &CgOptions,
    problem: &CgProblem,
    pieces: usize,
) -> Result<Attempt, DistributedError> {
    let rows = problem.rows();
    let max_iterations = options.max_iterations.unwrap_or_else(|| rows.saturating_mul(10).max(1000));
    // A little less than asked for, since the check of the answer adds up in another order.
    let target = (0.999 * options.tolerance).powi(2) * rows as f64;
    let system = System::load(cx, problem, pieces).await?;
    let progress = Progress::iterations(&options.runtime);
    let started = Instant::now();
    let outcome = system.iterate(cx, &Limits { target, max_iterations, trace: options.trace }, &progress).await?;
    let time = started.elapsed();
    Ok(Attempt { pieces, entries: system.entries(), outcome, time, residual: system.residual(cx).await? })
}

/// Says what is wrong with an outcome, if anything is.
fn check(outcome: &SolverOutcome, residual: f64, tolerance: f64, name: &str) -> Result<()> {
    let iterations = outcome.iterations;
    let (found, after) = (scientific(residual), counted(iterations, "iteration", "iterations"));
    Err(match outcome.end {
        End::Converged if residual <= tolerance => return Ok(()),
        End::Converged | End::Stagnated => Error::NoConvergence(format!(
            "rounding keeps the relative residual at {found} after {after} on {name}; ask for a larger --tolerance than {tolerance:e}"
        )),
        End::TooManyIterations => Error::NoConvergence(format!(
            "the relative residual is {found} after {after} on {name}; allow more with --max-iterations"
        )),
        End::Overflow => Error::NoConvergence(format!("numbers grew out of range in iteration {iterations} on {name}")),
        End::NotPositiveDefinite => {
            let reason = format!(
                "the matrix is not positive definite: iteration {iterations} met a direction d with d . A d <= 0"
            );
            InputError::Unsuitable { name: name.to_owned(), reason }.into()
        }
    })
}
