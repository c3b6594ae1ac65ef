//! The front door: statements by their text, on tensors of the runtime, computed by tasks on all nodes.
//!
//! [`compute`](TensorContext::compute) takes assignments in index notation and the tensors that they name. How loops
//! are divided among processors is chosen, unless a schedule or a grid says it; operands are converted where loops need
//! them in another format, and results are assembled.
//!
//! ```
//! use maniple_tensor::prelude::*;
//!
//! let runtime = Runtime::builder().workers(2).mapper(TensorMapper::new()).build()?;
//! let product = runtime.run(async |cx| {
//!     let matrix = TensorVariable::new("A", F64, [100, 100]).stored("csr".parse()?);
//!     let a = Tensor::generated(cx, &matrix, &"band:1".parse()?, 1).await?;
//!     let x = Tensor::new(cx, &TensorVariable::new("x", F64, [100]))?;
//!     x.fill(cx, 1.0.into())?;
//!     let y = cx.compute("y(i) = A(i,j) * x(j)").with([&a, &x]).run().await?;
//!     Ok(y.read_elements::<f64>(cx).await?)
//! })?;
//! assert_eq!(product.len(), 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | here | statements by their text |
//! | `planned`, `tensors` | statements as tasks, and the tensors that they use and make |
//! | `division`, [`Loops`] | loops of statements on tensors in levels, divided among processors |
//! | [`Blocks`] | schedules by blocks of index variables |
//! | [`Sources`] | tensors that are given, read or made; `rehearsed`: the bytes that moving them takes |

mod blocks;
mod division;
mod loops;
mod planned;
mod rehearsed;
mod sources;
mod tensors;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use maniple::{Context, ProcessorKind};

pub use self::blocks::{Blocks, BlocksError, Split};
pub use self::division::has_no_loop_around;
pub use self::loops::{LoopWishes, Loops};
pub use self::planned::{Planned, Statements};
pub use self::rehearsed::{Rehearsed, Sent};
pub use self::sources::{Gathered, Made, Sources, TensorPlace};
pub use self::tensors::Tensors;
use crate::choose::{Choices, ChooseError, Processors, Wishes};
use crate::cost::Rates;
use crate::distributed::{Computation as Distributed, DistributedError, Pending, Tensor};
use crate::element::ElementType;
use crate::format::{Format, FormatError};
use crate::notation::{IndexVariable, NotationError, TensorVariable, has_entries};
use crate::plan::PlanError;
use crate::program::{ExtentError, Extents, Program};
use crate::schedule::{ParseError, Schedule};
use crate::sparse::SparseError;

/// Functions of a task's [`Context`] that compute with tensors.
pub trait TensorContext {
    /// Statements to be computed: assignments in index notation, with `;` or a new line between them.
    fn compute<'a>(&'a self, text: &'a str) -> Compute<'a>;
}

impl TensorContext for Context {
    fn compute<'a>(&'a self, text: &'a str) -> Compute<'a> {
        Compute {
            cx: self,
            text,
            tensors: Vec::new(),
            formats: Vec::new(),
            schedules: Vec::new(),
            grid: None,
            rates: Rates::default(),
            forgets: false,
        }
    }
}

/// Statements, and how they are to be computed. See [`TensorContext::compute`].
///
/// All nodes of a job make the same calls.
#[must_use = "nothing is computed before it runs"]
pub struct Compute<'a> {
    cx: &'a Context,
    text: &'a str,
    tensors: Vec<&'a Tensor>,
    formats: Vec<(&'a str, Format)>,
    schedules: Vec<(usize, &'a str)>,
    grid: Option<Vec<i64>>,
    rates: Rates,
    forgets: bool,
}

/// A value to come of statements, or why there is none.
pub type Computing<'a, T> = Pin<Box<dyn Future<Output = Result<T, ComputeError>> + Send + 'a>>;

/// Statements that are not computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// The text, or tensors that do not fit it.
    #[error(transparent)]
    Notation(#[from] NotationError),
    /// A tensor that is read and not given.
    #[error("{tensor} is read, and not given; the tensors that are given are {given}: add it by `with`")]
    Missing {
        /// Its name.
        tensor: String,
        /// The names of those that are given.
        given: String,
    },
    /// A tensor, a format or a schedule for what the statements do not have.
    #[error("{found} is given, and the statements have {known}")]
    Unknown {
        /// The tensor, the format or the schedule that is given.
        found: String,
        /// The tensors or statements that there are.
        known: String,
    },
    /// Two tensors, formats or schedules where there can be one.
    #[error("{0} is given twice: leave one of the two out")]
    Twice(String),
    /// A format for a tensor that is given.
    #[error("{0} is given, and stays in its format: leave `stored` out, or convert the tensor")]
    Stored(String),
    /// Tensors whose extents do not fit each other.
    #[error(transparent)]
    Extents(#[from] ExtentError),
    /// A grid or a schedule that does not fit its statement.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// A result whose extents follow from no operand.
    #[error("how many values {variable} has follows from no tensor that is given: give {tensor} too, which has it")]
    Extent {
        /// The index variable.
        variable: String,
        /// The result.
        tensor: String,
    },
    /// A format for other tensors.
    #[error("{tensor}: {error}")]
    Format {
        /// The tensor's name.
        tensor: String,
        /// The reason.
        error: FormatError,
    },
    /// A schedule that cannot be read.
    #[error(transparent)]
    Commands(#[from] ParseError),
    /// Loops over levels that can't be.
    #[error(transparent)]
    Loops(#[from] SparseError),
    /// Loops that can't be divided so.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A failure while tensors are prepared or tasks run.
    #[error(transparent)]
    Run(#[from] DistributedError),
}

impl From<ComputeError> for maniple::Error {
    fn from(error: ComputeError) -> Self {
        match error {
            ComputeError::Run(error) => error.into(),
            other => Self::from_task(other),
        }
    }
}

impl<'a> Compute<'a> {
    /// Gives tensors that the statements name, each under the name of its variable. A dense one that they assign to
    /// gets the new elements; in the place of one in levels there is a new tensor.
    pub fn with(mut self, tensors: impl IntoIterator<Item = &'a Tensor>) -> Self {
        self.tensors.extend(tensors);
        self
    }

    /// Has a result that is not given stored in a format. Without this it is dense.
    pub fn stored(mut self, result: &'a str, format: Format) -> Self {
        self.formats.push((result, format));
        self
    }

    /// Has the loops of a statement, by its number from 1, run as the commands of a [schedule](mod@crate::schedule)
    /// say.
    pub fn schedule(mut self, statement: usize, commands: &'a str) -> Self {
        self.schedules.push((statement, commands));
        self
    }

    /// Has the outermost loops of statements without a schedule distributed over so many points each.
    pub fn on_grid(mut self, extents: impl Into<Vec<i64>>) -> Self {
        self.grid = Some(extents.into());
        self
    }

    /// Has nodes forget what they got from others as soon as it has been used: less memory, and more is sent when the
    /// statements run again.
    pub fn in_little_memory(mut self) -> Self {
        self.forgets = true;
        self
    }

    /// Computes the statements, and waits for their end. Gives the result of the last one.
    ///
    /// # Errors
    /// [`ComputeError`] if the statements, the tensors and the schedules do not fit each other, or if a task fails.
    pub fn run(self) -> Computing<'a, Tensor> {
        Box::pin(async move {
            let (cx, given) = (self.cx, self.tensors.clone());
            let mut prepared = self.prepare().await?;
            prepared.run().await?;
            let Prepared { statements, mut tensors, last, .. } = prepared;
            let missing = || {
                let tensor = last.as_ref().map_or_else(String::new, |last| last.name().to_owned());
                DistributedError::Missing { tensor, given: String::new() }
            };
            let result = last.as_ref().and_then(|last| tensors.find(last)).cloned();
            let result = result.ok_or_else(missing)?;
            // A result may have the levels of an operand that was converted.
            if statements.all().iter().all(|planned| planned.plan().pattern().is_none()) {
                let is_same = |one: &Tensor, other: &Tensor| one.region() == other.region();
                let is_wanted =
                    |tensor: &Tensor| is_same(tensor, &result) || given.iter().any(|given| is_same(tensor, given));
                tensors.retain(cx, is_wanted)?;
            }
            Ok(result)
        })
    }

    /// Prepares to compute the statements again and again: tensors are partitioned and kernels compiled once, as far as
    /// that does not depend on what the statements compute.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn prepare(self) -> Computing<'a, Prepared<'a>> {
        Box::pin(async move {
            let cx = self.cx;
            let program = self.program()?;
            let statements = self.planned(&program)?;
            let given = self.tensors.iter().map(|&tensor| tensor.clone()).collect();
            let mut tensors = Tensors::new(given, self.forgets);
            for result in statements.results().filter(|result| result.format().is_dense()) {
                if !tensors.has(result.name()) {
                    tensors.add(Tensor::new(cx, result)?);
                }
            }
            for operand in statements.operands().iter().filter(|operand| !statements.assign(operand.name())) {
                tensors.convert(cx, operand).await?;
            }
            let last = program.statements().last().map(|last| last.left().tensor.clone());
            let last = last
                .ok_or_else(|| ComputeError::Unknown { found: "no statement".to_owned(), known: "none".to_owned() })?;
            let prepared = Prepared::new(cx, statements, tensors).await?;
            Ok(Prepared { results: program.results(), last: Some(last), ..prepared })
        })
    }

    /// The statements with the extents that the tensors say.
    fn program(&self) -> Result<Program, ComputeError> {
        let element = self.tensors.first().map_or(ElementType::F64, |tensor| tensor.variable().element());
        let sketch = Program::sketch(self.text, element, &Program::index_variables(self.text))?;
        let names = |tensors: &[TensorVariable]| {
            let names: Vec<&str> = tensors.iter().map(TensorVariable::name).collect();
            if names.is_empty() { "no tensor".to_owned() } else { names.join(", ") }
        };
        let given: Vec<TensorVariable> = self.tensors.iter().map(|tensor| tensor.variable().clone()).collect();
        let known = sketch.tensors();
        let named = given.iter().map(TensorVariable::name).chain(self.formats.iter().map(|(name, _)| *name));
        for name in named {
            if known.iter().all(|tensor| tensor.name() != name) {
                return Err(ComputeError::Unknown { found: name.to_owned(), known: names(&known) });
            }
        }
        let find = |name: &str| given.iter().find(|tensor| tensor.name() == name);
        let tensor_twice = twice(given.iter().map(TensorVariable::name));
        if let Some(name) = tensor_twice.or_else(|| twice(self.formats.iter().map(|(name, _)| *name))) {
            return Err(ComputeError::Twice(name.to_owned()));
        }
        if let Some((name, _)) = self.formats.iter().find(|(name, _)| find(name).is_some()) {
            return Err(ComputeError::Stored((*name).to_owned()));
        }
        if let Some(missing) = sketch.inputs().iter().find(|input| find(input.name()).is_none()) {
            return Err(ComputeError::Missing { tensor: missing.name().to_owned(), given: names(&given) });
        }
        let mut tensors = given.clone();
        for statement in sketch.statements() {
            let left = statement.left();
            if tensors.iter().any(|tensor| tensor.name() == left.tensor.name()) {
                continue;
            }
            let mut extents = Extents::default();
            for access in statement.right().accesses() {
                if let Some(tensor) = tensors.iter().find(|tensor| tensor.name() == access.tensor.name()) {
                    extents.set_by(access, tensor.dimensions(), "as it is given")?;
                }
            }
            let extent = |variable: &IndexVariable| {
                extents.get(variable.base().name()).ok_or_else(|| ComputeError::Extent {
                    variable: variable.name().to_owned(),
                    tensor: left.tensor.name().to_owned(),
                })
            };
            let dimensions = left.variables.iter().map(extent).collect::<Result<Vec<i64>, _>>()?;
            let mut made = TensorVariable::new(left.tensor.name(), element, dimensions);
            if let Some((name, format)) = self.formats.iter().find(|(name, _)| *name == made.name()) {
                let failed = |error| ComputeError::Format { tensor: (*name).to_owned(), error };
                format.check_rank(made.order()).map_err(failed)?;
                made = made.stored(format.clone());
            }
            tensors.push(made);
        }
        Ok(Program::parse(self.text, &tensors)?)
    }

    /// The statements as tasks.
    fn planned(&self, program: &Program) -> Result<Statements, ComputeError> {
        let mut schedules = BTreeMap::new();
        for &(number, commands) in &self.schedules {
            if !(1..=program.statements().len()).contains(&number) {
                let known = format!("{} statement(s), numbered from 1", program.statements().len());
                return Err(ComputeError::Unknown { found: format!("a schedule of statement {number}"), known });
            }
            if schedules.insert(number, Schedule::parse(commands, &program.tensors())?).is_some() {
                return Err(ComputeError::Twice(format!("a schedule of statement {number}")));
            }
        }
        let (cx, is_scheduled) = (self.cx, !schedules.is_empty());
        let workers = cx.machine().processors_of(ProcessorKind::Cpu).count().max(1);
        if !program.tensors().iter().any(has_entries) {
            let divided = if is_scheduled { program.clone() } else { program.divided(&self.rates) };
            let wishes = Wishes {
                rates: &self.rates,
                algorithm: None,
                grid: self.grid.as_deref(),
                chunk: None,
                places: &[],
                processors: (workers * cx.nodes()) as i64,
            };
            let choices = Choices::of(divided.statements(), &schedules, wishes)?;
            let planned = choices.all().map(|candidate| Planned::dense(Arc::new(candidate.plan.clone())));
            return Ok(Statements::new(planned.collect()));
        }
        let points = if cx.nodes() > 1 { cx.nodes() } else { workers };
        let grid = self.grid.clone().unwrap_or_else(|| vec![points as i64]);
        let divided = program.by_terms(|statement| !is_scheduled && has_no_loop_around(statement));
        let wishes = LoopWishes {
            schedules: &schedules,
            grid: &grid,
            nodes: cx.nodes(),
            is_kept: &|_| false,
            length: &|_, _| None,
        };
        Loops::new(divided.statements(), wishes, Processors::default())?.planned()
    }
}

/// The first name that has been there before.
fn twice<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut known = BTreeSet::new();
    names.find(|name| !known.insert(*name))
}

/// Statements that can be computed as often as is wanted.
pub struct Prepared<'a> {
    cx: &'a Context,
    statements: Statements,
    /// The results of the program, without those that it was divided into. [`Compute::prepare`] sets them.
    results: Vec<TensorVariable>,
    /// The result of the last statement.
    last: Option<TensorVariable>,
    /// The tensors as they were before the first run.
    before: Tensors,
    tensors: Tensors,
    computation: Option<Distributed>,
}

impl<'a> Prepared<'a> {
    /// Statements on tensors, partitioned and compiled once if that does not depend on what the statements compute.
    ///
    /// # Errors
    /// As of [`Computation::in_order`](Distributed::in_order).
    pub fn new(cx: &'a Context, statements: Statements, mut tensors: Tensors) -> Pending<'a, Self> {
        Box::pin(async move {
            let computation = match statements.are_prepared_once(|name| tensors.has(name)) {
                true => Some(tensors.prepared(cx, &statements).await?),
                false => None,
            };
            // What is prepared stays.
            tensors.keep_all();
            let before = tensors.clone();
            Ok(Self { cx, statements, results: Vec::new(), last: None, before, tensors, computation })
        })
    }

    /// The tensors, with those that the latest run has made.
    #[must_use]
    pub fn tensors(&self) -> &Tensors {
        &self.tensors
    }

    /// Destroys what the latest run has made, and gives tensors the elements that they had before.
    ///
    /// # Errors
    /// [`DistributedError::Runtime`].
    pub fn reset(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.tensors.forget(self.cx)?;
            self.tensors.clone_from(&self.before);
            self.tensors.restore(self.cx).await
        })
    }

    /// Computes the statements, and waits for their end. To be called once after each [`reset`](Self::reset).
    ///
    /// # Errors
    /// [`DistributedError`] of tensors that do not fit the plans, or of a task that fails.
    pub fn compute(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            if let Some(computation) = &self.computation {
                return self.tensors.run(self.cx, computation).await;
            }
            for planned in self.statements.all() {
                self.tensors.compute(self.cx, planned).await?;
            }
            Ok(self.cx.execution_fence().await?)
        })
    }

    /// Computes the statements once more, and waits for their end. Results in levels are made anew; those of the run
    /// before are destroyed.
    ///
    /// # Errors
    /// [`ComputeError::Run`].
    pub fn run(&mut self) -> Computing<'_, ()> {
        Box::pin(async move {
            self.reset().await?;
            self.compute().await?;
            Ok(self.tensors.forget_others(self.cx, &self.results)?)
        })
    }

    /// A result of the latest run, by its name.
    #[must_use]
    pub fn result(&self, name: &str) -> Option<&Tensor> {
        let variable = self.results.iter().find(|result| result.name() == name)?;
        self.tensors.find(variable)
    }
}
