//! Computes with sparse tensors over and over, whenever it is its turn, for the bench `sparse`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use maniple_benches::sparse::ours::serve;
use maniple_benches::sparse::works::Work;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compute something on matrices of a kind
    Work {
        /// What
        kernel: String,

        /// On which data
        kind: String,

        /// Threads
        #[arg(long)]
        threads: usize,
    },
}

fn main() -> ExitCode {
    let Command::Work { kernel, kind, threads } = Options::parse().command;
    match serve(&Work { kernel, kind }, threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
