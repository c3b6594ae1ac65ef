//! The state of the data of one region tree in one context.

use std::sync::{Arc, Weak};

use maniple_region::{FieldMask, LogicalRegion, Partitioning};
use smallvec::SmallVec;

use super::cover::Cover;
use super::events::Events;
use super::group::FieldGroup;
use super::instance::{Held, Instance, InstancePart, Instances};
use super::set::{EquivalenceSet, Fill, Forgotten, View};

/// The known state of the data of a region that its holder may use: of a region that a task created, or of one that a
/// task got from its parent and whose parts it hands to its children.
///
/// Fields that were used alike form a group; of each group, points that share one history form an [equivalence
/// set](EquivalenceSet).
pub struct ValidityState<I: Instance> {
    root: LogicalRegion,
    groups: Vec<FieldGroup<I>>,
    /// For each field that is the first of a group, that group. Not of all, and of some it may be another: a region may
    /// have thousands of groups, and not all of them are looked at to find one.
    first_of: Vec<u32>,
    /// The fields that the holder of the region may use; all that there are, if the region is its own.
    fields: Option<FieldMask>,
    /// The instances to which contributions go in the end, if the task that holds the region may only reduce.
    sink: Option<Instances<I>>,
    /// Why contributions on their way to the sink were never made.
    lost: Vec<I::Event>,
    /// The disjoint partition by which sets were split last.
    split_by: Weak<Partitioning>,
}

impl<I: Instance> ValidityState<I> {
    /// Of a new region: every field has the [default value](Instance::Value) everywhere.
    #[must_use]
    pub fn fresh(root: LogicalRegion) -> Self {
        Self::with_groups(root, None, Vec::new(), None)
    }

    /// Of a region whose current values are in instances, from `ready` on.
    #[must_use]
    pub fn inherited(root: LogicalRegion, instances: &Instances<I>, ready: I::Event) -> Self {
        let is_new = ready != I::Event::default();
        Self::held(root, instances, Cover::Everything, is_new.then_some(ready), None)
    }

    /// Of a region to which its holder may only contribute, into instances, from `ready` on.
    #[must_use]
    pub fn contributing(root: LogicalRegion, sink: Instances<I>, ready: I::Event) -> Self {
        Self::held(root, &sink.clone(), Cover::Nothing, Some(ready), Some(sink))
    }

    /// Of a region that its holder has got in instances, which hold current values or not.
    fn held(
        root: LogicalRegion,
        instances: &Instances<I>,
        valid: Cover,
        ready: Option<I::Event>,
        sink: Option<Instances<I>>,
    ) -> Self {
        let group = |(fields, instance): &(FieldMask, Arc<I>)| {
            let whole = InstancePart { fields: fields.clone(), points: root.space().shape().clone() };
            let mut view = View::new(Held::new(instance), whole);
            view.valid = valid.clone();
            ready.into_iter().for_each(|ready| view.writers.add(ready, Cover::Everything));
            let mut set = EquivalenceSet::new(root.space().shape().clone(), None);
            set.views.push(view);
            FieldGroup::new(fields.clone(), set)
        };
        let groups: Vec<_> = instances.iter().map(group).collect();
        let fields = instances.iter().fold(FieldMask::new(), |all, (fields, _)| all.union(fields));
        Self::with_groups(root, Some(fields), groups, sink)
    }

    fn with_groups(
        root: LogicalRegion,
        fields: Option<FieldMask>,
        groups: Vec<FieldGroup<I>>,
        sink: Option<Instances<I>>,
    ) -> Self {
        let (first_of, lost, split_by) = (Vec::new(), Vec::new(), Weak::new());
        let mut state = Self { root, groups, first_of, fields, sink, lost, split_by };
        (0..state.groups.len()).for_each(|index| state.note_first(index));
        state
    }

    /// The largest region that the state is about.
    pub fn root(&self) -> &LogicalRegion {
        &self.root
    }

    /// Returns the instances to which contributions go in the end, if the holder of the region may only contribute.
    pub fn sink(&self) -> Option<&Instances<I>> {
        self.sink.as_ref()
    }

    /// Why contributions on their way to the sink were never made.
    pub(super) fn lost(&self) -> &[I::Event] {
        &self.lost
    }

    /// The groups that together have exactly these fields. Splits groups and makes new ones as needed.
    pub(super) fn groups_of(&mut self, fields: &FieldMask) -> SmallVec<[usize; 2]> {
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
                let other = self.groups[index].narrowed(&rest);
                self.groups[index].narrow(&common);
                self.groups.push(other);
            }
            found.push(index);
        }
        if !unseen.is_empty() {
            let zero = EquivalenceSet::new(self.root.space().shape().clone(), Some(Fill::Value(I::Value::default())));
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
    pub(super) fn find_group(&self, fields: &FieldMask) -> Option<usize> {
        let at_once = self.group_at_once(fields);
        at_once.or_else(|| self.groups.iter().position(|group| group.fields == *fields))
    }

    /// The fields that the holder of the region may use.
    pub fn available_fields(&self) -> FieldMask {
        self.fields.clone().unwrap_or_else(|| self.root.fields().fields())
    }

    pub(super) fn group(&self, index: usize) -> &FieldGroup<I> {
        &self.groups[index]
    }

    pub(super) fn group_mut(&mut self, index: usize) -> &mut FieldGroup<I> {
        &mut self.groups[index]
    }

    /// Splits the sets that have just the points that a disjoint partition splits: its pieces are about to be used one
    /// by one. If they are those of a partition that is not disjoint, and many, they are split as sets of other fields
    /// were: in one set, each piece would have to be held against all others.
    pub fn refine(&mut self, fields: &FieldMask, partition: &Arc<Partitioning>) {
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
    pub fn fill(&mut self, region: &LogicalRegion, fields: &FieldMask, value: I::Value) {
        self.replace(region, fields, &Fill::Value(value));
    }

    fn replace(&mut self, region: &LogicalRegion, fields: &FieldMask, value: &Fill<I::Value, I::Event>) {
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

    /// Notes that what an operation was to write or contribute will never be there, for the reason that `event` is
    /// poisoned with: an operation that needs it fails too.
    pub fn lose(&mut self, region: &LogicalRegion, fields: &FieldMask, event: I::Event) {
        if self.sink.is_some() {
            self.lost.push(event);
        } else {
            self.replace(region, fields, &Fill::Lost(event));
        }
    }

    /// Forgets copies that no operation uses, if their values are there without them: of those in instances that may
    /// go. Returns whether there were any.
    pub fn forget_copies(&mut self, may_go: impl Fn(&I) -> bool, events: &impl Events<I::Event>) -> bool {
        let (forest, mut any) = (Arc::clone(self.root.space().forest()), false);
        for set in self.groups.iter_mut().flat_map(FieldGroup::sets_mut) {
            any |= set.forget_copies(&may_go, forest.shapes(), events);
        }
        any
    }

    /// Forgets what an instance holds of values that there are without it, where no operation uses it: it was made for
    /// `region`. Returns what has become of it, and how many sets were looked at.
    pub fn forget_copies_in(
        &mut self,
        instance: &I,
        region: &LogicalRegion,
        events: &impl Events<I::Event>,
    ) -> (Forgotten, u64) {
        let (forest, mut forgotten, mut visits) = (Arc::clone(self.root.space().forest()), Forgotten::Gone, 0);
        for group in self.groups.iter_mut().filter(|group| group.fields.overlaps(instance.fields())) {
            for (id, _) in group.touched(region.space(), forest.shapes()).iter() {
                visits += 1;
                forgotten = forgotten.max(group.set_mut(*id).forget_copy(instance, forest.shapes(), events));
            }
        }
        (forgotten, visits)
    }

    /// Forgets all data, which no operation will look at again.
    pub fn forget(&mut self) {
        self.groups.clear();
    }
}

#[cfg(test)]
mod tests {
    use maniple_region::{FieldId, FieldType, Forest};
    use maniple_space::{AnySpace, IndexSpace, Rect};

    use super::super::tests::Memory;
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
    fn check(data: &ValidityState<Memory>) {
        let all = data.groups.iter().fold(FieldMask::new(), |all, group| {
            assert!(!group.fields.is_empty() && !group.fields.overlaps(&all));
            all.union(&group.fields)
        });
        assert!(data.groups.len() <= all.len() && all.len() <= FIELDS as usize, "{} groups", data.groups.len());
    }

    #[test]
    fn a_region_has_no_more_groups_than_fields_however_they_are_used_together() {
        let mut data = ValidityState::<Memory>::fresh(region());
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
        let mut data = ValidityState::<Memory>::fresh(region());
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
