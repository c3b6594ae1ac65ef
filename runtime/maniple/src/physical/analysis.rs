//! What must happen before an operation runs, and what is true afterwards (Bauer 2014, section 5.3; PPoPP 2023, section 6).
//!
//! An operation's requirements are *prepared* one after the other: data that is stale in the chosen instances is put into them, and the
//! events that the operation must come after are gathered. When its own event is known, the requirements are *committed*: the operation
//! becomes the latest writer, or one of the readers. No requirement is committed before all are prepared, or an operation could come to wait
//! for itself.

use std::sync::Arc;

use maniple_realm::{Event, Realm};
use maniple_region::{FieldMask, LogicalRegion, OperatorId, Privilege, ShapeTable};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cover::Cover;
use super::group::SetId;
use super::instance::{Held, PhysicalInstance};
use super::movement::{Movement, Preconditions, Source};
use super::set::{EquivalenceSet, Order, PendingReduction, View};
use super::state::{Instances, RegionData, Sink};
use super::uses::Makers;
use crate::runtime::RuntimeCore;

/// One requirement of one operation with the instances chosen for it.
pub(crate) struct Access<'a> {
    pub(crate) region: &'a LogicalRegion,
    pub(crate) privilege: Privilege,
    pub(crate) instances: &'a Instances,
    /// A reduction that works on the values themselves instead of a buffer.
    pub(crate) in_place: bool,
    /// For a reduction in a buffer: where contributions by other operators can be applied before.
    pub(crate) homes: &'a Instances,
    /// Another requirement of the operation is virtual.
    pub(crate) has_virtual_sibling: bool,
    pub(crate) order: Order,
}

/// Copies of a set's values are looked through for such that nobody needs when there are this many, and each time that they have doubled.
const MANY_COPIES: usize = 256;

/// Reductions to more different parts of a set are applied as one operation.
const MANY_COVERS: usize = 256;

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
    /// Ranks the instances that data could come from.
    rank: &'a mut Rank<'a>,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(core: &'a RuntimeCore, data: &'a mut RegionData, rank: &'a mut Rank<'a>) -> Self {
        Self { core, data, rank }
    }

    /// Brings the chosen instances up to date as far as the privilege wants it, and adds what the operation must wait for.
    pub(crate) fn prepare(&mut self, access: &Access<'_>, after: &mut Preconditions) {
        for (fields, instance) in access.instances {
            after.need(instance.ready());
            for group in self.data.groups_of(fields) {
                let touched = self.touched(group, access);
                self.bring_up_to_date(group, access.mode(), access.home(fields, instance), &touched, fields);
                for (id, cover) in &touched {
                    self.gather(group, *id, cover, (access.mode(), instance), after);
                }
            }
        }
    }

    /// Makes the operation, which ends with `event`, part of the history.
    pub(crate) fn commit(&mut self, access: &Access<'_>, event: Event) {
        for (fields, instance) in access.instances {
            for group in self.data.groups_of(fields) {
                let touched = self.touched(group, access);
                match access.mode() {
                    Mode::Read => self.commit_read(group, &touched, instance, event),
                    Mode::Write | Mode::Discard => self.commit_write(group, &touched, access.region, instance, event),
                    Mode::ReduceInPlace(_) => self.commit_in_place(group, &touched, instance, event),
                    Mode::ReduceInBuffer(operator) => {
                        for (id, cover) in touched {
                            let (buffer, writers) = (Held::new(instance), SmallVec::from_iter([event]));
                            let reduction = PendingReduction {
                                operator,
                                buffer,
                                cover,
                                writers,
                                contributors: 1,
                                is_open: !access.has_virtual_sibling,
                                order: access.order,
                            };
                            let realm = self.core.pruning_realm();
                            self.data.group_mut(group).set_mut(id).push_pending(reduction, realm);
                        }
                    }
                }
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
                for (id, _) in touched {
                    self.apply_pending(group, id, instance, fields);
                    let set = self.set(group, id);
                    let view = set.find_view(instance).map(|view| &set.views[view]);
                    view.into_iter().for_each(|view| {
                        view.writers.touching(&Cover::Everything, self.data.shapes(), &mut after.needs);
                    });
                }
            }
        }
    }

    /// The sets that an access touches. Those that it changes as a whole are first cut to its size.
    fn touched(&mut self, group: usize, access: &Access<'_>) -> SmallVec<[(SetId, Cover); 4]> {
        let mode = access.mode();
        let changes_whole_sets = match mode {
            Mode::Read => false,
            // What other operators contributed is about to be applied where only this region's values have room.
            Mode::ReduceInBuffer(_) => !access.homes.is_empty(),
            Mode::Write | Mode::Discard | Mode::ReduceInPlace(_) => true,
        };
        let mut touched =
            if changes_whole_sets { self.carve(group, access.region) } else { self.touched_by(group, access.region) };
        // Pending reductions are applied to a whole set at once: what lies outside of the region must not be waited for, nor fail this access.
        let sticks_out = |(id, cover): &(SetId, Cover)| {
            !cover.is_everything() && mode.settles(self.set(group, *id), cover, self.data.shapes())
        };
        if touched.iter().any(sticks_out) {
            touched = self.carve(group, access.region);
        }
        if self.set_pending_apart(group, mode, &touched) {
            touched = self.touched_by(group, access.region);
        }
        touched
    }

    /// Splits sets of which only a part has pending reductions that are about to be applied: whoever uses the rest must not be waited for.
    /// It may be the task itself, with a mapping. Returns whether there were any.
    fn set_pending_apart(&mut self, group: usize, mode: Mode, touched: &[(SetId, Cover)]) -> bool {
        let forest = Arc::clone(self.data.root.space().forest());
        let mut any = false;
        for (id, cover) in touched {
            let set = self.set(group, *id);
            if !mode.settles(set, cover, forest.shapes()) {
                continue;
            }
            if let Cover::Part(part) = set.pending_cover(forest.shapes()) {
                self.data.group_mut(group).cut(*id, &part, forest.shapes());
                any = true;
            }
        }
        any
    }

    fn touched_by(&mut self, group: usize, region: &LogicalRegion) -> SmallVec<[(SetId, Cover); 4]> {
        let forest = Arc::clone(region.space().forest());
        self.data.group_mut(group).touched(region.space(), forest.shapes())
    }

    fn carve(&mut self, group: usize, region: &LogicalRegion) -> SmallVec<[(SetId, Cover); 4]> {
        let forest = Arc::clone(region.space().forest());
        let inside = self.data.group_mut(group).carve(region.space(), forest.shapes());
        inside.into_iter().map(|id| (id, Cover::Everything)).collect()
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
            if mode.settles(self.set(group, *id), cover, self.data.shapes()) {
                self.settle_pending(group, *id, instance, fields);
            }
        }
        if matches!(mode, Mode::Read | Mode::Write | Mode::ReduceInPlace(_)) {
            let mut movements = SmallVec::new();
            for (id, cover) in touched {
                self.find_sources(group, *id, cover, instance, &mut movements);
            }
            self.issue(&movements);
        }
    }

    /// Applies a set's pending reductions where the set's data is at home.
    fn settle_pending(&mut self, group: usize, id: SetId, preferred: &Arc<PhysicalInstance>, fields: &FieldMask) {
        if let Some(sink) = self.data.sink.clone() {
            let target = sink.instances.iter().find(|(held, _)| held.overlaps(fields));
            target.into_iter().for_each(|(_, instance)| self.apply_pending(group, id, instance, fields));
            return;
        }
        let home = self.home(self.set(group, id), preferred).unwrap_or_else(|| Arc::clone(preferred));
        let mut movements = SmallVec::new();
        self.find_sources(group, id, &Cover::Everything, &home, &mut movements);
        self.issue(&movements);
        self.apply_pending(group, id, &home, fields);
    }

    /// An instance that can hold all points of a set: the preferred one, else one with current values, else any that the set knows.
    fn home(&self, set: &EquivalenceSet, preferred: &Arc<PhysicalInstance>) -> Option<Arc<PhysicalInstance>> {
        if preferred.can_hold(&set.shape) {
            return Some(Arc::clone(preferred));
        }
        let known = || set.views.iter().filter(|view| view.instance.can_hold(&set.shape));
        let best = known().find(|view| view.valid.is_everything()).or_else(|| known().next());
        best.map(|view| Arc::clone(view.instance.arc()))
    }

    /// Lists the movements that give `instance` current values (but for pending reductions) of `wanted`.
    fn find_sources(
        &mut self,
        group: usize,
        id: SetId,
        wanted: &Cover,
        instance: &Arc<PhysicalInstance>,
        movements: &mut SmallVec<[Movement; 4]>,
    ) {
        let forest = Arc::clone(self.data.root.space().forest());
        let shapes = forest.shapes();
        let fields = self.data.group(group).fields.clone();
        let set = self.data.group(group).set(id);
        let mut missing = set.missing(instance, wanted, shapes);
        if missing.is_nothing() {
            return;
        }
        let mut movement = |source: Source, cover: Cover| {
            let Some(shape) = cover.shape(&set.shape).cloned() else { return };
            let destination = Arc::clone(instance);
            movements.push(Movement { group, set: id, fields: fields.clone(), cover, shape, source, destination });
        };
        let useful = |view: &&View| view.valid.overlaps(&missing, shapes) && view.instance.id() != instance.id();
        let mut sources: SmallVec<[(Arc<PhysicalInstance>, Cover); 4]> =
            set.views.iter().filter(useful).map(|view| (Arc::clone(view.instance.arc()), view.valid.clone())).collect();
        if sources.len() > 1 {
            let candidates: Vec<_> = sources.iter().map(|(source, _)| Arc::clone(source)).collect();
            let order = (self.rank)(&candidates, instance);
            sources.sort_by_key(|(source, _)| {
                let position = candidates.iter().position(|candidate| candidate.id() == source.id());
                position.and_then(|position| order.iter().position(|&ranked| ranked == position)).unwrap_or(usize::MAX)
            });
        }
        for (source, valid) in sources {
            let part = valid.and(&missing, &set.shape, shapes);
            if !part.is_nothing() {
                missing = missing.minus(&part, &set.shape, shapes);
                movement(Source::Instance(source), part);
            }
        }
        if let (Some(value), false) = (&set.fill, missing.is_nothing()) {
            movement(Source::Fill(value.clone()), missing);
        }
    }

    /// Has the machine carry movements out and notes the result: one operation for all that have source and destination in common, and whose
    /// values come from the same operations, so that the failure of one of those spoils nothing else.
    fn issue(&mut self, movements: &[Movement]) {
        let mut groups: SmallVec<[SmallVec<[&Movement; 2]>; 2]> = SmallVec::new();
        let mut known = FxHashMap::default();
        for movement in movements {
            let key = (movement.route(), self.makers(movement).shared());
            let group = *known.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push(SmallVec::new());
            }
            groups[group].push(movement);
        }
        for group in groups {
            let together = || group.iter().copied();
            let mut after = Preconditions::default();
            together().for_each(|movement| self.gather_movement(movement, &mut after));
            let event = self.core.transfer(together().flat_map(Movement::transfers), &after);
            self.core.note_copies(event, together(), &after);
            together().for_each(|movement| self.commit_movement(movement, event));
        }
    }

    /// Who made the values that a movement takes.
    fn makers(&self, movement: &Movement) -> Makers {
        match &movement.source {
            Source::Instance(source) => {
                let set = self.set(movement.group, movement.set);
                let from = set.find_view(source).expect("a source is one of the set's views");
                set.views[from].writers.makers(&movement.cover, &set.shape, self.data.shapes())
            }
            Source::Fill(value) => Makers::OfAll(value.origin().into_iter().collect()),
        }
    }

    fn gather_movement(&mut self, movement: &Movement, after: &mut Preconditions) {
        let view = self.view(movement.group, movement.set, &movement.destination, after);
        let set = self.set(movement.group, movement.set);
        let shapes = self.data.shapes();
        after.need(movement.destination.ready());
        set.views[view].writers.touching(&movement.cover, shapes, &mut after.follows);
        set.views[view].readers.touching(&movement.cover, shapes, &mut after.follows);
        match self.makers(movement) {
            Makers::OfAll(events) => events.into_iter().for_each(|event| after.need(event)),
            Makers::OfParts(uses) => uses.events().for_each(|event| after.follow(event)),
        }
    }

    fn commit_movement(&mut self, movement: &Movement, event: Event) {
        let forest = Arc::clone(self.data.root.space().forest());
        let realm = self.core.pruning_realm();
        let makers = self.makers(movement);
        let set = self.data.group_mut(movement.group).set_mut(movement.set);
        if let Source::Instance(source) = &movement.source {
            let from = set.find_view(source).expect("a source is one of the set's views");
            set.add_reader(from, event, movement.cover.clone(), realm);
        }
        let to = set.find_view(&movement.destination).expect("made when the movement was gathered");
        set.add_writer(to, event, movement.cover.clone(), forest.shapes());
        if let Makers::OfParts(makers) = makers {
            // The copy does not fail with any of them, so whoever uses its values asks them too.
            set.views[to].writers.append(makers);
        }
        let valid = set.views[to].valid.plus(&movement.cover, &set.shape, forest.shapes());
        set.views[to].valid = valid;
    }

    /// Applies (or, in a buffer, folds) all pending reductions of a set into an instance that holds current values of it, in program order:
    /// one operation for all that have their points in common, so that the failure of a contributor spoils no other points.
    fn apply_pending(&mut self, group: usize, id: SetId, into: &Arc<PhysicalInstance>, fields: &FieldMask) {
        let pending = std::mem::take(&mut self.set_mut(group, id).pending);
        if pending.is_empty() {
            return;
        }
        // What used the instance before, unknown to the set, is among the view's readers now.
        self.view(group, id, into, &mut Preconditions::default());
        let fields = self.data.group(group).fields.intersection(fields);
        for (cover, together) in by_cover(pending) {
            self.apply_together(group, id, (&cover, &together), (into, &fields));
        }
        self.set_mut(group, id).keep_only(into);
    }

    /// Applies reductions to a part of a set, as one operation. Like a task that contributes in place, it looks at no values.
    fn apply_together(
        &mut self,
        group: usize,
        id: SetId,
        (cover, together): (&Cover, &[PendingReduction]),
        (into, fields): (&Arc<PhysicalInstance>, &FieldMask),
    ) {
        let mut after = Preconditions::default();
        after.need(into.ready());
        let set = self.set(group, id);
        let view = view_of(set, into);
        set.views[view].writers.touching(cover, self.data.shapes(), &mut after.follows);
        set.views[view].readers.touching(cover, self.data.shapes(), &mut after.follows);
        together.iter().flat_map(|reduction| &reduction.writers).for_each(|&writer| after.need(writer));
        let transfers = self.core.reductions(together, &set.shape, fields, into);
        let event = self.core.transfer(transfers, &after);
        self.core.note_reductions(event, together, into, &after);
        for reduction in together {
            reduction.buffer.leave_behind([event]);
        }
        let (forest, realm) = (Arc::clone(self.data.root.space().forest()), self.core.pruning_realm());
        self.set_mut(group, id).add_changer(view, event, cover.clone(), (forest.shapes(), realm));
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
        let set = self.set(group, id);
        let (view, shapes) = (&set.views[view], self.data.shapes());
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

    fn commit_read(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<PhysicalInstance>,
        event: Event,
    ) {
        let realm: Option<&Realm> = self.core.pruning_realm();
        let forest = Arc::clone(self.data.root.space().forest());
        let mut forgot = false;
        for (id, cover) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            match set.find_view(instance) {
                Some(view) => set.add_reader(view, event, cover.clone(), realm),
                // Another requirement of the task had reductions applied elsewhere, at points that this one does not see.
                None => instance.leave_behind([event]),
            }
            if set.views.len() >= MANY_COPIES && set.views.len().is_power_of_two() {
                forgot |= set.forget_copies(None, (forest.shapes(), self.core.realm()));
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
        let forest = Arc::clone(region.space().forest());
        let ids: SmallVec<[SetId; 4]> = touched.iter().map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        let group = self.data.group_mut(group);
        let set = group.unite(&ids, region.space().shape());
        let set = group.set_mut(set);
        set.pending.clear();
        // After uniting, one view of the instance is enough: the operation has come after all uses.
        let mut first = true;
        set.views.retain(|view| view.instance.id() == instance.id() && std::mem::take(&mut first));
        set.keep_only(instance);
        set.add_writer(view_of(set, instance), event, Cover::Everything, forest.shapes());
    }

    fn commit_in_place(
        &mut self,
        group: usize,
        touched: &[(SetId, Cover)],
        instance: &Arc<PhysicalInstance>,
        event: Event,
    ) {
        let (forest, realm) = (Arc::clone(self.data.root.space().forest()), self.core.pruning_realm());
        for (id, _) in touched {
            let set = self.data.group_mut(group).set_mut(*id);
            set.keep_only(instance);
            set.add_changer(view_of(set, instance), event, Cover::Everything, (forest.shapes(), realm));
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
        for event in instance.leftovers(realm) {
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

/// Reductions by the points that they are about, those of the first first. Beyond a number of different sets of points, all are one: whoever
/// looks at the values must look through the list.
fn by_cover(pending: Vec<PendingReduction>) -> Vec<(Cover, Vec<PendingReduction>)> {
    let mut groups: Vec<(Cover, Vec<PendingReduction>)> = Vec::new();
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
