//! Launches whose tasks run on other nodes, and tasks of other nodes that run here: what [`migration`](crate::migration) moves, as the program knows it.
//!
//! - [`division`]: which points of an index launch go where, as the mapper says;
//! - [`slice`](mod@slice): points without regions that are sent as a slice of their launch;
//! - [`leaf`]: leaf tasks that could begin, and migrate with their data instead;
//! - [`execute`]: packets of other nodes: launches of their points, and parts that are forwarded;
//! - [`instances`]: leaf tasks of other nodes, in instances made for them; [`values`]: values out of instances, and into them.

mod division;
mod execute;
mod instances;
mod leaf;
mod slice;
mod values;

pub(crate) use division::{Arrived, AwaySlices, Division};
pub(crate) use leaf::MobileTask;
