//! Bringing values to an instance: where they come from, and what the copies and fills must come after.

use std::sync::Arc;

use maniple_region::FieldMask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::analysis::Analysis;
use super::cover::Cover;
use super::effects::{Effect, Effects, Movement, Source};
use super::events::{Events, Preconditions};
use super::instance::Instance;
use super::set::{Fill, View};
use super::set_index::SetId;
use super::uses::Makers;

impl<I: Instance, F: Effects<I>> Analysis<'_, I, F> {
    /// Lists the movements that give `instance` current values (but for pending reductions) of `wanted`.
    pub(super) fn find_sources(
        &mut self,
        group: usize,
        id: SetId,
        wanted: &Cover,
        instance: &Arc<I>,
        movements: &mut SmallVec<[Movement<I>; 4]>,
    ) {
        let shapes = self.shapes;
        let fields = self.state.group(group).fields.clone();
        let set = self.state.group(group).set(id);
        let mut missing = set.missing(instance, wanted, shapes);
        if missing.is_nothing() {
            return;
        }
        let mut movement = |source: Source<I>, cover: Cover| {
            let Some(points) = cover.shape(&set.shape).cloned() else { return };
            let destination = Arc::clone(instance);
            movements.push(Movement { group, set: id, fields: fields.clone(), cover, points, source, destination });
        };
        let useful = |view: &&View<I>| view.valid.overlaps(&missing, shapes) && view.instance.id() != instance.id();
        let mut sources: SmallVec<[(Arc<I>, Cover); 4]> =
            set.views.iter().filter(useful).map(|view| (Arc::clone(view.instance.arc()), view.valid.clone())).collect();
        if sources.len() > 1 {
            let valid_at_all =
                |valid: &Cover| if valid.contains(&missing, shapes) { fields.clone() } else { FieldMask::new() };
            let candidates: Vec<_> =
                sources.iter().map(|(source, valid)| (Arc::clone(source), valid_at_all(valid))).collect();
            let order = self.effects.rank(&candidates, instance);
            sources.sort_by_key(|(source, _)| {
                let position = candidates.iter().position(|(candidate, _)| candidate.id() == source.id());
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

    /// Has movements carried out and notes the result: one effect for all that have source and destination in common,
    /// and whose values come from the same operations, so that the failure of one of those invalidates nothing else. If
    /// operations are to be kept apart, each point is moved together with those alone that come after the same ones.
    pub(super) fn carry_out(&mut self, movements: &[Movement<I>]) {
        let mut apart = Vec::new();
        let movements = match self.effects.keeps_apart() {
            true => {
                movements.iter().for_each(|movement| self.split(movement, &mut apart));
                &apart
            }
            false => movements,
        };
        let mut groups: SmallVec<[SmallVec<[&Movement<I>; 2]>; 2]> = SmallVec::new();
        let mut known = FxHashMap::default();
        for movement in movements {
            let mut after = Preconditions::default();
            if self.effects.keeps_apart() {
                self.gather_movement(movement, &mut after);
                let has_ended = |event| self.effects.pruning().is_some_and(|events| events.has_ended(event));
                after.follows.retain(|event| !has_ended(*event));
            }
            let key = (movement.route(), self.makers(movement).shared(), after.follows);
            let group = *known.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push(SmallVec::new());
            }
            groups[group].push(movement);
        }
        for group in groups {
            let mut after = Preconditions::default();
            group.iter().for_each(|movement| self.gather_movement(movement, &mut after));
            let event = self.effects.carry_out(Effect::Move(&group), &after);
            group.iter().for_each(|movement| self.commit_movement(movement, event));
        }
    }

    /// Adds a movement in parts, so that all points of each come after the same operations.
    fn split(&mut self, movement: &Movement<I>, parts: &mut Vec<Movement<I>>) {
        let &Movement { group, set: id, ref cover, ref fields, ref source, ref destination, .. } = movement;
        let to = self.view(group, id, destination);
        let set = self.set(group, id);
        let from = movement.from().and_then(|source| set.find_view(source)).map(|from| &set.views[from].writers);
        let View { writers, readers, .. } = &set.views[to];
        let uses = from.into_iter().flatten().chain(writers).chain(readers);
        let (whole, shapes) = (&set.shape, self.shapes);
        let mut covers = vec![cover.clone()];
        for (_, used) in uses {
            for index in 0..covers.len() {
                let outside = covers[index].minus(used, whole, shapes);
                if !outside.is_nothing() && outside != covers[index] {
                    covers[index] = covers[index].and(used, whole, shapes);
                    covers.push(outside);
                }
            }
        }
        parts.extend(covers.into_iter().filter_map(|cover| {
            let points = cover.shape(whole)?.clone();
            let (fields, source, destination) = (fields.clone(), source.clone(), Arc::clone(destination));
            Some(Movement { group, set: id, cover, fields, points, source, destination })
        }));
    }

    /// Returns the operations that made the values that a movement takes.
    fn makers(&self, movement: &Movement<I>) -> Makers<I::Event> {
        match &movement.source {
            Source::Instance(source) => {
                let set = self.set(movement.group, movement.set);
                let from = set.find_view(source).expect("a source is one of the set's views");
                set.views[from].writers.makers(&movement.cover, &set.shape, self.shapes)
            }
            Source::Fill(Fill::Value(_)) => Makers::OfAll(SmallVec::new()),
            Source::Fill(Fill::Lost(reason)) => Makers::OfAll(SmallVec::from_iter([*reason])),
        }
    }

    fn gather_movement(&mut self, movement: &Movement<I>, after: &mut Preconditions<I::Event>) {
        let view = self.view(movement.group, movement.set, &movement.destination);
        let set = self.set(movement.group, movement.set);
        let shapes = self.shapes;
        after.need(movement.destination.ready());
        set.views[view].writers.touching(&movement.cover, shapes, &mut after.follows);
        set.views[view].readers.touching(&movement.cover, shapes, &mut after.follows);
        match self.makers(movement) {
            Makers::OfAll(events) => events.into_iter().for_each(|event| after.need(event)),
            Makers::OfParts(uses) => uses.events().for_each(|event| after.follow(event)),
        }
    }

    fn commit_movement(&mut self, movement: &Movement<I>, event: I::Event) {
        let (shapes, makers) = (self.shapes, self.makers(movement));
        let pruning = self.effects.pruning();
        let set = self.state.group_mut(movement.group).set_mut(movement.set);
        if let Source::Instance(source) = &movement.source {
            let from = set.find_view(source).expect("a source is one of the set's views");
            set.add_reader(from, event, movement.cover.clone(), pruning);
            source.may_be_spare();
        }
        movement.destination.may_be_spare();
        let to = set.find_view(&movement.destination).expect("made when the movement was gathered");
        set.views[to].writers.forget_successes(pruning);
        set.add_writer(to, event, movement.cover.clone(), shapes);
        if let Makers::OfParts(makers) = makers {
            // The copy does not fail with any of them, so an operation that uses its values asks the makers too.
            set.views[to].writers.append(makers);
        }
        let valid = set.views[to].valid.plus(&movement.cover, &set.shape, shapes);
        set.views[to].valid = valid;
    }
}
