//! The scratch regions of a task, and those of them that it may use again.

use std::any::TypeId;

use maniple_realm::locks::Mutex;
use maniple_region::{LogicalRegion, NodeId, TreeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ContextState;

/// What scratch regions that can stand for each other have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScratchKey {
    pub(crate) rows: ScratchRows,
    pub(crate) fields: ScratchFields,
}

/// The rows of a scratch region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScratchRows {
    /// Those of an index space.
    Space(NodeId),
    /// These points, in an index space of its own.
    Shape(u64),
}

/// The fields of a scratch region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScratchFields {
    /// Those of a struct, in a field space of its own.
    Type(TypeId),
    /// Those of a field space.
    Space(u64),
}

/// The scratch regions of a task.
#[derive(Default)]
pub(super) struct ScratchRegions(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: FxHashSet<TreeId>,
    /// Those that nothing uses, with how often fields of theirs had been freed, or their ids given to new ones.
    free: FxHashMap<ScratchKey, Vec<(LogicalRegion, u64)>>,
}

impl ScratchRegions {
    /// Whether a region is one. Forgets the others: the task has ended.
    pub(super) fn take(&self) -> FxHashSet<TreeId> {
        std::mem::take(&mut *self.0.lock()).all
    }
}

impl ContextState {
    /// A scratch region that nothing uses any more. Of several the first that was made: a loop that makes several gets each in the same place in every iteration,
    /// in whatever order it drops them.
    pub(crate) fn take_scratch(&self, key: ScratchKey) -> Option<LogicalRegion> {
        let known = &mut *self.created.scratch.0.lock();
        let free = known.free.get_mut(&key)?;
        // What has other fields by now is not used again.
        free.retain(|(region, changes)| region.fields().changes() == *changes && region.check_alive(self).is_ok());
        let first = (0..free.len()).min_by_key(|&number| free[number].0.tree().id())?;
        Some(free.swap_remove(first).0)
    }

    /// The task has made a region as a scratch region.
    pub(crate) fn mark_scratch(&self, region: &LogicalRegion) {
        self.created.scratch.0.lock().all.insert(region.tree().id());
    }

    /// Nothing uses a scratch region any more, and its data was given up.
    pub(crate) fn keep_scratch(&self, key: ScratchKey, region: &LogicalRegion) {
        let known = &mut *self.created.scratch.0.lock();
        if known.all.contains(&region.tree().id()) {
            known.free.entry(key).or_default().push((region.clone(), region.fields().changes()));
        }
    }
}
