//! The atomics that the protocols of forks are written against.
//!
//! `tests/loom` compiles the same files with a `sync` module made of loom's, so that the model checker sees the code
//! that ships.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
