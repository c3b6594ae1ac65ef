//! Costs of the runtime, measured and laid beside their targets.
//!
//! ```console
//! $ cargo bench -p maniple-benches --bench targets                 # everything
//! $ cargo bench -p maniple-benches --bench targets -- points idle  # some of it
//! $ cargo bench -p maniple-benches --bench targets -- --help
//! ```

use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use maniple_benches::machine;
use maniple_benches::targets::findings::table;
use maniple_benches::targets::{ELSEWHERE, Effort, TARGETS, Target};

/// Measure what the runtime costs, and lay it beside what it is to cost.
///
/// Programs that are compared run in turn, and medians count. Prints what some of the figures are made of, and then a
/// table of all: the figure, what it must be, what it should be, and which of the two it is ("no" for neither). Nothing
/// fails because it is slow.
#[derive(Parser)]
#[command(name = "targets", bin_name = "cargo bench -p maniple-benches --bench targets --")]
struct Options {
    /// Figures to measure [default: everything]: names that --list prints
    targets: Vec<String>,

    /// List what is measured here and what elsewhere, and measure nothing
    #[arg(long)]
    list: bool,

    /// Cores that the machine has [default: all]: so many workers run, and twice as many to see what too many do
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,

    /// How often each program runs
    #[arg(long, value_name = "N", default_value_t = NonZero::new(15).expect("15 is not 0"))]
    rounds: NonZero<usize>,

    /// Seconds for which an idle runtime is watched
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    idle: f64,

    /// Options that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let known = |name: &&String| TARGETS.iter().any(|target| target.name == **name);
    if let Some(unknown) = options.targets.iter().find(|name| !known(name)) {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("there is no target {unknown}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    let wanted =
        |target: &&Target| options.targets.is_empty() || options.targets.iter().any(|name| name == target.name);
    if options.list {
        TARGETS.iter().for_each(|target| println!("{:<15} {}", target.name, target.about));
        println!("\nNot measured here:\n{ELSEWHERE}");
        return ExitCode::SUCCESS;
    }
    let cores = options.cores.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    let effort = Effort { rounds: options.rounds.get(), cores, idle: options.idle };
    machine::report().iter().for_each(|line| println!("{line}"));
    println!();
    let (mut rows, mut failed) = (Vec::new(), false);
    for target in TARGETS.iter().filter(wanted) {
        match (target.measure)(effort) {
            Ok(findings) => {
                findings.details.iter().for_each(|table| println!("{table}"));
                rows.extend(findings.rows);
            }
            Err(error) => {
                eprintln!("{}: {error}", target.name);
                failed = true;
            }
        }
    }
    println!("{}", table("Targets", &rows));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
