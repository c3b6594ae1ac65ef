//! Tensor algebra on this runtime and by what a user would take instead: OpenBLAS, ScaLAPACK, NumPy, and loops in C.
//!
//! ```console
//! $ cargo bench -p maniple-benches --bench tensors                 # everything
//! $ cargo bench -p maniple-benches --bench tensors -- gemm two     # some contests
//! $ cargo bench -p maniple-benches --bench tensors -- --help
//! ```

use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use maniple_benches::machine;
use maniple_benches::targets::findings::table;
use maniple_benches::tensors::contest::{Scale, Stage};
use maniple_benches::tensors::{CONTESTS, kernels};
use maniple_benches::toolbox::{Rival, Toolbox};

/// Compute with tensors on Maniple and on its rivals, in turn, and print a table for each, and at the end what each
/// must be.
///
/// Nothing is installed. Rivals that are missing are named, and how to get them. Their programs are compiled with CC
/// (else cc) and mpicc, or run by python3. Nothing fails because it is slow.
#[derive(Parser)]
#[command(name = "tensors", bin_name = "cargo bench -p maniple-benches --bench tensors --")]
struct Options {
    /// Contests to run [default: everything]: names that --list prints
    contests: Vec<String>,

    /// List the contests and their contestants, and run nothing
    #[arg(long)]
    list: bool,

    /// Cores that may be used [default: all]
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,

    /// How many turns each contestant has
    #[arg(long, value_name = "N", default_value_t = NonZero::new(11).expect("11 is not 0"))]
    rounds: NonZero<usize>,

    /// Options that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let cores = options.cores.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    let stage = Stage {
        toolbox: Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), cores),
        ours: env!("CARGO_BIN_EXE_maniple-tensors-turns").into(),
        scale: Scale::Full,
    };
    let names = || CONTESTS.iter().map(|contest| contest.name).chain([kernels::NAME]);
    let known = |name: &&String| names().any(|known| known == **name);
    if let Some(unknown) = options.contests.iter().find(|name| !known(name)) {
        eprintln!("there is no contest {unknown}; there are {}", names().collect::<Vec<_>>().join(", "));
        return ExitCode::from(2);
    }
    machine::report().iter().chain(&stage.toolbox.report(&Rival::OF_TENSORS)).for_each(|line| println!("{line}"));
    let wanted = |name: &str| options.contests.is_empty() || options.contests.iter().any(|wanted| wanted == name);
    let mut rows = Vec::new();
    for contest in CONTESTS.iter().filter(|contest| wanted(contest.name)) {
        if options.list {
            let names: Vec<_> = (contest.contestants)(&stage).into_iter().map(|one| one.name).collect();
            println!("{:<10} {}: {}", contest.name, contest.title, names.join("; "));
        } else {
            let report = contest.measure(&stage, options.rounds.get());
            println!("\n{}", report.table);
            rows.extend(report.rows);
        }
    }
    if options.list {
        println!("{:<10} Making a kernel by the compiler, and of what is kept on disk", kernels::NAME);
        return ExitCode::SUCCESS;
    }
    if wanted(kernels::NAME) {
        match kernels::measure(options.rounds.get()) {
            Ok(found) => rows.extend(found),
            Err(error) => eprintln!("{}: {error}", kernels::NAME),
        }
    }
    if !rows.is_empty() {
        println!("\n{}", table("What must be", &rows));
    }
    ExitCode::SUCCESS
}
