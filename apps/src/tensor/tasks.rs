//! Statements on sparse tensors with distributed loops: as tasks of the runtime, on all nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maniple::FieldValue;
use maniple::prelude::*;
use maniple_files::tcs::Width;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{
    Computation, DistributedError, TcsFile, Tensor, TensorMapper, Writers, assemble, check_placement,
};
use maniple_tensor::element::Element;
use maniple_tensor::format::{Format, Level};
use maniple_tensor::lower::Output;
use maniple_tensor::machine::{Grid, Machine, MachineError};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::plan::{Graph, Plan};
use maniple_tensor::storage::SparseTensor;

use super::files::SparseFile;
use super::limit::check_tasks;
use super::options::Options;
use super::slowest;
use super::values::Values;
use crate::error::{Error as AppError, Result as AppResult};
use crate::input::InputError;
use crate::options::place;
use crate::progress::Progress;
use crate::report::counted;

/// In so many pieces on each node random elements are made.
const MADE_AT_ONCE: usize = 4;

/// What tasks are given, and asked for.
#[derive(Clone, Copy)]
pub(super) struct Around<'a, T> {
    /// Tensors that each node has whole.
    pub(super) given: &'a BTreeMap<String, SparseTensor<T>>,
    /// Tensors that tasks read from files, whether they are given too or not.
    pub(super) files: &'a BTreeMap<String, TcsFile>,
    /// Dense tensors with random elements, which tasks make.
    pub(super) made: &'a BTreeSet<String>,
    /// The files that results go to.
    pub(super) outputs: &'a [(String, SparseFile)],
    /// Whether each node needs the results whole.
    pub(super) needs_all: bool,
}

impl<T> Around<'_, T> {
    /// The file that tasks write a result to.
    fn stored_to(&self, result: &TensorVariable) -> Option<(&SparseFile, Width)> {
        let (_, file) = self.outputs.iter().find(|(own, _)| own == result.name())?;
        // A number has no levels, and of other levels one node writes what they store.
        let width = file.width().filter(|_| !self.needs_all && result.order() > 0 && is_of_files(result.format()))?;
        Some((file, width))
    }

    /// Whether a result is needed whole on each node.
    fn needs(&self, result: &TensorVariable) -> bool {
        let is_written = self.outputs.iter().any(|(own, _)| own == result.name());
        self.needs_all || is_written && self.stored_to(result).is_none()
    }
}

/// Whether `.tcs` files have levels as a format has them.
fn is_of_files(format: &Format) -> bool {
    let is_kind = |level: &Level| matches!(level, Level::Dense | Level::Compressed);
    let are_strict = format.properties().iter().all(|level| level.unique && level.ordered);
    format.is_plain() && format.levels().iter().all(is_kind) && are_strict
}

/// What tasks have done with files, by the names of tensors.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// The bytes that each node has read.
    pub(super) read: BTreeMap<String, Vec<u64>>,
    /// The bytes that each node has written.
    pub(super) written: BTreeMap<String, Vec<u64>>,
    /// How many elements are stored.
    pub(super) counts: BTreeMap<String, usize>,
}

/// What tasks have computed.
pub(super) struct Outcome<T> {
    /// The tensors that each node has whole, by name.
    pub(super) tensors: BTreeMap<String, SparseTensor<T>>,
    /// How long each run took.
    pub(super) times: Vec<Duration>,
    pub(super) done: Done,
}

impl<T> fmt::Display for Outcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sparse tensors\n  computed {}", counted(self.times.len(), "time", "times"))
    }
}

/// Whether a tensor, or the file that it is loaded from, differs between nodes, each of which has read or made it for itself: which one, and on which nodes. Of files that are loaded the
/// headers tell, which have checksums of all that is in them.
async fn differing<T: Element>(
    cx: &Context,
    given: &BTreeMap<String, Arc<SparseTensor<T>>>,
    files: &BTreeMap<String, TcsFile>,
) -> maniple::Result<Option<String>> {
    let of_file = |file: &TcsFile| {
        let mut hasher = DefaultHasher::new();
        file.header().to_bytes().hash(&mut hasher);
        hasher.finish()
    };
    let names = given.keys().cloned().chain(files.iter().map(|(name, file)| format!("{name}, from {},", file.name())));
    let digests: Vec<u64> = given.values().map(|tensor| digest(tensor)).chain(files.values().map(of_file)).collect();
    let nodes = cx.per_node(digests).all().await?;
    let Some(first) = nodes.first() else { return Ok(None) };
    // Files of other kinds on some nodes are read in other ways.
    let is_other = |digests: &[u64], number: usize| digests.len() != first.len() || digests[number] != first[number];
    let other = names
        .enumerate()
        .find_map(|(number, name)| nodes.iter().position(|digests| is_other(digests, number)).map(|node| (name, node)));
    Ok(other.map(|(name, node)| {
        format!("{name} is not the same on node {node} as on node 0: each node reads its files for itself, and all must have the same ones")
    }))
}

/// A number that is different for other extents or entries, as far as 64 bits can be.
fn digest<T: Element>(tensor: &SparseTensor<T>) -> u64 {
    let mut hasher = DefaultHasher::new();
    tensor.dimensions().hash(&mut hasher);
    tensor.for_each(|at, value| (at, value.to_scalar().bits()).hash(&mut hasher));
    hasher.finish()
}

/// What statements do as tasks.
pub(super) struct Tasks {
    plans: Vec<Arc<Plan>>,
}

impl Tasks {
    /// Of these statements; none if no loop of them is distributed.
    ///
    /// # Errors
    /// [`AppError::Usage`] if they can't run as tasks.
    pub(super) fn new<'a>(statements: impl Iterator<Item = &'a Statement>) -> AppResult<Option<Self>> {
        let statements: Vec<&Statement> = statements.collect();
        if !statements.iter().any(|statement| statement.spine().iter().any(|outer| outer.level().is_some())) {
            return Ok(None);
        }
        let plan = |statement| Plan::new(statement).map(Arc::new).map_err(|error| AppError::Usage(error.to_string()));
        let plans: Vec<Arc<Plan>> = statements.into_iter().map(plan).collect::<AppResult<_>>()?;
        plans.iter().try_for_each(|plan| check_tasks(plan))?;
        Ok(Some(Self { plans }))
    }

    /// What is partitioned and launched.
    pub(super) fn graph(&self) -> Graph {
        if place().nodes > 1 { Graph::gathering(&self.plans) } else { Graph::new(&self.plans) }
    }

    /// Runs the statements as often as is asked for, and once more before, each time on these tensors.
    ///
    /// # Errors
    /// [`AppError::Runtime`] if a task fails.
    pub(super) fn run<T: Element + FieldValue>(
        &self,
        options: &Options,
        around: Around<'_, T>,
    ) -> AppResult<Outcome<T>> {
        let given = around.given.iter().filter(|(name, _)| !around.files.contains_key(*name));
        let given: BTreeMap<String, Arc<SparseTensor<T>>> =
            given.map(|(name, tensor)| (name.clone(), Arc::new(tensor.clone()))).collect();
        options.runtime.run_by(
            || Box::new(TensorMapper::new()),
            |runtime| {
                runtime.run(async |cx| {
                    if let Some(told) = differing(cx, &given, around.files).await? {
                        return Ok(Err(AppError::Usage(told)));
                    }
                    match self.run_on(cx, options, (&given, around)).await {
                        Ok(outcome) => Ok(Ok(outcome)),
                        Err(
                            error @ (DistributedError::Placement(_)
                            | DistributedError::Pieces { .. }
                            | DistributedError::Dense { .. }),
                        ) => Ok(Err(AppError::Usage(format!("a --place does not fit: {error}")))),
                        Err(DistributedError::File { name, reason, is_input: true }) => {
                            Ok(Err(InputError::Unsuitable { name, reason }.into()))
                        }
                        Err(DistributedError::File { name, reason, .. }) => {
                            Ok(Err(AppError::Write { path: name.into(), source: io::Error::other(reason) }))
                        }
                        Err(other) => Err(other.into()),
                    }
                })?
            },
        )
    }

    async fn run_on<T: Element + FieldValue>(
        &self,
        cx: &Context,
        options: &Options,
        (given, around): (&BTreeMap<String, Arc<SparseTensor<T>>>, Around<'_, T>),
    ) -> Result<Outcome<T>, DistributedError> {
        // Errors name the statement, and not lines of this program.
        let cx = &cx.at(&options.statement);
        let mut variables: Vec<TensorVariable> = Vec::new();
        for variable in self.plans.iter().flat_map(|plan| plan.statement.tensors()) {
            if !variables.iter().any(|known| known.name() == variable.name()) {
                variables.push(variable.clone());
            }
        }
        let (mut all, mut done) = (
            Tensors { given, all: Vec::new(), is_short: options.runtime.memory.is_some() && cx.nodes() > 1 },
            Done::default(),
        );
        for variable in &variables {
            match around.files.get(variable.name()) {
                Some(file) => {
                    let (tensor, loaded) = Tensor::load(cx, variable, file).await?;
                    done.read.insert(variable.name().to_owned(), loaded.bytes);
                    all.all.push(tensor);
                }
                None if around.made.contains(variable.name()) => {
                    let tensor = Tensor::new(cx, variable)?;
                    let pieces = tensor.slabs(MADE_AT_ONCE * cx.nodes());
                    Values::random(options.runtime.seed, variable).put(cx, &tensor, &pieces)?;
                    all.all.push(tensor);
                }
                None => all.add(cx, variable)?,
            }
        }
        all.place(cx, options).await?;
        // What is assembled is made anew each time, and so is all that is prepared for it; and what takes the place of another tensor is made when it is its turn.
        let names: Vec<&str> = self.plans.iter().map(|plan| plan.statement.result().name()).collect();
        let is_made = |(number, plan): (usize, &Arc<Plan>)| {
            let is_other = given.contains_key(names[number]) || names[..number].contains(&names[number]);
            plan.leaf().output == Output::Elements || plan.leaf().output == Output::Beside && !is_other
        };
        let prepared = match self.plans.iter().enumerate().all(is_made) {
            true => Some(all.prepared(cx, &self.plans).await?),
            false => None,
        };
        let progress = Progress::steps(options.repeat + 1, &options.runtime);
        let (mut times, first) = (Vec::new(), all.all.clone());
        for repeat in 0..=options.repeat {
            all.all.clone_from(&first);
            all.write(cx)?;
            cx.execution_fence().await?;
            let started = Instant::now();
            match &prepared {
                Some(computation) => all.run(cx, computation).await?,
                None => {
                    for plan in &self.plans {
                        all.compute(cx, plan).await?;
                    }
                    cx.execution_fence().await?;
                }
            }
            times.push(started.elapsed());
            progress.set(repeat + 1, String::new);
        }
        drop(progress);
        let times = cx.per_node(times).fold(Vec::new(), slowest).await?;
        let mut found: BTreeMap<String, SparseTensor<T>> = around.given.clone();
        for tensor in &all.all {
            let name = tensor.variable().name();
            done.counts.insert(name.to_owned(), tensor.region().space().space().volume() as usize);
            if !names.contains(&name) {
                continue;
            }
            let writers = if options.serial_writes { Writers::InTurn } else { Writers::Together };
            if let Some((file, width)) = around.stored_to(tensor.variable()) {
                done.written.insert(name.to_owned(), tensor.store_by(cx, file.path(), width, writers).await?.bytes);
            }
            if around.needs(tensor.variable()) {
                found.insert(name.to_owned(), whole(cx, tensor).await?);
            }
        }
        Ok(Outcome { tensors: found, times, done })
    }
}

/// All of a tensor.
async fn whole<T: Element + FieldValue>(cx: &Context, tensor: &Tensor) -> Result<SparseTensor<T>, DistributedError> {
    let variable = tensor.variable();
    if !variable.format().is_dense() {
        return tensor.read_sparse(cx).await;
    }
    let elements = tensor.read_elements(cx).await?;
    let fill = T::from_scalar(variable.fill()).expect("fill values have the type of their tensors");
    let stored = SparseTensor::from_elements(variable.dimensions(), fill, elements);
    let stored = stored.and_then(|stored| stored.convert(variable.format()));
    Ok(stored.map_err(maniple::Error::from_task)?)
}

/// Where tensors are placed: on the grid of processors, or a line of all nodes.
fn machine(options: &Options, nodes: usize) -> Result<Machine, MachineError> {
    options.grid.clone().map_or_else(|| Grid::new([nodes]), Ok).map(Machine::from)
}

/// Refuses placements that do not fit tensors, before anything is read of them but where their files say what they have.
///
/// # Errors
/// [`AppError::Usage`].
pub(super) fn check_places(options: &Options, tensors: &[TensorVariable]) -> AppResult<()> {
    let machine = machine(options, place().nodes).map_err(|error| AppError::Usage(error.to_string()))?;
    for (name, placement) in &options.place {
        let found = tensors.iter().find(|tensor| tensor.name() == name);
        let checked = found.map_or(Ok(()), |tensor| check_placement(tensor, placement, &machine));
        checked.map_err(|error| AppError::Usage(format!("a --place does not fit: {error}")))?;
    }
    Ok(())
}

/// The tensors of a program.
struct Tensors<'g, T> {
    given: &'g BTreeMap<String, Arc<SparseTensor<T>>>,
    all: Vec<Tensor>,
    /// Whether nodes forget what passes by, as they are given so much memory and no more.
    is_short: bool,
}

impl<T: Element + FieldValue> Tensors<'_, T> {
    /// Makes one that is given, or dense.
    fn add(&mut self, cx: &Context, variable: &TensorVariable) -> Result<(), DistributedError> {
        match self.given.get(variable.name()) {
            Some(stored) if !variable.format().is_dense() => {
                self.all.push(Tensor::from_sparse(cx, variable, Arc::clone(stored))?);
            }
            _ if variable.format().is_dense() => self.all.push(Tensor::new(cx, variable)?),
            _ => {}
        }
        Ok(())
    }

    /// Brings tensors to where they are placed.
    async fn place(&self, cx: &Context, options: &Options) -> Result<(), DistributedError> {
        let machine = machine(options, cx.nodes()).map_err(maniple::Error::from_task)?;
        for (name, placement) in &options.place {
            let found = self.all.iter().find(|tensor| tensor.variable().name() == name);
            match found.map(|tensor| (tensor, tensor.variable().format().is_dense())) {
                Some((tensor, true)) => tensor.place(cx, placement, &machine)?.await?,
                Some((tensor, false)) => tensor.place_levels(cx, placement, &machine).await?.await?,
                None => {}
            }
        }
        Ok(())
    }

    /// Puts one in the place of that with its name.
    fn put(&mut self, tensor: Tensor) {
        self.all.retain(|other| other.variable().name() != tensor.variable().name());
        self.all.push(tensor);
    }

    /// Makes the result of a plan, if it has the levels of an operand.
    fn make(&mut self, cx: &Context, plan: &Plan) -> Result<(), DistributedError> {
        if plan.pattern().is_some() {
            let made = Tensor::for_result(cx, plan, &self.all.iter().collect::<Vec<_>>())?;
            self.put(made);
        }
        Ok(())
    }

    /// Plans with results that there are.
    async fn prepared(&mut self, cx: &Context, plans: &[Arc<Plan>]) -> Result<Computation, DistributedError> {
        for plan in plans {
            self.make(cx, plan)?;
        }
        Computation::in_order(cx, plans, &self.all.iter().collect::<Vec<_>>()).await
    }

    /// Gives dense tensors the elements that are given.
    fn write(&self, cx: &Context) -> Result<(), DistributedError> {
        for tensor in self.all.iter().filter(|tensor| tensor.variable().format().is_dense()) {
            if let Some(stored) = self.given.get(tensor.variable().name()) {
                tensor.write_elements(cx, stored.elements())?;
            }
        }
        Ok(())
    }

    /// Prepares and launches a plan, or has its result assembled.
    async fn compute(&mut self, cx: &Context, plan: &Arc<Plan>) -> Result<(), DistributedError> {
        if plan.leaf().output == Output::Entries {
            let made = assemble(cx, plan, &self.all.iter().collect::<Vec<_>>()).await?;
            self.put(made);
            return Ok(());
        }
        let computation = self.prepared(cx, std::slice::from_ref(plan)).await?;
        self.run(cx, &computation).await
    }

    async fn run(&self, cx: &Context, computation: &Computation) -> Result<(), DistributedError> {
        match self.is_short {
            true => computation.run_in_steps(cx).await,
            false => computation.launch(cx)?.await,
        }
    }
}
