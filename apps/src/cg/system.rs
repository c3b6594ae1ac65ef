//! The system in pieces, and the iteration.

use std::collections::VecDeque;
use std::sync::Arc;

use maniple::prelude::*;
use maniple::{Error, Future};
use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse;

use super::matrix::each_with_a_row;
use super::problem::CgProblem;
use super::rows::Row;
use super::scalars::{IterationState, IterationStep, Products};
use super::tasks::{advance, curvature, load, start, turn};
use crate::progress::Progress;
use crate::report::scientific;

/// How to iterate, and when to stop.
pub(super) struct Limits {
    /// The square of the norm that the residual must have.
    pub(super) target: f64,
    pub(super) max_iterations: usize,
    /// Whether an iteration is marked as a trace.
    pub(super) trace: bool,
}

/// How an iteration ended.
pub(super) struct SolverOutcome {
    pub(super) end: End,
    pub(super) iterations: usize,
    pub(super) restarts: usize,
}

/// Why an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// b - A x is small enough.
    Converged,
    /// A new start from b - A x got no further.
    Stagnated,
    /// A direction d had d . A d <= 0.
    NotPositiveDefinite,
    /// The residual is no number any more.
    Overflow,
    /// As many as were allowed.
    TooManyIterations,
}

/// A new start must have made the square of the residual's norm so many times smaller for another to be worthwhile.
const WORTHWHILE: f64 = 4.0;

/// The square of the factor by which the norm of a residual can fall before all of it is rounding: what is iterated
/// goes on falling, but says nothing of b - A x any more.
const DEEPEST: f64 = f64::EPSILON * f64::EPSILON;

/// How many iterations are launched before the outcome of the first of them is looked at.
const LOOKAHEAD: usize = 4;

/// The system in pieces.
pub(super) struct System {
    pieces: Domain,
    all: Region<Row>,
    rows: Partition<Row>,
    matrix: Tensor,
    /// q = A p, and q = A x.
    direction: Computation,
    solution: Computation,
}

impl System {
    /// Puts the matrix into regions and splits rows so that each piece has about as many entries.
    ///
    /// # Errors
    /// [`DistributedError::File`] if a file is wrong, or the diagonal has an entry that is not positive;
    /// [`DistributedError::Runtime`].
    pub(super) async fn load(cx: &Context, problem: &CgProblem, pieces: usize) -> Result<Self, DistributedError> {
        let a = problem.matrix(cx).await?;
        let count = problem.rows() as i64;
        let cuts = each_with_a_row(&a.balanced(cx, pieces).await?, pieces, problem.rows());
        let all = cx.region::<Row>(problem.rows())?;
        let vector = |name: &str, field| Tensor::in_region(&TensorVariable::new(name, F64, [count]), &all, field);
        let q = vector("q", Row::q)?;
        let multiply = async |field| {
            let v = vector("v", field)?;
            in_parts(cx, "q(i) = A(i,j) * v(j)", &[&q, &a, &v], &cuts).await
        };
        let (direction, solution) = (multiply(Row::p).await?, multiply(Row::x).await?);

        write_diagonal(cx, &a, &vector("d", Row::inverse_diagonal)?, &cuts).await?;
        let pieces = cx.colors(pieces);
        let ends = cuts.iter().copied().chain([count]);
        let ranges =
            std::iter::once(0).chain(cuts.iter().copied()).zip(ends).map(|(first, end)| Rect::from(first..end));
        let rows = all.partition_into(pieces, ranges.map(IndexSpace::from).collect())?;
        let refused = cx.index_launch(pieces, load(&rows)).all().await?.into_iter().flatten().next();
        if let Some((row, diagonal)) = refused {
            let reason = format!(
                "row {} has the diagonal entry {diagonal}, but those of a positive definite matrix are positive",
                row + 1
            );
            return Err(DistributedError::File { name: problem.name().to_owned(), reason, is_input: true });
        }
        Ok(Self { pieces, all, rows, matrix: a, direction, solution })
    }

    /// How many entries the matrix has.
    pub(super) fn entries(&self) -> usize {
        self.matrix.count()
    }

    /// Iterates until r is small, then looks whether b - A x is; if not, rounding has come between them, and it starts
    /// again from there.
    pub(super) async fn iterate(&self, cx: &Context, limits: &Limits, progress: &Progress) -> Result<SolverOutcome> {
        let mut iterations = 0;
        let mut residuals: Vec<f64> = Vec::new();
        let end = loop {
            let start = self.start(cx, limits)?;
            let IterationState { residual, .. } = start.clone().await?;
            if residual <= limits.target {
                break End::Converged;
            }
            if residuals.last().is_some_and(|last| residual > last / WORTHWHILE) {
                break End::Stagnated;
            }
            residuals.push(residual);
            if let Some(end) = self.descend(cx, start, limits, &mut iterations, progress).await? {
                break end;
            }
        };
        Ok(SolverOutcome { end, iterations, restarts: residuals.len().saturating_sub(1) })
    }

    /// r = b - A x, and the first direction. The iteration from there has converged when r is small enough, or too
    /// small to mean anything.
    fn start(&self, cx: &Context, limits: &Limits) -> Result<Future<IterationState>> {
        let (products, target) = (self.begin(cx)?, limits.target);
        Ok(products.map(move |products| IterationState::start(target.max(products.residual * DEEPEST), products)))
    }

    /// r = b - A x, and the first direction.
    fn begin(&self, cx: &Context) -> Result<Future<Products>> {
        drop(self.solution.launch(cx)?);
        let products = cx.index_launch(self.pieces, start(&self.rows));
        Ok(products.fold(Products::default(), Products::and))
    }

    /// Iterates until r is small (`None`), or something else ends it. Looks at an iteration when [`LOOKAHEAD`] more
    /// have been launched.
    async fn descend(
        &self,
        cx: &Context,
        mut state: Future<IterationState>,
        limits: &Limits,
        iterations: &mut usize,
        progress: &Progress,
    ) -> Result<Option<End>> {
        let mut ahead = VecDeque::new();
        let mut launched = *iterations;
        loop {
            while launched < limits.max_iterations && ahead.len() <= LOOKAHEAD {
                state = match limits.trace {
                    true => cx.trace("iteration", |cx| self.launch_iteration(cx, &state)),
                    false => self.launch_iteration(cx, &state),
                }?;
                ahead.push_back(state.clone());
                launched += 1;
            }
            let Some(next) = ahead.pop_front() else { return Ok(Some(End::TooManyIterations)) };
            let reached = next.await?;
            *iterations += 1;
            progress.set(*iterations, || {
                let rows = self.all.space().volume() as f64;
                format!("residual {}", scientific((reached.residual / rows).sqrt()))
            });
            if reached.has_ended() {
                return Ok(match reached {
                    _ if reached.has_converged() => None,
                    IterationState { is_broken: true, .. } => Some(End::NotPositiveDefinite),
                    _ => Some(End::Overflow),
                });
            }
        }
    }

    /// One iteration. Nothing waits: scalars go from task to task as futures.
    fn launch_iteration(&self, cx: &Context, state: &Future<IterationState>) -> Result<Future<IterationState>> {
        drop(self.direction.launch(cx)?);
        let curvature = cx.index_launch(self.pieces, curvature(&self.rows)).reduce(Sum);
        let step: Future<IterationStep> = state.zip_with(&curvature, IterationState::step);
        let products = cx.index_launch(self.pieces, advance(&self.rows, &step));
        let products = products.fold(Products::default(), Products::and);
        let state = step.zip_with(&products, IterationStep::finish);
        cx.index_launch(self.pieces, turn(&self.rows, &state));
        Ok(state)
    }

    /// The square of the norm of b - A x, computed anew: entry by entry, and not by the statement, unless there are so
    /// many rows that nodes are not to have all of x.
    pub(super) async fn residual(&self, cx: &Context) -> Result<f64, DistributedError> {
        if self.all.space().volume() > MOST_CHECKED {
            return Ok(self.begin(cx)?.await?.residual);
        }
        let x = cx.map_read(&self.all, Row::x).await?;
        let x: Vec<f64> = self.all.space().rows().flat_map(|row| x.values().span(row).to_vec()).collect();
        // What the rows before have come to; the row, and its product with x so far. Each row has an entry.
        type Part = (f64, Option<(i64, f64)>);
        let of_row = |product: f64| (1.0 - product).powi(2);
        let parts = self.matrix.fold_entries::<f64, Part>(
            cx,
            || (0.0, None),
            move |(sum, row), at, value| {
                let term = value * x[at[1] as usize];
                match row {
                    Some((number, product)) if *number == at[0] => *product += term,
                    _ => *sum += row.replace((at[0], term)).map_or(0.0, |(_, product)| of_row(product)),
                }
            },
        );
        let parts = parts.await?;
        Ok(parts.into_iter().map(|(sum, row)| sum + row.map_or(0.0, |(_, product)| of_row(product))).sum())
    }
}

/// Of so many rows all of x is brought to each node, to look at the answer once more.
const MOST_CHECKED: u64 = 1 << 20;

/// Writes the diagonal of a matrix to a vector.
async fn write_diagonal(cx: &Context, matrix: &Tensor, vector: &Tensor, cuts: &[i64]) -> Result<(), DistributedError> {
    let variable = matrix.variable().renamed("D");
    let diagonal = matrix.mapped::<f64, f64>(cx, &variable, |at, value, visit| {
        if at[0] == at[1] {
            visit(at, value);
        }
    });
    let diagonal = diagonal.await?;
    in_parts(cx, "d(i) = D(i,j)", &[vector, &diagonal], cuts).await?.launch(cx)?.await?;
    diagonal.destroy(cx)
}

/// A statement whose outermost variable is `i`, in as many parts as the cuts of its coordinates make.
async fn in_parts(
    cx: &Context,
    text: &str,
    tensors: &[&Tensor],
    cuts: &[i64],
) -> Result<Computation, DistributedError> {
    let variables: Vec<TensorVariable> = tensors.iter().map(|tensor| tensor.variable().clone()).collect();
    let statement = parse(text, &variables).map_err(Error::from_task)?;
    let loops = sparse::Computation::new(&statement).map_err(Error::from_task)?.statement().clone();
    let loops = match cuts {
        [] => loops.distribute(["i"], ["piece"], ["row"], &[1]),
        cuts => loops.split_at("i", "piece", "row", cuts).and_then(|loops| loops.distribute_loops(["piece"])),
    };
    let plan = Plan::new(&loops.map_err(Error::from_task)?).map_err(Error::from_task)?;
    Computation::new(cx, &Arc::new(plan), tensors).await
}
