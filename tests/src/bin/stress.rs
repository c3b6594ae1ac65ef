//! Runs random programs against the sequential oracle, for as long as one likes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use maniple_tests::census::Census;
use maniple_tests::environment::Environment;
use maniple_tests::execute::Mistake;
use maniple_tests::processes::Processes;
use maniple_tests::shrink::shrink;
use maniple_tests::trial::{Family, Faults, Outcome, Trial};
use maniple_tests::watch::silence_planned_panics;

/// Runs random programs on random machines with random mappers, and compares every value with a sequential oracle.
///
/// Exits with 1 if a program deviates or hangs, and prints its seed and a smaller program that does so too.
///
/// Started as several processes, `maniple launch -n 4 -- stress --count 100`, each of them is a node, and every program
/// is a job of all of them.
#[derive(Parser)]
#[command(name = "stress")]
struct Options {
    /// For how long to go on: 60, unless there is a --count.
    #[arg(long)]
    seconds: Option<u64>,
    /// The first seed; the others follow.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds to run; without it, as many as there is time for.
    #[arg(long)]
    count: Option<u64>,
    /// The kinds of programs: flat, nested, faulty, tight, unsound, looping, faultyloops. Without it, all in turn.
    #[arg(long, value_delimiter = ',')]
    family: Vec<Family>,
    /// How often to run each program: failures may depend on the schedule.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// On how many nodes each program runs: many in this process, with a network that delays as the seed says. One, if
    /// it is not given.
    #[arg(long)]
    nodes: Option<usize>,
    /// Run each program in one thread, where a seed, this and the program's together, decides of every turn: what goes
    /// wrong does so again.
    #[arg(long, value_name = "SEED")]
    schedule: Option<u64>,
    /// With --schedule and several --nodes: what befalls each program, stalls of messages, deaths of a node, or
    /// silences of one that goes on. The seed decides when, and which nodes.
    #[arg(long, requires = "schedule", requires = "nodes")]
    faults: Option<Faults>,
    /// Make a mistake on purpose, such as LostFill or WrongValue, to see that it is noticed. Of several processes those
    /// make it that are told to.
    #[arg(long)]
    mistake: Option<Mistake>,
    /// Print each program and its environment before it runs.
    #[arg(long)]
    show: bool,
    /// Print each statement and task as it begins (>) and ends (<), and what mappers decide; and the same of the
    /// smaller program. Of one that hangs in a simulation, also where each thread waits.
    #[arg(long)]
    trace: bool,
    /// Also record what is launched and issued, and prove that all that interferes was ordered and every task saw the
    /// right values: of one seed in so many. `--check` is all of them, `--check=0` none.
    #[arg(long, value_name = "ONE IN", default_value_t = 5, default_missing_value = "1", num_args = 0..=1, require_equals = true)]
    check: u64,
    /// Check all programs, and when one fails, print the record of what was launched and issued, node by node; also
    /// that of the smaller program.
    #[arg(long)]
    record: bool,
    /// Print what the programs consisted of when all have run.
    #[arg(long)]
    census: bool,
    /// Print the whole program when it fails, without looking for a smaller one.
    #[arg(long)]
    no_shrink: bool,
}

impl Options {
    /// Whether the program of a seed is recorded, and the record checked.
    fn checks(&self, seed: u64) -> bool {
        self.record || self.check > 0 && seed.is_multiple_of(self.check)
    }

    /// The first conflict of the options with being one of several processes, if there is one.
    fn cannot_be_shared(&self, processes: &Processes) -> Option<&'static str> {
        let programs = self.count.unwrap_or(u64::MAX).saturating_mul(self.families().len() as u64);
        if self.nodes.is_some() || self.schedule.is_some() {
            return Some(
                "--nodes and --schedule are for nodes in one process: this one is a node of several processes",
            );
        }
        if self.count.is_none() || self.seconds.is_some() || self.repeat != 1 {
            return Some(
                "several processes must run the same programs equally often: give --count, and neither --seconds nor --repeat",
            );
        }
        if programs > 1 && !processes.can_meet_again() {
            return Some("MPI can be started once in a process: give one --family and --count 1");
        }
        None
    }

    fn families(&self) -> &[Family] {
        if self.family.is_empty() { &Family::ALL } else { &self.family }
    }

    /// When to begin no more programs; never, if they are counted.
    fn end(&self) -> Option<Instant> {
        let seconds = self.seconds.or(self.count.is_none().then_some(60))?;
        Some(Instant::now() + Duration::from_secs(seconds))
    }
}

/// After how long without progress a program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same on a process that others may keep waiting: they give up meeting it before.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(90);

/// How often a smaller program is run before it is taken to be right.
const TRIES: usize = 8;

fn main() -> ExitCode {
    let options = Options::parse();
    let processes = Processes::find();
    let problem = match &processes {
        Ok(Some(processes)) => options.cannot_be_shared(processes),
        Ok(None) => None,
        Err(why) => Some(why.as_str()),
    };
    if let Some(problem) = problem {
        Options::command().error(ErrorKind::ArgumentConflict, problem).exit();
    }
    silence_planned_panics();
    run(&options, processes.unwrap_or_default())
}

fn run(options: &Options, processes: Option<Processes>) -> ExitCode {
    let nodes = processes.as_ref().map_or(options.nodes.unwrap_or(1), Processes::nodes);
    let end = options.end();
    let seeds = (0..options.count.unwrap_or(u64::MAX)).map(|number| options.seed.wrapping_add(number));
    let trials = seeds.flat_map(|seed| options.families().iter().map(move |&family| Trial::new(family, seed)));
    let mut done = Done::default();
    let are_apart = || processes.as_ref().is_some_and(Processes::are_apart);
    for trial in trials.take_while(|_| end.is_none_or(|end| Instant::now() < end) && !are_apart()) {
        let trial = Trial {
            mistake: options.mistake.unwrap_or_default(),
            trace: options.trace,
            check: options.checks(trial.seed),
            nodes,
            processes: processes.clone(),
            schedule: options.schedule.map(|schedule| schedule.wrapping_add(trial.seed)),
            ..trial
        };
        let trial = match options.faults.filter(|_| nodes > 1) {
            Some(faults) => trial.with_misfortune(faults),
            None => trial,
        };
        done.add(&trial, options);
    }
    print!("{}", done.census);
    let Done { programs, failures, tasks, parcels, .. } = done;
    let sent = if nodes > 1 { format!(", {parcels} parcels sent to other nodes") } else { String::new() };
    println!("{programs} programs, {failures} failures; {tasks} tasks{sent}");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Counts of the programs that have been run.
#[derive(Default)]
struct Done {
    programs: u64,
    failures: u64,
    tasks: u64,
    /// Sent by the first node, or by this one, if it is a process.
    parcels: u64,
    census: Census,
}

impl Done {
    fn add(&mut self, trial: &Trial, options: &Options) {
        if options.show {
            println!("{}\n{:#?}", trial.program(), environment(trial));
        }
        self.programs += 1;
        let patience = if trial.processes.is_some() { PATIENCE_WITH_OTHERS } else { PATIENCE };
        for _ in 0..options.repeat {
            let outcome = trial.watch(trial.program(), patience);
            self.tasks += outcome.counts.tasks;
            self.parcels += outcome.statistics.parcels_sent;
            if !outcome.is_right() {
                self.failures += 1;
                explain(trial, &outcome, options);
                break;
            }
        }
        if options.census {
            self.census.count(trial);
        }
    }
}

fn explain(trial: &Trial, outcome: &Outcome, options: &Options) {
    let schedule = trial.schedule.map(|schedule| format!(" --schedule {}", schedule.wrapping_sub(trial.seed)));
    let (family, seed, nodes, schedule) = (trial.family, trial.seed, trial.nodes, schedule.unwrap_or_default());
    let check = if trial.check { " --check" } else { " --check=0" };
    let (launch, nodes) = match trial.processes {
        Some(_) => (format!("maniple launch -n {nodes} -- "), String::new()),
        None => (String::new(), format!(" --nodes {nodes}")),
    };
    let faults = options.faults.map_or_else(String::new, |faults| format!(" --faults {faults}"));
    let mistake =
        if trial.mistake == Mistake::None { String::new() } else { format!(" --mistake {:?}", trial.mistake) };
    println!(
        "\nreplay: {launch}stress --family {family} --seed {seed}{nodes}{schedule}{faults}{mistake}{check} --count 1"
    );
    println!("  {}", outcome.deviations.join("\n  "));
    if options.record {
        print!("{}", outcome.records);
    }
    let quiet = Trial { trace: false, ..trial.clone() };
    let program = trial.program();
    // Other processes would have to look for a smaller one together with this one.
    let is_whole = options.no_shrink || trial.processes.is_some();
    let shown = if is_whole { program } else { shrink(&quiet, program, &outcome.deviations, TRIES) };
    println!("{shown}\n{:?}", environment(trial));
    if (trial.trace || options.record) && !is_whole {
        println!("the smaller program:");
        let outcome = trial.watch(shown, PATIENCE);
        if options.record {
            print!("{}", outcome.records);
        }
    }
}

/// The environment of the program; of several nodes in this process, the environment of the first one.
fn environment(trial: &Trial) -> Environment {
    trial.of_node(trial.processes.as_ref().map_or(0, Processes::rank)).environment()
}
