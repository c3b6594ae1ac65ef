//! What mappers answer.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod random_answers;
mod shipped_mappers;
