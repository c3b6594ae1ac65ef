//! Launching tasks.
//!
//! [`TaskLauncher`] is the dynamic way: a task, requirements, arguments. `#[task]` builds on it and gives a typed [`Launch`]. [`check`] refuses
//! launches whose requirements or points would get in each other's way.

mod check;
mod launcher;
mod requirements;

pub(crate) use check::{Sharing, check, check_point};
pub use launcher::{Launch, TaskLauncher};
