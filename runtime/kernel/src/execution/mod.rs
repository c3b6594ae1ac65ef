//! Runs kernels: an interpreter, and C compiled at run time.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`View`], [`Argument`] | what a kernel is called with |
//! | [`interpret`] | the reference |
//! | [`Team`] | the threads that run the chunks of a `Threads` loop |
//! | [`Kernels`], [`Executable`] | finds what runs a kernel: in memory, on disk, or by the [`Compiler`] |
//! | [`KernelError`], [`ViewError`] | what may go wrong |

mod cache;
mod compiled;
mod compiler;
mod error;
mod interpret;
mod kernels;
mod memory;
mod team;
#[cfg(test)]
mod tests;
mod view;

pub use compiler::Compiler;
pub use error::{KernelError, ViewError};
pub use interpret::interpret;
pub use kernels::{Executable, Kernels};
pub use team::run_once_each;
pub use team::{Scoped, Serial, Team};
pub use view::{Argument, Dimension, View, row_major};
