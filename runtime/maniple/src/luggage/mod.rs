//! Luggage: leaf tasks that are run by another node, with the data that they take along.
//!
//! A leaf task whose data is there is a function of its arguments and of the values at the points of its regions. Another node can run it if it is told these, and
//! tells what has become of them. `README.md` in `replicate/` has the protocol; from launch to end:
//!
//! - [`kind`]: what `#[task]` says of all tasks of a kind: how arguments go, and the fields of each requirement with their types and privileges;
//! - [`description`]: what is said of one task besides its values;
//! - [`picked`]: the node that the mapper picks;
//! - [`departure`]: whether a task that could begin goes away instead;
//! - [`batch`]: the tasks of a slice of a launch, which go together;
//! - [`values`]: values out of instances, and into them;
//! - [`host`]: what the other node does; [`onward`]: or has other nodes do, of a slice that is to be sliced again;
//! - [`homecoming`]: what is done here when its answer comes.

mod batch;
mod departure;
mod description;
mod homecoming;
mod host;
mod kind;
mod onward;
mod picked;
mod values;

pub(crate) use batch::{BatchDescription, Company, batch};
pub(crate) use departure::MobileTask;
pub(crate) use description::{Description, Points};
pub(crate) use homecoming::{Answer, Departed};
pub(crate) use host::host;
pub use kind::{Carried, Luggage};
pub(crate) use onward::{Leg, divide};
