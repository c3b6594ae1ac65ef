//! The `maniple` program: see [`maniple_apps::cli`].

use std::process::ExitCode;

/// Tasks are made by one thread and dropped by another, which the allocators of most systems answer with locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    maniple_apps::cli::main()
}
