//! The analysis of validity: the effects that are due before an operation runs, and the state afterwards (Bauer 2014,
//! section 5.3; PPoPP 2023, section 6).
//!
//! An operation's requirements are *prepared* one after the other: data that is stale in the chosen instances is put
//! into them, and the events that the operation must come after are gathered. When its own event is known, they are
//! *committed*: the operation becomes the latest writer, or one of the readers. No requirement is committed before all
//! are prepared, or an operation could come to wait for itself.
//!
//! Data comes by [copies](super::copies), and by [applying](super::settling) reductions that are pending.

use std::sync::Arc;

use maniple_region::{FieldMask, LogicalRegion, OperatorId, Shape, ShapeTable};
use smallvec::SmallVec;

use super::access::{Access, AccessPlace, Mode, Places};
use super::cover::Cover;
use super::effects::Effects;
use super::events::Preconditions;
use super::group::Touched;
use super::instance::{Held, Instance, InstancePart};
use super::preparation::Preparation;
use super::set::{EquivalenceSet, Order, PendingReduction, View};
use super::set_index::SetId;
use super::state::ValidityState;

/// A set's copies of its values are searched for those that no operation needs when there are this many, and each time
/// that their number has doubled.
const MANY_COPIES: usize = 256;

/// The analysis of one state, for as long as the caller has it to itself.
pub struct Analysis<'a, I: Instance, F> {
    pub(super) state: &'a mut ValidityState<I>,
    pub(super) shapes: &'a ShapeTable,
    pub(super) effects: &'a mut F,
}

impl<'a, I: Instance, F: Effects<I>> Analysis<'a, I, F> {
    /// Of a state, whose shapes are in the table of its forest, by a caller that carries effects out.
    #[inline]
    pub fn new(state: &'a mut ValidityState<I>, shapes: &'a ShapeTable, effects: &'a mut F) -> Self {
        Self { state, shapes, effects }
    }

    /// Brings the chosen instances up to date as far as the privilege wants it, and adds what the operation must wait
    /// for.
    pub fn prepare(&mut self, access: &Access<'_, I>, places: &[AccessPlace], before: &mut Preparation<I>) {
        let (mode, requirement) = (access.mode, access.number.0);
        let after = before.of(requirement);
        access.instances.iter().for_each(|(_, instance)| after.need(instance.ready()));
        for &AccessPlace { instance, group, ref touched, .. } in places {
            let (fields, instance) = &access.instances[instance];
            if self.gather_if_ready(group, mode, touched, instance, before.of(requirement)) {
                continue;
            }
            let touched = self.touched_apart(group, mode, access.region, Touched::clone(touched));
            if mode == Mode::Write {
                self.leave_to_task(group, &touched, instance, fields, before, requirement);
            }
            let home = access.home(fields, instance);
            self.bring_up_to_date(group, mode, home, fields, &touched, before.of(requirement));
            for (id, cover) in touched.iter() {
                self.gather(group, *id, cover, mode, instance, before.of(requirement));
            }
        }
    }

    /// Makes the operation, which ends with `event`, part of the history. What was pending and would be in the way has
    /// been applied. Returns whether copies were forgotten, of which there had come to be very many.
    pub fn commit(&mut self, access: &Access<'_, I>, places: &[AccessPlace], event: I::Event) -> bool {
        let (mode, mut forgot) = (access.mode, false);
        for &AccessPlace { instance, group, ref touched, .. } in places {
            let (_, instance) = &access.instances[instance];
            match mode {
                Mode::Read => forgot |= self.commit_read(group, touched, instance, event),
                Mode::Write | Mode::Discard => self.commit_write(group, touched, access.region, instance, event),
                Mode::ReduceInPlace(_) => self.commit_in_place(group, touched, instance, event),
                Mode::ReduceInBuffer(operator) => {
                    self.commit_in_buffer(group, touched, operator, instance, event, access.order);
                }
            }
        }
        forgot
    }

    /// The end of an access's places in a list, where they begin at `first`. They are found if they are not known or
    /// not right any more.
    #[inline]
    pub fn locate(&mut self, access: &Access<'_, I>, places: &mut Places, first: usize) -> usize {
        let (mut end, mut are_right) = (first, true);
        while let Some(place) = places.get(end)
            && place.access == access.number
        {
            are_right &= self.state.group(place.group).changes() == place.changes;
            end += 1;
        }
        if end == first || !are_right {
            let after: Places = places.drain(end..).collect();
            places.truncate(first);
            self.find_places(access, places);
            end = places.len();
            places.extend(after);
        }
        end
    }

    /// Adds the places of an access.
    #[inline(never)]
    pub(super) fn find_places(&mut self, access: &Access<'_, I>, places: &mut Places) {
        let (number, mode) = (access.number, access.mode);
        for (instance, (fields, _)) in access.instances.iter().enumerate() {
            for group in self.state.groups_of(fields) {
                let touched = self.touched(group, access, mode);
                let changes = self.state.group(group).changes();
                places.push(AccessPlace { access: number, instance, group, changes, touched });
            }
        }
    }

    /// Applies everything that was contributed to the [sink](ValidityState::sink), if there is one, and adds what its
    /// holder must come after.
    pub fn drain(&mut self, after: &mut Preconditions<I::Event>) {
        for (fields, instance) in &self.state.sink().cloned().unwrap_or_default() {
            self.state.lost().iter().for_each(|&event| after.need(event));
            for group in self.state.groups_of(fields) {
                let region = self.state.root().clone();
                let touched = self.touched_by(group, &region);
                for &(id, _) in touched.iter() {
                    self.apply_pending(group, id, instance, fields, after);
                    let set = self.set(group, id);
                    let view = set.find_view(instance).map(|view| &set.views[view]);
                    view.into_iter().for_each(|view| {
                        view.writers.touching(&Cover::Everything, self.shapes, &mut after.needs);
                    });
                }
            }
        }
    }

    /// The sets that an access touches. Those that it changes as a whole are first cut to its size.
    pub(super) fn touched(&mut self, group: usize, access: &Access<'_, I>, mode: Mode) -> Touched {
        let changes_whole_sets = match mode {
            Mode::Read => false,
            // What other operators contributed is about to be applied where only this region's values have room.
            Mode::ReduceInBuffer(_) => !access.homes.is_empty(),
            Mode::Write | Mode::Discard | Mode::ReduceInPlace(_) => true,
        };
        if changes_whole_sets { self.carve(group, access.region) } else { self.touched_by(group, access.region) }
    }

    /// Pending reductions are applied to a whole set at once: what lies outside of the region must not be waited for,
    /// nor fail this access.
    pub(super) fn touched_apart(
        &mut self,
        group: usize,
        mode: Mode,
        region: &LogicalRegion,
        mut touched: Touched,
    ) -> Touched {
        let sticks_out = |(id, cover): &(SetId, Cover)| {
            !cover.is_everything() && mode.settles(self.set(group, *id), cover, self.shapes)
        };
        if touched.iter().any(sticks_out) {
            touched = self.carve(group, region);
        }
        if self.set_pending_apart(group, mode, &touched) {
            touched = self.touched_by(group, region);
        }
        touched
    }

    /// Splits sets of which only a part has pending reductions that are about to be applied: users of the rest must not
    /// be waited for. Such a user may be the task itself, with a mapping; or the operation, which may be about to
    /// contribute to a buffer that is pending there by another of its accesses. Returns whether there were any.
    pub(super) fn set_pending_apart(&mut self, group: usize, mode: Mode, touched: &[(SetId, Cover)]) -> bool {
        let shapes = self.shapes;
        let mut any = false;
        for (id, cover) in touched {
            let set = self.set(group, *id);
            if !mode.settles(set, cover, shapes) {
                continue;
            }
            if let Cover::Part(part) = set.pending_cover_besides(mode.operator(), shapes) {
                self.state.group_mut(group).cut(*id, &part, shapes);
                any = true;
            }
        }
        any
    }

    pub(super) fn touched_by(&mut self, group: usize, region: &LogicalRegion) -> Touched {
        self.state.group_mut(group).touched(region.space(), self.shapes)
    }

    pub(super) fn carve(&mut self, group: usize, region: &LogicalRegion) -> Touched {
        self.state.group_mut(group).carve(region.space(), self.shapes)
    }

    /// Adds what an access must come after if that is all there is to do, as nearly always: its sets know the instance,
    /// which holds the values that it needs, and nothing is to be applied before. Else adds nothing.
    pub(super) fn gather_if_ready(
        &self,
        group: usize,
        mode: Mode,
        touched: &[(SetId, Cover)],
        instance: &I,
        after: &mut Preconditions<I::Event>,
    ) -> bool {
        let (sets, (needs, follows)) = (self.state.group(group), after.len());
        let is_ready = touched.iter().all(|(id, cover)| {
            let set = sets.set(*id);
            if !set.pending.is_empty() && mode.settles(set, cover, self.shapes) {
                return false;
            }
            if let Mode::ReduceInBuffer(_) = mode {
                set.folders(instance).for_each(|folder| after.follow(folder));
                return true;
            }
            let Some(view) = set.find_view(instance).map(|view| &set.views[view]) else { return false };
            uses_before(mode, view, cover, self.shapes, after);
            !mode.needs_values() || view.valid.contains(cover, self.shapes)
        });
        if !is_ready {
            after.truncate(needs, follows);
        }
        is_ready
    }

    /// Has the copies, fills and applications of reductions that an access needs carried out.
    pub(super) fn bring_up_to_date(
        &mut self,
        group: usize,
        mode: Mode,
        instance: &Arc<I>,
        fields: &FieldMask,
        touched: &[(SetId, Cover)],
        after: &mut Preconditions<I::Event>,
    ) {
        for (id, cover) in touched {
            if mode.settles(self.set(group, *id), cover, self.shapes) {
                self.settle_pending(group, *id, instance, fields, after);
            }
        }
        let sets = self.state.group(group);
        let is_current = |(id, cover): &(SetId, Cover)| sets.set(*id).is_current(instance, cover, self.shapes);
        if mode.needs_values() && !touched.iter().all(is_current) {
            let mut movements = SmallVec::new();
            for (id, cover) in touched {
                self.find_sources(group, *id, cover, instance, &mut movements);
            }
            self.carry_out(&movements);
        }
    }

    /// Adds what an access to part of a set must come after.
    pub(super) fn gather(
        &mut self,
        group: usize,
        id: SetId,
        cover: &Cover,
        mode: Mode,
        instance: &Arc<I>,
        after: &mut Preconditions<I::Event>,
    ) {
        if let Mode::ReduceInBuffer(_) = mode {
            self.set(group, id).folders(instance).for_each(|folder| after.follow(folder));
            return;
        }
        let view = self.view(group, id, instance);
        uses_before(mode, &self.set(group, id).views[view], cover, self.shapes, after);
    }

    pub(super) fn commit_read(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<I>,
        event: I::Event,
    ) -> bool {
        let (mut forgot, pruning) = (false, self.effects.pruning());
        for (id, cover) in touched {
            let group = self.state.group_mut(group);
            let fields = group.fields.clone();
            let set = group.set_mut(*id);
            match set.find_view(instance) {
                Some(view) => set.add_reader(view, event, cover.clone(), pruning),
                // Another requirement of the task had reductions applied elsewhere, at points that this one does not
                // see.
                None => {
                    let part = |points: &Shape| InstancePart { fields, points: points.clone() };
                    instance.leave_behind([(event, cover.shape(&set.shape).map(part))]);
                }
            }
            if set.views.len() >= MANY_COPIES && set.views.len().is_power_of_two() {
                forgot |= set.forget_copies(&|copy| !copy.is_kept(), self.shapes, self.effects.events());
            }
        }
        forgot
    }

    pub(super) fn commit_write(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        region: &LogicalRegion,
        instance: &Arc<I>,
        event: I::Event,
    ) {
        if touched.is_empty() {
            return;
        }
        let group = self.state.group_mut(group);
        let set = group.unite(touched, region.space().shape());
        let set = group.set_mut(set);
        // Of whatever was known, one view is enough: the operation has come after all uses.
        set.overwrite(view_of(set, instance), event);
    }

    pub(super) fn commit_in_place(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<I>,
        event: I::Event,
    ) {
        let (shapes, pruning) = (self.shapes, self.effects.pruning());
        for (id, _) in touched {
            let set = self.state.group_mut(group).set_mut(*id);
            set.keep_only(instance);
            set.add_changer(view_of(set, instance), event, Cover::Everything, shapes, pruning);
        }
    }

    pub(super) fn commit_in_buffer(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        operator: OperatorId,
        buffer: &Arc<I>,
        event: I::Event,
        order: Order,
    ) {
        if buffer.holders() == 0 && !self.effects.is_catching_up() {
            // It was free, so the operation comes after all uses that were left behind in it.
            buffer.leave_behind_instead(event);
        }
        let pruning = self.effects.pruning();
        for (id, cover) in touched {
            let (buffer, writers) = (Held::new(buffer), SmallVec::from_iter([event]));
            let cover = cover.clone();
            let reduction = PendingReduction { operator, buffer, cover, writers, contributors: 1, order };
            self.state.group_mut(group).set_mut(*id).push_pending(reduction, pruning);
        }
    }

    /// The position of a set's view of an instance. If the set does not know the instance yet, whatever used it before
    /// counts as a reader of all points.
    pub(super) fn view(&mut self, group: usize, id: SetId, instance: &Arc<I>) -> usize {
        let (pruning, keeps_apart) = (self.effects.pruning(), self.effects.keeps_apart());
        let group = self.state.group_mut(group);
        if let Some(view) = group.set(id).find_view(instance) {
            return view;
        }
        let whole = InstancePart { fields: group.fields.clone(), points: group.set(id).shape.clone() };
        let mut view = View::new(Held::new(instance), whole);
        if keeps_apart {
            for (event, part) in instance.leftovers_near(&view.whole) {
                let cover = part.map_or(Cover::Everything, |part| view.whole.cover_of(&part, self.shapes));
                if !cover.is_nothing() {
                    view.readers.push(event, cover, pruning);
                }
            }
        } else {
            // What comes next may use the instance for some of the points only: later uses of the others must follow
            // too.
            let all = |event| _ = view.readers.push(event, Cover::Everything, pruning);
            instance.merged_leftovers().into_iter().for_each(all);
        }
        let set = group.set_mut(id);
        set.views.push(view);
        set.views.len() - 1
    }

    pub(super) fn set(&self, group: usize, id: SetId) -> &EquivalenceSet<I> {
        self.state.group(group).set(id)
    }

    pub(super) fn set_mut(&mut self, group: usize, id: SetId) -> &mut EquivalenceSet<I> {
        self.state.group_mut(group).set_mut(id)
    }
}

/// Adds the uses of part of a set in an instance that an access there must come after.
#[inline]
fn uses_before<I: Instance>(
    mode: Mode,
    view: &View<I>,
    cover: &Cover,
    shapes: &ShapeTable,
    after: &mut Preconditions<I::Event>,
) {
    match mode {
        Mode::Read => view.writers.touching(cover, shapes, &mut after.needs),
        Mode::Write => {
            view.writers.touching(cover, shapes, &mut after.needs);
            view.readers.touching(cover, shapes, &mut after.follows);
        }
        // An operation that does not look at values does not fail because there are none.
        Mode::Discard | Mode::ReduceInPlace(_) | Mode::ReduceInBuffer(_) => {
            view.writers.touching(cover, shapes, &mut after.follows);
            view.readers.touching(cover, shapes, &mut after.follows);
        }
    }
}

pub(super) fn view_of<I: Instance>(set: &EquivalenceSet<I>, instance: &I) -> usize {
    set.find_view(instance).expect("the view was made when the access was prepared")
}
