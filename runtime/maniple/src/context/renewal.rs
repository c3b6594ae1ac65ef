//! Regions that a task makes and destroys over and over: one that it makes in the place of another takes over its name.
//!
//! The name that a program has of it is another: what was destroyed stays so. But launches on the one are equal to
//! launches on the other, the instances that still have memory are there, and so a loop that makes a region, uses it
//! and destroys it is replayed as one that uses the same region throughout.
//!
//! A region is put aside when it is destroyed, its data given up, if the task has destroyed one with the same rows and
//! fields before, or makes and destroys it within a trace that the program has named. All is a function of what the
//! task does: on several nodes they do the same.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use maniple_realm::locks::Mutex;
use maniple_region::{KeptPartitions, LogicalRegion, NodeId, Partitioning};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ContextState;
use super::created::{Created, Renewal};
use super::region_key::RegionKey;

/// The regions and partitions that a task has destroyed and may make again.
#[derive(Default)]
pub(super) struct Renewals(Mutex<DestroyedRegions>);

#[derive(Default)]
struct DestroyedRegions {
    /// A region with this key was destroyed before.
    destroyed: FxHashSet<RegionKey>,
    /// Partitions with these digests were destroyed before.
    partitions: FxHashSet<u64>,
    /// Regions that were destroyed, the latest last.
    aside: VecDeque<Aside>,
    /// Index spaces some of whose partitions were destroyed.
    spaces: FxHashMap<NodeId, Option<KeptPartitions>>,
}

/// A region that was put aside.
struct Aside {
    region: LogicalRegion,
    key: RegionKey,
    created: Created,
}

/// So many regions are put aside at most, and so many index spaces and keys remembered.
const MOST: usize = 32;

impl Renewals {
    /// Forgets all: the task has ended.
    pub(super) fn clear(&self) {
        let known = std::mem::take(&mut *self.0.lock());
        // It holds on to instances: dropped when the lock is free.
        drop(known);
    }
}

impl ContextState {
    /// A region with this key that was destroyed, under a new name. Of several that which was made first: a loop that
    /// makes several gets each in the same place in every iteration, in whatever order it destroys them.
    pub(crate) fn renew_region(
        &self,
        key: RegionKey,
        may_be: impl Fn(&LogicalRegion) -> bool,
    ) -> Option<LogicalRegion> {
        let mut known = self.created.get()?.renewals.0.lock();
        let fits = |aside: &Aside| {
            aside.key == key
                && may_be(&aside.region)
                && aside.region.space().check_alive(self).is_ok()
                && aside.region.fields().check_alive(self).is_ok()
                && aside.created.has_fields_of(key, &aside.region)
        };
        let fitting = known.aside.iter().enumerate().filter(|(_, aside)| fits(aside));
        let (first, _) = fitting.min_by_key(|(_, aside)| aside.region.tree().id())?;
        let Aside { region, mut created, .. } = known.aside.remove(first)?;
        drop(known);
        let renewed = region.renewed();
        created.name = renewed.tree().name_number();
        if let Some(renewal) = &mut created.renewal {
            renewal.in_trace = self.is_in_named_trace();
            if renewal.partitions.is_none() && renewal.key.has_own_rows() {
                renewal.partitions = region.space().keep_partitions(true);
            }
        }
        self.created.regions.lock().by_tree.insert(renewed.tree().id(), created);
        Some(renewed)
    }

    /// The task has made a region with this key.
    pub(crate) fn may_renew(&self, region: &LogicalRegion, key: RegionKey) {
        let in_trace = self.is_in_named_trace();
        let recurs = in_trace || self.created.renewals.0.lock().destroyed.contains(&key);
        let partitions = (recurs && key.has_own_rows()).then(|| region.space().keep_partitions(true)).flatten();
        if let Some(created) = self.created.regions.lock().by_tree.get_mut(&region.tree().id()) {
            created.renewal = Some(Renewal { key, in_trace, partitions });
        }
    }

    /// Whether a region that is about to be destroyed is to be put aside.
    pub(crate) fn is_to_be_renewed(&self, region: &LogicalRegion) -> bool {
        let regions = self.created.regions.lock();
        let renewal = regions.by_tree.get(&region.tree().id()).and_then(|created| created.renewal.as_ref());
        let Some(&Renewal { key, in_trace, .. }) = renewal else { return false };
        drop(regions);
        let mut known = self.created.renewals.0.lock();
        if known.destroyed.len() >= 8 * MOST {
            known.destroyed.clear();
        }
        let recurs = !known.destroyed.insert(key);
        recurs || in_trace && self.is_in_named_trace()
    }

    /// Puts a region aside that was destroyed, and whose data was given up.
    pub(crate) fn put_aside(&self, region: &LogicalRegion) {
        let tree = region.tree().id();
        self.parts.iter().for_each(|part| part.put_aside(region));
        let Some(created) = self.created.regions.lock().by_tree.remove(&tree) else { return };
        let Some(Renewal { key, partitions, .. }) = &created.renewal else { return };
        partitions.iter().for_each(KeptPartitions::renew);
        let aside = Aside { region: region.root_region().original(), key: *key, created };
        let mut known = self.created.renewals.0.lock();
        known.aside.push_back(aside);
        let oldest = if known.aside.len() > MOST { known.aside.pop_front() } else { None };
        drop(known);
        oldest.iter().for_each(|oldest| self.forget(&oldest.region));
    }

    /// A partition was destroyed: one that is made in its place takes over its name, if that has happened before or in
    /// a trace.
    pub(crate) fn renew_partition(&self, partition: &Partitioning) {
        let Some(digest) = partition.digest() else { return };
        let mut known = self.created.renewals.0.lock();
        if known.partitions.len() >= 8 * MOST {
            known.partitions.clear();
        }
        if known.partitions.insert(digest) && !self.is_in_named_trace() {
            return;
        }
        if known.spaces.len() < MOST {
            let space = partition.parent();
            known.spaces.entry(space.root_id()).or_insert_with(|| space.keep_partitions(false));
        }
        drop(known);
        partition.give_up();
    }

    fn is_in_named_trace(&self) -> bool {
        self.is_in_trace.load(Ordering::Relaxed)
    }
}
