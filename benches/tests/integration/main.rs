//! The benchmarks run, at small sizes.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod files;
mod rivals;
mod sparse;
mod tensors;
