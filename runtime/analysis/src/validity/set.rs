//! Equivalence sets: points that share one history (Bauer et al., *Visibility Algorithms for Dynamic Dependence
//! Analysis and Distributed Coherence*, PPoPP 2023).
//!
//! A set says where the current values of its points are: in which instances (*views*), or that they are all one value
//! that was never stored (*fill*), plus contributions of reductions that have not been applied yet. A view also records
//! which operations use the instance for points of the set, so that later uses can be ordered after them.
//!
//! Invariants: pending reductions are newer than every view, and where they overlap they have one operator; a view's
//! uses lie within the set.

use std::sync::Arc;

use maniple_region::{OperatorId, Shape, ShapeTable};
use smallvec::SmallVec;

use super::cover::Cover;
use super::events::Events;
use super::instance::{Held, Instance, InstancePart};
use super::uses::Uses;

/// The place of an operation in program order: of its launch, then of its point.
pub type Order = (u64, u64);

/// The common value of all points of a set, as far as no instance stores their values.
#[derive(Clone, Debug)]
pub enum Fill<V, E> {
    /// This value.
    Value(V),
    /// None: the operation that was to write them has failed before it could run, with this event.
    Lost(E),
}

/// Points with one history, for one group of fields.
#[derive(Debug)]
pub struct EquivalenceSet<I: Instance> {
    pub(super) shape: Shape,
    /// Every point has this value, also where no instance stores it.
    pub(super) fill: Option<Fill<I::Value, I::Event>>,
    pub(super) views: SmallVec<[View<I>; 2]>,
    pub(super) pending: Vec<PendingReduction<I>>,
    /// The caller's mark: see [`mark`](Self::mark).
    pub(super) mark: u64,
}

/// The fate of copies in an instance that were to be forgotten. Of several sets, the greatest value is the value of
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forgotten {
    /// None is left.
    Gone,
    /// Some are the only ones of their values, or are needed for something else.
    Needed,
    /// Some can be forgotten when their uses have ended.
    InUse,
}

/// The role of an event that a set knows in the use of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It has written values.
    Writers,
    /// It has read them.
    Readers,
    /// It has contributed to a buffer.
    Contributors,
}

/// An instance as a set sees it: the current values in it, and its uses.
#[derive(Debug)]
pub struct View<I: Instance> {
    pub(super) instance: Held<I>,
    /// The fields and points that the uses are about: those of the set.
    pub(super) whole: InstancePart,
    /// The part of the set of which it has current values (but for pending reductions).
    pub(super) valid: Cover,
    pub(super) writers: Uses<I::Event>,
    pub(super) readers: Uses<I::Event>,
}

/// Contributions in a buffer that have not been applied.
#[derive(Debug)]
pub struct PendingReduction<I: Instance> {
    pub(super) operator: OperatorId,
    pub(super) buffer: Held<I>,
    pub(super) cover: Cover,
    /// The tasks that folded into the buffer, one after the other. The failure of any invalidates what is applied, but
    /// none of the others.
    pub(super) writers: SmallVec<[I::Event; 1]>,
    /// How many tasks those are.
    pub(super) contributors: usize,
    /// Reductions are applied in program order, so that floating-point results do not depend on timing.
    pub(super) order: Order,
}

impl<I: Instance> EquivalenceSet<I> {
    pub(super) fn new(shape: Shape, fill: Option<Fill<I::Value, I::Event>>) -> Self {
        Self { shape, fill, views: SmallVec::new(), pending: Vec::new(), mark: 0 }
    }

    /// The points.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the value that all points have as far as no instance stores their values.
    pub fn fill(&self) -> Option<&Fill<I::Value, I::Event>> {
        self.fill.as_ref()
    }

    /// Returns the view of each instance that the set knows.
    pub fn views(&self) -> &[View<I>] {
        &self.views
    }

    /// The contributions that have not been applied, in program order.
    pub fn pending(&self) -> &[PendingReduction<I>] {
        &self.pending
    }

    /// The caller's mark, which parts of the set inherit: of united sets the greatest. Zero at first.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Marks the set, and adds an event to all uses that it knows: those in a view as if it were about all points.
    pub fn mark_uses(&mut self, mark: u64, mut marker: impl FnMut(I::Id, Role) -> I::Event) {
        self.mark = mark;
        for View { instance, writers, readers, .. } in &mut self.views {
            writers.add(marker(instance.id(), Role::Writers), Cover::Everything);
            readers.add(marker(instance.id(), Role::Readers), Cover::Everything);
        }
        for PendingReduction { buffer, writers, .. } in &mut self.pending {
            writers.push(marker(buffer.id(), Role::Contributors));
        }
    }

    /// The events that have to do with an instance in this way, if the set knows the instance.
    pub fn users(&self, instance: I::Id, role: Role) -> Option<SmallVec<[I::Event; 2]>> {
        let view = || self.views.iter().find(|view| view.instance.id() == instance);
        match role {
            Role::Writers => view().map(|view| view.writers.events().collect()),
            Role::Readers => view().map(|view| view.readers.events().collect()),
            Role::Contributors => {
                let pending = self.pending.iter().find(|pending| pending.buffer.id() == instance);
                pending.map(|pending| pending.writers.iter().copied().collect())
            }
        }
    }

    /// Returns the operations that made the set's values, or contributed to them.
    pub fn makers(&self) -> impl Iterator<Item = I::Event> {
        let writers = self.views.iter().flat_map(|view| view.writers.events());
        writers.chain(self.pending.iter().flat_map(|pending| pending.writers.iter().copied()))
    }

    /// The position of the view of an instance, if there is one.
    pub(super) fn find_view(&self, instance: &I) -> Option<usize> {
        self.views.iter().position(|view| view.instance.id() == instance.id())
    }

    /// Returns the operations that have folded into a buffer whose contributions are pending.
    pub(super) fn folders(&self, buffer: &I) -> impl Iterator<Item = I::Event> {
        let mine = self.pending.iter().filter(|pending| pending.buffer.id() == buffer.id());
        mine.flat_map(|pending| pending.writers.iter().copied())
    }

    /// The part of `wanted` for which `instance` does not hold current values.
    pub(super) fn missing(&self, instance: &I, wanted: &Cover, shapes: &ShapeTable) -> Cover {
        match self.find_view(instance) {
            Some(view) => wanted.minus(&self.views[view].valid, &self.shape, shapes),
            None => wanted.clone(),
        }
    }

    /// Whether reductions that touch `cover` are pending.
    pub(super) fn has_pending(&self, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.pending.iter().any(|pending| pending.cover.overlaps(cover, shapes))
    }

    /// Whether reductions that touch `cover` are pending that do not commute with those of `operator`.
    pub(super) fn has_pending_besides(&self, operator: OperatorId, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.pending.iter().any(|pending| pending.operator != operator && pending.cover.overlaps(cover, shapes))
    }

    /// The points that reductions are pending for, but for those of an operator, if one is given.
    pub(super) fn pending_cover_besides(&self, operator: Option<OperatorId>, shapes: &ShapeTable) -> Cover {
        let others = self.pending.iter().filter(|pending| Some(pending.operator) != operator);
        Cover::union_of(others.map(|pending| &pending.cover), &self.shape, shapes)
    }

    /// Adds contributions, keeping program order. If uses may be merged, those in one buffer are merged.
    pub(super) fn push_pending(&mut self, reduction: PendingReduction<I>, events: Option<&impl Events<I::Event>>) {
        let known = self.pending.iter_mut().find(|pending| pending.buffer.id() == reduction.buffer.id());
        if let Some(known) = known {
            known.writers.extend_from_slice(&reduction.writers);
            known.contributors += reduction.contributors;
            if let Some(events) = events {
                known.writers = SmallVec::from_iter([events.merge(&known.writers)]);
            }
            return;
        }
        let place = self.pending.partition_point(|pending| pending.order <= reduction.order);
        self.pending.insert(place, reduction);
    }

    /// Notes that an operation reads an instance that holds current values.
    pub(super) fn add_reader(
        &mut self,
        view: usize,
        event: I::Event,
        cover: Cover,
        events: Option<&impl Events<I::Event>>,
    ) {
        let View { writers, readers, .. } = &mut self.views[view];
        if readers.push(event, cover, events) {
            // Data that is only read has no later writer whose commit would forget the maker.
            events.into_iter().for_each(|events| writers.forget_all_successes(events));
        }
    }

    /// Notes that an operation has put values into `cover` of an instance after every earlier use of it there.
    pub(super) fn add_writer(&mut self, view: usize, event: I::Event, cover: Cover, shapes: &ShapeTable) {
        let view = &mut self.views[view];
        view.writers.forget(&cover, shapes);
        view.readers.forget(&cover, shapes);
        view.writers.add(event, cover);
    }

    /// Notes that an operation has changed the values in `cover` of an instance without looking at them, after every
    /// earlier use of it there: if the operations that made them have failed, they are still invalidated. If uses may
    /// be merged, those that made the same points are merged.
    pub(super) fn add_changer(
        &mut self,
        view: usize,
        event: I::Event,
        cover: Cover,
        shapes: &ShapeTable,
        events: Option<&impl Events<I::Event>>,
    ) {
        let view = &mut self.views[view];
        view.readers.forget(&cover, shapes);
        view.writers.join(event, cover, events);
    }

    /// Notes that contributions have been applied in `cover` of an instance after every earlier use of it there, unless
    /// the operations that made just these values have failed.
    pub(super) fn add_applied(
        &mut self,
        view: usize,
        event: I::Event,
        cover: Cover,
        shapes: &ShapeTable,
        events: Option<&impl Events<I::Event>>,
    ) {
        let view = &mut self.views[view];
        view.readers.forget(&cover, shapes);
        view.writers.succeed(event, cover, events);
    }

    /// Forgets copies that no operation uses, if their values are there without them: of those that may go. Not while
    /// reductions are pending, which may have counted on one of them as the place to be applied; and none that was
    /// lent, which others may be reading: should the values be wanted there again, they would be written. Returns
    /// whether there were any.
    pub(super) fn forget_copies(
        &mut self,
        may_go: &impl Fn(&I) -> bool,
        shapes: &ShapeTable,
        events: &impl Events<I::Event>,
    ) -> bool {
        if !self.pending.is_empty() {
            return false;
        }
        let before = self.views.len();
        let is_candidate = |view: &View<I>| {
            let is_unused = || view.uses().all(|event| events.has_ended(event));
            may_go(&view.instance) && !view.instance.is_lent() && is_unused()
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

    /// Forgets what an instance holds of values that there are without it, as [`forget_copies`](Self::forget_copies)
    /// does.
    pub(super) fn forget_copy(
        &mut self,
        instance: &I,
        shapes: &ShapeTable,
        events: &impl Events<I::Event>,
    ) -> Forgotten {
        let Some(place) = self.find_view(instance) else { return Forgotten::Gone };
        let view = &self.views[place];
        if !self.pending.is_empty() || view.instance.is_lent() {
            return Forgotten::Needed;
        }
        if self.fill.is_none() {
            let others = self.views.iter().filter(|other| other.instance.id() != instance.id());
            let kept = Cover::union_of(others.map(|other| &other.valid), &self.shape, shapes);
            if !kept.contains(&view.valid, shapes) {
                return Forgotten::Needed;
            }
        }
        if !view.uses().all(|event| events.has_ended(event)) {
            return Forgotten::InUse;
        }
        self.views.retain(|view| view.instance.id() != instance.id());
        Forgotten::Gone
    }

    /// Returns the instance to which reductions are applied that have to be, if the operation that needs them uses no
    /// instance that can hold all points: an instance with current values, else with some, else any that the set knows.
    /// Of several, the one with the lowest number is taken: the state after a replay must not depend on the order in
    /// which the set came to know them.
    pub fn home(&self) -> Option<&Arc<I>> {
        let lacks = |view: &View<I>| (!view.valid.is_everything(), view.valid.is_nothing());
        let known = self.views.iter().filter(|view| view.instance.can_hold(&self.shape));
        known.min_by_key(|view| (lacks(view), view.instance.id())).map(|view| view.instance.arc())
    }

    /// Whether an instance holds current values of part of the set, but for pending reductions.
    pub(super) fn is_current(&self, instance: &I, cover: &Cover, shapes: &ShapeTable) -> bool {
        self.find_view(instance).is_some_and(|view| self.views[view].valid.contains(cover, shapes))
    }

    /// Notes that an operation has overwritten the whole set in an instance of which there is a view, after every use
    /// of any.
    pub(super) fn overwrite(&mut self, view: usize, event: I::Event) {
        self.fill = None;
        self.pending.clear();
        if view > 0 {
            self.views.swap(0, view);
        }
        // Others, and others of the same instance where sets were united, leave their uses behind.
        self.views.truncate(1);
        let view = &mut self.views[0];
        view.whole.points.clone_from(&self.shape);
        view.valid = Cover::Everything;
        view.writers.restart(event);
        view.readers.clear();
    }

    /// Makes one instance the only one with current values of the whole set.
    pub(super) fn keep_only(&mut self, instance: &I) {
        self.fill = None;
        self.views.retain(|view| view.instance.id() == instance.id());
        for view in &mut self.views {
            view.valid = Cover::Everything;
        }
    }

    /// Cuts the points of `inside` out of the set: `self` keeps the rest. Both keep the history.
    pub(super) fn split(&mut self, inside: &Shape, shapes: &ShapeTable) -> Self {
        let outside = shapes.difference(&self.shape, inside);
        let part = self.within(inside, shapes);
        let rest = self.within(&outside, shapes);
        std::mem::replace(self, rest).dissolve();
        part
    }

    /// Drops the set after it has been cut up: its parts have taken over all uses.
    pub(super) fn dissolve(mut self) {
        for view in &mut self.views {
            (view.writers, view.readers) = Default::default();
        }
    }

    /// The history of a part of the points.
    pub(super) fn within(&self, part: &Shape, shapes: &ShapeTable) -> Self {
        let views = self.views.iter().filter_map(|view| view.within(part, shapes)).collect();
        let pending = self.pending.iter().filter_map(|pending| pending.within(part, shapes));
        Self { shape: part.clone(), fill: self.fill.clone(), views, pending: pending.collect(), mark: self.mark }
    }
}

impl<I: Instance> PendingReduction<I> {
    /// The operator.
    pub fn operator(&self) -> OperatorId {
        self.operator
    }

    /// The buffer that holds the contributions.
    pub fn buffer(&self) -> &I {
        &self.buffer
    }

    /// The part of the set that they are about.
    pub fn cover(&self) -> &Cover {
        &self.cover
    }

    /// The contributions are applied, after the operations that made them.
    pub(super) fn applied_by(mut self, event: I::Event) {
        self.writers = SmallVec::from_iter([event]);
    }

    /// The same for other points.
    pub(super) fn with_cover(&self, cover: Cover) -> Self {
        let Self { operator, buffer, writers, contributors, order, .. } = self;
        let (buffer, writers) = (buffer.clone(), writers.clone());
        Self { operator: *operator, buffer, cover, writers, contributors: *contributors, order: *order }
    }

    fn within(&self, part: &Shape, shapes: &ShapeTable) -> Option<Self> {
        let cover = self.cover.within(part, shapes);
        (!cover.is_nothing()).then(|| self.with_cover(cover))
    }
}

impl<I: Instance> Drop for PendingReduction<I> {
    fn drop(&mut self) {
        // The operation that takes the buffer next comes after the last task that folded into it, or after what applied
        // that.
        self.buffer.leave_behind(self.writers.iter().map(|&writer| (writer, None)));
    }
}

impl<I: Instance> Clone for EquivalenceSet<I> {
    fn clone(&self) -> Self {
        let (shape, fill, views, pending) =
            (self.shape.clone(), self.fill.clone(), self.views.clone(), self.pending.clone());
        Self { shape, fill, views, pending, mark: self.mark }
    }
}

impl<I: Instance> Clone for View<I> {
    fn clone(&self) -> Self {
        let Self { instance, whole, valid, writers, readers } = self;
        let (instance, whole, valid) = (instance.clone(), whole.clone(), valid.clone());
        Self { instance, whole, valid, writers: writers.clone(), readers: readers.clone() }
    }
}

impl<I: Instance> Clone for PendingReduction<I> {
    fn clone(&self) -> Self {
        self.with_cover(self.cover.clone())
    }
}

impl<I: Instance> View<I> {
    /// The instance.
    pub fn instance(&self) -> &I {
        &self.instance
    }

    /// Returns the part of the set of which it has current values, but for pending reductions.
    pub fn valid(&self) -> &Cover {
        &self.valid
    }

    pub(super) fn new(instance: Held<I>, whole: InstancePart) -> Self {
        Self { instance, whole, valid: Cover::Nothing, writers: Uses::default(), readers: Uses::default() }
    }

    fn uses(&self) -> impl Iterator<Item = I::Event> {
        self.writers.events().chain(self.readers.events())
    }

    fn within(&self, part: &Shape, shapes: &ShapeTable) -> Option<Self> {
        let view = Self {
            instance: self.instance.clone(),
            whole: InstancePart { fields: self.whole.fields.clone(), points: part.clone() },
            valid: self.valid.within(part, shapes),
            writers: self.writers.within(part, shapes),
            readers: self.readers.within(part, shapes),
        };
        let is_used = !view.writers.is_empty() || !view.readers.is_empty();
        (is_used || !view.valid.is_nothing()).then_some(view)
    }
}

impl<I: Instance> Drop for View<I> {
    fn drop(&mut self) {
        if self.writers.is_empty() && self.readers.is_empty() {
            return;
        }
        let InstancePart { fields, points } = &self.whole;
        let part = |points: &Shape| InstancePart { fields: fields.clone(), points: points.clone() };
        let uses = self.writers.into_iter().chain(&self.readers);
        let with_part = |(event, cover): &(I::Event, Cover)| Some((*event, Some(part(cover.shape(points)?))));
        self.instance.leave_behind(uses.filter_map(with_part));
    }
}
