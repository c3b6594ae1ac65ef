//! One program in one environment, against the oracle.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::record::{Violation, check};
use maniple::simulation::{Answer, Report, Simulation};
use maniple::threads::nap;
use maniple::{AnySpace, Field, Rect, Region, Runtime, Statistics};

use crate::environment::{Environment, Job, Minds, Room};
use crate::execute::{Counts, Mistake, Run, Tally, Tolerance, Way, run_program};
use crate::generate::{Profile, generate};
use crate::lifetime::Lifetime;
use crate::oracle::{Context, World};
use crate::processes::Processes;
use crate::program::Program;
use crate::records::Records;
use crate::value::{Cells, Kind, mix, register_operators};

/// A kind of trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Launches without nesting.
    Flat,
    /// Everything, in machines with room enough.
    Nested,
    /// Tasks that fail: what depends on them must fail, the rest must be right.
    Faulty,
    /// Little memory: what does not fail must be right.
    Tight,
    /// Mappers that answer nonsense: what does not fail must be right.
    Unsound,
    /// Loops, most of which can be replayed.
    Looping,
    /// Loops with tasks that fail.
    FaultyLoops,
}

impl Family {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Flat, Self::Nested, Self::Faulty, Self::Tight, Self::Unsound, Self::Looping, Self::FaultyLoops];

    fn profile(self) -> Profile {
        match self {
            Self::Flat => Profile::FLAT,
            Self::Nested => Profile::FULL,
            Self::Faulty => Profile::FAULTY,
            Self::Tight | Self::Unsound => Profile { statements: 25, ..Profile::FULL },
            Self::Looping => Profile::LOOPS,
            Self::FaultyLoops => Profile::FAULTY_LOOPS,
        }
    }

    fn has_faults(self) -> bool {
        matches!(self, Self::Faulty | Self::FaultyLoops)
    }

    fn tolerance(self) -> Tolerance {
        match self {
            Self::Flat | Self::Nested | Self::Faulty | Self::Looping | Self::FaultyLoops => Tolerance::None,
            Self::Tight | Self::Unsound => Tolerance::Errors,
        }
    }

    /// The environment of a seed.
    #[must_use]
    pub fn environment(self, seed: u64) -> Environment {
        let room = if self == Self::Tight { Room::Tight } else { Room::Enough };
        let minds = match self {
            Self::Unsound => Minds::Unsound,
            Self::Looping | Self::FaultyLoops => Minds::Steady,
            _ => Minds::Any,
        };
        Environment::new(seed, room, minds)
    }

    /// The program of a seed, for so many nodes.
    #[must_use]
    pub fn program(self, seed: u64, nodes: usize) -> Program {
        // What a task has made is known on its node alone.
        generate(mix(seed, self as u64), Profile { hand_up: nodes == 1, ..self.profile() })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|family| family.to_string() == name);
        found.ok_or_else(|| format!("expected one of {:?}", Self::ALL.map(|family| family.to_string())))
    }
}

/// The parameters of a trial, apart from its program.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kind.
    pub family: Family,
    /// The seed.
    pub seed: u64,
    /// A mistake made on purpose.
    pub mistake: Mistake,
    /// Whether to print each statement and task as it begins and ends, and what mappers decide.
    pub trace: bool,
    /// Whether to record what is launched and issued, and to check the record.
    pub check: bool,
    /// On how many nodes the program runs.
    pub nodes: usize,
    /// Whether this process is one of the nodes. If not, all are in it.
    pub processes: Option<Processes>,
    /// Whether all of it runs in one thread, in an order that this seed decides.
    pub schedule: Option<u64>,
    /// The misfortune of the nodes, if there is a schedule.
    pub misfortune: Misfortune,
}

/// A misfortune of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Misfortune {
    /// Nothing.
    #[default]
    None,
    /// Messages from one node to another one arrive late, between the two turns.
    Stall {
        /// The node that sends.
        from: usize,
        /// The node that waits.
        to: usize,
        /// When.
        turns: [u64; 2],
    },
    /// One is killed.
    Death {
        /// Which.
        node: usize,
        /// When.
        turn: u64,
    },
    /// The others take one for lost, which goes on.
    Silence {
        /// Which.
        node: usize,
        /// When.
        turn: u64,
    },
}

impl Misfortune {
    /// One of a kind, at some turn of a run of so many nodes that takes so many turns.
    #[must_use]
    pub fn drawn(faults: Faults, nodes: usize, turns: u64, random: &mut Rng) -> Self {
        let node = random.usize(..nodes);
        let turn = random.u64(..turns.max(1));
        match faults {
            Faults::Stalls => {
                let to = (node + random.usize(1..nodes)) % nodes;
                Self::Stall { from: node, to, turns: [turn, turn + random.u64(1..=turns.max(1))] }
            }
            Faults::Deaths => Self::Death { node, turn },
            Faults::Silences => Self::Silence { node, turn },
        }
    }

    /// Has it happen in a simulation of nodes, each with what it comes to.
    pub fn befall<T>(self, simulation: &mut Simulation, network: &Network, nodes: &[Answer<T>]) {
        let id = |node: usize| NodeId(node as u16);
        match self {
            Self::None => {}
            Self::Stall { from, to, turns: [from_turn, to_turn] } => {
                let (before, after) = (network.clone(), network.clone());
                simulation.at(from_turn, move || before.stall(id(from), id(to)));
                simulation.at(to_turn, move || after.resume(id(from), id(to)));
            }
            Self::Death { node, turn } => {
                let network = network.clone();
                simulation.kill_at(turn, &nodes[node]);
                simulation.at(turn, move || network.kill(id(node)));
            }
            Self::Silence { node, turn } => {
                let network = network.clone();
                simulation.at(turn, move || network.silence(id(node), Duration::from_secs(60)));
            }
        }
    }

    /// Whether nodes are lost.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Death { .. } | Self::Silence { .. })
    }
}

/// Which misfortunes befall trials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Faults {
    /// Messages between two nodes are held up for a while.
    Stalls,
    /// A node is killed.
    Deaths,
    /// A node is taken for lost.
    Silences,
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "stalls" => Ok(Self::Stalls),
            "deaths" => Ok(Self::Deaths),
            "silences" => Ok(Self::Silences),
            _ => Err("expected stalls, deaths or silences".to_owned()),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stalls => "stalls",
            Self::Deaths => "deaths",
            Self::Silences => "silences",
        })
    }
}

/// The outcome of a trial.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How it deviates from the oracle; empty if all is right.
    pub deviations: Vec<String>,
    /// The counts of the program.
    pub counts: Counts,
    /// The statistics of the runtime.
    pub statistics: Statistics,
    /// The records of launches and operations, node by node, if [`Trial::check`] is set.
    pub records: Records,
    /// The turns that were taken, if [`Trial::schedule`] is set.
    pub turns: Option<Report>,
}

impl Outcome {
    pub(crate) fn deviation(what: String) -> Self {
        Self { deviations: vec![what], ..Self::default() }
    }

    /// The joint outcome of the nodes, as far as they have one.
    fn of_nodes(outcomes: Vec<Option<Self>>) -> Self {
        let several = outcomes.len() > 1;
        let (mut together, mut records) = (None, Records::default());
        let mut deviations = Vec::new();
        for (node, outcome) in outcomes.into_iter().enumerate() {
            let Some(mut outcome) = outcome else { continue };
            let of_node = |what: &String| if several { format!("node {node}: {what}") } else { what.clone() };
            deviations.extend(outcome.deviations.iter().map(of_node));
            records.0.extend(std::mem::take(&mut outcome.records.0).into_values().map(|record| (node, record)));
            together.get_or_insert(outcome);
        }
        Self { deviations, records, ..together.unwrap_or_default() }
    }

    /// Whether nothing deviates from the oracle.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.deviations.is_empty()
    }
}

impl Trial {
    /// The trial of a seed.
    #[must_use]
    pub fn new(family: Family, seed: u64) -> Self {
        Self {
            family,
            seed,
            mistake: Mistake::None,
            trace: false,
            check: false,
            nodes: 1,
            processes: None,
            schedule: None,
            misfortune: Misfortune::None,
        }
    }

    /// The same trial with a misfortune of this kind, which follows from the seed. It comes at some turn of a run
    /// without one, which this makes. For trials of several nodes that have a schedule.
    #[must_use]
    pub fn with_misfortune(self, faults: Faults) -> Self {
        let Some(turns) = Self { misfortune: Misfortune::None, ..self.clone() }.run().turns.map(|report| report.turns)
        else {
            return self;
        };
        let misfortune = Misfortune::drawn(faults, self.nodes, turns, &mut Rng::with_seed(self.seed));
        Self { misfortune, ..self }
    }

    /// The seed's own program.
    #[must_use]
    pub fn program(&self) -> Program {
        self.family.program(self.seed, self.nodes)
    }

    /// The seed's environment. If there are several nodes, it is the first one's.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.family.environment(self.seed)
    }

    /// Runs the seed's own program in its environment. Never returns if the program hangs: see [`Trial::watch`].
    #[must_use]
    pub fn run(&self) -> Outcome {
        self.run_program(self.program(), Arc::default())
    }

    /// Runs a program in the seed's environment, and counts what it does.
    #[must_use]
    pub fn run_program(&self, program: Program, tally: Arc<Tally>) -> Outcome {
        register_operators();
        let expected = match World::run(&program.body) {
            Ok(expected) => expected,
            Err(why) => return Outcome::deviation(format!("no meaning: {why}")),
        };
        match (self.schedule, &self.processes) {
            (_, Some(processes)) => self.run_as_process(processes, program, expected, tally),
            (Some(schedule), None) => self.simulate(schedule, &program, &expected, &tally),
            (None, None) if self.nodes > 1 => self.run_on_nodes(&program, &expected, &tally),
            (None, None) => self.run_here(program, expected, tally, None),
        }
    }

    /// Runs the program on this node, together with the others, which are processes as well.
    fn run_as_process(
        &self,
        processes: &Processes,
        program: Program,
        expected: (World, Context),
        tally: Arc<Tally>,
    ) -> Outcome {
        match processes.meet() {
            Ok(transport) => {
                let job = Job { transport, seed: self.seed, lifetime: Lifetime::default() };
                self.of_node(processes.rank()).run_here(program, expected, tally, Some(job))
            }
            Err(why) => Outcome::deviation(format!("cannot meet the other nodes: {why}")),
        }
    }

    /// Runs the program on all nodes in this thread.
    fn simulate(&self, schedule: u64, program: &Program, expected: &(World, Context), tally: &Arc<Tally>) -> Outcome {
        let network = Network::seeded(self.nodes, self.seed, self.seed % 20);
        let mut simulation = Simulation::new(schedule).network(&network);
        if self.trace {
            simulation = simulation.capture_places();
        }
        let mut lifetimes = Vec::new();
        let nodes: Vec<_> = (0..self.nodes)
            .map(|node| {
                let (trial, job) = (self.of_node(node), self.job(&network, node));
                lifetimes.extend(job.as_ref().map(|job| job.lifetime.clone()));
                let (program, expected, tally) = (program.clone(), expected.clone(), Arc::clone(tally));
                simulation.thread(format!("node {node}"), move || trial.run_here(program, expected, tally, job))
            })
            .collect();
        self.misfortune.befall(&mut simulation, &network, &nodes);
        match simulation.run() {
            Ok(report) => {
                // All that have ended: a node that was killed before has not.
                let mut outcomes: Vec<Option<Outcome>> = nodes.iter().map(Answer::take).collect();
                // Of one that was killed all is leaked.
                for (outcome, lifetime) in outcomes.iter_mut().zip(&lifetimes) {
                    if let Some(outcome) = outcome.as_mut().filter(|_| !lifetime.is_over()) {
                        outcome.deviations.push("its runtime stays in memory after its end".to_owned());
                    }
                }
                Outcome { turns: Some(report), ..Outcome::of_nodes(outcomes) }
            }
            Err(hang) => {
                hang.places.iter().for_each(|place| eprintln!("{place}"));
                Outcome::deviation(hang.to_string())
            }
        }
    }

    /// The trial as a node runs it.
    #[must_use]
    pub fn of_node(&self, node: usize) -> Self {
        Self { seed: self.seed + 1000 * node as u64, ..self.clone() }
    }

    /// The job as a node sees it, if there are several nodes.
    fn job(&self, network: &Network, node: usize) -> Option<Job> {
        let transport = || network.node(NodeId(node as u16));
        (self.nodes > 1).then(|| Job { transport: transport(), seed: self.seed, lifetime: Lifetime::default() })
    }

    /// Runs the program on several nodes of one process, each with an environment of its own.
    fn run_on_nodes(&self, program: &Program, expected: &(World, Context), tally: &Arc<Tally>) -> Outcome {
        let network = Network::seeded(self.nodes, self.seed, self.seed % 20);
        let _pump = network.pump();
        let run = |node: usize| {
            let job = self.job(&network, node);
            self.of_node(node).run_here(program.clone(), expected.clone(), Arc::clone(tally), job)
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let nodes: Vec<_> = (0..self.nodes).map(|node| scope.spawn(move || run(node))).collect();
            let lost = |_| Outcome::deviation("a node panicked".to_owned());
            nodes.into_iter().map(|node| Some(node.join().unwrap_or_else(lost))).collect()
        });
        Outcome::of_nodes(outcomes)
    }

    /// Some programs are run by sessions. In a simulation there are no threads but its own.
    fn way(&self) -> Way {
        match self.seed % 6 {
            1 => Way::Session,
            3 if self.schedule.is_none() && self.nodes == 1 && self.mistake == Mistake::None => Way::Threads,
            _ => Way::Function,
        }
    }

    fn run_here(&self, program: Program, expected: (World, Context), tally: Arc<Tally>, job: Option<Job>) -> Outcome {
        let runtime = match self.environment().start(self.check, self.trace, job) {
            Ok(runtime) => runtime,
            Err(error) => return Outcome::deviation(format!("cannot start: {error}")),
        };
        let (expected, fate) = expected;
        let mut run = Run::new(program, expected, fate);
        // What travels together from node to node fails together; and what is done together, if one of them is lost.
        let fails = self.nodes > 1 && self.family.has_faults() || self.misfortune.is_loss();
        run.tolerance = if fails { Tolerance::Errors } else { self.family.tolerance() };
        run.mistake = self.mistake;
        run.delays = (!self.seed.is_multiple_of(4)).then_some(self.seed);
        run.trace = self.trace;
        run.nodes = self.nodes;
        run.way = self.way();
        run.names_mappers = true;
        run.tally = tally;
        let run = Arc::new(run);
        run_program(&run, &runtime);
        let mut deviations = run.deviations();
        if deviations.is_empty() && runtime.breakdown().is_none() {
            match self.mistake {
                Mistake::Leak => deviations.extend(leaks_with_a_region(&runtime)),
                _ => deviations.extend(leaks(&runtime)),
            }
        }
        let (counts, statistics) = (run.tally.read(), runtime.statistics());
        let record = runtime.take_record();
        if self.check {
            // A runtime that has broken down has left tasks unfinished; the checker does not know of the breakdown.
            let is_wrong = |violation: &Violation| {
                runtime.breakdown().is_none() || !matches!(violation, Violation::Unfinished { .. })
            };
            let violation = check(&record).err().filter(is_wrong);
            deviations.extend(violation.map(|violation| format!("the record is no proof: {violation}")));
        }
        let records = if self.check { Records([(0, record)].into()) } else { Records::default() };
        Outcome { deviations, counts, statistics, records, turns: None }
    }
}

/// Memory in use after all regions were destroyed, and what is kept for other nodes.
fn leaks(runtime: &Runtime) -> Option<String> {
    let used = || -> Vec<u64> { runtime.machine().memories().iter().map(|m| runtime.bytes_used(m.id)).collect() };
    let open = || runtime.statistics().open_exchanges;
    // The last worker may still be letting go of the last instance, and the last messages be under way.
    for _ in 0..2000 {
        // What has broken down lets go of nothing.
        if used().iter().all(|&bytes| bytes == 0) && open() == 0 || runtime.breakdown().is_some() {
            return None;
        }
        nap(Duration::from_micros(500));
    }
    let (used, open) = (used(), open());
    Some(format!("bytes still in use after all regions were destroyed: {used:?}; exchanges that do not end: {open}"))
}

/// The same while there is a region that has memory.
fn leaks_with_a_region(runtime: &Runtime) -> Option<String> {
    let checked = runtime.run(async |context| {
        let fields = context.field_space(1);
        let field = fields.allocate("kept", Kind::Long.field_type())?;
        let rows = context.index_space(&AnySpace::from(Rect::<1>::from(0..9)));
        let region = context.logical_region(&rows, &fields)?;
        let region = Region::<Cells, 1>::try_from_logical(region)?;
        drop(context.map_write(&region, Field::<Cells, i64>::new(field)).await?);
        Ok(leaks(runtime))
    });
    checked.unwrap_or_else(|error| Some(format!("a region cannot be made at the end: {error}")))
}
