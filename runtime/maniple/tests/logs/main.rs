//! Tests of the runtime's log.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod destructors;
mod log;
mod mapper_logs;
mod session_logs;
mod trace_logs;
