//! Queries of a state, to choose instances and to compare states.

use std::sync::Arc;

use maniple_region::{FieldMask, LogicalRegion, OperatorId, Shape};

use super::cover::Cover;
use super::instance::Instance;
use super::set::{EquivalenceSet, View};
use super::set_index::SetId;
use super::state::ValidityState;

impl<I: Instance> ValidityState<I> {
    /// Of `fields`, those that an instance holds current values of, everywhere in `region`.
    pub fn valid_fields(&mut self, region: &LogicalRegion, fields: &FieldMask, instance: &I) -> FieldMask {
        let forest = Arc::clone(self.root().space().forest());
        let mut valid = FieldMask::new();
        for group in self.groups_of(&fields.intersection(instance.fields())) {
            let group = &mut self.group_mut(group);
            let touched = group.touched(region.space(), forest.shapes());
            let is_current = |(id, cover): &(SetId, Cover)| {
                let set = group.set(*id);
                set.missing(instance, cover, forest.shapes()).is_nothing() && !set.has_pending(cover, forest.shapes())
            };
            if touched.iter().all(is_current) {
                valid = valid.union(&group.fields);
            }
        }
        valid
    }
    /// How many operations have contributed to a buffer, if more can: it is still pending in every set that the region
    /// touches.
    pub fn contributors(&mut self, buffer: &I, region: &LogicalRegion) -> Option<usize> {
        let forest = Arc::clone(self.root().space().forest());
        let mut most = None;
        for group in self.groups_of(buffer.fields()) {
            for &(id, _) in self.group_mut(group).touched(region.space(), forest.shapes()).iter() {
                let set = self.group(group).set(id);
                let pending = set.pending.iter().find(|pending| pending.buffer.id() == buffer.id())?;
                most = most.max(Some(pending.contributors));
            }
        }
        most
    }

    /// Whether contributions by another operator wait in a region for values that no instance can hold.
    pub fn is_homeless(&mut self, region: &LogicalRegion, fields: &FieldMask, operator: OperatorId) -> bool {
        let forest = Arc::clone(self.root().space().forest());
        let shapes = forest.shapes();
        self.groups_of(fields).into_iter().any(|group| {
            let touched = self.group_mut(group).touched(region.space(), shapes);
            touched.iter().any(|(id, cover)| {
                let set = self.group(group).set(*id);
                let other = set.has_pending_besides(operator, cover, shapes);
                // A view with values wherever the request looks outlives the cuts that other requirements are about to
                // make.
                let lasts = |view: &View<I>| view.valid.contains(cover, shapes) && view.instance.can_hold(&set.shape);
                other && !set.views.iter().any(lasts)
            })
        })
    }

    /// The set that has just these fields and points, if there is one.
    pub fn find_set(&self, fields: &FieldMask, points: &Shape) -> Option<&EquivalenceSet<I>> {
        let group = self.group(self.find_group(fields)?);
        Some(group.set(group.find(points)?))
    }

    /// Calls `visit` with every set that a region touches in some fields, and the fields that the set is about: some of
    /// those.
    pub fn each_set(
        &mut self,
        region: &LogicalRegion,
        fields: &FieldMask,
        mut visit: impl FnMut(&FieldMask, &mut EquivalenceSet<I>),
    ) {
        let forest = Arc::clone(self.root().space().forest());
        for group in self.groups_of(fields) {
            let group = self.group_mut(group);
            for &(id, _) in group.touched(region.space(), forest.shapes()).iter() {
                let fields = group.fields.clone();
                visit(&fields, group.set_mut(id));
            }
        }
    }
}
