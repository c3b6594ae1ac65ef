//! What the checker accepts and refuses, and what pictures show.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod pictures;
mod rules;
mod story;
