//! The queues of waiting work, and the workers that are awake: data that threads change as they make work ready, and
//! that workers look at.
//!
//! Read on in `class` and `destination` (how urgent work is, and whose), `deque` and `queue` (where it waits), `sleep`
//! (when workers sleep), `seat` (which thread does a worker's work) and `presence` (which workers are at what). An
//! operation is the index of its slot here, and a job of any type.

mod class;
pub(crate) mod deque;
pub(crate) mod destination;
pub(crate) mod presence;
pub(crate) mod queue;
pub(crate) mod seat;
mod sleep;
#[cfg(test)]
mod tests;

pub(crate) use class::Rank;
pub use class::{Class, GroupId};
