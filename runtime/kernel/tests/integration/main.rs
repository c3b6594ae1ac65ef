//! Kernels: compiled, interpreted, and printed as CUDA.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod common;
mod compiled_kernels;
mod cuda_source;
mod least_and_greatest;
mod random_loops;
