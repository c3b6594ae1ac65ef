//! The rules of the machine layer.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod async_operation_rules;
mod barrier_rules;
mod breakdown_rules;
mod crowd_rules;
mod event_rules;
mod graph_rules;
mod guest_rules;
mod idle_rules;
mod io_rules;
mod job_rules;
mod operation_rules;
mod profile_rules;
mod random_graphs;
mod reservation_rules;
mod sharing_rules;
mod shutdown_rules;
mod simulation;
