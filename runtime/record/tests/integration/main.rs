//! Tests of the checker, for records that it accepts and records that it refuses, and of pictures.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod pictures;
mod rules;
mod story;
