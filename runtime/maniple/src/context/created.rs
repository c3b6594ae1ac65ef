//! A region that a task has made.

use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, KeptPartitions, LogicalRegion};
use rustc_hash::FxHashMap;

use super::ContextState;
use super::region_key::{RegionFields, RegionKey};
use crate::instances::state::RegionState;

/// A region that a task made.
pub(crate) struct Created {
    pub(super) state: Arc<RegionState>,
    /// The number of its name: others with the same number of a tree were destroyed.
    pub(super) name: u64,
    /// The number of changes of its field space when the region was last used: it tells whether ids of fields mean
    /// something else by now.
    pub(super) changes: u64,
    pub(super) generations: FxHashMap<FieldId, u32>,
    pub(super) renewal: Option<Renewal>,
}

/// The properties of a region whose name another may take over once it is destroyed.
pub(super) struct Renewal {
    pub(super) key: RegionKey,
    /// It was made within a trace.
    pub(super) in_trace: bool,
    /// The partitions of an index space that is the region's own.
    pub(super) partitions: Option<KeptPartitions>,
}

impl Created {
    pub(super) fn new(region: &LogicalRegion, state: Arc<RegionState>, context: &ContextState) -> Self {
        let fields = region.fields();
        let generations = fields.fields().iter().map(|field| (field, fields.generation(field, context))).collect();
        Self { state, name: region.tree().name_number(), changes: fields.changes(), generations, renewal: None }
    }

    /// Whether no name of the region is left. One that is being worked on is in use.
    pub(super) fn is_nameless(&self) -> bool {
        self.state.try_lock().is_some_and(|state| state.is_nameless())
    }

    /// Whether a region is this one, by the name that it has now.
    pub(super) fn is(&self, region: &LogicalRegion) -> bool {
        self.name == region.tree().name_number()
    }

    /// Whether a new region with this key would have the fields that this one has.
    pub(super) fn has_fields_of(&self, key: RegionKey, region: &LogicalRegion) -> bool {
        let fields = region.fields();
        match key.fields {
            RegionFields::Space(_) => true,
            RegionFields::Type(_) => {
                let first: FieldMask = self.generations.keys().copied().collect();
                fields.changes() == 0 && fields.fields() == first
            }
        }
    }
}
