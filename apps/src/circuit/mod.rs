//! Simulates an electrical circuit on a random graph (Bauer 2014, section 2.2), the example that Legion was made for.
//!
//! [`graph`]: the random circuit; [`tasks`]: what is computed; [`pieces`]: how the circuit is partitioned;
//! [`reference`](mod@reference): the same, sequentially; here: what is launched, and whether the result is right.

pub mod pieces;
pub mod reference;

use std::fmt;
use std::time::{Duration, Instant};

use clap::Args;
use maniple::prelude::*;
pub use maniple_tasks::circuit::{graph, tasks};

use crate::error::{Error as AppError, Result as AppResult};
use crate::options::{RuntimeOptions, default_from_command_line, piece_count, positive};
use crate::progress::Progress;
use crate::report::{ReportTable, rate, scientific, seconds};
use crate::state::{Loaded, Saving, StateOptions, Subject};
use crate::verify::is_within;
use graph::CircuitShape;
use pieces::CircuitPieces;
use tasks::{Node, calc_new_currents, copy_state, count, distribute_charge, update_voltages};

/// The largest relative error of a voltage that rounding, in another order of additions, can explain.
pub const TOLERANCE: f64 = 1e-9;

/// The long description of `maniple run circuit`, which its `--help` shows.
pub const ABOUT: &str = "\
Simulate an electrical circuit on a random graph.

Nodes hold charge; wires between them carry current where voltages differ. A time step has three launches, each with one task for each \
piece of the circuit: the current of each wire follows from the voltages at its ends; each wire moves charge from one end to the other; \
each node turns its charge into voltage, and loses a little.

Most wires stay within their piece. The nodes that other pieces' wires touch are found from the data, by dependent partitioning: a piece \
has private nodes, shared nodes, and ghosts, the other pieces' shared nodes that its wires touch. Ghosts overlap, so tasks don't write \
charge but reduce it: additions commute, and all pieces run side by side. Nothing else in the program speaks of parallelism.

Afterwards the circuit is simulated again on one thread, and the largest relative difference of a voltage is printed.";

/// The examples that `maniple run circuit --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run circuit                             a small circuit on all cores
  maniple run circuit --pieces 16 --steps 1000    more of it
  maniple run circuit --nodes-per-piece 4 --wires-per-piece 8 --steps 1000
                                                  tiny tasks: what a task costs
  maniple run circuit --no-tracing                record and replay nothing
  maniple run circuit --mapper piecewise          neighbours' data is copied
  maniple run circuit --mapper log --steps 1      who decides what
  maniple run circuit --pieces 4 --steps 2 --graph circuit.svg
                                                  what waits for what, drawn
  maniple run circuit --mapper random --check     prove that it was right
  maniple run circuit --save state                as .npy files
  maniple run circuit --load state                go on from them";

/// The advice to a user whose run found too little memory.
pub(crate) const ON_MEMORY: &str = "\
give data more memory with --memory, or simulate less with --pieces, --nodes-per-piece and --wires-per-piece; the mapper `default` \
needs least";

/// The circuit to simulate, and how.
#[derive(Args, Clone, Debug)]
pub struct CircuitOptions {
    /// Pieces of the circuit: the tasks of a launch, at most 1048576
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = piece_count, allow_hyphen_values = true)]
    pub pieces: usize,

    /// Nodes in each piece; in all at most 4294967295
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = positive, allow_hyphen_values = true)]
    pub nodes_per_piece: usize,

    /// Wires that start in each piece; in all at most 4294967295
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = positive, allow_hyphen_values = true)]
    pub wires_per_piece: usize,

    /// How many wires of a hundred end in the piece that they start in
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = percent, allow_hyphen_values = true)]
    pub inside: u8,

    /// Time steps
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive, allow_hyphen_values = true)]
    pub steps: usize,

    /// Do not simulate the circuit again sequentially to compare
    #[arg(long)]
    pub no_verify: bool,

    /// Mark a time step as a trace, to be recorded and replayed, instead of leaving it to the runtime to find that the
    /// steps repeat
    #[arg(long, conflicts_with = "no_tracing")]
    pub trace: bool,

    /// The state that the simulation begins with, and the file for the one at its end.
    #[command(flatten)]
    pub state: StateOptions,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(CircuitOptions);

fn percent(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|&percent| percent <= 100);
    number.ok_or_else(|| "it must be a whole number from 0 to 100".to_owned())
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct CircuitReport {
    /// The circuit.
    pub shape: CircuitShape,
    /// Nodes that wires of several pieces touch.
    pub shared_nodes: u64,
    /// Time steps.
    pub steps: usize,
    /// Tasks that ran in the time steps.
    pub tasks: u64,
    /// How long the time steps took.
    pub time: Duration,
    /// The largest relative error of a voltage, if it was verified.
    pub largest_relative_error: Option<f64>,
}

impl CircuitReport {
    /// Tasks a second.
    #[must_use]
    pub fn tasks_per_second(&self) -> f64 {
        rate(self.tasks, self.time)
    }
}

impl fmt::Display for CircuitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CircuitShape { pieces, .. } = self.shape;
        let table = ReportTable::new()
            .line("pieces", pieces)
            .line("nodes", format_args!("{} ({} shared)", self.shape.nodes(), self.shared_nodes))
            .line("wires", self.shape.wires())
            .line("steps", self.steps)
            .line("tasks run", self.tasks)
            .line("time", seconds(self.time))
            .line("tasks/s", format_args!("{:.0}", self.tasks_per_second()))
            .maybe(
                "largest relative error",
                self.largest_relative_error
                    .map(|error| format!("{} (at most {TOLERANCE:.0e} is right)", scientific(error))),
            );
        write!(f, "circuit\n{table}")
    }
}

/// Simulates a circuit, and compares it with a sequential simulation unless told otherwise.
///
/// # Errors
/// [`AppError::Usage`] if the circuit is too large to be numbered, [`AppError::Verification`] if the voltages are
/// wrong, [`AppError::Runtime`] if a task fails, for instance for want of memory.
pub fn run(options: &CircuitOptions) -> AppResult<CircuitReport> {
    options.runtime.run(|runtime| run_on(runtime, options))
}

/// Simulates a circuit on a runtime that was started before; of the options' own, only what is said of progress counts.
///
/// # Errors
/// As [`run`].
pub fn run_on(runtime: &Runtime, options: &CircuitOptions) -> AppResult<CircuitReport> {
    let shape = shape_of(options)?;
    let StateOptions { load, save } = &options.state;
    let open = |folder| Loaded::open_on(runtime, folder, "circuit", &subject(&shape), &["charge", "voltage"]);
    let loaded = load.as_deref().map(open).transpose()?;
    let prepare = |folder| Saving::prepare_on(runtime, folder, "circuit", subject(&shape));
    let saving = save.as_deref().map(prepare).transpose()?;
    let steps_before = loaded.as_ref().map_or(0, |loaded| loaded.steps);
    let simulated =
        runtime.run(async |cx| simulate(cx, shape, options, runtime, loaded.clone(), saving.clone()).await)?;
    let mut report = CircuitReport { shape, steps: options.steps, ..simulated.report };
    if !options.no_verify {
        let reference = reference::voltages(&shape, steps_before + options.steps);
        let error = reference::largest_relative_error(simulated.voltages, &reference);
        report.largest_relative_error = Some(error);
        if !is_within(error, TOLERANCE) {
            return Err(AppError::Verification(format!(
                "the largest relative error of a voltage is {}, more than {TOLERANCE:.0e}",
                scientific(error)
            )));
        }
    }
    Ok(report)
}

/// The description of a circuit that is stored with its state: the state can be loaded for an equal one only.
fn subject(shape: &CircuitShape) -> Subject {
    let &CircuitShape { pieces, nodes_per_piece, wires_per_piece, percent_inside, seed } = shape;
    let all = [
        ("pieces", pieces as u64),
        ("nodes per piece", nodes_per_piece as u64),
        ("wires per piece", wires_per_piece as u64),
        ("percentage inside", percent_inside.into()),
        ("seed", seed),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

fn shape_of(options: &CircuitOptions) -> AppResult<CircuitShape> {
    let &CircuitOptions { pieces, nodes_per_piece, wires_per_piece, inside, .. } = options;
    let countable = |each: usize| pieces.checked_mul(each).is_some_and(|all| all <= u32::MAX as usize);
    if !countable(nodes_per_piece) || !countable(wires_per_piece) {
        return Err(AppError::Usage(format!(
            "{pieces} pieces of {nodes_per_piece} nodes and {wires_per_piece} wires are too many: at most {} of each in all",
            u32::MAX
        )));
    }
    Ok(CircuitShape { pieces, nodes_per_piece, wires_per_piece, percent_inside: inside, seed: options.runtime.seed })
}

/// The outcome of [`simulate`].
struct Simulated {
    report: CircuitReport,
    voltages: Vec<f64>,
}

async fn simulate(
    cx: &Context,
    shape: CircuitShape,
    options: &CircuitOptions,
    runtime: &Runtime,
    loaded: Option<Loaded>,
    saving: Option<Saving>,
) -> Result<Simulated> {
    let steps = options.steps;
    let steps_before = loaded.as_ref().map_or(0, |loaded| loaded.steps);
    let of = CircuitPieces::make(cx, shape).await?;
    let pieces = of.colors;
    if let Some(loaded) = loaded {
        load(cx, &of.nodes, pieces, &loaded).await?;
    }

    let progress = Progress::steps(steps, &options.runtime);
    let launch_step = |cx: &Context| {
        cx.index_launch(pieces, calc_new_currents(&of.wires, &of.private, &of.shared, &of.ghost));
        cx.index_launch(pieces, distribute_charge(&of.wires, &of.private, &of.shared, &of.ghost));
        progress.advance_after(&cx.index_launch(pieces, update_voltages(&of.private, &of.shared)));
    };
    let (started, before) = (Instant::now(), runtime.statistics().tasks);
    for _ in 0..steps {
        match options.trace {
            true => cx.trace("step", launch_step),
            false => launch_step(cx),
        }
    }
    let mapped = cx.map_read(&of.nodes, Node::voltage).await?;
    let time = started.elapsed();
    let voltages = mapped.to_vec();
    drop(mapped);
    // The tasks of a replay are counted when all of it has ended.
    cx.execution_fence().await?;
    let tasks = cx.per_node(runtime.statistics().tasks - before).reduce(Sum).await?;

    let shared_nodes = cx.index_launch(pieces, count(&of.shared)).reduce(Sum).await?;
    let report = CircuitReport { shape, shared_nodes, steps, tasks, time, largest_relative_error: None };
    if let Some(saving) = saving {
        save(cx, &of.nodes, pieces, saving, runtime, steps_before + steps).await?;
    }
    Ok(Simulated { report, voltages })
}

/// Reads charges and voltages that were stored: each node those of its pieces.
async fn load(cx: &Context, nodes: &Region<Node>, pieces: Domain, loaded: &Loaded) -> Result<()> {
    let stored = cx.region::<Node>(nodes.volume() as usize)?;
    let (owned, parts) = (nodes.partition(pieces).equal()?, stored.partition(pieces).equal()?);
    let charge = cx.attach_file_pieces(&parts, Node::charge, loaded.array("charge"))?;
    let voltage = cx.attach_file_pieces(&parts, Node::voltage, loaded.array("voltage"))?;
    cx.index_launch(pieces, copy_state(&parts, &owned)).await?;
    cx.detach_file_pieces(charge).await?;
    cx.detach_file_pieces(voltage).await?;
    cx.destroy_region(stored)
}

/// Stores charges and voltages: each node those of its pieces.
async fn save(
    cx: &Context,
    nodes: &Region<Node>,
    pieces: Domain,
    saving: Saving,
    runtime: &Runtime,
    steps: usize,
) -> Result<()> {
    let mut storing = saving.begin(cx).await?;
    let stored = cx.region::<Node>(nodes.volume() as usize)?;
    let (owned, parts) = (nodes.partition(pieces).equal()?, stored.partition(pieces).equal()?);
    let charge = cx.attach_file_pieces(&parts, Node::charge, storing.array("charge"))?;
    let voltage = cx.attach_file_pieces(&parts, Node::voltage, storing.array("voltage"))?;
    cx.index_launch(pieces, copy_state(&owned, &parts));
    cx.detach_file_pieces(charge).await?;
    cx.detach_file_pieces(voltage).await?;
    cx.destroy_region(stored)?;
    storing.finish(cx, runtime, steps).await
}
