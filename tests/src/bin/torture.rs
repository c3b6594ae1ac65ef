//! Runs random programs against the sequential oracle, for as long as one likes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use maniple_tests::census::Census;
use maniple_tests::shrink::shrink;
use maniple_tests::trial::{Family, Outcome, Trial};
use maniple_tests::watch::silence_planned_panics;

/// Runs random programs on random machines with random mappers, and compares every value with a sequential oracle.
///
/// Exits with 1 if a program deviates or hangs, and prints its seed and a smaller program that does so too.
#[derive(Parser)]
struct Options {
    /// For how long to go on.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first seed; the others follow.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds to run; without it, as many as there is time for.
    #[arg(long)]
    count: Option<u64>,
    /// The kinds of programs: flat, nested, faulty, tight, unsound, looping, stumbling. Without it, all in turn.
    #[arg(long, value_delimiter = ',')]
    family: Vec<Family>,
    /// How often to run each program: failures may depend on the schedule.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// On how many nodes each program runs: many in this process, with a network that delays as the seed says.
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Run each program in one thread, where a seed, this and the program's together, decides of every turn: what goes wrong does so again.
    #[arg(long, value_name = "SEED")]
    schedule: Option<u64>,
    /// Print each program and its environment before it runs.
    #[arg(long)]
    show: bool,
    /// Print each statement and task as it begins (>) and ends (<), and what mappers decide. For a program that hangs.
    #[arg(long)]
    trace: bool,
    /// Also record what is launched and issued, and prove that all that interferes was ordered and every task saw the right values: of one seed in so many.
    /// `--check` is all of them, `--check=0` none.
    #[arg(long, value_name = "ONE IN", default_value_t = 5, default_missing_value = "1", num_args = 0..=1, require_equals = true)]
    check: u64,
    /// Check all programs, and when one fails, print the record of what was launched and issued, node by node.
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
}

/// After how long without progress a program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a smaller program is run before it is taken to be right.
const TRIES: usize = 8;

fn main() -> ExitCode {
    let options = Options::parse();
    silence_planned_panics();
    let families = if options.family.is_empty() { Family::ALL.to_vec() } else { options.family.clone() };
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let seeds = (0..options.count.unwrap_or(u64::MAX)).map(|number| options.seed.wrapping_add(number));
    let trials = seeds.flat_map(|seed| families.iter().map(move |&family| Trial::new(family, seed)));
    let (mut runs, mut failures, mut census) = (0_u64, 0_u64, Census::default());
    for trial in trials.take_while(|_| Instant::now() < end) {
        runs += 1;
        failures += u64::from(!is_right(
            &Trial {
                trace: options.trace,
                check: options.checks(trial.seed),
                nodes: options.nodes,
                schedule: options.schedule.map(|schedule| schedule.wrapping_add(trial.seed)),
                ..trial.clone()
            },
            &options,
        ));
        if options.census {
            census.count(&trial);
        }
    }
    print!("{census}");
    println!("{runs} programs, {failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a trial, and prints what is wrong with it.
fn is_right(trial: &Trial, options: &Options) -> bool {
    if options.show {
        println!("{}\n{:#?}", trial.program(), trial.environment());
    }
    let outcomes = (0..options.repeat).map(|_| trial.watch(trial.program(), PATIENCE));
    match outcomes.into_iter().find(|outcome| !outcome.is_right()) {
        Some(outcome) => {
            explain(trial, &outcome, options);
            false
        }
        None => true,
    }
}

fn explain(trial: &Trial, outcome: &Outcome, options: &Options) {
    let schedule = trial.schedule.map(|schedule| format!(" --schedule {}", schedule.wrapping_sub(trial.seed)));
    let (family, seed, nodes, schedule) = (trial.family, trial.seed, trial.nodes, schedule.unwrap_or_default());
    let check = if trial.check { " --check" } else { " --check=0" };
    println!("\nreplay: torture --family {family} --seed {seed} --nodes {nodes}{schedule}{check} --count 1");
    println!("  {}", outcome.deviations.join("\n  "));
    if options.record {
        print!("{}", outcome.records);
    }
    let quiet = Trial { trace: false, ..trial.clone() };
    let program = trial.program();
    let shown = if options.no_shrink { program } else { shrink(&quiet, program, &outcome.deviations, TRIES) };
    println!("{shown}\n{:?}", trial.environment());
}
