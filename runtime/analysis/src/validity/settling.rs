//! Applying reductions that are pending (Bauer 2014, chapter 5): the values must be there, in an instance that has room
//! for them.

use std::sync::Arc;

use maniple_region::{FieldMask, Shape, ShapeTable};
use smallvec::SmallVec;

use super::analysis::{Analysis, view_of};
use super::cover::Cover;
use super::effects::{Application, Effect, Effects};
use super::events::Preconditions;
use super::instance::Instance;
use super::preparation::Preparation;
use super::set::PendingReduction;
use super::set_index::SetId;

/// An operation that can apply reductions itself does so if they are about at most so many points in all: more are
/// worth an operation, which another worker may carry out.
const LITTLE_WORK: u64 = 1 << 10;

/// Reductions to more different parts of a set are applied as one operation.
const MANY_COVERS: usize = 256;

impl<I: Instance, F: Effects<I>> Analysis<'_, I, F> {
    /// Applies a set's pending reductions where the set's data is at home, and adds that to what the operation that has
    /// it done follows: also one that does not look at the values. When an operation has ended, so has all that was
    /// issued on its behalf.
    pub(super) fn settle_pending(
        &mut self,
        group: usize,
        id: SetId,
        preferred: &Arc<I>,
        fields: &FieldMask,
        after: &mut Preconditions<I::Event>,
    ) {
        if let Some(sink) = self.state.sink().cloned() {
            let target = sink.iter().find(|(held, _)| held.overlaps(fields));
            target.into_iter().for_each(|(_, instance)| self.apply_pending(group, id, instance, fields, after));
            return;
        }
        let set = self.set(group, id);
        let home = if preferred.can_hold(&set.shape) { None } else { set.home() };
        let home = Arc::clone(home.unwrap_or(preferred));
        let mut movements = SmallVec::new();
        self.find_sources(group, id, &Cover::Everything, &home, &mut movements);
        self.carry_out(&movements);
        self.apply_pending(group, id, &home, fields, after);
    }

    /// Applies (or, in a buffer, folds) all pending reductions of a set into an instance that holds current values of
    /// it, in program order: one operation for all that have their points in common, so that the failure of a
    /// contributor invalidates no other points.
    pub(super) fn apply_pending(
        &mut self,
        group: usize,
        id: SetId,
        into: &Arc<I>,
        fields: &FieldMask,
        after: &mut Preconditions<I::Event>,
    ) {
        let pending = std::mem::take(&mut self.set_mut(group, id).pending);
        if pending.is_empty() {
            return;
        }
        // What used the instance before, unknown to the set, is among the view's readers now.
        self.view(group, id, into);
        let fields = self.state.group(group).fields.intersection(fields);
        let groups = match self.effects.keeps_apart() {
            true => by_point(&pending, &self.set(group, id).shape, self.shapes),
            false => by_cover(pending),
        };
        for (cover, together) in groups {
            after.follow(self.apply_together(group, id, &cover, together, into, &fields));
        }
        self.set_mut(group, id).keep_only(into);
    }

    /// Has an operation that can do so apply reductions itself that are pending in sets all of whose values it is about
    /// to change, where that is little work. No other operation may use the values before, and with the operation's
    /// failure they are invalidated anyway.
    pub(super) fn leave_to_task(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        into: &Arc<I>,
        fields: &FieldMask,
        before: &mut Preparation<I>,
        requirement: usize,
    ) {
        if self.state.sink().is_some() || !before.has_beginning() {
            return;
        }
        let fields = self.state.group(group).fields.intersection(fields);
        for (id, _) in touched {
            let set = self.state.group_mut(group).set_mut(*id);
            let is_little = set.shape.space().volume().saturating_mul(set.pending.len() as u64) <= LITTLE_WORK;
            if set.pending.is_empty() || !is_little || !set.is_current(into, &Cover::Everything, self.shapes) {
                continue;
            }
            let pending = std::mem::take(&mut set.pending);
            self.effects.leave_to_operation(pending.len());
            let after = before.of(requirement);
            pending.iter().flat_map(|reduction| &reduction.writers).for_each(|&writer| after.need(writer));
            for reduction in if pending.len() > 1 { in_order(pending) } else { pending } {
                if let Some(application) = Application::of(&reduction, &set.shape, &fields, into) {
                    before.apply(application, reduction);
                }
            }
        }
    }

    /// Applies reductions to a part of a set, as one operation. Where the values themselves were never made it fails,
    /// and stands for that failure.
    fn apply_together(
        &mut self,
        group: usize,
        id: SetId,
        cover: &Cover,
        together: Vec<PendingReduction<I>>,
        into: &Arc<I>,
        fields: &FieldMask,
    ) -> I::Event {
        let mut after = Preconditions::default();
        after.need(into.ready());
        let set = self.state.group(group).set(id);
        let view = view_of(set, into);
        // Writers of other points must not make it fail at points that they have not written.
        set.views[view].writers.made(cover, self.shapes, &mut after.needs, &mut after.follows);
        set.views[view].readers.touching(cover, self.shapes, &mut after.follows);
        together.iter().flat_map(|reduction| &reduction.writers).for_each(|&writer| after.need(writer));
        let one = |reduction| Application::of(reduction, &set.shape, fields, into);
        let applications: SmallVec<[Application<I>; 2]> = together.iter().filter_map(one).collect();
        let event = self.effects.carry_out(Effect::Apply(&applications), &after);
        together.into_iter().for_each(|reduction| reduction.applied_by(event));
        let pruning = self.effects.pruning();
        let set = self.state.group_mut(group).set_mut(id);
        set.add_applied(view, event, cover.clone(), self.shapes, pruning);
        event
    }
}

/// Reductions in the order in which they are applied.
fn in_order<I: Instance>(pending: Vec<PendingReduction<I>>) -> Vec<PendingReduction<I>> {
    by_cover(pending).into_iter().flat_map(|(_, together)| together).collect()
}

/// Reductions by the points that they are about, those of the first first. Beyond a number of different sets of points,
/// all are one: an operation that looks at the values must look through the list.
fn by_cover<I: Instance>(pending: Vec<PendingReduction<I>>) -> Vec<(Cover, Vec<PendingReduction<I>>)> {
    let mut groups: Vec<(Cover, Vec<PendingReduction<I>>)> = Vec::new();
    for reduction in pending {
        let known = groups.iter().position(|(cover, _)| *cover == reduction.cover || groups.len() > MANY_COVERS);
        match known {
            Some(group) => groups[group].1.push(reduction),
            None => groups.push((reduction.cover.clone(), vec![reduction])),
        }
    }
    if groups.len() <= MANY_COVERS {
        return groups;
    }
    let mut all: Vec<_> = groups.into_iter().flat_map(|(_, together)| together).collect();
    all.sort_by_key(|reduction| reduction.order);
    vec![(Cover::Everything, all)]
}

/// Reductions in groups of points that are about the same points of `whole`, so that each point has only its own. There
/// may be as many groups as points.
fn by_point<I: Instance>(
    pending: &[PendingReduction<I>],
    whole: &Shape,
    shapes: &ShapeTable,
) -> Vec<(Cover, Vec<PendingReduction<I>>)> {
    let mut groups: Vec<(Cover, Vec<PendingReduction<I>>)> = Vec::new();
    let of = |cover: &Cover, together: &[PendingReduction<I>]| {
        let together = together.iter().map(|reduction| reduction.with_cover(cover.clone()));
        (cover.clone(), together.collect::<Vec<_>>())
    };
    for reduction in pending {
        let mut rest = reduction.cover.clone();
        for index in 0..groups.len() {
            let (known, common) = (&groups[index].0, groups[index].0.and(&rest, whole, shapes));
            if common.is_nothing() {
                continue;
            }
            let outside = known.minus(&common, whole, shapes);
            if !outside.is_nothing() {
                let apart = of(&outside, &groups[index].1);
                groups.push(apart);
                groups[index] = of(&common, &groups[index].1);
            }
            groups[index].1.push(reduction.with_cover(common.clone()));
            rest = rest.minus(&common, whole, shapes);
        }
        if !rest.is_nothing() {
            groups.push(of(&rest, std::slice::from_ref(reduction)));
        }
    }
    groups
}
