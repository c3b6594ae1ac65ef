//! Statements as tasks of the runtime, on all nodes: what they are run on, how often, and where results go.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use maniple::prelude::*;
use maniple_tensor::compute::{Gathered, Prepared, Rehearsed, Sent, Sources, Statements, TensorPlace, Tensors};
use maniple_tensor::distributed::{DistributedError, TensorMapper, Writers, check_placement};
use maniple_tensor::files::TensorFile;
use maniple_tensor::format::Format;
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::storage::DynamicTensor;

use super::options::TensorOptions;
use crate::error::{Error as AppError, Result as AppResult, refused_file};
use crate::options::place;
use crate::progress::Progress;
use crate::report::{by_nodes, counted};

/// More tasks take minutes to launch.
const MOST_TASKS: i128 = 1 << 18;

/// Checks that a plan has not more tasks than can be launched.
///
/// # Errors
/// [`AppError::Usage`] if it has.
pub(super) fn check_tasks(plan: &Plan) -> AppResult<()> {
    let order = plan.order();
    let tasks = i128::from(order.points()) * i128::from(order.steps());
    if tasks <= MOST_TASKS {
        return Ok(());
    }
    Err(AppError::Usage(format!(
        "{} points in {} steps are {tasks} tasks, and there can be {MOST_TASKS} at most: take a smaller --grid, or a larger --chunk",
        order.points(),
        order.steps()
    )))
}

/// The inputs of tasks, and the outputs that they are asked for.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The sources of operands.
    pub(super) sources: Sources<'a>,
    /// The files that results go to.
    pub(super) outputs: &'a [(String, TensorFile)],
    /// Whether each node needs the operands and the results whole.
    pub(super) needs_all: bool,
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
}

/// Runs something on all nodes, if they have the same tensors and files, with a mapper for tensors.
fn on_runtime<R: fmt::Display>(
    options: &TensorOptions,
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
        if let Some((name, node)) = around.sources.differing(cx).await? {
            return Ok(Err(AppError::Usage(format!(
                "{name} is not the same on node {node} as on node 0: each node reads its files for itself, and all must have the same ones"
            ))));
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

/// Whether nodes forget what they got from others, where data may not take all memory.
fn forgets(cx: &Context, options: &TensorOptions) -> bool {
    options.runtime.memory.is_some() && cx.nodes() > 1
}

/// The results of tasks.
#[derive(Default)]
pub(super) struct TaskOutcome {
    /// The operands that each node has whole, by name: all, if they are needed.
    pub(super) inputs: BTreeMap<String, DynamicTensor>,
    /// These, and the results that each node has whole.
    pub(super) tensors: BTreeMap<String, DynamicTensor>,
    /// How long each run took.
    pub(super) times: Vec<Duration>,
    /// The bytes that each node has read, of each tensor.
    pub(super) read: BTreeMap<String, Vec<u64>>,
    /// The bytes that each node has written, of each tensor.
    pub(super) written: BTreeMap<String, Vec<u64>>,
    /// How many elements are stored, and in which format.
    pub(super) counts: BTreeMap<String, (usize, Format)>,
    /// The bytes that each node has sent to others the first time, and the last time.
    pub(super) sent: [Vec<u64>; 2],
}

impl fmt::Display for TaskOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sparse tensors\n  computed {}", counted(self.times.len(), "time", "times"))
    }
}

/// Runs statements as often as is asked for, and once more before, each time on these tensors.
///
/// # Errors
/// [`AppError::Runtime`] if a task fails.
pub(super) fn run(statements: &Statements, options: &TensorOptions, around: Around<'_>) -> AppResult<TaskOutcome> {
    on_runtime(options, around, async |cx, runtime| run_on(cx, runtime, statements, options, around).await)
}

/// [`run`] in a task of all nodes.
pub(super) async fn run_on(
    cx: &Context,
    runtime: &Runtime,
    statements: &Statements,
    options: &TensorOptions,
    around: Around<'_>,
) -> Result<TaskOutcome, DistributedError> {
    let sources = around.sources;
    let Gathered { tensors: all, mut counts, read } = sources.gathered(cx, statements, forgets(cx, options)).await?;
    let (mut inputs, mut written) = (sources.given.clone(), BTreeMap::new());
    // Each node gets others when all is computed: what it has then is not to be sent to it.
    read_whole(cx, &all, around, &mut inputs, |name| statements.assign(name)).await?;
    let mut prepared = Prepared::new(cx, statements.clone(), all).await?;
    let progress = Progress::steps(options.repeat + 1, &options.runtime);
    let (mut times, mut moved) = (Vec::new(), [0; 2]);
    for repeat in 0..=options.repeat {
        prepared.reset().await?;
        sources.renew(cx, prepared.tensors()).await?;
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
    let sent = [cx.per_node(moved[0]).all().await?, cx.per_node(moved[1]).all().await?];
    read_whole(cx, prepared.tensors(), around, &mut inputs, |name| !statements.assign(name)).await?;
    let mut tensors = inputs.clone();
    for tensor in prepared.tensors().all() {
        let (name, format) = (tensor.variable().name(), tensor.variable().format());
        let is_result = statements.results().any(|result| result.name() == name && result.format() == format);
        let is_declared = sources.given.get(name).is_some_and(|given| given.format() == format) || format.is_dense();
        if !(is_result || is_declared) {
            continue;
        }
        counts.insert(name.to_owned(), (tensor.count(), format.clone()));
        if !is_result {
            continue;
        }
        let writers = if options.serial_writes { Writers::InTurn } else { Writers::Together };
        if let Some(file) = around.stored_to(tensor.variable())
            && let Some(bytes) = file.store(cx, tensor, writers).await?
        {
            written.insert(name.to_owned(), bytes);
        }
        if around.needs(tensor.variable()) {
            tensors.insert(name.to_owned(), tensor.read_dynamic(cx).await?);
        }
    }
    Ok(TaskOutcome { inputs, tensors, times, read, written, counts, sent })
}

/// Reads operands of some names whole, which tasks have read or generated, if all are needed.
async fn read_whole(
    cx: &Context,
    all: &Tensors,
    around: Around<'_>,
    into: &mut BTreeMap<String, DynamicTensor>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), DistributedError> {
    let is_read = |name: &str| around.needs_all && is_wanted(name) && around.sources.is_stored(name);
    for tensor in all.all().iter().filter(|tensor| is_read(tensor.variable().name())) {
        into.insert(tensor.variable().name().to_owned(), tensor.read_dynamic(cx).await?);
    }
    Ok(())
}

/// The longest time of each run on any node.
fn slowest(so_far: Vec<Duration>, times: Vec<Duration>) -> Vec<Duration> {
    match so_far.is_empty() {
        true => times,
        false => so_far.into_iter().zip(times).map(|(a, b)| a.max(b)).collect(),
    }
}

/// Returns the bytes that each node sends to others, in lines: before the first run, in the first run, and in each of
/// the others.
///
/// # Errors
/// As of [`run`].
pub(super) fn rehearse(statements: &Statements, options: &TensorOptions, around: Around<'_>) -> AppResult<String> {
    on_runtime(options, around, async |cx, runtime| {
        let rehearsed = around.sources.rehearsed(cx, statements, forgets(cx, options), || sent(runtime));
        Ok(told(&rehearsed.await?))
    })
}

fn told(rehearsed: &Rehearsed) -> String {
    let Rehearsed { before, runs: [first, other], passing } = rehearsed;
    let mut told = "sent to other nodes, as counted by moving it:\n".to_owned();
    for (when, Sent { of_tensors, all }) in
        [("before the first run", before), ("in the first run", first), ("in each other run", other)]
    {
        // Writing to a string succeeds.
        _ = writeln!(told, "  {when}: {}", by_nodes(all));
        let of_one = |node: usize| of_tensors.values().map(|by| by[node]).sum::<u64>();
        let rest: Vec<u64> = all.iter().enumerate().map(|(node, all)| all - of_one(node)).collect();
        let parts = of_tensors.iter().map(|(name, by)| (&**name, by)).chain([("what goes before", &rest)]);
        for (name, by) in parts.filter(|(_, by)| !of_tensors.is_empty() && by.iter().any(|bytes| *bytes > 0)) {
            _ = writeln!(told, "    {name}: {}", by_nodes(by));
        }
    }
    for (name, bytes) in passing {
        let most = by_nodes(&[*bytes]);
        _ = writeln!(told, "  at most {most} of {name} on a node at a time beside what it has from the beginning");
    }
    told
}

/// The places of tensors, as the options say: on the grid of processors, or on a line of all nodes.
///
/// # Errors
/// [`AppError::Usage`] if a placement does not fit its tensor, before anything is read of it but where its file says
/// what it has.
pub(super) fn places(options: &TensorOptions, tensors: &[TensorVariable]) -> AppResult<Vec<TensorPlace>> {
    let grid = options.grid.clone().map_or_else(|| Grid::new([place().nodes]), Ok);
    let machine = Machine::from(grid.map_err(|error| AppError::Usage(error.to_string()))?);
    let one = |(name, placement): &(String, Placement)| {
        let mut named = tensors.iter().filter(|tensor| tensor.name() == name);
        let checked = named.try_for_each(|tensor| check_placement(tensor, placement, &machine));
        checked.map_err(|error| AppError::Usage(format!("--place {name}={placement}: {error}")))?;
        Ok(TensorPlace { tensor: name.clone(), placement: placement.clone(), machine: machine.clone() })
    };
    options.place.iter().map(one).collect()
}
