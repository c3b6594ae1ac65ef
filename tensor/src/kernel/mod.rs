//! Runs kernels: an interpreter, and C compiled at run time.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`View`], [`Argument`] | what a kernel is called with |
//! | [`interpret`] | the reference |
//! | [`Team`] | who runs the chunks of a `Threads` loop |
//! | [`KernelError`], [`ViewError`] | what may go wrong |

mod error;
mod interpret;
mod memory;
mod team;
#[cfg(test)]
mod tests;
mod view;

pub use error::{KernelError, ViewError};
pub use interpret::interpret;
pub use team::{Scoped, Serial, Team};
pub use view::{Argument, Dimension, View, row_major};
