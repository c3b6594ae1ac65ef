//! Cost of recording a profile: the circuit runs with and without it, in turn; first with its default pieces, then with
//! tiny ones, which do next to nothing, so that the runtime takes most of the time.

use std::path::PathBuf;

use maniple_apps::circuit::{self, CircuitOptions};
use maniple_apps::options::RuntimeOptions;
use maniple_benches::{line, median};

const ROUNDS: usize = 15;

fn main() {
    let usual = CircuitOptions { pieces: 16, steps: 300, no_verify: true, ..CircuitOptions::default() };
    let tiny = CircuitOptions { nodes_per_piece: 4, wires_per_piece: 8, steps: 1000, ..usual.clone() };
    compare("circuit", &usual, "at most 1.05");
    compare("circuit, tiny pieces", &tiny, "");
}

fn compare(what: &str, options: &CircuitOptions, wanted: &str) {
    let file = std::env::temp_dir().join(format!("maniple-bench-{}.mprof", std::process::id()));
    let (mut without, mut with, mut work, mut tasks, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0, 0);
    for round in 0..ROUNDS {
        // Each goes first every other time: what comes second finds warm memory.
        let mut measured = [None; 2];
        for turn in [round % 2, (round + 1) % 2] {
            measured[turn] = Some(run(options, (turn == 1).then(|| file.clone())));
        }
        let [Some(plain), Some(profiled)] = measured else { unreachable!("both have had their turn") };
        without.push(plain.seconds);
        with.push(profiled.seconds);
        work.push(profiled.work / plain.work);
        (tasks, bytes) = (profiled.tasks, file.metadata().map_or(0, |file| file.len()));
    }
    std::fs::remove_file(&file).expect("the profile was written");
    let ratios = without.iter().zip(&with).map(|(without, with)| with / without).collect();
    line(&format!("{what}, a task"), median(without) * 1e6 / tasks as f64, "us", "");
    line(&format!("{what}, profiled, a task"), median(with) * 1e6 / tasks as f64, "us", "");
    line("  time with profile / without", median(ratios), "", wanted);
    if work.iter().all(|ratio| ratio.is_finite()) {
        line("  processor time with profile / without", median(work), "", wanted);
    }
    line("  bytes of profile a task", bytes as f64 / tasks as f64, "B", "");
}

#[derive(Clone, Copy)]
struct Measured {
    /// Of the time steps.
    seconds: f64,
    /// Seconds that processors worked, for all of the run.
    work: f64,
    tasks: u64,
}

fn run(options: &CircuitOptions, profile: Option<PathBuf>) -> Measured {
    let runtime = RuntimeOptions { workers: Some(2), profile, ..options.runtime.clone() };
    let before = work();
    let runtime = runtime.start().expect("the runtime starts");
    let report = circuit::run_on(&runtime, options).expect("the circuit runs");
    // With it the profile is written to its end.
    drop(runtime);
    Measured { seconds: report.time.as_secs_f64(), work: work() - before, tasks: report.tasks }
}

/// Seconds that processors have worked for this process; not a number where the system does not tell what Linux tells.
fn work() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let fields = told.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    if ticks.len() == 2 { (ticks[0] + ticks[1]) / TICKS_A_SECOND } else { f64::NAN }
}
