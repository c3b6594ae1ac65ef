//! Notation, schedules, plans and kernels.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod algorithms;
mod bounds;
mod choices;
mod common;
mod compiled_kernels;
mod complex_numbers;
mod costs;
mod cuda_source;
mod generators;
mod illegal_schedules;
mod kernels;
mod least_and_greatest;
mod notation;
mod notation_errors;
mod oracle;
mod plans;
mod random;
mod random_loops;
mod schedules;
mod storage;
mod traffic;
