//! Task launches as operations: sliced, mapped point by point, issued, and gathered when they end; what migrates to
//! other nodes is sent.
//!
//! In reading order:
//!
//! - [`state`]: what the points of a launch share;
//! - [`point`]: one point on its way through the machine; [`mobile`]: leaf tasks that could begin, and may migrate with
//!   their data instead;
//! - [`division`]: which points of an index launch go where, as the mapper says; [`slice`](mod@slice): points without
//!   regions that are sent as a slice of their launch;
//! - [`mapping`]: the points that stay, mapped and issued; [`variant`]: variants that are chosen when there are
//!   instances; [`operation`]: the launch as an operation of its context's stream.

mod division;
mod mapping;
mod mobile;
mod operation;
mod point;
mod slice;
mod state;
mod variant;

pub(crate) use division::ask;
pub(crate) use state::TaskState;
