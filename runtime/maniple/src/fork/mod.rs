//! Forks: launches of single tasks without regions.
//!
//! Such a task depends on nothing but its arguments, so there is nothing to analyse: it is queued with the worker that
//! launches it, for any idle worker to steal. `README.md` tells when a launch is a fork, what it is not spared, and the
//! protocols.
//!
//! - [`launching`]: when a launch may be a fork, and how it becomes one; [`asking`]: whether the mapper lets it;
//! - [`cell`]: the one object that a forked task is, and references to it; [`body`]: the part of it that knows the
//!   types; [`spare`]: its memory;
//! - [`launched`]: the same body in a launch that is no fork;
//! - [`source`]: what gives a result, a fork or a launch; [`sources`]: what a task waits for before it begins;
//! - [`running`]: a forked task from its launch to its end, as a job of the machine layer;
//! - [`schedule`], [`word`] with [`watchers`], [`waking`], [`parent`]: the protocols: the right to run it; the
//!   references to it, and the waits for it; the wakers that could wake it; how its parent counts it;
//! - [`migration`]: tasks that a thief runs on another node.

mod asking;
mod body;
mod cell;
mod launched;
mod launching;
mod migration;
mod parent;
mod running;
mod schedule;
mod source;
mod sources;
mod spare;
mod waking;
mod watchers;
mod word;

pub use body::{ForkCall, Free, FreeResult};
pub(crate) use cell::Fork;
pub(crate) use launched::run as run_launched;
pub(crate) use launching::describe;
pub(crate) use migration::steal;
pub(crate) use source::ForkSource;
pub(crate) use sources::{ResultSource, Sources};
pub(crate) use spare::forget;
