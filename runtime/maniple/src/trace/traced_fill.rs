//! A fill that is analysed in a session, and maybe recorded.

use std::slice;
use std::sync::Arc;

use crate::context::FillOperation;
use crate::launch::FillSite;
use crate::launch::recording::Recording;
use crate::mapping::point::LockedStates;
use crate::operation::lifecycle::{Mappable, Operation};

/// A fill in flight.
pub(super) struct TracedFill {
    fill: FillOperation,
    /// The recording that notes the fill, and the number of the fill in it.
    recording: Option<(Arc<Recording>, usize)>,
}

impl TracedFill {
    pub(super) fn new(site: &FillSite, recording: Option<(Arc<Recording>, usize)>) -> Self {
        let fill = FillOperation { name: site.name, bound: site.bound.clone(), value: site.value.clone() };
        Self { fill, recording }
    }
}

impl Mappable for TracedFill {
    fn name(&self) -> &str {
        self.fill.name
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        let bounds = slice::from_ref(&self.fill.bound);
        let mut states = LockedStates::lock(bounds);
        if let Some((recording, _)) = &self.recording {
            // What is filled is part of what a run finds: so are its users, after which others will come.
            recording.touch(&mut states, bounds, &operation.scope.store().realm);
        }
        let numbers = self.fill.carry_out(operation, &mut states);
        drop(states);
        if let Some((recording, number)) = &self.recording {
            recording.filled(*number, numbers);
        }
        operation.mark_mapped();
        operation.retire(Ok(()));
    }
}
