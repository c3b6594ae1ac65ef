//! Runs random programs against the sequential oracle, for as long as one likes.

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Parser;
use maniple_tests::shrink::shrink;
use maniple_tests::trial::{Family, Trial};

/// Runs random programs on random machines with random mappers, and compares every value with a sequential oracle.
///
/// Exits with 1 if a program deviates or hangs, and prints a smaller program that does so too.
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
    /// The kinds of programs: flat, nested, faulty, tight, unsound. Without it, all in turn.
    #[arg(long, value_delimiter = ',')]
    family: Vec<Family>,
    /// How often to run each program: failures may depend on the schedule.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Print each program and its environment before it runs.
    #[arg(long)]
    show: bool,
    /// Print the whole program when it fails, without looking for a smaller one.
    #[arg(long)]
    no_shrink: bool,
}

/// After how long a program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let options = Options::parse();
    quieten();
    let families = if options.family.is_empty() { Family::ALL.to_vec() } else { options.family.clone() };
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let (mut runs, mut failures) = (0_u64, 0_u64);
    for number in 0..options.count.unwrap_or(u64::MAX) {
        for &family in &families {
            if Instant::now() >= end {
                println!("{runs} programs, {failures} failures");
                return if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
            runs += 1;
            failures += u64::from(!is_right(&Trial::new(family, options.seed.wrapping_add(number)), &options));
        }
    }
    println!("{runs} programs, {failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Panics on purpose are part of the programs.
fn quieten() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        if !text.contains("on purpose") && !text.contains("whim") {
            eprintln!("{text}");
        }
    }));
}

fn is_right(trial: &Trial, options: &Options) -> bool {
    let program = || trial.family.program(trial.seed);
    if options.show {
        println!("{}\n{:#?}", program(), trial.family.environment(trial.seed));
    }
    for _ in 0..options.repeat {
        let deviations = run(trial);
        if !deviations.is_empty() {
            println!("\n--family {} --seed {}:\n  {}", trial.family, trial.seed, deviations.join("\n  "));
            let shown = if options.no_shrink { program() } else { shrink(trial, program(), &deviations) };
            println!("{shown}\n{:?}", trial.family.environment(trial.seed));
            return false;
        }
    }
    true
}

/// What is wrong with one run. A run that hangs is left behind.
fn run(trial: &Trial) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let mine = trial.clone();
    std::thread::spawn(move || {
        // Nobody listens any more if this took too long.
        let _ = sender.send(mine.run());
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome.err().unwrap_or_default(),
        Err(_) => vec!["hang".to_owned()],
    }
}
