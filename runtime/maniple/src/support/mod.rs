//! The needs of all rooms: errors, counters, records and labels, values of fills, and helpers of the language.

pub(crate) mod drop_caught;
pub(crate) mod error;
pub(crate) mod fill;
pub(crate) mod lazy_box;
pub(crate) mod profiling;
pub(crate) mod recorder;
pub(crate) mod statistics;
pub(crate) mod sync;
