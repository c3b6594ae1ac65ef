//! Statements on sparse tensors with distributed loops: as tasks of the runtime, on all nodes.
//!
//! `rehearsal`: what nodes send each other, counted without computing.

mod rehearsal;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use maniple::prelude::*;
use maniple_files::tcs::Width;
use maniple_tensor::compute::{Planned, Prepared, Statements, Tensors};
use maniple_tensor::distributed::{
    DistributedError, Tensor, TensorMapper, TextForm, Writers, check_placement, is_stored_as_npy,
};
use maniple_tensor::element::Scalar;
use maniple_tensor::format::{Format, Level};
use maniple_tensor::generate::Generator;
use maniple_tensor::machine::{Grid, Machine, MachineError};
use maniple_tensor::notation::{TensorVariable, cast};
use maniple_tensor::plan::Graph;
use maniple_tensor::sparse::Computation as Computed;
use maniple_tensor::storage::DynamicTensor;

use super::files::{FileByTasks, SparseFile};
use super::limit::check_tasks;
use super::options::Options;
use super::slowest;
use super::values::Values;
use crate::error::{Error as AppError, Result as AppResult, refused_file};
use crate::options::place;
use crate::output::is_special;
use crate::progress::Progress;
use crate::report::counted;

/// In so many pieces on each node random elements are made.
const MADE_AT_ONCE: usize = 4;

/// The inputs of tasks, and the outputs that they are asked for.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// Tensors that each node has whole.
    pub(super) given: &'a BTreeMap<String, DynamicTensor>,
    /// Tensors that tasks read from files, whether they are given too or not.
    pub(super) files: &'a BTreeMap<String, FileByTasks>,
    /// Tensors that tasks make, whether they are given too or not.
    pub(super) made: &'a BTreeMap<String, Made>,
    /// The files that results go to.
    pub(super) outputs: &'a [(String, SparseFile)],
    /// Whether each node needs the results whole.
    pub(super) needs_all: bool,
}

/// How tasks make a tensor.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// Dense, with random elements.
    Random,
    /// In levels, by a generator from a seed.
    Generated(Generator, u64),
}

/// How tasks write a result to a file.
enum WrittenAs {
    /// All of its elements.
    Elements,
    /// The contents of its levels, with numbers of so many bytes.
    Levels(Width),
    /// Lines of text.
    Lines(TextForm),
}

impl Around<'_> {
    /// The tensors that tasks neither read from files nor make.
    fn given_whole(&self) -> Given {
        let is_given = |name: &String| !self.files.contains_key(name) && !self.made.contains_key(name);
        let given = self.given.iter().filter(|(name, _)| is_given(name));
        given.map(|(name, tensor)| (name.clone(), tensor.clone())).collect()
    }

    /// The file that tasks write a result to, and how.
    fn stored_to(&self, result: &TensorVariable) -> Option<(&SparseFile, WrittenAs)> {
        // Pipes and devices are written by one node.
        let (_, file) = self.outputs.iter().find(|(own, file)| own == result.name() && !is_special(file.path()))?;
        let by_nodes = place().nodes > 1 && !self.needs_all;
        if file.is_numpy() && by_nodes && is_stored_as_npy(result.format()) {
            return Some((file, WrittenAs::Elements));
        }
        if let Some(form) = file.text().filter(|_| by_nodes && !result.format().is_dense())
            && result.fill() == cast(Scalar::I32(0), result.element())
            && (result.order() <= 2 || form == TextForm::Coordinates)
        {
            return Some((file, WrittenAs::Lines(form)));
        }
        // A number has no levels, and of other levels one node writes what they store.
        let width = file.width().filter(|_| !self.needs_all && result.order() > 0 && is_of_files(result.format()))?;
        Some((file, WrittenAs::Levels(width)))
    }

    /// Whether a result is needed whole on each node.
    fn needs(&self, result: &TensorVariable) -> bool {
        let is_written = self.outputs.iter().any(|(own, _)| own == result.name());
        self.needs_all || is_written && self.stored_to(result).is_none()
    }
}

/// Tensors that each node has whole, by name.
type Given = BTreeMap<String, DynamicTensor>;

/// Runs something on all nodes, if they have the same tensors and files, with a mapper for tensors.
fn on_runtime<R: fmt::Display>(
    options: &Options,
    (given, files): (&Given, &BTreeMap<String, FileByTasks>),
    body: impl AsyncFn(&Context, &Runtime) -> Result<R, DistributedError>,
) -> AppResult<R> {
    options.runtime.run_by(
        || Box::new(TensorMapper::new()),
        |runtime| {
            runtime.run(async |cx| {
                if let Some(told) = differing(cx, given, files).await? {
                    return Ok(Err(AppError::Usage(told)));
                }
                // Errors name the statement, and not lines of this program.
                match body(&cx.at(&options.statement), runtime).await {
                    Ok(outcome) => Ok(Ok(outcome)),
                    Err(
                        error @ (DistributedError::Placement(_)
                        | DistributedError::Pieces { .. }
                        | DistributedError::Dense { .. }),
                    ) => Ok(Err(AppError::Usage(format!("--place: {error}")))),
                    Err(error @ DistributedError::Unfit { .. }) => Ok(Err(AppError::Usage(error.to_string()))),
                    Err(other) => refused_file(Err(other)),
                }
            })?
        },
    )
}

/// The bytes of data that this node has sent to others.
fn sent(runtime: &Runtime) -> u64 {
    runtime.statistics().parcel_bytes_sent
}

/// Whether `.tcs` files have levels as a format has them.
fn is_of_files(format: &Format) -> bool {
    let is_kind = |level: &Level| matches!(level, Level::Dense | Level::Compressed);
    let are_strict = format.properties().iter().all(|level| level.unique && level.ordered);
    format.is_plain() && format.levels().iter().all(is_kind) && are_strict
}

/// The work of tasks: bytes of files, stored elements, and bytes sent, by the names of tensors or in all.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// The bytes that each node has read.
    pub(super) read: BTreeMap<String, Vec<u64>>,
    /// The bytes that each node has written.
    pub(super) written: BTreeMap<String, Vec<u64>>,
    /// How many elements are stored, and in which format.
    pub(super) counts: BTreeMap<String, (usize, Format)>,
    /// The bytes that each node has sent to others the first time, and the last time.
    pub(super) sent: [Vec<u64>; 2],
}

/// The results of tasks.
pub(super) struct Outcome {
    /// The tensors that each node has whole, by name.
    pub(super) tensors: BTreeMap<String, DynamicTensor>,
    /// How long each run took.
    pub(super) times: Vec<Duration>,
    pub(super) done: Done,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sparse tensors\n  computed {}", counted(self.times.len(), "time", "times"))
    }
}

/// Whether a tensor, or the file that tasks read, differs between nodes, each of which has read or made it for itself:
/// which one, and on which nodes. Of `.tcs` files the headers tell, which have checksums of all that is in them; of
/// others their lengths and what is here and there.
async fn differing(
    cx: &Context,
    given: &Given,
    files: &BTreeMap<String, FileByTasks>,
) -> maniple::Result<Option<String>> {
    let names = given.keys().cloned().chain(files.iter().map(|(name, file)| format!("{name}, from {},", file.name())));
    let digests: Vec<u64> = given.values().map(digest).chain(files.values().map(FileByTasks::digest)).collect();
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
fn digest(tensor: &DynamicTensor) -> u64 {
    let mut hasher = DefaultHasher::new();
    tensor.dimensions().hash(&mut hasher);
    tensor.for_each(&mut |at, value| (at, value.bits()).hash(&mut hasher));
    hasher.finish()
}

/// The statements as tasks.
pub(super) struct Tasks(Statements);

impl Tasks {
    /// Of these computations, each with its result as it is declared; none if no loop of them is distributed.
    ///
    /// # Errors
    /// [`AppError::Usage`] if they can't run as tasks.
    pub(super) fn new<'c>(
        computations: impl Iterator<Item = (&'c Computed<'c>, &'c TensorVariable)>,
    ) -> AppResult<Option<Self>> {
        let computations: Vec<_> = computations.collect();
        let is_distributed =
            |computation: &Computed<'_>| computation.statement().spine().iter().any(|outer| outer.level().is_some());
        if !computations.iter().any(|(computation, _)| is_distributed(computation)) {
            return Ok(None);
        }
        let planned = |(computation, declared): (&Computed<'_>, &TensorVariable)| {
            let planned = Planned::new(computation, declared).map_err(|error| AppError::Usage(error.to_string()))?;
            check_tasks(planned.plan())?;
            Ok(planned)
        };
        let planned = computations.into_iter().map(planned).collect::<AppResult<_>>()?;
        Ok(Some(Self(Statements::new(planned))))
    }

    /// The graph of partitions and launches.
    pub(super) fn graph(&self) -> Graph {
        if place().nodes > 1 { Graph::gathering(&self.0.plans()) } else { Graph::new(&self.0.plans()) }
    }

    /// The operands, each under its name in the program and in the formats in which it is used.
    pub(super) fn operands(&self) -> Vec<TensorVariable> {
        self.0.operands()
    }

    /// The formats in which an operand is used, and its own.
    pub(super) fn formats(&self, tensor: &TensorVariable) -> Vec<Format> {
        self.0.formats(tensor)
    }

    /// Runs the statements as often as is asked for, and once more before, each time on these tensors.
    ///
    /// # Errors
    /// [`AppError::Runtime`] if a task fails.
    pub(super) fn run(&self, options: &Options, around: Around<'_>) -> AppResult<Outcome> {
        let given = around.given_whole();
        on_runtime(options, (&given, around.files), async |cx, runtime| {
            self.run_on((cx, runtime), options, (&given, around)).await
        })
    }

    /// All operands, in the formats in which statements use them, where they are placed.
    async fn gathered(
        &self,
        cx: &Context,
        options: &Options,
        (given, around): (&Given, Around<'_>),
    ) -> Result<(Tensors, Done), DistributedError> {
        let mut all = Tensors::new(Vec::new(), options.runtime.memory.is_some() && cx.nodes() > 1);
        let (statements, mut done) = (&self.0, Done::default());
        let is_given = |name: &str| around.files.contains_key(name) || around.made.contains_key(name);
        let mut variables = self.operands();
        // What is added to a dense result goes into what it has.
        for result in statements.results().filter(|result| is_given(result.name())) {
            if !variables.iter().any(|variable| variable.name() == result.name()) {
                variables.push(result.clone());
            }
        }
        for variable in &variables {
            let is_there = all.has(variable.name());
            let mut add = |tensor: Tensor| {
                let stored = tensor.region().space().space().volume() as usize;
                let format = tensor.variable().format().clone();
                done.counts.insert(variable.name().to_owned(), (stored, format));
                all.add(tensor);
            };
            match (around.files.get(variable.name()), around.made.get(variable.name())) {
                (Some(file), _) if !is_there => {
                    let (mut tensor, bytes) = file.read(cx, variable).await?;
                    // What is assigned to is where results go.
                    if statements.assign(variable.name()) && tensor.variable().format() != variable.format() {
                        let converted = tensor.converted(cx, variable).await?;
                        tensor.destroy(cx)?;
                        tensor = converted;
                    }
                    add(tensor);
                    done.read.insert(variable.name().to_owned(), bytes);
                }
                (None, Some(Made::Generated(generator, seed))) if !is_there => {
                    add(Tensor::generated(cx, variable, generator, *seed).await?);
                }
                (Some(_), _) | (None, Some(Made::Generated(..))) => {}
                (None, Some(Made::Random)) => {
                    let tensor = Tensor::new(cx, variable)?;
                    let pieces = tensor.slabs(MADE_AT_ONCE * cx.nodes());
                    Values::random(options.runtime.seed, variable).put(cx, &tensor, &pieces)?;
                    all.add(tensor);
                }
                (None, None) => add_given(cx, &mut all, (given, variable))?,
            }
        }
        for result in statements.results().filter(|result| result.format().is_dense()) {
            if !all.has(result.name()) {
                add_given(cx, &mut all, (given, result))?;
            }
        }
        let operands = self.operands();
        for variable in operands.iter().filter(|variable| !statements.assign(variable.name())) {
            all.convert(cx, variable).await?;
        }
        // What was loaded in a format in which nothing uses it.
        let is_used =
            |tensor: &Tensor| statements.assign(tensor.variable().name()) || operands.contains(tensor.variable());
        all.retain(cx, is_used)?;
        place_all(cx, &all, options).await?;
        all.keep(cx, |name| statements.assign(name) && is_given(name)).await?;
        Ok((all, done))
    }

    async fn run_on(
        &self,
        (cx, runtime): (&Context, &Runtime),
        options: &Options,
        (given, around): (&Given, Around<'_>),
    ) -> Result<Outcome, DistributedError> {
        let (all, mut done) = self.gathered(cx, options, (given, around)).await?;
        let mut prepared = Prepared::new(cx, self.0.clone(), all).await?;
        let progress = Progress::steps(options.repeat + 1, &options.runtime);
        let (mut times, mut moved) = (Vec::new(), [0; 2]);
        for repeat in 0..=options.repeat {
            prepared.reset().await?;
            write_given(cx, prepared.tensors(), given)?;
            cx.execution_fence().await?;
            let (started, before) = (Instant::now(), sent(runtime));
            prepared.compute().await?;
            times.push(started.elapsed());
            moved[repeat.min(1)] = sent(runtime) - before;
            progress.set(repeat + 1, String::new);
        }
        drop(progress);
        let times = cx.per_node(times).fold(Vec::new(), slowest).await?;
        for (sent, moved) in done.sent.iter_mut().zip(moved) {
            *sent = cx.per_node(moved).all().await?;
        }
        let mut found = around.given.clone();
        for tensor in prepared.tensors().all() {
            let (name, format) = (tensor.variable().name(), tensor.variable().format());
            let is_result = self.0.results().any(|result| result.name() == name && result.format() == format);
            let is_declared = given.get(name).is_some_and(|given| given.format() == format) || format.is_dense();
            if !(is_result || is_declared) {
                continue;
            }
            let stored = tensor.region().space().space().volume() as usize;
            done.counts.insert(name.to_owned(), (stored, format.clone()));
            if !is_result {
                continue;
            }
            let writers = if options.serial_writes { Writers::InTurn } else { Writers::Together };
            if let Some((file, how)) = around.stored_to(tensor.variable()) {
                let written = match how {
                    WrittenAs::Levels(width) => tensor.store_by(cx, file.path(), width, writers).await?,
                    WrittenAs::Elements => tensor.store_npy(cx, file.path(), writers).await?,
                    WrittenAs::Lines(form) => tensor.store_text(cx, (file.path(), form), writers).await?,
                };
                done.written.insert(name.to_owned(), written.bytes);
            }
            if around.needs(tensor.variable()) {
                found.insert(name.to_owned(), tensor.read_dynamic(cx).await?);
            }
        }
        Ok(Outcome { tensors: found, times, done })
    }
}

/// Adds a tensor that is given, in the format of the variable, or a dense one.
fn add_given(
    cx: &Context,
    all: &mut Tensors,
    (given, variable): (&Given, &TensorVariable),
) -> Result<(), DistributedError> {
    match given.get(variable.name()) {
        Some(stored) if !variable.format().is_dense() => {
            let stored = stored.convert(variable.format()).map_err(maniple::Error::from_task)?;
            all.add(Tensor::from_dynamic(cx, variable, &stored)?);
        }
        _ if variable.format().is_dense() => all.add(Tensor::new(cx, variable)?),
        _ => {}
    }
    Ok(())
}

/// Gives dense tensors the elements that are given.
fn write_given(cx: &Context, all: &Tensors, given: &Given) -> Result<(), DistributedError> {
    for tensor in all.all().iter().filter(|tensor| tensor.variable().format().is_dense()) {
        if let Some(stored) = given.get(tensor.variable().name()) {
            tensor.write_dynamic(cx, stored)?;
        }
    }
    Ok(())
}

/// Brings tensors to where they are placed.
async fn place_all(cx: &Context, all: &Tensors, options: &Options) -> Result<(), DistributedError> {
    let machine = machine(options, cx.nodes()).map_err(maniple::Error::from_task)?;
    for (name, placement) in &options.place {
        for tensor in all.all().iter().filter(|tensor| tensor.variable().name() == name) {
            match tensor.variable().format().is_dense() {
                true => tensor.place(cx, placement, &machine)?.await?,
                false => tensor.place_levels(cx, placement, &machine).await?.await?,
            }
        }
    }
    Ok(())
}

/// The machine on which tensors are placed: the grid of processors, or a line of all nodes.
fn machine(options: &Options, nodes: usize) -> Result<Machine, MachineError> {
    options.grid.clone().map_or_else(|| Grid::new([nodes]), Ok).map(Machine::from)
}

/// Refuses placements that do not fit tensors, before anything is read of them but where their files say what they
/// have.
///
/// # Errors
/// [`AppError::Usage`].
pub(super) fn check_places(options: &Options, tensors: &[TensorVariable]) -> AppResult<()> {
    let machine = machine(options, place().nodes).map_err(|error| AppError::Usage(error.to_string()))?;
    for (name, placement) in &options.place {
        let mut named = tensors.iter().filter(|tensor| tensor.name() == name);
        let checked = named.try_for_each(|tensor| check_placement(tensor, placement, &machine));
        checked.map_err(|error| AppError::Usage(format!("--place {name}={placement}: {error}")))?;
    }
    Ok(())
}
