//! Statements on sparse tensors with distributed loops: as tasks of the runtime, on all nodes.
//!
//! `rehearsal`: what nodes send each other, counted without computing.

mod rehearsal;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use maniple::ProcessorKind;
use maniple::prelude::*;
use maniple_tensor::compute::{Planned, Prepared, Statements, Tensors};
use maniple_tensor::distributed::{DistributedError, Tensor, TensorMapper, Writers, check_placement};
use maniple_tensor::files::{FileInParts, TensorFile};
use maniple_tensor::format::Format;
use maniple_tensor::generate::Generator;
use maniple_tensor::machine::{Grid, Machine, MachineError};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::placement::{Placed, Placement};
use maniple_tensor::plan::Graph;
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::sparse::Computation as Computed;
use maniple_tensor::storage::DynamicTensor;

use super::limit::check_tasks;
use super::options::Options;
use super::values::Random;
use crate::error::{Error as AppError, Result as AppResult, refused_file};
use crate::options::place;
use crate::progress::Progress;
use crate::report::counted;

/// In so many pieces on each node random elements are made.
const MADE_AT_ONCE: usize = 4;

/// The inputs of tasks, and the outputs that they are asked for.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// Tensors that each node has whole, as tasks neither read nor make them.
    pub(super) given: &'a BTreeMap<String, DynamicTensor>,
    /// Tensors that tasks read from files.
    pub(super) files: &'a BTreeMap<String, FileInParts>,
    /// Tensors that tasks make.
    pub(super) made: &'a BTreeMap<String, Made>,
    /// The places of parts of tensors at the beginning.
    pub(super) places: &'a [Place],
    /// Whether dense tensors are made and placed again before each run, so that each has to move as much.
    pub(super) renews: bool,
    /// The files that results go to.
    pub(super) outputs: &'a [(String, TensorFile)],
    /// Whether each node needs the operands and the results whole.
    pub(super) needs_all: bool,
}

/// The place of the parts of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The name of the tensor.
    pub(super) tensor: String,
    pub(super) placement: Placement,
    pub(super) machine: Machine,
}

/// How tasks make a tensor.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// Dense, with random elements.
    Random,
    /// In levels, by a generator from a seed.
    Generated(Generator, u64),
}

impl Around<'_> {
    /// The file that tasks write a result to.
    fn stored_to(&self, result: &TensorVariable) -> Option<&TensorFile> {
        let (_, file) = self.outputs.iter().find(|(own, _)| own == result.name())?;
        (!self.needs_all && file.is_written_in_parts(result, place().nodes)).then_some(file)
    }

    /// Whether a result is needed whole on each node.
    fn needs(&self, result: &TensorVariable) -> bool {
        let is_written = self.outputs.iter().any(|(own, _)| own == result.name());
        self.needs_all || is_written && self.stored_to(result).is_none()
    }

    /// Whether tasks read or make a tensor.
    fn has(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.made.contains_key(name)
    }
}

/// Tensors that each node has whole, by name.
type Given = BTreeMap<String, DynamicTensor>;

/// Runs something on all nodes, if they have the same tensors and files, with a mapper for tensors.
fn on_runtime<R: fmt::Display>(
    options: &Options,
    around: Around<'_>,
    body: impl AsyncFn(&Context, &Runtime) -> Result<R, DistributedError>,
) -> AppResult<R> {
    let mapper = || Box::new(TensorMapper::new()) as Box<_>;
    options.runtime.run_by(mapper, |runtime| launched(runtime, &options.statement, around, &body))
}

/// Runs something on all nodes of a runtime, if they have the same tensors and files. Errors name the statement, and
/// not lines of this program.
pub(super) fn launched<R>(
    runtime: &Runtime,
    statement: &str,
    around: Around<'_>,
    body: &impl AsyncFn(&Context, &Runtime) -> Result<R, DistributedError>,
) -> AppResult<R> {
    runtime.run(async |cx| {
        if let Some(told) = differing(cx, around.given, around.files).await? {
            return Ok(Err(AppError::Usage(told)));
        }
        match body(&cx.at(statement), runtime).await {
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
}

/// The bytes of data that this node has sent to others.
fn sent(runtime: &Runtime) -> u64 {
    runtime.statistics().parcel_bytes_sent
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
    /// The operands that each node has whole, by name: all, if they are needed.
    pub(super) inputs: BTreeMap<String, DynamicTensor>,
    /// These, and the results that each node has whole.
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
    files: &BTreeMap<String, FileInParts>,
) -> maniple::Result<Option<String>> {
    let names = given.keys().cloned().chain(files.iter().map(|(name, file)| format!("{name}, from {},", file.name())));
    let digests: Vec<u64> = given.values().map(digest).chain(files.values().map(FileInParts::digest)).collect();
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

    /// Statements that are planned.
    pub(super) fn of(statements: Statements) -> Self {
        Self(statements)
    }

    /// Runs the statements as often as is asked for, and once more before, each time on these tensors.
    ///
    /// # Errors
    /// [`AppError::Runtime`] if a task fails.
    pub(super) fn run(&self, options: &Options, around: Around<'_>) -> AppResult<Outcome> {
        on_runtime(options, around, async |cx, runtime| self.run_on((cx, runtime), options, around).await)
    }

    /// All operands, in the formats in which statements use them, where they are placed.
    async fn gathered(
        &self,
        cx: &Context,
        options: &Options,
        around: Around<'_>,
    ) -> Result<(Tensors, Done), DistributedError> {
        let mut all = Tensors::new(Vec::new(), options.runtime.memory.is_some() && cx.nodes() > 1);
        let (statements, mut done) = (&self.0, Done::default());
        let mut variables = self.operands();
        // What is added to a dense result goes into what it has.
        for result in statements.results().filter(|result| around.has(result.name())) {
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
                (None, Some(Made::Random)) if !is_there => {
                    let tensor = Tensor::new(cx, variable)?;
                    if !around.renews {
                        let pieces = tensor.slabs(MADE_AT_ONCE * cx.nodes());
                        Random::new(options.runtime.seed, variable).put(cx, &tensor, &pieces)?;
                    }
                    all.add(tensor);
                }
                (Some(_), _) | (None, Some(_)) => {}
                (None, None) => add_given(cx, &mut all, (around.given, variable))?,
            }
        }
        for result in statements.results().filter(|result| result.format().is_dense()) {
            if !all.has(result.name()) {
                add_given(cx, &mut all, (around.given, result))?;
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
        if !around.renews {
            place_all(cx, &all, around.places).await?;
        }
        let is_kept = |name: &str| match around.renews {
            true => around.files.contains_key(name),
            false => around.has(name),
        };
        all.keep(cx, |name| statements.assign(name) && is_kept(name)).await?;
        Ok((all, done))
    }

    /// [`run`](Self::run) in a task of all nodes.
    pub(super) async fn run_on(
        &self,
        (cx, runtime): (&Context, &Runtime),
        options: &Options,
        around: Around<'_>,
    ) -> Result<Outcome, DistributedError> {
        let (all, mut done) = self.gathered(cx, options, around).await?;
        let mut inputs = around.given.clone();
        // Each node gets others when all is computed: what it has then is not to be sent to it.
        self.read_whole(cx, (&all, around), &mut inputs, |name| self.0.assign(name)).await?;
        let mut prepared = Prepared::new(cx, self.0.clone(), all).await?;
        let progress = Progress::steps(options.repeat + 1, &options.runtime);
        let (mut times, mut moved) = (Vec::new(), [0; 2]);
        for repeat in 0..=options.repeat {
            prepared.reset().await?;
            write_given(cx, prepared.tensors(), around.given)?;
            if around.renews {
                self.renew((cx, runtime), options, (prepared.tensors(), around)).await?;
            }
            cx.execution_fence().await?;
            let (started, before) = (Instant::now(), sent(runtime));
            prepared.compute().await?;
            times.push(started.elapsed());
            moved[repeat.min(1)] = sent(runtime) - before;
            progress.set(repeat + 1, String::new);
        }
        drop(progress);
        // The slowest node says how long it took.
        let times = cx.per_node(times).fold(Vec::new(), slowest).await?;
        for (sent, moved) in done.sent.iter_mut().zip(moved) {
            *sent = cx.per_node(moved).all().await?;
        }
        self.read_whole(cx, (prepared.tensors(), around), &mut inputs, |name| !self.0.assign(name)).await?;
        let mut found = inputs.clone();
        for tensor in prepared.tensors().all() {
            let (name, format) = (tensor.variable().name(), tensor.variable().format());
            let is_result = self.0.results().any(|result| result.name() == name && result.format() == format);
            let is_declared = around.given.get(name).is_some_and(|given| given.format() == format) || format.is_dense();
            if !(is_result || is_declared) {
                continue;
            }
            let stored = tensor.region().space().space().volume() as usize;
            done.counts.insert(name.to_owned(), (stored, format.clone()));
            if !is_result {
                continue;
            }
            let writers = if options.serial_writes { Writers::InTurn } else { Writers::Together };
            if let Some(file) = around.stored_to(tensor.variable())
                && let Some(bytes) = file.store(cx, tensor, writers).await?
            {
                done.written.insert(name.to_owned(), bytes);
            }
            if around.needs(tensor.variable()) {
                found.insert(name.to_owned(), tensor.read_dynamic(cx).await?);
            }
        }
        Ok(Outcome { inputs, tensors: found, times, done })
    }

    /// Reads operands of some names whole, which tasks have read or generated, if all are needed.
    async fn read_whole(
        &self,
        cx: &Context,
        (all, around): (&Tensors, Around<'_>),
        into: &mut BTreeMap<String, DynamicTensor>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), DistributedError> {
        let is_read = |name: &str| {
            let is_made = matches!(around.made.get(name), Some(Made::Generated(..)));
            around.needs_all && is_wanted(name) && (is_made || around.files.contains_key(name))
        };
        for tensor in all.all().iter().filter(|tensor| is_read(tensor.variable().name())) {
            into.insert(tensor.variable().name().to_owned(), tensor.read_dynamic(cx).await?);
        }
        Ok(())
    }

    /// Makes dense tensors of random elements anew, and places all.
    async fn renew(
        &self,
        (cx, runtime): (&Context, &Runtime),
        options: &Options,
        (all, around): (&Tensors, Around<'_>),
    ) -> Result<(), DistributedError> {
        let processors = runtime.nodes() * cx.machine().processors_of(ProcessorKind::Cpu).count();
        for tensor in all.all() {
            let variable = tensor.variable();
            if !matches!(around.made.get(variable.name()), Some(Made::Random)) {
                continue;
            }
            let own = around.places.iter().find(|place| place.tensor == variable.name());
            let pieces = own.and_then(|place| place.pieces(variable));
            let pieces = pieces.unwrap_or_else(|| tensor.slabs(processors));
            Random::new(options.runtime.seed, variable).put(cx, tensor, &pieces)?;
        }
        place_all(cx, all, around.places).await
    }
}

impl Place {
    /// The pieces of a tensor.
    fn pieces(&self, tensor: &TensorVariable) -> Option<Vec<Rectangle>> {
        let placed = Placed::new(&self.placement, &Rectangle::whole(tensor.dimensions()), &self.machine).ok()?;
        let piece = |point: Vec<usize>| placed.piece(&point).rectangles().collect::<Vec<_>>();
        Some(placed.machine().points().flat_map(piece).collect())
    }
}

/// The longest time of each run on any node.
fn slowest(so_far: Vec<Duration>, times: Vec<Duration>) -> Vec<Duration> {
    match so_far.is_empty() {
        true => times,
        false => so_far.into_iter().zip(times).map(|(a, b)| a.max(b)).collect(),
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
async fn place_all(cx: &Context, all: &Tensors, places: &[Place]) -> Result<(), DistributedError> {
    for Place { tensor: name, placement, machine } in places {
        for tensor in all.all().iter().filter(|tensor| tensor.variable().name() == name) {
            match tensor.is_in_levels() {
                false => tensor.place(cx, placement, machine)?.await?,
                true => tensor.place_levels(cx, placement, machine).await?.await?,
            }
        }
    }
    Ok(())
}

/// The machine on which tensors are placed: the grid of processors, or a line of all nodes.
fn machine(options: &Options, nodes: usize) -> Result<Machine, MachineError> {
    options.grid.clone().map_or_else(|| Grid::new([nodes]), Ok).map(Machine::from)
}

/// The places of tensors, as the options say.
///
/// # Errors
/// [`AppError::Usage`] if a placement does not fit its tensor, before anything is read of it but where its file says
/// what it has.
pub(super) fn places(options: &Options, tensors: &[TensorVariable]) -> AppResult<Vec<Place>> {
    let machine = machine(options, place().nodes).map_err(|error| AppError::Usage(error.to_string()))?;
    let one = |(name, placement): &(String, Placement)| {
        let mut named = tensors.iter().filter(|tensor| tensor.name() == name);
        let checked = named.try_for_each(|tensor| check_placement(tensor, placement, &machine));
        checked.map_err(|error| AppError::Usage(format!("--place {name}={placement}: {error}")))?;
        Ok(Place { tensor: name.clone(), placement: placement.clone(), machine: machine.clone() })
    };
    options.place.iter().map(one).collect()
}
