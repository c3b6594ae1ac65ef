//! # The `maniple` program
//!
//! Three simulations, a recursion and a benchmark written as a user of the runtime would write them, each checked
//! against something simpler than itself, and a command line around them. In reading order:
//!
//! - [`circuit`]: an electrical circuit on a random graph. Partitions are computed from the data; neighbours' nodes are
//!   reduced to;
//! - [`cg`]: conjugate gradients on a sparse matrix. Every scalar is a future; nothing waits within an iteration;
//! - [`stencil`]: a star stencil on a grid. Tiles read a halo of their neighbours;
//! - [`recursion`]: trees of tasks without regions, which idle workers and nodes take from others;
//! - [`taskbench`]: graphs of tasks that only depend on each other, to measure what a task costs; [`metg`]: how short
//!   tasks may be;
//! - [`tensor`]: tensor algebra: statements in index notation, computed by published algorithms on grids of processors;
//! - [`decomposition`]: tensors of low rank, by compiled statements;
//! - [`options`]: what all of them accept: workers, mapper, memory; [`recording`]: checking and drawing what a run
//!   did; [`info`]: the machine as the runtime sees it;
//! - `output`: whether files can be written; [`prof`]: looking at profiles, which all of them record if asked to;
//! - [`launch`]: starting any program as several nodes;
//! - [`verify`]: what a wrong result is; [`error`]: what can go wrong, and
//!   the exit codes;
//! - [`cli`]: the command line; [`report`] and [`progress`]: what it prints.
//!
//! Each simulation can be run from Rust:
//!
//! ```
//! use maniple_apps::circuit;
//!
//! let options = circuit::CircuitOptions { pieces: 4, steps: 10, ..Default::default() };
//! let report = circuit::run(&options)?;
//! assert!(report.largest_relative_error.is_some_and(|error| error < 1e-9));
//! # Ok::<(), maniple_apps::error::Error>(())
//! ```

#![deny(unsafe_code)]

mod alike;
pub mod cg;
pub mod circuit;
pub mod cli;
pub mod decomposition;
pub mod error;
pub mod graphs;
mod headings;
pub mod info;
#[cfg(unix)]
pub mod launch;
pub mod metg;
pub mod options;
mod output;
pub mod prof;
pub mod progress;
pub mod rates;
pub mod recording;
pub mod recursion;
pub mod report;
pub mod state;
pub mod stated;
pub mod stencil;
pub mod taskbench;
pub mod tensor;

pub use maniple_tasks::verify;
mod warnings;
