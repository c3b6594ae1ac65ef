//! The instances of one region state, by place.

use std::sync::Arc;

use maniple_analysis::validity::Instance as _;
use maniple_mapper::{InstanceId, Reuse};
use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::MemoryId;
use maniple_region::{FieldMask, IndexSpaceNode, LogicalRegion, NodeId, OperatorId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::instance::PhysicalInstance;
use super::validity::Instances;

/// Finds instances by memory and by the region that they were made for.
#[derive(Default)]
pub(crate) struct InstanceTable {
    by_place: FxHashMap<(MemoryId, NodeId), SmallVec<[InstanceEntry; 2]>>,
    /// How many there are, or were when some were last forgotten.
    at_most: usize,
}

/// An instance with the fields that may be used in it. Of an instance that a task got from its parent, they are those
/// that it got: the others are in use by the parent's other operations, which know nothing of the task's.
struct InstanceEntry {
    instance: Arc<PhysicalInstance>,
    fields: FieldMask,
}

impl InstanceTable {
    /// Adds an instance, of which these fields may be used. Memory that the program has attached comes before what the
    /// runtime has made: it was given to be used.
    pub(crate) fn insert(&mut self, instance: &Arc<PhysicalInstance>, fields: &FieldMask) {
        let here = self.by_place.entry(place(instance)).or_default();
        match here.iter_mut().find(|known| known.instance.id() == instance.id()) {
            Some(known) => known.fields = known.fields.union(fields),
            None => {
                let place = if instance.is_attached() { 0 } else { here.len() };
                here.insert(place, InstanceEntry { instance: Arc::clone(instance), fields: fields.clone() });
                self.at_most += 1;
            }
        }
    }

    pub(crate) fn remove(&mut self, instance: &PhysicalInstance) {
        if let Some(here) = self.by_place.get_mut(&place(instance)) {
            here.retain(|known| known.instance.id() != instance.id());
        }
    }

    /// Existing instances for as many of `fields` as possible: nearest in the region tree first. Fields found are
    /// removed from `fields`. A region that is a rectangle lies in one rectangle of each. `may_take` says of an
    /// instance that fits whether it serves: it may be one that may only be read.
    pub(crate) fn find(
        &self,
        region: &LogicalRegion,
        fields: &mut FieldMask,
        memory: MemoryId,
        layout: &LayoutConstraint,
        reuse: Reuse,
        mut may_take: impl FnMut(&PhysicalInstance) -> bool,
    ) -> Instances {
        let mut found = Instances::new();
        let reuse = match reuse {
            // In its stead is taken what was made for the region since, or each mapping would make another.
            Reuse::Only(id) if self.cannot_keep_in_one(region, memory, id) => Reuse::Exact,
            other => other,
        };
        // Operations on no points are in no order with those that take memory away.
        let is_empty = || region.space().space().volume() == 0;
        let mut fits = |instance: &PhysicalInstance| {
            instance.reduction().is_none()
                && instance.satisfies(layout, region)
                && !matches!(reuse, Reuse::Only(id) if id != instance.id())
                && instance.keeps_in_one(region)
                && !(instance.is_attached() && is_empty())
                && may_take(instance)
        };
        for space in upwards(region.space()) {
            if reuse == Reuse::Never || fields.is_empty() {
                break;
            }
            for InstanceEntry { instance, fields: usable } in
                self.at(memory, space).filter(|entry| fits(&entry.instance))
            {
                let common = fields.intersection(usable);
                if !common.is_empty() {
                    *fields = fields.difference(&common);
                    found.push((common, Arc::clone(instance)));
                }
            }
            if reuse == Reuse::Exact {
                break;
            }
        }
        found
    }

    /// Whether an instance has all points of a region, a rectangle, but in several rectangles.
    fn cannot_keep_in_one(&self, region: &LogicalRegion, memory: MemoryId, id: InstanceId) -> bool {
        let mut around = upwards(region.space()).flat_map(|space| self.at(memory, space));
        around.any(|InstanceEntry { instance, .. }| instance.id() == id && !instance.keeps_in_one(region))
    }

    /// Buffers for contributions to a region.
    pub(crate) fn buffers(
        &self,
        region: &LogicalRegion,
        memory: MemoryId,
        operator: OperatorId,
    ) -> impl Iterator<Item = &Arc<PhysicalInstance>> {
        let here = self.at(memory, region.space()).map(|entry| &entry.instance);
        here.filter(move |instance| instance.reduction() == Some(operator))
    }

    /// All instances that can hold a region: in one rectangle, if it is one.
    pub(crate) fn covering(&self, region: &LogicalRegion) -> Vec<Arc<PhysicalInstance>> {
        let spaces: SmallVec<[NodeId; 4]> = upwards(region.space()).map(|space| space.id()).collect();
        let mut found: Vec<_> = (self.by_place.iter())
            .filter(|((_, node), _)| spaces.contains(node))
            .flat_map(|(_, here)| here.iter().map(|entry| Arc::clone(&entry.instance)))
            .filter(|instance| instance.keeps_in_one(region))
            .collect();
        found.sort_unstable_by_key(|instance| instance.id());
        found
    }

    /// The most that there may be.
    pub(crate) fn at_most(&self) -> usize {
        self.at_most
    }

    /// All instances.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &Arc<PhysicalInstance>> {
        self.by_place.values().flatten().map(|entry| &entry.instance)
    }

    /// Forgets instances that hold nothing any more and that nothing uses.
    pub(crate) fn collect(&mut self) {
        self.retain(|instance| instance.holders() > 0 || Arc::strong_count(instance) > 1);
    }

    /// Forgets an instance that holds nothing any more, if nothing uses it but the caller and the table. Whether it is
    /// gone.
    pub(crate) fn collect_one(&mut self, instance: &Arc<PhysicalInstance>) -> bool {
        const CALLER_AND_TABLE: usize = 2;
        let is_known = self.instances_at(place(instance)).any(|known| Arc::ptr_eq(known, instance));
        let is_in_use = is_known && Arc::strong_count(instance) > CALLER_AND_TABLE;
        if is_known && !is_in_use {
            self.remove(instance);
        }
        !is_in_use
    }

    /// Forgets all instances that hold nothing any more, also those that are in use: they go when that has ended.
    pub(crate) fn forget_unheld(&mut self) {
        self.retain(|instance| instance.holders() > 0);
    }

    fn retain(&mut self, mut stays: impl FnMut(&Arc<PhysicalInstance>) -> bool) {
        let mut left = 0;
        self.by_place.retain(|_, here| {
            here.retain(|entry| stays(&entry.instance));
            left += here.len();
            !here.is_empty()
        });
        self.at_most = left;
    }

    fn instances_at(&self, place: (MemoryId, NodeId)) -> impl Iterator<Item = &Arc<PhysicalInstance>> {
        self.by_place.get(&place).into_iter().flatten().map(|entry| &entry.instance)
    }

    fn at(&self, memory: MemoryId, space: &IndexSpaceNode) -> impl Iterator<Item = &InstanceEntry> {
        self.by_place.get(&(memory, space.id())).into_iter().flatten()
    }
}

fn place(instance: &PhysicalInstance) -> (MemoryId, NodeId) {
    (instance.memory(), instance.region().space().id())
}

/// A space and the spaces above it, nearest first.
fn upwards(space: &IndexSpaceNode) -> impl Iterator<Item = &IndexSpaceNode> {
    std::iter::once(space).chain(space.ancestors().map(|partition| partition.parent()))
}
