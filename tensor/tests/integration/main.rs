//! Notation, schedules, plans and kernels.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod algorithms;
mod blocked;
mod bounds;
mod choices;
mod colors;
mod common;
mod complex_numbers;
mod costs;
mod fused_launches;
mod generators;
mod graphs;
mod hierarchies;
mod illegal_schedules;
mod kernels;
mod large_grids;
mod matched_algorithms;
mod mutated_texts;
mod notation;
mod notation_errors;
mod oracle;
mod plans;
mod programs;
mod random;
mod schedule_text;
mod schedules;
mod sizes;
mod sparse;
mod sparse_choices;
mod sparse_levels;
mod sparse_merges;
mod storage;
mod storage_parallel;
mod stored;
mod strided;
mod substitutions;
mod traffic;
