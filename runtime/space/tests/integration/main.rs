//! Sets of points and partitions, against a model.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

#[macro_use]
mod model;

mod dynamic_partitions;
mod erased;
mod overlaps;
mod partitions;
mod rectangles;
mod set_algebra;
