//! The same programs on this runtime and on its rivals, as far as this machine has them.
//!
//! ```console
//! $ cargo bench -p maniple-benches --bench rivals                  # everything
//! $ cargo bench -p maniple-benches --bench rivals -- stencil       # one contest
//! $ cargo bench -p maniple-benches --bench rivals -- --help
//! ```

use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use maniple_benches::contest::{Contest, Effort};
use maniple_benches::machine;
use maniple_benches::rivals::CONTESTS;
use maniple_benches::toolbox::{Rival, Toolbox};

/// Run the same programs on Maniple and on its rivals, in turn, and print a table for each.
///
/// Nothing is installed. Rivals that are missing are named, and how to get them. Rivals' programs are compiled with CC,
/// CXX (else cc and c++) and mpicc; TASKFLOW_INCLUDE may name the folder of Taskflow's headers.
#[derive(Parser)]
#[command(name = "rivals", bin_name = "cargo bench -p maniple-benches --bench rivals --")]
struct Options {
    /// Contests to run [default: everything]: names that --list prints
    contests: Vec<String>,

    /// List the contests and their contestants, and run nothing
    #[arg(long)]
    list: bool,

    /// Cores that each program may use [default: all]
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,

    /// How often each program runs
    #[arg(long, value_name = "N", default_value_t = NonZero::new(5).expect("5 is not 0"))]
    rounds: NonZero<usize>,

    /// Seconds of work in a run of the stencil
    #[arg(long, value_name = "SECONDS", default_value_t = 0.05)]
    budget: f64,

    /// Options that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let cores = options.cores.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    let toolbox = Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), cores);
    let known = |name: &&String| CONTESTS.iter().any(|contest| contest.name == **name);
    if let Some(unknown) = options.contests.iter().find(|name| !known(name)) {
        let names: Vec<_> = CONTESTS.iter().map(|contest| contest.name).collect();
        eprintln!("there is no contest {unknown}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    machine::report().iter().chain(&toolbox.report(&Rival::OF_TASKS)).for_each(|line| println!("{line}"));
    let wanted =
        |contest: &&Contest| options.contests.is_empty() || options.contests.iter().any(|name| name == contest.name);
    for contest in CONTESTS.iter().filter(wanted) {
        if options.list {
            let names: Vec<_> = (contest.contestants)(&toolbox).iter().map(|one| one.name().to_owned()).collect();
            println!("{:<10} {}: {}", contest.name, contest.title, names.join("; "));
        } else {
            let effort = Effort { rounds: options.rounds.get(), budget: options.budget };
            println!("\n{}", contest.measure(&toolbox, effort));
        }
    }
    ExitCode::SUCCESS
}
