//! The crate through its public face: nodes of one process, in threads of their own or in a simulation.

#![allow(clippy::unwrap_used, reason = "tests")]

mod collective_rules;
mod determinism_rules;
mod end_rules;
mod layer_rules;
mod nodes;
mod parcel_rules;
mod profiles;
