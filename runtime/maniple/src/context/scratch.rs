//! The scratch regions of a task, and those of them that it may use again.

use maniple_realm::locks::Mutex;
use maniple_region::{KeptPartitions, LogicalRegion, TreeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ContextState;
use super::region_key::RegionKey;

/// The scratch regions of a task.
#[derive(Default)]
pub(super) struct ScratchRegions(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: FxHashSet<TreeId>,
    /// For those whose index space is their own, the partitions of that.
    partitions: FxHashMap<TreeId, KeptPartitions>,
    /// Those that nothing uses, with how often fields of theirs had been freed, or their ids given to new ones.
    free: FxHashMap<RegionKey, Vec<(LogicalRegion, u64)>>,
}

impl ScratchRegions {
    /// Whether a region is one. Forgets the others: the task has ended.
    pub(super) fn take(&self) -> FxHashSet<TreeId> {
        let known = std::mem::take(&mut *self.0.lock());
        known.all
    }
}

impl ContextState {
    /// A scratch region that nothing uses any more. Of several the first that was made: a loop that makes several gets each in the same place in every iteration,
    /// in whatever order it drops them.
    pub(crate) fn take_scratch(&self, key: RegionKey) -> Option<LogicalRegion> {
        let known = &mut *self.created.scratch.0.lock();
        let free = known.free.get_mut(&key)?;
        // What has other fields by now is not used again.
        free.retain(|(region, changes)| region.fields().changes() == *changes && region.check_alive(self).is_ok());
        let first = (0..free.len()).min_by_key(|&number| free[number].0.tree().id())?;
        Some(free.swap_remove(first).0)
    }

    /// The task has made a region as a scratch region.
    pub(crate) fn mark_scratch(&self, region: &LogicalRegion, key: RegionKey) {
        let partitions = key.has_own_rows().then(|| region.space().keep_partitions(true)).flatten();
        let (mut known, tree) = (self.created.scratch.0.lock(), region.tree().id());
        known.all.insert(tree);
        known.partitions.extend(partitions.map(|partitions| (tree, partitions)));
    }

    /// Nothing uses a scratch region any more, and its data was given up.
    pub(crate) fn keep_scratch(&self, key: RegionKey, region: &LogicalRegion) {
        let known = &mut *self.created.scratch.0.lock();
        if known.all.contains(&region.tree().id()) {
            known.partitions.get(&region.tree().id()).iter().for_each(|partitions| partitions.renew());
            known.free.entry(key).or_default().push((region.clone(), region.fields().changes()));
        }
    }
}
