//! Which node uses what of a region tree, and what nodes must send each other before a launch: pure functions of all
//! launches so far, which every node evaluates alike.
//!
//! In reading order:
//!
//! - `layout`: which points each node uses;
//! - `steps`: what a node sends, receives and prepares before its points of a launch;
//! - `history`: what happened last to each field; `states`: histories that a tree had before, by number;
//! - `coherence`: from a history and a use to the steps before it and the next history; `routes`: which node sends what
//!   to which;
//! - `blocks`: the same where each node knows only the uses of its own block of the points; `points`: points as they
//!   are sent.
//!
//! Histories are made of layouts, not of pieces: a launch costs the same for any number of points, and what follows
//! from a history and a layout is remembered.

mod blocks;
mod coherence;
mod history;
mod layout;
mod points;
mod routes;
mod states;
mod steps;

pub use blocks::{Blocks, Operators, StepPart, StepPlace, assemble, split};
pub use coherence::Coherence;
pub use layout::{Layout, Rank, hash_of_areas};
pub use points::Points;
pub use steps::{DistributionStep, Exchange, NodeStep, Parcel, order_of_uses};

#[cfg(test)]
mod tests;
