//! Traces: stretches of launches that repeat are analysed once and replayed (Lee et al., *Dynamic Tracing*, SC'18).
//!
//! The protocol, with its states and why each step is sound, is told in the folder's `README.md`. In reading order:
//!
//! - [`stream`]: where launches go; [`trace`]: a trace and the templates that were recorded of it;
//!   [`Context::trace`](crate::Context::trace);
//! - [`fill_dispatch`]: the same for fills, of which [`traced_fill`] is one that is analysed;
//! - [`strict`]: whether the program launches the same in each run, where it asked for that;
//! - [`session`]: a run of recordings and replays, as one operation of the context's stream;
//! - [`template`]: a [recording](crate::launch::recording) compiled to a static graph;
//! - [`replay`]: the graph at work, [`profiled`], [`recorded`] and [`values`]: what profiles and records are told of
//!   it; [`catch_up`]: what is known of the data afterwards;
//! - [`whole`]: launches of the program that are several here are replayed together;
//! - [`automatic`]: launches outside of any trace are watched for repeats, which [`maniple_analysis::repeats`] finds.

mod automatic;
mod catch_up;
mod fill_dispatch;
mod invalidated;
mod node_record;
mod nodes;
mod profiled;
mod recorded;
mod replay;
mod replaying;
mod session;
mod session_record;
mod staged;
mod stream;
mod strict;
pub(crate) mod submission;
mod template;
#[cfg(test)]
mod tests;
#[allow(clippy::module_inception)]
mod trace;
mod traced_fill;
mod values;
mod whole;
mod why;

pub(crate) use whole::Whole;
