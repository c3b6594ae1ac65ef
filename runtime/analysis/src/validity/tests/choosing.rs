//! Instances for operations: some that there are, some new, in memory that was used before or not.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask};

use super::super::{Instance, Instances, Mode, Preparation};
use super::machine::Memory;
use super::plan::{Act, Action, End, FIELDS, Operator, Step};
use super::program::{Chosen, Entry, Kind, Program, Wanted, fields_of, operator_id};

impl Program {
    /// An instance in a memory.
    pub(super) fn instance(
        &mut self,
        (memory, ready): (usize, End),
        (region, fields): (usize, &FieldMask),
        (operator, is_lent): (Option<Operator>, bool),
    ) -> Arc<Memory> {
        self.latest += 1;
        let (id, points, fields) = (self.latest, self.points(region), fields.clone());
        let (holders, leftovers, since) = (Cell::new(0), RefCell::default(), Cell::new(u64::MAX));
        #[allow(clippy::arc_with_non_send_sync, reason = "one thread")]
        let instance =
            Arc::new(Memory { id, memory, fields, points, operator, since, ready, is_lent, holders, leftovers });
        self.instances.push(Entry { instance: Arc::clone(&instance), region, users: Vec::new() });
        instance
    }

    /// A new instance, perhaps in memory that was used before.
    fn new_instance(&mut self, region: usize, fields: &FieldMask, operator: Option<Operator>) -> Arc<Memory> {
        let value = operator.map_or_else(|| self.random().next(), Operator::identity);
        let apart = self.machine.keeps_apart;
        let may_take = |uses: &[End]| !apart || uses.iter().all(|&end| self.machine.plan.borrow().has_ended(end));
        let found =
            (self.free.iter()).position(|(_, is_buffer, uses)| *is_buffer == operator.is_some() && may_take(uses));
        let (memory, ready) = match found {
            None => (self.machine.memory(value, operator.is_some()), End::default()),
            Some(found) => {
                let (memory, _, follows) = self.free.swap_remove(found);
                let fill = |field| Action { act: Act::Fill { value }, memory, field, points: !0 };
                let actions = (0..FIELDS).map(fill).collect();
                (memory, self.machine.add(Step { follows, actions, ..Step::default() }))
            }
        };
        self.instance((memory, ready), (region, fields), (operator, false))
    }

    /// Lets go of instances that are not needed.
    pub(super) fn retire(&mut self) {
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.instances).into_iter().partition(|entry| {
            entry.instance.holders() > 0 || Arc::strong_count(&entry.instance) > 1 || entry.instance.is_lent
        });
        self.instances = kept;
        for Entry { instance, mut users, .. } in gone {
            users.extend(instance.leftovers());
            users.push(instance.ready);
            self.free.push((instance.memory, instance.operator.is_some(), users));
        }
    }

    /// Chooses instances for an access, and empties buffers that are used again.
    pub(super) fn choose(
        &mut self,
        wanted: Wanted,
        is_twice: bool,
        taken: &[Chosen],
        (number, before): (usize, &mut Preparation<Memory>),
    ) -> Chosen {
        let (region, fields) = (self.region(wanted.region), fields_of(wanted.fields));
        let (mut homes, instances) = (Instances::new(), Instances::new());
        let mode = match wanted.kind {
            Kind::Read => Mode::Read,
            Kind::Write => Mode::Write,
            Kind::Discard => Mode::Discard,
            Kind::Reduce(operator) if !is_twice && self.state.sink().is_none() && self.random().once_in(3) => {
                Mode::ReduceInPlace(operator_id(operator))
            }
            Kind::Reduce(operator) => {
                let mut instances = instances;
                for field in fields.iter() {
                    let buffer = self.buffer(region, field, operator, taken, (number, before));
                    instances.push((FieldMask::of(field), buffer));
                }
                if self.state.is_homeless(&self.world.regions[region], &fields, operator_id(operator)) {
                    homes = self.values(region, &fields);
                }
                return Chosen { wanted, mode: Mode::ReduceInBuffer(operator_id(operator)), instances, homes };
            }
        };
        Chosen { wanted, mode, instances: self.values(region, &fields), homes }
    }

    /// Instances of values.
    fn values(&mut self, region: usize, fields: &FieldMask) -> Instances<Memory> {
        let (mut missing, points, mut found) = (fields.clone(), self.points(region), Instances::new());
        loop {
            let Some(field) = missing.iter().next() else { return found };
            let fits = |entry: &&Entry| {
                let instance = &entry.instance;
                instance.operator.is_none() && instance.fields.contains(field) && points & !instance.points == 0
            };
            let known: Vec<_> = self.instances.iter().filter(fits).map(|entry| Arc::clone(&entry.instance)).collect();
            let known = known.into_iter().filter(|_| !self.random().once_in(3)).last();
            let instance = known.unwrap_or_else(|| {
                let wide = (0..self.world.regions.len()).filter(|&wide| points & !self.points(wide) == 0);
                let wide: Vec<_> = wide.filter(|_| self.random().once_in(2)).collect();
                let more = fields.union(&fields_of(self.random().next() as u8));
                self.new_instance(wide.last().copied().unwrap_or(region), &more, None)
            });
            let common = missing.intersection(&instance.fields);
            missing = missing.difference(&common);
            found.push((common, instance));
        }
    }

    /// A buffer for contributions to a field of a region: one whose contributions are still pending, one that is free
    /// and is emptied, or a new one.
    fn buffer(
        &mut self,
        region: usize,
        field: FieldId,
        operator: Operator,
        taken: &[Chosen],
        (number, before): (usize, &mut Preparation<Memory>),
    ) -> Arc<Memory> {
        let column = FieldMask::of(field);
        let is_taken = |id| taken.iter().flat_map(|chosen| &chosen.instances).any(|(_, instance)| instance.id == id);
        let fits = |entry: &&Entry| {
            let instance = &entry.instance;
            let is_same = instance.operator == Some(operator) && entry.region == region && instance.fields == column;
            is_same && !is_taken(instance.id)
        };
        let known: Vec<_> = self.instances.iter().filter(fits).map(|entry| Arc::clone(&entry.instance)).collect();
        for buffer in known {
            if self.random().once_in(4) {
                continue;
            }
            if buffer.holders() == 0 {
                self.empty(&buffer, (number, before));
                return buffer;
            }
            if self.state.contributors(&buffer, &self.world.regions[region]).is_some() {
                return buffer;
            }
        }
        self.new_instance(region, &column, Some(operator))
    }

    fn empty(&self, buffer: &Arc<Memory>, (number, before): (usize, &mut Preparation<Memory>)) {
        buffer.since.set(u64::MAX);
        let leftovers = buffer.leftovers();
        if before.empty(buffer) {
            before.of(number).need(buffer.ready);
            leftovers.into_iter().for_each(|event| before.of(number).follow(event));
            return;
        }
        let step = Step { needs: vec![buffer.ready], follows: leftovers.to_vec(), ..Step::default() };
        let emptied = self.machine.add(Step { actions: clear(buffer), ..step });
        before.of(number).need(emptied);
        buffer.leave_behind_instead(emptied);
    }
}

/// Returns the actions that empty a buffer.
pub(super) fn clear(buffer: &Memory) -> Vec<Action> {
    let value = buffer.operator.map_or(0, Operator::identity);
    let act = Act::Fill { value };
    let one = |field: FieldId| Action { act, memory: buffer.memory, field: field.0 as usize, points: buffer.points };
    buffer.fields.iter().map(one).collect()
}
