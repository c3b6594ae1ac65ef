//! Computes with sparse tensors over and over, whenever it is its turn, for the bench `sparse`; loads a file, for the
//! bench `files`; or starts itself as several nodes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use maniple::Runtime;
use maniple_apps::launch;
use maniple_benches::error::Result;
use maniple_benches::files::levels;
use maniple_benches::sparse::works::Work;
use maniple_benches::sparse::{nodes, ours};
use maniple_tensor::distributed::TensorMapper;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compute something on matrices of a kind
    Work {
        /// Work to take turns at
        kernel: String,

        /// On which data
        kind: String,

        /// Threads
        #[arg(long)]
        threads: usize,

        /// As many rows for each thread, whatever they cost
        #[arg(long)]
        by_rows: bool,
    },

    /// The same as tasks, in blocks of rows, one for each node
    Nodes {
        /// Work to take turns at
        kernel: String,

        /// On which data
        kind: String,

        /// Worker threads of this node
        #[arg(long)]
        workers: usize,
    },

    /// Load a `.tcs` file, and print the most bytes of data that there were on this node
    Load {
        /// The file
        file: PathBuf,

        /// Worker threads of this node
        #[arg(long)]
        workers: usize,
    },

    /// Start a program as several nodes
    Launch(launch::LaunchOptions),
}

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Command::Work { kernel, kind, threads, by_rows } => {
            ours::serve(&Work { kernel, kind }, threads, by_rows).map(|()| ExitCode::SUCCESS)
        }
        Command::Nodes { kernel, kind, workers } => on_nodes(&Work { kernel, kind }, workers),
        Command::Load { file, workers } => levels::serve(&file, workers).map(|()| ExitCode::SUCCESS),
        Command::Launch(options) => launch::run(&options).map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn on_nodes(work: &Work, workers: usize) -> Result<ExitCode> {
    nodes::serve(&Runtime::builder().workers(workers).mapper(TensorMapper::new()).build()?, work)?;
    Ok(ExitCode::SUCCESS)
}
