//! What is known of the data of one region tree in one context.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_realm::machine::MemoryId;
use maniple_realm::{Event, Realm};
use maniple_region::{FieldMask, LogicalRegion, Partitioning};
use smallvec::SmallVec;

use super::cover::Cover;
use super::group::FieldGroup;
use super::instance::{Held, Instances, PhysicalInstance};
use super::set::{EquivalenceSet, View};
use super::table::InstanceTable;
use crate::fill::FillValue;

/// The physical state of a region: of one that a task created, or of one that a task got from its parent and whose parts it hands to
/// its children. Siblings' states are separate; a virtually mapped task shares its parent's.
pub(crate) struct RegionState {
    data: Mutex<RegionData>,
}

/// The part of a [`RegionState`] that changes.
pub(crate) struct RegionData {
    /// The largest region that the state is about.
    pub(crate) root: LogicalRegion,
    groups: Vec<FieldGroup>,
    /// For each field that is the first of a group, that group. Not of all, and of some it may be another: a region may have thousands of groups, and
    /// not all of them are looked at to find one.
    first_of: Vec<u32>,
    pub(crate) table: InstanceTable,
    /// The fields that the holder of the region may use; all that there are, if the region is its own.
    fields: Option<FieldMask>,
    /// Where contributions go in the end, if the task that holds the region may only reduce.
    pub(crate) sink: Option<Sink>,
    /// Why contributions on their way to the sink were never made.
    pub(crate) lost: Vec<Event>,
    /// The disjoint partition by which sets were split last.
    split_by: Weak<Partitioning>,
    /// A trace is replayed that counts on what is known here.
    pub(crate) in_replay: bool,
}

/// The instances of a task that holds only the privilege to reduce.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) instances: Instances,
}

impl RegionState {
    /// The state of a new region: every value is zero.
    pub(crate) fn fresh(root: LogicalRegion) -> Arc<Self> {
        Self::with_groups(root, None, Vec::new(), InstanceTable::default(), None)
    }

    /// The state of a region whose current values are in instances that the task got, from `ready` on.
    pub(crate) fn inherited(root: LogicalRegion, instances: &Instances, ready: Event) -> Arc<Self> {
        let (mut table, mut groups) = (InstanceTable::default(), Vec::new());
        for (fields, instance) in instances {
            let mut view = View::new(Held::new(instance));
            view.valid = Cover::Everything;
            if !ready.is_none() {
                view.writers.push(ready, Cover::Everything, None);
            }
            let mut set = EquivalenceSet::new(root.space().shape().clone(), None);
            set.views.push(view);
            groups.push(FieldGroup::new(fields.clone(), set));
            table.insert(instance, fields);
        }
        let fields = instances.iter().fold(FieldMask::new(), |all, (fields, _)| all.union(fields));
        Self::with_groups(root, Some(fields), groups, table, None)
    }

    /// The state of a region to which a task may only contribute, into instances that it got, from `ready` on.
    pub(crate) fn contributing(root: LogicalRegion, sink: Sink, ready: Event) -> Arc<Self> {
        let groups = sink.instances.iter().map(|(fields, instance)| {
            let mut view = View::new(Held::new(instance));
            view.writers.push(ready, Cover::Everything, None);
            let mut set = EquivalenceSet::new(root.space().shape().clone(), None);
            set.views.push(view);
            FieldGroup::new(fields.clone(), set)
        });
        let groups: Vec<FieldGroup> = groups.collect();
        let fields = groups.iter().fold(FieldMask::new(), |all, group| all.union(&group.fields));
        Self::with_groups(root, Some(fields), groups, InstanceTable::default(), Some(sink))
    }

    fn with_groups(
        root: LogicalRegion,
        fields: Option<FieldMask>,
        groups: Vec<FieldGroup>,
        table: InstanceTable,
        sink: Option<Sink>,
    ) -> Arc<Self> {
        let mut data = RegionData {
            root,
            fields,
            groups,
            first_of: Vec::new(),
            table,
            sink,
            lost: Vec::new(),
            split_by: Weak::new(),
            in_replay: false,
        };
        (0..data.groups.len()).for_each(|index| data.note_first(index));
        Arc::new(Self { data: Mutex::new(data) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RegionData> {
        self.data.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, RegionData>> {
        self.data.try_lock()
    }
}

impl RegionData {
    /// The groups that together have exactly these fields. Splits groups and makes new ones as needed.
    pub(crate) fn groups_of(&mut self, fields: &FieldMask) -> SmallVec<[usize; 2]> {
        if let Some(found) = self.known_groups_of(fields) {
            return found;
        }
        let mut found = SmallVec::new();
        let mut unseen = fields.clone();
        for index in 0..self.groups.len() {
            let common = self.groups[index].fields.intersection(fields);
            if common.is_empty() {
                continue;
            }
            unseen = unseen.difference(&common);
            let rest = self.groups[index].fields.difference(fields);
            if !rest.is_empty() {
                let other = self.groups[index].narrowed(rest);
                self.groups[index].narrow(common);
                self.groups.push(other);
            }
            found.push(index);
        }
        if !unseen.is_empty() {
            let zero = EquivalenceSet::new(self.root.space().shape().clone(), Some(FillValue::Zero(None)));
            let group = FieldGroup::new(unseen, zero);
            found.push(self.groups.len());
            self.groups.push(group);
        }
        found.iter().for_each(|&index| self.note_first(index));
        found
    }

    /// Notes where a group is, by its first field.
    fn note_first(&mut self, index: usize) {
        let Some(first) = self.groups[index].fields.iter().next() else { return };
        let place = first.0 as usize;
        if self.first_of.len() <= place {
            self.first_of.resize(place + 1, 0);
        }
        self.first_of[place] = index as u32;
    }

    /// The group that has just these fields, if that is known without looking at others.
    fn group_at_once(&self, fields: &FieldMask) -> Option<usize> {
        let index = *self.first_of.get(fields.iter().next()?.0 as usize)? as usize;
        self.groups.get(index).is_some_and(|group| group.fields == *fields).then_some(index)
    }

    /// The groups that together have exactly these fields, if none must be split or made.
    fn known_groups_of(&self, fields: &FieldMask) -> Option<SmallVec<[usize; 2]>> {
        if let Some(index) = self.group_at_once(fields) {
            return Some(SmallVec::from_iter([index]));
        }
        let (mut found, mut missing) = (SmallVec::new(), fields.len());
        for (index, group) in self.groups.iter().enumerate().filter(|(_, group)| group.fields.overlaps(fields)) {
            if !group.fields.is_subset_of(fields) {
                return None;
            }
            missing -= group.fields.len();
            found.push(index);
            if missing == 0 {
                break;
            }
        }
        (missing == 0).then_some(found)
    }

    /// The group that has just these fields, if there is one.
    pub(crate) fn find_group(&self, fields: &FieldMask) -> Option<usize> {
        let at_once = self.group_at_once(fields);
        at_once.or_else(|| self.groups.iter().position(|group| group.fields == *fields))
    }

    /// The fields that the holder of the region may use.
    pub(crate) fn available_fields(&self) -> FieldMask {
        self.fields.clone().unwrap_or_else(|| self.root.fields().fields())
    }

    pub(crate) fn group(&self, index: usize) -> &FieldGroup {
        &self.groups[index]
    }

    pub(crate) fn group_mut(&mut self, index: usize) -> &mut FieldGroup {
        &mut self.groups[index]
    }

    /// Splits the sets that have just the points that a disjoint partition splits: its pieces are about to be used one by one. If they are those of a
    /// partition that is not disjoint, and many, they are split as sets of other fields were: in one set, each piece would have to be held against
    /// all others.
    pub(crate) fn refine(&mut self, fields: &FieldMask, partition: &Arc<Partitioning>) {
        let splits =
            if partition.is_surely_disjoint() { Some(Arc::clone(partition)) } else { self.split_of_others(partition) };
        let Some(splits) = splits else { return };
        let (forest, mut any) = (Arc::clone(self.root.space().forest()), false);
        for group in self.groups_of(fields) {
            any |= self.groups[group].refine(&splits, forest.shapes());
        }
        if any {
            self.split_by = Arc::downgrade(&splits);
        }
    }

    /// The partition by which sets were split last, if it is for the use of one that is not disjoint.
    fn split_of_others(&self, aliased: &Partitioning) -> Option<Arc<Partitioning>> {
        // Of fewer, one set is as good as several.
        const MANY: usize = 256;
        let splits = (aliased.len() >= MANY).then(|| self.split_by.upgrade()).flatten()?;
        (splits.parent() == aliased.parent() && splits.len() <= aliased.len()).then_some(splits)
    }

    /// Gives fields one value at all points of a region, which is stored nowhere yet.
    pub(crate) fn fill(&mut self, region: &LogicalRegion, fields: &FieldMask, value: &FillValue) {
        let forest = Arc::clone(self.root.space().forest());
        for group in self.groups_of(fields) {
            let group = &mut self.groups[group];
            let inside = group.carve(region.space(), forest.shapes());
            if inside.is_empty() {
                continue;
            }
            let set = group.unite(&inside, region.space().shape());
            let set = group.set_mut(set);
            let filled = EquivalenceSet::new(region.space().shape().clone(), Some(value.clone()));
            *set = EquivalenceSet { mark: set.mark, ..filled };
        }
    }

    /// Notes that what an operation was to write or contribute will never be there, for the reason that `event` is poisoned with: whoever
    /// needs it fails too.
    pub(crate) fn lose(&mut self, region: &LogicalRegion, fields: &FieldMask, event: Event) {
        if self.sink.is_some() {
            self.lost.push(event);
        } else {
            self.fill(region, fields, &FillValue::Lost(event));
        }
    }

    /// Whether nobody can name the region any more: no handle is left, nor an operation in flight, nor anything else that was made with one. Then it will
    /// not be used again.
    pub(crate) fn is_nameless(&self) -> bool {
        let tree = self.root.tree();
        // Each instance knows the region that it was made for.
        let own = 1 + self.table.instances().filter(|instance| Arc::ptr_eq(instance.region().tree(), tree)).count();
        let is_nameless = Arc::strong_count(tree) == own;
        // What others did with their names comes before their letting go of them.
        fence(Ordering::Acquire);
        is_nameless
    }

    /// Forgets all data. Whether there were instances.
    fn forget_data(&mut self) -> bool {
        let any = self.table.instances().next().is_some();
        self.groups.clear();
        self.table = InstanceTable::default();
        any
    }

    /// Makes room in a memory as far as that loses no value that anybody can name: by forgetting instances that hold nothing, and if there are none, copies of what
    /// other instances hold too. Returns whether there was anything.
    pub(crate) fn make_room(&mut self, memory: MemoryId, realm: &Realm) -> bool {
        if self.in_replay {
            return false;
        }
        if self.sink.is_none() && self.is_nameless() {
            return self.forget_data();
        }
        if self.table.collect(Some(memory)) {
            return true;
        }
        let forest = Arc::clone(self.root.space().forest());
        let mut any = false;
        for set in self.groups.iter_mut().flat_map(FieldGroup::sets_mut) {
            any |= set.forget_copies(Some(memory), (forest.shapes(), realm));
        }
        any && self.table.collect(Some(memory))
    }

    /// Of `fields`, those that an instance holds current values of, everywhere in `region`.
    pub(crate) fn valid_fields(
        &mut self,
        region: &LogicalRegion,
        fields: &FieldMask,
        instance: &PhysicalInstance,
    ) -> FieldMask {
        let forest = Arc::clone(self.root.space().forest());
        let mut valid = FieldMask::new();
        for group in self.groups_of(&fields.intersection(instance.fields())) {
            let group = &mut self.groups[group];
            let touched = group.touched(region.space(), forest.shapes());
            let is_current = |(id, cover): &(usize, Cover)| {
                let set = group.set(*id);
                set.missing(instance, cover, forest.shapes()).is_nothing() && !set.has_pending(cover, forest.shapes())
            };
            if touched.iter().all(is_current) {
                valid = valid.union(&group.fields);
            }
        }
        valid
    }
}

#[cfg(test)]
mod tests {
    use maniple_region::{FieldId, FieldType, Forest};
    use maniple_space::{AnySpace, IndexSpace, Rect};

    use super::*;

    const FIELDS: u32 = 12;

    fn region() -> LogicalRegion {
        let forest = Forest::new();
        let rows = forest.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..100))));
        let fields = forest.field_space(FIELDS as usize);
        (0..FIELDS).for_each(|number| _ = fields.allocate(&number.to_string(), FieldType::of::<f64>()).unwrap());
        forest.region(&rows, &fields).unwrap()
    }

    /// The fields whose bits are set in a number.
    fn fields(bits: u32) -> FieldMask {
        (0..FIELDS).filter(|field| bits >> field & 1 != 0).map(FieldId).collect()
    }

    /// Each field is in one group, and each group has one.
    fn check(data: &RegionData) {
        let all = data.groups.iter().fold(FieldMask::new(), |all, group| {
            assert!(!group.fields.is_empty() && !group.fields.overlaps(&all));
            all.union(&group.fields)
        });
        assert!(data.groups.len() <= all.len() && all.len() <= FIELDS as usize, "{} groups", data.groups.len());
    }

    #[test]
    fn a_region_has_no_more_groups_than_fields_however_they_are_used_together() {
        let state = RegionState::fresh(region());
        let mut data = state.lock();
        let mut random = 1_u32;
        for _ in 0..10_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let wanted = fields(random >> 16);
            let found = data.groups_of(&wanted);
            let together = found.iter().fold(FieldMask::new(), |all, &index| all.union(&data.groups[index].fields));
            assert_eq!(together, wanted);
            check(&data);
        }
    }

    #[test]
    fn groups_are_as_few_as_the_uses_tell_apart_and_stay_when_these_alternate() {
        let state = RegionState::fresh(region());
        let mut data = state.lock();
        // Halves, thirds and all: four parts.
        let uses = [0b0000_0011_1111, 0b1111_1100_0000, 0b0000_0000_1111, 0b0000_1111_0000, 0b1111_0000_0000, 0xFFF];
        for turn in 0..1_000 {
            let found: Vec<usize> = uses.iter().map(|&bits| data.groups_of(&fields(bits)).len()).collect();
            assert!(turn == 0 || found == [2, 2, 1, 2, 1, 4], "turn {turn}: {found:?}");
            check(&data);
        }
        assert_eq!(data.groups.len(), 4);
    }
}
