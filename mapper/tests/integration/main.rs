//! Tests of the answers of mappers.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod mail;
mod mapping_files;
mod random_answers;
mod shipped_mappers;
