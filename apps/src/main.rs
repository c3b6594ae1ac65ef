//! The `maniple` program: see [`maniple_apps::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    maniple_apps::cli::main()
}
