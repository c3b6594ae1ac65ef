//! Slices: parts of an index launch that other nodes run.
//!
//! The points of an index launch of a task without regions depend on nothing but its arguments. So a part of them can be told to another node as the task's path, a rectangle of points
//! and the arguments, once for all points. There it is an index launch like any, of these points of the same domain; its results come back together. `README.md` in `replicate/`
//! has the protocol; from launch to end:
//!
//! - [`division`]: what the mapper says goes where, and whether that makes sense;
//! - [`description`]: what another node is told;
//! - [`departure`]: a slice leaves when its arguments are there;
//! - [`host`]: what the other node does;
//! - [`homecoming`]: what is done here when its answer comes.

mod departure;
mod description;
mod division;
mod homecoming;
mod host;

pub(crate) use description::{Description, Outcome};
pub(crate) use division::{Arrived, Division, ask};
pub(crate) use homecoming::DepartedSlice;
pub(crate) use host::host;
