//! Packets that other nodes send, executed here: what [`migration`](crate::migration) moves, as the program knows it.
//!
//! - [`execute`]: launches of a packet's points, and parts that are forwarded;
//! - [`instances`]: leaf tasks of other nodes, in instances made for them.

mod execute;
mod instances;
