//! What must happen before an operation runs, and what is true afterwards (Bauer 2014, section 5.3; PPoPP 2023, section 6).
//!
//! An operation's requirements are *prepared* one after the other: data that is stale in the chosen instances is put into them, and the
//! events that the operation must come after are gathered. When its own event is known, the requirements are *committed*: the operation
//! becomes the latest writer, or one of the readers. No requirement is committed before all are prepared, or an operation could come to wait
//! for itself.
//!
//! Data comes by [`copies`], and by [`settling`] reductions that are pending.

mod copies;
mod settling;

use std::sync::Arc;

use maniple_realm::{Event, Realm};
use maniple_record::Place;
use maniple_region::{FieldMask, LogicalRegion, OperatorId, Privilege, ShapeTable};
use smallvec::SmallVec;

use crate::physical::cover::Cover;
use crate::physical::group::Touched;
use crate::physical::instance::{Held, PhysicalInstance};
use crate::physical::issuing::Issuing;
use crate::physical::movement::Preconditions;
use crate::physical::places::{Place as DataPlace, Places};
use crate::physical::preparation::Preparation;
use crate::physical::selection::Selection;
use crate::physical::set::{EquivalenceSet, Order, PendingReduction, View};
use crate::physical::set_index::SetId;
use crate::physical::state::{RegionData, Sink};
use crate::physical::store::Store;

/// One requirement of one operation with the instances chosen for it.
pub(crate) struct Access<'a> {
    pub(crate) region: &'a LogicalRegion,
    pub(crate) privilege: Privilege,
    pub(crate) selection: &'a Selection,
    pub(crate) order: Order,
}

/// Copies of a set's values are looked through for such that nobody needs when there are this many, and each time that they have doubled.
const MANY_COPIES: usize = 256;

/// How an access treats the sets that it touches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Discard,
    ReduceInPlace(OperatorId),
    ReduceInBuffer(OperatorId),
}

impl Mode {
    /// Whether an access looks at values, or leaves some as they are.
    fn needs_values(self) -> bool {
        match self {
            Self::Read | Self::Write | Self::ReduceInPlace(_) => true,
            Self::Discard | Self::ReduceInBuffer(_) => false,
        }
    }

    /// Whether an access to part of a set can only begin when the set's pending reductions have been applied.
    fn settles(self, set: &EquivalenceSet, cover: &Cover, shapes: &ShapeTable) -> bool {
        match self {
            Self::Discard => false,
            Self::Read | Self::Write => set.has_pending(cover, shapes),
            Self::ReduceInPlace(operator) | Self::ReduceInBuffer(operator) => {
                set.has_pending_besides(operator, cover, shapes)
            }
        }
    }
}

/// Ranks the instances that data could come from: indices of the first argument, best first, for the second. With each come those of the fields wanted of which it
/// holds all values that are wanted.
pub(crate) type Rank<'a> = dyn FnMut(&[(Arc<PhysicalInstance>, FieldMask)], &PhysicalInstance) -> Vec<usize> + 'a;

/// The analysis of one region state, for as long as its lock is held.
pub(crate) struct Analysis<'a> {
    store: &'a Store,
    data: &'a mut RegionData,
    shapes: &'a ShapeTable,
    /// Ranks the instances that data could come from.
    rank: &'a mut Rank<'a>,
    /// How the machine is told.
    issuing: Issuing<'a>,
    /// On whose behalf, for the record.
    issuer: Option<Place>,
}

impl<'a> Analysis<'a> {
    #[inline]
    pub(crate) fn new(
        store: &'a Store,
        data: &'a mut RegionData,
        rank: &'a mut Rank<'a>,
        (issuing, issuer): (Issuing<'a>, Option<Place>),
    ) -> Self {
        Self { store, data, shapes: store.forest.shapes(), rank, issuing, issuer }
    }

    /// Brings the chosen instances up to date as far as the privilege wants it, and adds what the operation must wait for.
    pub(crate) fn prepare(&mut self, access: &Access<'_>, places: &[DataPlace], before: &mut Preparation) {
        let (mode, requirement) = (access.mode(), access.selection.place.0);
        let after = before.of(requirement);
        access.selection.instances.iter().for_each(|(_, instance)| after.need(instance.ready()));
        for &DataPlace { instance, group, ref touched, .. } in places {
            let (fields, instance) = &access.selection.instances[instance];
            if self.gather_if_ready(group, mode, touched, instance, before.of(requirement)) {
                continue;
            }
            let touched = self.touched_apart(group, mode, (access.region, Touched::clone(touched)));
            if mode == Mode::Write {
                self.leave_to_task(group, &touched, (instance, fields), (before, requirement));
            }
            let home = access.home(fields, instance);
            self.bring_up_to_date(group, mode, (home, fields), &touched, before.of(requirement));
            for (id, cover) in touched.iter() {
                self.gather(group, *id, cover, (mode, instance), before.of(requirement));
            }
        }
    }

    /// Makes the operation, which ends with `event`, part of the history. What was pending and would be in the way has been applied.
    pub(crate) fn commit(&mut self, access: &Access<'_>, places: &[DataPlace], event: Event) {
        let mode = access.mode();
        for &DataPlace { instance, group, ref touched, .. } in places {
            let (_, instance) = &access.selection.instances[instance];
            match mode {
                Mode::Read => self.commit_read(group, touched, instance, event),
                Mode::Write | Mode::Discard => self.commit_write(group, touched, access.region, instance, event),
                Mode::ReduceInPlace(_) => self.commit_in_place(group, touched, instance, event),
                Mode::ReduceInBuffer(operator) => {
                    self.commit_in_buffer(group, touched, (operator, instance), (event, access.order));
                }
            }
        }
    }

    /// The end of an access's places in a list, where they begin at `first`. They are found if they are not known or not right any more.
    #[inline]
    pub(crate) fn locate(&mut self, access: &Access<'_>, places: &mut Places, first: usize) -> usize {
        let selection = access.selection.place;
        let known = places[first..].iter().take_while(|place| place.selection == selection);
        let (mut end, mut are_right) = (first, true);
        for place in known {
            are_right &= self.data.group(place.group).changes() == place.changes;
            end += 1;
        }
        if end == first || !are_right {
            let after = places.split_off(end);
            places.truncate(first);
            self.find_places(access, places);
            end = places.len();
            places.extend(after);
        }
        end
    }

    /// Adds the places of an access.
    #[inline(never)]
    fn find_places(&mut self, access: &Access<'_>, places: &mut Places) {
        let (selection, mode) = (access.selection.place, access.mode());
        for (instance, (fields, _)) in access.selection.instances.iter().enumerate() {
            for group in self.data.groups_of(fields) {
                let touched = self.touched(group, access, mode);
                let changes = self.data.group(group).changes();
                places.push(DataPlace { selection, instance, group, changes, touched });
            }
        }
    }

    /// Applies everything that children contributed to the instance that their parent only had the privilege to reduce to.
    pub(crate) fn drain_into(&mut self, sink: &Sink, after: &mut Preconditions) {
        for (fields, instance) in &sink.instances {
            self.data.lost.iter().for_each(|&event| after.need(event));
            for group in self.data.groups_of(fields) {
                let region = self.data.root.clone();
                let touched = self.touched_by(group, &region);
                for &(id, _) in touched.iter() {
                    self.apply_pending(group, id, (instance, fields), after);
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
    fn touched(&mut self, group: usize, access: &Access<'_>, mode: Mode) -> Touched {
        let changes_whole_sets = match mode {
            Mode::Read => false,
            // What other operators contributed is about to be applied where only this region's values have room.
            Mode::ReduceInBuffer(_) => !access.selection.homes.is_empty(),
            Mode::Write | Mode::Discard | Mode::ReduceInPlace(_) => true,
        };
        if changes_whole_sets { self.carve(group, access.region) } else { self.touched_by(group, access.region) }
    }

    /// Pending reductions are applied to a whole set at once: what lies outside of the region must not be waited for, nor fail this access.
    fn touched_apart(&mut self, group: usize, mode: Mode, (region, mut touched): (&LogicalRegion, Touched)) -> Touched {
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

    /// Splits sets of which only a part has pending reductions that are about to be applied: whoever uses the rest must not be waited for.
    /// It may be the task itself, with a mapping. Returns whether there were any.
    fn set_pending_apart(&mut self, group: usize, mode: Mode, touched: &[(SetId, Cover)]) -> bool {
        let shapes = self.shapes;
        let mut any = false;
        for (id, cover) in touched {
            let set = self.set(group, *id);
            if !mode.settles(set, cover, shapes) {
                continue;
            }
            if let Cover::Part(part) = set.pending_cover(shapes) {
                self.data.group_mut(group).cut(*id, &part, shapes);
                any = true;
            }
        }
        any
    }

    fn touched_by(&mut self, group: usize, region: &LogicalRegion) -> Touched {
        self.data.group_mut(group).touched(region.space(), self.shapes)
    }

    fn carve(&mut self, group: usize, region: &LogicalRegion) -> Touched {
        self.data.group_mut(group).carve(region.space(), self.shapes)
    }

    /// Adds what an access must come after if that is all there is to do, as nearly always: its sets know the instance, which holds the values that
    /// it needs, and nothing is to be applied before. Else adds nothing.
    fn gather_if_ready(
        &self,
        group: usize,
        mode: Mode,
        touched: &[(SetId, Cover)],
        instance: &PhysicalInstance,
        after: &mut Preconditions,
    ) -> bool {
        let (sets, before) = (self.data.group(group), after.len());
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
            after.truncate(before);
        }
        is_ready
    }

    /// Issues the copies, fills and applications of reductions that an access needs.
    fn bring_up_to_date(
        &mut self,
        group: usize,
        mode: Mode,
        (instance, fields): (&Arc<PhysicalInstance>, &FieldMask),
        touched: &[(SetId, Cover)],
        after: &mut Preconditions,
    ) {
        for (id, cover) in touched {
            if mode.settles(self.set(group, *id), cover, self.shapes) {
                self.settle_pending(group, *id, (instance, fields), after);
            }
        }
        let sets = self.data.group(group);
        let is_current = |(id, cover): &(SetId, Cover)| sets.set(*id).is_current(instance, cover, self.shapes);
        if mode.needs_values() && !touched.iter().all(is_current) {
            let mut movements = SmallVec::new();
            for (id, cover) in touched {
                self.find_sources(group, *id, cover, instance, &mut movements);
            }
            self.issue(&movements);
        }
    }

    /// Adds what an access to part of a set must come after.
    fn gather(
        &mut self,
        group: usize,
        id: SetId,
        cover: &Cover,
        (mode, instance): (Mode, &Arc<PhysicalInstance>),
        after: &mut Preconditions,
    ) {
        if let Mode::ReduceInBuffer(_) = mode {
            self.set(group, id).folders(instance).for_each(|folder| after.follow(folder));
            return;
        }
        let view = self.view(group, id, instance, after);
        uses_before(mode, &self.set(group, id).views[view], cover, self.shapes, after);
    }

    fn commit_read(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<PhysicalInstance>,
        event: Event,
    ) {
        let realm: Option<&Realm> = self.store.pruning_realm();
        let mut forgot = false;
        for (id, cover) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            match set.find_view(instance) {
                Some(view) => set.add_reader(view, event, cover.clone(), realm),
                // Another requirement of the task had reductions applied elsewhere, at points that this one does not see.
                None => instance.leave_behind([event]),
            }
            if set.views.len() >= MANY_COPIES && set.views.len().is_power_of_two() {
                forgot |= set.forget_copies(None, (self.shapes, &self.store.realm));
            }
        }
        if forgot {
            self.data.table.collect(None);
        }
    }

    fn commit_write(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        region: &LogicalRegion,
        instance: &Arc<PhysicalInstance>,
        event: Event,
    ) {
        if touched.is_empty() {
            return;
        }
        let group = self.data.group_mut(group);
        let set = group.unite(touched, region.space().shape());
        let set = group.set_mut(set);
        // Of whatever was known, one view is enough: the operation has come after all uses.
        set.overwrite(view_of(set, instance), event);
    }

    fn commit_in_place(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<PhysicalInstance>,
        event: Event,
    ) {
        let (shapes, realm) = (self.shapes, self.store.pruning_realm());
        for (id, _) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            set.keep_only(instance);
            set.add_changer(view_of(set, instance), event, Cover::Everything, (shapes, realm));
        }
    }

    fn commit_in_buffer(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        (operator, buffer): (OperatorId, &Arc<PhysicalInstance>),
        (event, order): (Event, Order),
    ) {
        if buffer.holders() == 0 && !matches!(self.issuing, Issuing::Again(_)) {
            // It was free, so the operation comes after all who had left it.
            buffer.leave_behind_instead(event);
        }
        let realm = self.store.pruning_realm();
        for (id, cover) in touched {
            let (buffer, writers) = (Held::new(buffer), SmallVec::from_iter([event]));
            let cover = cover.clone();
            let reduction = PendingReduction { operator, buffer, cover, writers, contributors: 1, order };
            self.set_mut(group, *id).push_pending(reduction, realm);
        }
    }

    /// The position of a set's view of an instance. If the set does not know the instance yet, whatever used it before must end first.
    fn view(&mut self, group: usize, id: SetId, instance: &Arc<PhysicalInstance>, after: &mut Preconditions) -> usize {
        let realm = self.store.pruning_realm();
        let set = self.data.group_mut(group).set_mut(id);
        if let Some(view) = set.find_view(instance) {
            return view;
        }
        let mut view = View::new(Held::new(instance));
        for event in instance.leftovers() {
            after.follow(event);
            // What comes next may use the instance for some of the points only: later uses of the others must follow too.
            view.readers.push(event, Cover::Everything, realm);
        }
        set.views.push(view);
        set.views.len() - 1
    }

    fn set(&self, group: usize, id: SetId) -> &EquivalenceSet {
        self.data.group(group).set(id)
    }

    fn set_mut(&mut self, group: usize, id: SetId) -> &mut EquivalenceSet {
        self.data.group_mut(group).set_mut(id)
    }
}

/// Adds the uses of part of a set in an instance that an access there must come after.
#[inline]
fn uses_before(mode: Mode, view: &View, cover: &Cover, shapes: &ShapeTable, after: &mut Preconditions) {
    match mode {
        Mode::Read => view.writers.touching(cover, shapes, &mut after.needs),
        Mode::Write => {
            view.writers.touching(cover, shapes, &mut after.needs);
            view.readers.touching(cover, shapes, &mut after.follows);
        }
        // Who does not look at values does not fail because there are none.
        Mode::Discard | Mode::ReduceInPlace(_) | Mode::ReduceInBuffer(_) => {
            view.writers.touching(cover, shapes, &mut after.follows);
            view.readers.touching(cover, shapes, &mut after.follows);
        }
    }
}

fn view_of(set: &EquivalenceSet, instance: &PhysicalInstance) -> usize {
    set.find_view(instance).expect("the view was made when the access was prepared")
}

impl Access<'_> {
    /// Where values are brought up to date for an instance of the access: there, unless it is a buffer.
    fn home<'a>(&'a self, fields: &FieldMask, instance: &'a Arc<PhysicalInstance>) -> &'a Arc<PhysicalInstance> {
        let home = self.selection.homes.iter().find(|(held, _)| held.overlaps(fields));
        home.map_or(instance, |(_, home)| home)
    }

    fn mode(&self) -> Mode {
        match (self.privilege, self.selection.in_place) {
            (Privilege::Read, _) => Mode::Read,
            (Privilege::ReadWrite, _) => Mode::Write,
            (Privilege::Discard, _) => Mode::Discard,
            (Privilege::Reduce(operator), true) => Mode::ReduceInPlace(operator),
            (Privilege::Reduce(operator), false) => Mode::ReduceInBuffer(operator),
        }
    }
}
