//! Letting go of data that was to be used once.

use std::sync::Arc;

use maniple_mapper::{Keep, RequirementMapping};
use maniple_realm::{After, Class, Event, Spawn};

use super::RuntimeCore;
use crate::instances::bound::Bound;
use crate::instances::state::RegionState;

/// Whether a mapper wants something of this to be kept [while it is used](Keep::WhileUsed) alone.
pub(crate) fn is_used_once(mapping: &RequirementMapping) -> bool {
    match mapping {
        RequirementMapping::Virtual => false,
        RequirementMapping::Instance(choices) => choices.iter().any(|choice| choice.keep == Keep::WhileUsed),
    }
}

impl RuntimeCore {
    /// Has copies go that are kept while they are used alone, once an operation with these requirements has ended.
    pub(crate) fn release_after(self: &Arc<Self>, event: Event, bounds: &[Bound]) {
        let mut states: Vec<Arc<RegionState>> = Vec::new();
        for (_, state) in bounds.iter().flat_map(|bound| &bound.parts) {
            if !states.iter().any(|known| Arc::ptr_eq(known, state)) {
                states.push(Arc::clone(state));
            }
        }
        let core = Arc::clone(self);
        self.realm().when(After::follows(&[event]), move |_| {
            for state in states.into_iter().filter(|state| state.release_is_due()) {
                // This thread may have states locked, so elsewhere.
                let (of, spawn) = (Arc::clone(&core), Spawn { class: Class::Runtime, ..Spawn::ANYWHERE });
                core.spawn_own("letting go of data that was used once", spawn, move || {
                    state.release(&of.store, || !of.store.recordings.are_under_way());
                });
            }
        });
    }
}
