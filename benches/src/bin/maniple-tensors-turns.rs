//! Computes a statement over and over, whenever it is its turn, for the bench `tensors`; or starts itself as several
//! nodes.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use maniple::Runtime;
use maniple_apps::launch;
use maniple_benches::error::Result;
use maniple_benches::tensors::ours::serve;
use maniple_benches::tensors::works::Work;
use maniple_tensor::distributed::TensorMapper;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compute something: METHOD,GRID,ELEMENT,EXTENTS
    Work {
        /// Work to take turns at
        work: Work,

        /// Worker threads
        #[arg(long)]
        workers: usize,
    },

    /// Start a program as several nodes
    Launch(launch::LaunchOptions),
}

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Command::Work { work, workers } => compute(&work, workers).map(|()| ExitCode::SUCCESS),
        Command::Launch(options) => launch::run(&options).map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn compute(work: &Work, workers: usize) -> Result<()> {
    serve(&Runtime::builder().workers(workers).mapper(TensorMapper::new()).build()?, work)
}
