//! Bringing values to an instance: where they come from, and what the copies and fills must come after.

use std::sync::Arc;

use maniple_realm::Event;
use maniple_region::FieldMask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Analysis;
use crate::physical::cover::Cover;
use crate::physical::instance::PhysicalInstance;
use crate::physical::movement::{Movement, Preconditions, Source};
use crate::physical::set::View;
use crate::physical::set_index::SetId;
use crate::physical::uses::Makers;

impl Analysis<'_> {
    /// Lists the movements that give `instance` current values (but for pending reductions) of `wanted`.
    pub(super) fn find_sources(
        &mut self,
        group: usize,
        id: SetId,
        wanted: &Cover,
        instance: &Arc<PhysicalInstance>,
        movements: &mut SmallVec<[Movement; 4]>,
    ) {
        let shapes = self.shapes;
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
            let valid_at_all =
                |valid: &Cover| if valid.contains(&missing, shapes) { fields.clone() } else { FieldMask::new() };
            let candidates: Vec<_> =
                sources.iter().map(|(source, valid)| (Arc::clone(source), valid_at_all(valid))).collect();
            let order = (self.rank)(&candidates, instance);
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

    /// Has the machine carry movements out and notes the result: one operation for all that have source and destination in common, and whose
    /// values come from the same operations, so that the failure of one of those invalidates nothing else.
    pub(super) fn issue(&mut self, movements: &[Movement]) {
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
            let transfers = || together().flat_map(Movement::transfers);
            let instances = || together().take(1).flat_map(Movement::instances).collect();
            let event = self.issuing.transfer(self.store, transfers, instances, &after, |event| {
                self.store.note_copies(event, together(), (&after, self.issuer));
            });
            together().for_each(|movement| self.commit_movement(movement, event));
        }
    }

    /// Who made the values that a movement takes.
    fn makers(&self, movement: &Movement) -> Makers {
        match &movement.source {
            Source::Instance(source) => {
                let set = self.set(movement.group, movement.set);
                let from = set.find_view(source).expect("a source is one of the set's views");
                set.views[from].writers.makers(&movement.cover, &set.shape, self.shapes)
            }
            Source::Fill(value) => Makers::OfAll(value.origin().into_iter().collect()),
        }
    }

    fn gather_movement(&mut self, movement: &Movement, after: &mut Preconditions) {
        let view = self.view(movement.group, movement.set, &movement.destination, after);
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

    fn commit_movement(&mut self, movement: &Movement, event: Event) {
        let (shapes, realm) = (self.shapes, self.store.pruning_realm());
        let makers = self.makers(movement);
        let set = self.data.group_mut(movement.group).set_mut(movement.set);
        if let Source::Instance(source) = &movement.source {
            let from = set.find_view(source).expect("a source is one of the set's views");
            set.add_reader(from, event, movement.cover.clone(), realm);
        }
        let to = set.find_view(&movement.destination).expect("made when the movement was gathered");
        set.views[to].writers.forget_successes(realm);
        set.add_writer(to, event, movement.cover.clone(), shapes);
        if let Makers::OfParts(makers) = makers {
            // The copy does not fail with any of them, so whoever uses its values asks them too.
            set.views[to].writers.append(makers);
        }
        let valid = set.views[to].valid.plus(&movement.cover, &set.shape, shapes);
        set.views[to].valid = valid;
    }
}
