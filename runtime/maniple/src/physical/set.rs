//! Equivalence sets: points that share one history (Bauer et al., *Visibility Algorithms for Dynamic Dependence Analysis and
//! Distributed Coherence*, PPoPP 2023).
//!
//! A set says where the current values of its points are: in which instances (*views*), or that they are all one value that was never
//! stored (*fill*), plus contributions of reductions that have not been applied yet. A view also records who uses the instance for points
//! of the set, so that later uses can be ordered after them.
//!
//! Invariants: pending reductions are newer than every view, and where they overlap they have one operator; a view's uses lie within the set.

use std::sync::Arc;

use maniple_realm::machine::MemoryId;
use maniple_realm::{After, Event, Realm};
use maniple_region::{OperatorId, Shape, ShapeTable};
use smallvec::SmallVec;

use super::cover::Cover;
use super::instance::{Held, PhysicalInstance};
use super::uses::Uses;
use crate::fill::FillValue;

/// The place of an operation in program order: of its launch, then of its point.
pub(crate) type Order = (u64, u64);

/// Points with one history, for one group of fields.
#[derive(Clone, Debug)]
pub(crate) struct EquivalenceSet {
    pub(crate) shape: Shape,
    /// Every point has this value, if nobody stored it.
    pub(crate) fill: Option<FillValue>,
    pub(crate) views: SmallVec<[View; 2]>,
    pub(crate) pending: Vec<PendingReduction>,
    /// The recording of a trace that has seen the set, or a set that this one was part of: see [`crate::trace`].
    pub(crate) mark: u64,
}

/// What an instance means to a set.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) instance: Held,
    /// Where it has current values (but for pending reductions).
    pub(crate) valid: Cover,
    pub(crate) writers: Uses,
    pub(crate) readers: Uses,
}

/// Contributions in a buffer that have not been applied.
#[derive(Clone, Debug)]
pub(crate) struct PendingReduction {
    pub(crate) operator: OperatorId,
    pub(crate) buffer: Held,
    pub(crate) cover: Cover,
    /// The tasks that folded into the buffer, one after the other. The failure of any invalidates what is applied, but none of the others.
    pub(crate) writers: SmallVec<[Event; 1]>,
    /// How many tasks those are.
    pub(crate) contributors: usize,
    /// Reductions are applied in program order, so that floating-point results do not depend on timing.
    pub(crate) order: Order,
}

impl EquivalenceSet {
    pub(crate) fn new(shape: Shape, fill: Option<FillValue>) -> Self {
        Self { shape, fill, views: SmallVec::new(), pending: Vec::new(), mark: 0 }
    }

    /// The position of the view of an instance, if there is one.
    pub(crate) fn find_view(&self, instance: &PhysicalInstance) -> Option<usize> {
        self.views.iter().position(|view| view.instance.id() == instance.id())
    }

    /// Those who have folded into a buffer whose contributions are pending.
    pub(crate) fn folders(&self, buffer: &PhysicalInstance) -> impl Iterator<Item = Event> {
        let mine = self.pending.iter().filter(|pending| pending.buffer.id() == buffer.id());
        mine.flat_map(|pending| pending.writers.iter().copied())
    }

    /// The part of `wanted` for which `instance` does not hold current values.
    pub(crate) fn missing(&self, instance: &PhysicalInstance, wanted: &Cover, shapes: &ShapeTable) -> Cover {
        match self.find_view(instance) {
            Some(view) => wanted.minus(&self.views[view].valid, &self.shape, shapes),
            None => wanted.clone(),
        }
    }

    /// Whether reductions that touch `cover` are pending.
    pub(crate) fn has_pending(&self, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.pending.iter().any(|pending| pending.cover.overlaps(cover, shapes))
    }

    /// Whether reductions that touch `cover` are pending that do not commute with those of `operator`.
    pub(crate) fn has_pending_besides(&self, operator: OperatorId, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.pending.iter().any(|pending| pending.operator != operator && pending.cover.overlaps(cover, shapes))
    }

    /// The points that reductions are pending for.
    pub(crate) fn pending_cover(&self, shapes: &ShapeTable) -> Cover {
        Cover::union_of(self.pending.iter().map(|pending| &pending.cover), &self.shape, shapes)
    }

    /// Adds contributions, keeping program order. With a realm, those in one buffer are merged.
    pub(crate) fn push_pending(&mut self, reduction: PendingReduction, realm: Option<&Realm>) {
        let known = self.pending.iter_mut().find(|pending| pending.buffer.id() == reduction.buffer.id());
        if let Some(known) = known {
            known.writers.extend_from_slice(&reduction.writers);
            known.contributors += reduction.contributors;
            if let Some(realm) = realm {
                known.writers = SmallVec::from_iter([realm.merge(After::needs(&known.writers))]);
            }
            return;
        }
        let place = self.pending.partition_point(|pending| pending.order <= reduction.order);
        self.pending.insert(place, reduction);
    }

    /// Notes that somebody reads an instance that holds current values.
    pub(crate) fn add_reader(&mut self, view: usize, event: Event, cover: Cover, realm: Option<&Realm>) {
        self.views[view].readers.push(event, cover, realm);
    }

    /// Notes that somebody has put values into `cover` of an instance after every earlier use of it there.
    pub(crate) fn add_writer(&mut self, view: usize, event: Event, cover: Cover, shapes: &ShapeTable) {
        let view = &mut self.views[view];
        view.writers.forget(&cover, shapes);
        view.readers.forget(&cover, shapes);
        view.writers.push(event, cover, None);
    }

    /// Notes that somebody has changed the values in `cover` of an instance without looking at them, after every earlier use of it there: if
    /// those who made them have failed, they are still invalidated. With a realm, those who made the same points are merged.
    pub(crate) fn add_changer(
        &mut self,
        view: usize,
        event: Event,
        cover: Cover,
        (shapes, realm): (&ShapeTable, Option<&Realm>),
    ) {
        let view = &mut self.views[view];
        view.readers.forget(&cover, shapes);
        view.writers.join(event, cover, realm);
    }

    /// Notes that contributions have been applied in `cover` of an instance after every earlier use of it there, unless those who made just these
    /// values have failed.
    pub(crate) fn add_applied(
        &mut self,
        view: usize,
        event: Event,
        cover: Cover,
        (shapes, realm): (&ShapeTable, Option<&Realm>),
    ) {
        let view = &mut self.views[view];
        view.readers.forget(&cover, shapes);
        view.writers.succeed(event, cover, realm);
    }

    /// Forgets copies that nobody uses of values that there are without them: in one memory, or in all. Not while reductions are pending, which
    /// may have counted on one of them as the place to be applied; and none that was lent, which others may be reading: should the values be wanted
    /// there again, they would be written. Returns whether there were any.
    pub(crate) fn forget_copies(&mut self, memory: Option<MemoryId>, (shapes, realm): (&ShapeTable, &Realm)) -> bool {
        if !self.pending.is_empty() {
            return false;
        }
        let before = self.views.len();
        let is_candidate = |view: &View| {
            let is_here = memory.is_none_or(|memory| view.instance.memory() == memory);
            is_here && !view.instance.is_lent() && view.uses().all(|event| realm.has_triggered(event))
        };
        // Asked once: uses may end at any time.
        let candidates: SmallVec<[bool; 8]> = self.views.iter().map(is_candidate).collect();
        let mut kept = if self.fill.is_some() { Cover::Everything } else { Cover::Nothing };
        for (view, _) in self.views.iter().zip(&candidates).filter(|(_, is_candidate)| !**is_candidate) {
            kept = kept.plus(&view.valid, &self.shape, shapes);
        }
        let (shape, mut candidates) = (&self.shape, candidates.into_iter());
        self.views.retain(|view| {
            let is_candidate = candidates.next().unwrap_or(false);
            let is_needed = !is_candidate || !kept.contains(&view.valid, shapes);
            if is_needed {
                kept = kept.plus(&view.valid, shape, shapes);
            }
            is_needed
        });
        self.views.len() < before
    }

    /// Where reductions are applied that have to be, if whoever has it done uses no instance that can hold all points: one with current values, else with some, else
    /// any that the set knows. Of several the one with the lowest number: what is known after a replay must not depend on the order in which the
    /// set came to know them.
    pub(crate) fn home(&self) -> Option<&Arc<PhysicalInstance>> {
        let lacks = |view: &View| (!view.valid.is_everything(), view.valid.is_nothing());
        let known = self.views.iter().filter(|view| view.instance.can_hold(&self.shape));
        known.min_by_key(|view| (lacks(view), view.instance.id())).map(|view| view.instance.arc())
    }

    /// Whether an instance holds current values of part of the set, but for pending reductions.
    pub(crate) fn is_current(&self, instance: &PhysicalInstance, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.find_view(instance).is_some_and(|view| self.views[view].valid.contains(cover, shapes))
    }

    /// Notes that somebody has overwritten the whole set in an instance of which there is a view, after every use of any.
    pub(crate) fn overwrite(&mut self, view: usize, event: Event) {
        self.fill = None;
        self.pending.clear();
        if view > 0 {
            self.views.swap(0, view);
        }
        // Others, and others of the same instance where sets were united, leave their uses behind.
        self.views.truncate(1);
        let view = &mut self.views[0];
        view.valid = Cover::Everything;
        view.writers.restart(event);
        view.readers.clear();
    }

    /// Makes one instance the only one with current values of the whole set.
    pub(crate) fn keep_only(&mut self, instance: &PhysicalInstance) {
        self.fill = None;
        self.views.retain(|view| view.instance.id() == instance.id());
        for view in &mut self.views {
            view.valid = Cover::Everything;
        }
    }

    /// Cuts the points of `inside` out of the set: `self` keeps the rest. Both keep the history.
    pub(crate) fn split(&mut self, inside: &Shape, shapes: &ShapeTable) -> Self {
        let outside = shapes.difference(&self.shape, inside);
        let part = self.within(inside, shapes);
        let rest = self.within(&outside, shapes);
        std::mem::replace(self, rest).dissolve();
        part
    }

    /// Drops the set after it has been cut up: its parts have taken over all uses.
    pub(crate) fn dissolve(mut self) {
        for view in &mut self.views {
            (view.writers, view.readers) = Default::default();
        }
    }

    /// The history of a part of the points.
    pub(crate) fn within(&self, part: &Shape, shapes: &ShapeTable) -> Self {
        let views = self.views.iter().filter_map(|view| view.within(part, shapes)).collect();
        let pending = self.pending.iter().filter_map(|pending| pending.within(part, shapes));
        Self { shape: part.clone(), fill: self.fill.clone(), views, pending: pending.collect(), mark: self.mark }
    }
}

impl PendingReduction {
    /// The contributions are applied, after those who made them.
    pub(crate) fn applied_by(mut self, event: Event) {
        self.writers = SmallVec::from_iter([event]);
    }

    fn within(&self, part: &Shape, shapes: &ShapeTable) -> Option<Self> {
        let mut pending = self.clone();
        pending.cover = self.cover.within(part, shapes);
        (!pending.cover.is_nothing()).then_some(pending)
    }
}

impl Drop for PendingReduction {
    fn drop(&mut self) {
        // Who takes the buffer next comes after the last task that folded into it, or after what applied that.
        self.buffer.leave_behind(self.writers.iter().copied());
    }
}

impl View {
    pub(crate) fn new(instance: Held) -> Self {
        Self { instance, valid: Cover::Nothing, writers: Uses::default(), readers: Uses::default() }
    }

    fn uses(&self) -> impl Iterator<Item = Event> {
        self.writers.events().chain(self.readers.events())
    }

    fn within(&self, part: &Shape, shapes: &ShapeTable) -> Option<Self> {
        let view = Self {
            instance: self.instance.clone(),
            valid: self.valid.within(part, shapes),
            writers: self.writers.within(part, shapes),
            readers: self.readers.within(part, shapes),
        };
        let is_used = !view.writers.is_empty() || !view.readers.is_empty();
        (is_used || !view.valid.is_nothing()).then_some(view)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.writers.is_empty() && self.readers.is_empty() {
            return;
        }
        self.instance.leave_behind(self.uses());
    }
}
