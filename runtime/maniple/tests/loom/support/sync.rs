//! Names that the files import as `crate::support::sync`: loom's in place of the real ones.

pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
