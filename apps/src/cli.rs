//! The command line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use maniple::Topology;

use crate::decomposition::{cp, tucker};
use crate::error::{Error, Result};
use crate::graphs::{bfs, pagerank, triangles};
#[cfg(unix)]
use crate::launch;
use crate::options::{self, RuntimeOptions, memory_warning};
use crate::stated::Stated;
use crate::{cg, circuit, info, metg, prof, recursion, stencil, taskbench, tensor, warnings};

const ABOUT: &str = "\
Tasks over logical regions: programs that look sequential and run in parallel.

A Maniple program launches tasks that say which fields of which data they read, write or reduce. From that the runtime finds what can run \
side by side, moves data and synchronises; the result is that of running the tasks one after another. Which processor runs what, and where \
data lives, is up to a mapper that can be replaced and can't change a result.

Here are some such programs, each of which checks what it computed.";

const EXAMPLES: &str = "\
Examples:
  maniple run circuit                        simulate an electrical circuit
  maniple run cg --matrix bcsstk13.mtx       solve a linear system from a file
  maniple run stencil --size 4000            lay a stencil on a grid
  maniple run recursion queens --size 13     run a tree of tasks
  maniple run taskbench -type fft -width 8   run a graph of tasks
  maniple run metg                           what a task costs
  maniple run circuit --profile c.mprof      record what every worker does
  maniple tensor 'y(i) = A(i,j) * x(j)'      compute with tensors
  maniple tensor info web.mtx                look at a sparse tensor in a file
  maniple prof c.mprof                       look at it in the browser
  maniple info                               what the runtime found to run on
  maniple launch -n 4 -- ./my-program        start a program as four nodes

Exit codes: 0 if all is well, 1 if the program or its check failed, 2 if the command line makes no sense; `launch` has that of the first node \
that failed; a shell reports 128 and the \
signal's number for a program that a signal ended, such as 130 for Ctrl-C and 143 for `kill`.

RUST_LOG=maniple=debug has the runtime tell on the standard error, among other things, why replays of traces are given up.";

/// Tasks over logical regions: programs that look sequential and run in parallel
#[derive(Parser, Debug)]
#[command(name = "maniple", version, propagate_version = true, long_about = ABOUT, after_long_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a simulation or a benchmark
    #[command(subcommand)]
    Run(Simulation),

    /// Compute with tensors: a statement in index notation
    #[command(long_about = tensor::ABOUT, after_long_help = tensor::EXAMPLES)]
    Tensor(tensor::CommandLine),

    /// Look at a profile: timeline, statistics, critical path
    #[command(long_about = prof::ABOUT, after_long_help = prof::EXAMPLES)]
    Prof(prof::ProfOptions),

    /// Start a program as several nodes, on this machine or on several
    #[cfg(unix)]
    #[command(long_about = launch::ABOUT, after_long_help = launch::EXAMPLES)]
    Launch(launch::LaunchOptions),

    /// Show the machine as the runtime sees it
    #[command(long_about = info::ABOUT, after_long_help = info::EXAMPLES)]
    Info(info::InfoOptions),
}

#[derive(Subcommand, Debug)]
enum Simulation {
    /// Simulate an electrical circuit on a random graph
    #[command(long_about = circuit::ABOUT, after_long_help = circuit::EXAMPLES)]
    Circuit(circuit::CircuitOptions),

    /// Solve a sparse linear system by conjugate gradients
    #[command(long_about = cg::ABOUT, after_long_help = cg::EXAMPLES)]
    Cg(cg::CgOptions),

    /// Lay a star stencil on a grid
    #[command(long_about = stencil::ABOUT, after_long_help = stencil::EXAMPLES)]
    Stencil(stencil::StencilOptions),

    /// Run a tree of tasks: Fibonacci numbers, queens on a board, adaptive quadrature
    #[command(long_about = recursion::ABOUT, after_long_help = recursion::EXAMPLES)]
    Recursion(recursion::RecursionOptions),

    /// Find the nearest tensor of low rank: a sum of outer products
    #[command(long_about = cp::ABOUT, after_long_help = cp::EXAMPLES)]
    Cp(cp::CpOptions),

    /// Find the nearest tensor of low multilinear rank: a core and three bases
    #[command(long_about = tucker::ABOUT, after_long_help = tucker::EXAMPLES)]
    Tucker(tucker::TuckerOptions),

    /// Rank the vertices of a graph
    #[command(long_about = pagerank::ABOUT, after_long_help = pagerank::EXAMPLES)]
    Pagerank(pagerank::PagerankOptions),

    /// Find how far the vertices of a graph are from one
    #[command(long_about = bfs::ABOUT, after_long_help = bfs::EXAMPLES)]
    Bfs(bfs::BfsOptions),

    /// Count the triangles of a graph
    #[command(long_about = triangles::ABOUT, after_long_help = triangles::EXAMPLES)]
    Triangles(triangles::TrianglesOptions),

    /// Run Task Bench: graphs of tasks that do nothing but depend on each other
    #[command(long_about = taskbench::ABOUT, after_help = taskbench::flags::help(), after_long_help = taskbench::long_help())]
    Taskbench(taskbench::TaskbenchOptions),

    /// Find the smallest tasks that are worth their cost, by Task Bench
    #[command(long_about = metg::ABOUT, after_long_help = metg::EXAMPLES)]
    // What is about a single run is refused.
    #[command(mut_args(|option| match option.get_id().as_str() {
        "check" | "graph" | "graph_of" | "graph_all" | "profile" => option.hide(true),
        _ => option,
    }))]
    Metg(metg::MetgOptions),
}

impl Command {
    /// The options of the runtime that the command runs on, if it runs on one.
    fn runtime(&mut self) -> Option<&mut RuntimeOptions> {
        match self {
            Self::Run(Simulation::Circuit(options)) => Some(&mut options.runtime),
            Self::Run(Simulation::Cg(options)) => Some(&mut options.runtime),
            Self::Run(Simulation::Stencil(options)) => Some(&mut options.runtime),
            Self::Run(Simulation::Recursion(options)) => Some(&mut options.runtime),
            Self::Run(Simulation::Cp(options)) => Some(&mut options.common.runtime),
            Self::Run(Simulation::Tucker(options)) => Some(&mut options.common.runtime),
            Self::Run(Simulation::Pagerank(options)) => Some(&mut options.graph.runtime),
            Self::Run(Simulation::Bfs(options)) => Some(&mut options.graph.runtime),
            Self::Run(Simulation::Triangles(options)) => Some(&mut options.graph.runtime),
            Self::Run(Simulation::Taskbench(options)) => Some(&mut options.runtime),
            Self::Run(Simulation::Metg(options)) => Some(&mut options.runtime),
            Self::Tensor(tensor::CommandLine::Statement(options)) => Some(&mut options.runtime),
            Self::Tensor(tensor::CommandLine::File(_)) | Self::Info(_) | Self::Prof(_) => None,
            #[cfg(unix)]
            Self::Launch(_) => None,
        }
    }

    /// The memory asked for.
    fn memory(&mut self) -> Option<u64> {
        match self {
            Self::Info(options) => options.memory,
            other => other.runtime().and_then(|runtime| runtime.memory),
        }
    }

    /// The advice to a user whose run found too little memory, if the command has some.
    fn on_memory(&self) -> Option<&'static str> {
        match self {
            Self::Run(Simulation::Circuit(_)) => Some(circuit::ON_MEMORY),
            Self::Run(Simulation::Cg(options)) => Some(cg::on_memory(options)),
            Self::Run(Simulation::Stencil(_)) => Some(stencil::ON_MEMORY),
            Self::Run(Simulation::Taskbench(_)) => Some(taskbench::ON_MEMORY),
            Self::Tensor(line) => Some(tensor::on_memory(line)),
            Self::Run(Simulation::Cp(_) | Simulation::Tucker(_)) => Some(tensor::ON_MEMORY),
            Self::Run(Simulation::Pagerank(_) | Simulation::Bfs(_) | Simulation::Triangles(_)) => None,
            Self::Run(Simulation::Metg(_) | Simulation::Recursion(_)) | Self::Info(_) | Self::Prof(_) => None,
            #[cfg(unix)]
            Self::Launch(_) => None,
        }
    }
}

/// The command line of `maniple`, with all that it takes.
#[must_use]
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Reads the command line, and notes what of it the nodes of a job are to compare.
fn parse() -> Command {
    let mut line = CommandLine::command();
    let matches = line.clone().try_get_matches_from(taskbench::flags::apart(std::env::args_os()));
    let matches = matches.unwrap_or_else(|error| told(error).exit());
    let parsed = CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut line));
    let mut command = parsed.unwrap_or_else(|error| error.exit()).command;
    if let Some(runtime) = command.runtime() {
        runtime.stated = Stated::of(&line, &matches);
    }
    command
}

/// An error of the command line, in words of what was written there.
fn told(error: clap::Error) -> clap::Error {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        // `maniple tensor` has a statement, or a subcommand.
        (ErrorKind::ArgumentConflict, Some(ContextValue::String(word))) => clap::Error::raw(
            ErrorKind::ArgumentConflict,
            format!(
                "unexpected '{word}' after the statement, which is one word, in quotes; \
                 so is what has braces, as in --format 'A={{D,C}}', of which a shell makes several words\n\nFor more information, try '--help'.\n"
            ),
        ),
        _ => error,
    }
}

/// Runs the program that the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    let mut command = parse();
    let warning = command.memory().and_then(|wanted| memory_warning(wanted, Topology::detect().memory()));
    if let Some(warning) = warning {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    match run(&command) {
        Ok(code) => code,
        Err(error) => {
            if let Some(report) = error.report() {
                // The error is told in any case.
                let _ = print(&command, report);
            }
            // The reader of standard error may be gone.
            let _ = writeln!(io::stderr(), "error: {error}");
            if let Some(hint) = command.on_memory().filter(|_| error.is_want_of_memory()) {
                let _ = writeln!(io::stderr(), "hint: {hint}");
            }
            if let Some(backtrace) = error.backtrace() {
                let _ = writeln!(io::stderr(), "{backtrace}");
            }
            error.exit_code()
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    warnings::print();
    let report = match command {
        Command::Run(Simulation::Circuit(options)) => circuit::run(options)?.to_string(),
        Command::Run(Simulation::Cg(options)) => cg::run(options)?.to_string(),
        Command::Run(Simulation::Stencil(options)) => stencil::run(options)?.to_string(),
        Command::Run(Simulation::Recursion(options)) => recursion::run(options)?.to_string(),
        Command::Run(Simulation::Cp(options)) => cp::run(options)?.to_string(),
        Command::Run(Simulation::Tucker(options)) => tucker::run(options)?.to_string(),
        Command::Run(Simulation::Pagerank(options)) => pagerank::run(options)?.to_string(),
        Command::Run(Simulation::Bfs(options)) => bfs::run(options)?.to_string(),
        Command::Run(Simulation::Triangles(options)) => triangles::run(options)?.to_string(),
        Command::Run(Simulation::Taskbench(options)) => taskbench::run(options)?.to_string(),
        Command::Run(Simulation::Metg(options)) => metg::run(options)?.to_string(),
        Command::Tensor(line) => tensor::answer(line)?.to_string(),
        Command::Info(options) => info::run(options)?.to_string(),
        Command::Prof(options) => return prof::run(options).map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Command::Launch(options) => return launch::run(options),
    };
    print(command, &report)
}

fn print(command: &Command, report: &str) -> Result<ExitCode> {
    // All nodes of a job have come to the same.
    if matches!(command, Command::Run(_) | Command::Tensor(_) | Command::Info(_)) && options::place().rank.0 > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    // Where a file goes there, the report does not.
    let written = match command {
        Command::Tensor(line) if line.writes_to_standard_output() => io::stderr().lock().write_all(report.as_bytes()),
        _ => io::stdout().lock().write_all(report.as_bytes()),
    };
    match written {
        // The reader has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => written.map(|()| ExitCode::SUCCESS).map_err(Error::Output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
