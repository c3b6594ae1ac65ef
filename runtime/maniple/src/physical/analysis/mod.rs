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
use crate::physical::group::{SetId, Touched};
use crate::physical::instance::{Held, PhysicalInstance};
use crate::physical::movement::Preconditions;
use crate::physical::places::{Place as DataPlace, Places};
use crate::physical::set::{EquivalenceSet, Order, PendingReduction, View};
use crate::physical::state::{Instances, RegionData, Sink};
use crate::runtime::RuntimeCore;
use crate::trace::Issuing;

/// One requirement of one operation with the instances chosen for it.
pub(crate) struct Access<'a> {
    pub(crate) region: &'a LogicalRegion,
    pub(crate) privilege: Privilege,
    pub(crate) instances: &'a Instances,
    /// A reduction that works on the values themselves instead of a buffer.
    pub(crate) in_place: bool,
    /// For a reduction in a buffer: where contributions by other operators can be applied before.
    pub(crate) homes: &'a [(FieldMask, Arc<PhysicalInstance>)],
    pub(crate) order: Order,
    /// Where its data is, if the access was made before.
    pub(crate) places: &'a Places,
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

/// Ranks the instances that data could come from: indices of the first argument, best first, for the second.
pub(crate) type Rank<'a> = dyn FnMut(&[Arc<PhysicalInstance>], &PhysicalInstance) -> Vec<usize> + 'a;

/// The analysis of one region state, for as long as its lock is held.
pub(crate) struct Analysis<'a> {
    core: &'a RuntimeCore,
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
    pub(crate) fn new(
        core: &'a RuntimeCore,
        data: &'a mut RegionData,
        rank: &'a mut Rank<'a>,
        issuer: Option<Place>,
    ) -> Self {
        let shapes = core.forest().shapes();
        Self { core, data, shapes, rank, issuing: Issuing::Live, issuer }
    }

    /// The same, for a trace.
    pub(crate) fn issuing(self, issuing: Issuing<'a>) -> Self {
        Self { issuing, ..self }
    }

    /// Brings the chosen instances up to date as far as the privilege wants it, and adds what the operation must wait for.
    pub(crate) fn prepare(&mut self, access: &Access<'_>, after: &mut Preconditions) {
        let mode = access.mode();
        access.instances.iter().for_each(|(_, instance)| after.need(instance.ready()));
        self.each_place(access, mode, |analysis, group, touched, (fields, instance)| {
            if analysis.is_up_to_date(group, mode, touched, instance) {
                analysis.gather_known(group, mode, touched, instance, after);
                return;
            }
            analysis.bring_up_to_date(group, mode, access.home(fields, instance), touched, fields);
            for (id, cover) in touched {
                analysis.gather(group, *id, cover, (mode, instance), after);
            }
        });
    }

    /// Makes the operation, which ends with `event`, part of the history.
    pub(crate) fn commit(&mut self, access: &Access<'_>, event: Event) {
        let mode = access.mode();
        self.each_place(access, mode, |analysis, group, touched, (_, instance)| match mode {
            Mode::Read => analysis.commit_read(group, touched, instance, event),
            Mode::Write | Mode::Discard => analysis.commit_write(group, touched, access.region, instance, event),
            Mode::ReduceInPlace(_) => analysis.commit_in_place(group, touched, instance, event),
            Mode::ReduceInBuffer(operator) => {
                for (id, cover) in touched {
                    let (buffer, writers) = (Held::new(instance), SmallVec::from_iter([event]));
                    let (cover, order) = (cover.clone(), access.order);
                    let reduction = PendingReduction { operator, buffer, cover, writers, contributors: 1, order };
                    let realm = analysis.core.pruning_realm();
                    analysis.set_mut(group, *id).push_pending(reduction, realm);
                }
            }
        });
    }

    /// Visits the places of an access: the group, the sets touched, and the fields and the instance used.
    fn each_place(
        &mut self,
        access: &Access<'_>,
        mode: Mode,
        mut visit: impl FnMut(&mut Self, usize, &[(SetId, Cover)], &(FieldMask, Arc<PhysicalInstance>)),
    ) {
        let mut places = access.places.lock();
        let are_known =
            !places.is_empty() && places.iter().all(|place| self.data.group(place.group).changes() == place.changes);
        if !are_known {
            places.clear();
            for (instance, (fields, _)) in access.instances.iter().enumerate() {
                for group in self.data.groups_of(fields) {
                    let touched = self.touched(group, access, mode);
                    let changes = self.data.group(group).changes();
                    places.push(DataPlace { instance, group, changes, touched });
                }
            }
        }
        for DataPlace { instance, group, touched, .. } in places.iter() {
            let sets = self.data.group(*group);
            let used = &access.instances[*instance];
            if touched.iter().all(|(id, _)| sets.set(*id).pending.is_empty()) {
                visit(self, *group, touched, used);
            } else {
                let touched = self.touched_apart(*group, mode, (access.region, Touched::clone(touched)));
                visit(self, *group, &touched, used);
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
                    self.apply_pending(group, id, instance, fields);
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
            Mode::ReduceInBuffer(_) => !access.homes.is_empty(),
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

    /// Whether sets know an instance, and it holds all that an access needs: nearly always, then there is little to do.
    #[inline]
    fn is_up_to_date(&self, group: usize, mode: Mode, touched: &[(SetId, Cover)], instance: &PhysicalInstance) -> bool {
        let needs_values = match mode {
            Mode::Read | Mode::Write | Mode::ReduceInPlace(_) => true,
            Mode::Discard => false,
            Mode::ReduceInBuffer(_) => return false,
        };
        let sets = self.data.group(group);
        touched.iter().all(|(id, cover)| {
            let set = sets.set(*id);
            let view = set.find_view(instance).map(|view| &set.views[view]);
            // What is pending may have to be applied.
            set.pending.is_empty() && view.is_some_and(|view| !needs_values || view.valid.contains(cover, self.shapes))
        })
    }

    /// Adds what an access to an instance that all sets know must come after.
    fn gather_known(
        &self,
        group: usize,
        mode: Mode,
        touched: &[(SetId, Cover)],
        instance: &PhysicalInstance,
        after: &mut Preconditions,
    ) {
        let sets = self.data.group(group);
        for (id, cover) in touched {
            let set = sets.set(*id);
            if let Some(view) = set.find_view(instance) {
                uses_before(mode, &set.views[view], cover, self.shapes, after);
            }
        }
    }

    /// Issues the copies, fills and applications of reductions that an access needs.
    fn bring_up_to_date(
        &mut self,
        group: usize,
        mode: Mode,
        instance: &Arc<PhysicalInstance>,
        touched: &[(SetId, Cover)],
        fields: &FieldMask,
    ) {
        for (id, cover) in touched {
            if mode.settles(self.set(group, *id), cover, self.shapes) {
                self.settle_pending(group, *id, instance, fields);
            }
        }
        let sets = self.data.group(group);
        let is_current = |(id, cover): &(SetId, Cover)| sets.set(*id).is_current(instance, cover, self.shapes);
        if matches!(mode, Mode::Read | Mode::Write | Mode::ReduceInPlace(_)) && !touched.iter().all(is_current) {
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
            let set = self.set(group, id);
            let mine = set.pending.iter().filter(|pending| pending.buffer.id() == instance.id());
            mine.flat_map(|pending| &pending.writers).for_each(|&writer| after.follow(writer));
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
        let realm: Option<&Realm> = self.core.pruning_realm();
        let mut forgot = false;
        for (id, cover) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            match set.find_view(instance) {
                Some(view) => set.add_reader(view, event, cover.clone(), realm),
                // Another requirement of the task had reductions applied elsewhere, at points that this one does not see.
                None => instance.leave_behind([event]),
            }
            if set.views.len() >= MANY_COPIES && set.views.len().is_power_of_two() {
                forgot |= set.forget_copies(None, (self.shapes, self.core.realm()));
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
        let (shapes, realm) = (self.shapes, self.core.pruning_realm());
        for (id, _) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            set.keep_only(instance);
            set.add_changer(view_of(set, instance), event, Cover::Everything, (shapes, realm));
        }
    }

    /// The position of a set's view of an instance. If the set does not know the instance yet, whatever used it before must end first.
    fn view(&mut self, group: usize, id: SetId, instance: &Arc<PhysicalInstance>, after: &mut Preconditions) -> usize {
        let realm = self.core.pruning_realm();
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
        let home = self.homes.iter().find(|(held, _)| held.overlaps(fields));
        home.map_or(instance, |(_, home)| home)
    }

    fn mode(&self) -> Mode {
        match (self.privilege, self.in_place) {
            (Privilege::Read, _) => Mode::Read,
            (Privilege::ReadWrite, _) => Mode::Write,
            (Privilege::Discard, _) => Mode::Discard,
            (Privilege::Reduce(operator), true) => Mode::ReduceInPlace(operator),
            (Privilege::Reduce(operator), false) => Mode::ReduceInBuffer(operator),
        }
    }
}
