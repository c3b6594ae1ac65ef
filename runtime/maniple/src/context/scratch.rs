//! The scratch regions of a task, and those of them that it may use again.

use std::collections::VecDeque;

use maniple_realm::locks::Mutex;
use maniple_region::{KeptPartitions, LogicalRegion, TreeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ContextState;
use super::region_key::RegionKey;

/// The scratch regions of a task.
#[derive(Default)]
pub(super) struct ScratchRegions(Mutex<KnownScratchRegions>);

#[derive(Default)]
struct KnownScratchRegions {
    all: FxHashSet<TreeId>,
    /// The partitions of index spaces, for regions whose index space is their own.
    partitions: FxHashMap<TreeId, KeptPartitions>,
    /// The regions that nothing uses, the latest last.
    free: VecDeque<Free>,
}

/// A scratch region that nothing uses.
struct Free {
    key: RegionKey,
    region: LogicalRegion,
    /// How often fields of it had been freed, or their ids given to new ones.
    changes: u64,
}

/// So many scratch regions that nothing uses are kept at most.
const MOST: usize = 32;

impl ScratchRegions {
    /// Whether a region is one. Forgets the others: the task has ended.
    pub(super) fn take(&self) -> FxHashSet<TreeId> {
        let known = std::mem::take(&mut *self.0.lock());
        known.all
    }
}

impl ContextState {
    /// A scratch region that nothing uses any more. Of several the first that was made: a loop that makes several gets
    /// each in the same place in every iteration, in whatever order it drops them.
    pub(crate) fn take_scratch(&self, key: RegionKey) -> Option<LogicalRegion> {
        let known = &mut *self.created.scratch.0.lock();
        // What has other fields by now is not used again.
        let fits = |free: &Free| {
            free.key == key && free.region.fields().changes() == free.changes && free.region.check_alive(self).is_ok()
        };
        let fitting = known.free.iter().enumerate().filter(|(_, free)| fits(free));
        let (first, _) = fitting.min_by_key(|(_, free)| free.region.tree().id())?;
        known.free.remove(first).map(|free| free.region)
    }

    /// The task has made a region as a scratch region.
    pub(crate) fn mark_scratch(&self, region: &LogicalRegion, key: RegionKey) {
        let partitions = key.has_own_rows().then(|| region.space().keep_partitions(true)).flatten();
        let (mut known, tree) = (self.created.scratch.0.lock(), region.tree().id());
        known.all.insert(tree);
        known.partitions.extend(partitions.map(|partitions| (tree, partitions)));
    }

    /// Nothing uses a scratch region any more, and its data was given up. Gives one that is to be destroyed, if many
    /// are kept.
    #[must_use]
    pub(crate) fn keep_scratch(&self, key: RegionKey, region: &LogicalRegion) -> Option<LogicalRegion> {
        let known = &mut *self.created.scratch.0.lock();
        if !known.all.contains(&region.tree().id()) {
            return None;
        }
        known.partitions.get(&region.tree().id()).iter().for_each(|partitions| partitions.renew());
        known.free.push_back(Free { key, region: region.clone(), changes: region.fields().changes() });
        let oldest = if known.free.len() > MOST { known.free.pop_front()?.region } else { return None };
        known.all.remove(&oldest.tree().id());
        known.partitions.remove(&oldest.tree().id());
        Some(oldest)
    }
}
