//! Forks: launches of single tasks without regions.
//!
//! Such a task depends on nothing but its arguments, so there is nothing to analyse: it is queued with the worker that launches it, for whoever
//! is idle to steal. `README.md` tells when a launch is a fork, what it is not spared, and the protocols.
//!
//! - [`launching`]: when a launch may be a fork, and how it becomes one;
//! - [`forked`]: the task itself, from its launch to the last look at its value;
//! - [`schedule`], [`ending`], [`in_flight`]: the three protocols: who may run it, who waits for it, and how its parent counts it;
//! - [`decisions`]: what mappers have said about them;
//! - [`counts`]: what each worker has forked and run.

mod counts;
mod decisions;
mod ending;
mod forked;
mod in_flight;
mod launching;
mod schedule;

pub(crate) use counts::ForkCounts;
pub(crate) use decisions::ForkDecisions;
pub(crate) use ending::Outcome;
pub use forked::ForkCall;
pub(crate) use forked::{Fork, results_of};
pub(crate) use in_flight::InFlight;
pub(crate) use launching::describe;
