//! The placement of a tensor, as partitions of its region.

use std::sync::Arc;

use maniple::Target;
use maniple::space::AnyRect;

use crate::placement::Placed;

/// The pieces of a tensor on the processors of a machine.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) placed: Arc<Placed>,
    /// A point for each processor.
    pub(super) domain: AnyRect,
    /// Each element once.
    pub(super) own: Target,
    /// With the copies, if there are any.
    pub(super) all: Option<Target>,
}
