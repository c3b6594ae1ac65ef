//! A machine that makes a plan of all that it is told, and carries part of it out meanwhile. It knows what each memory
//! holds, and is told nothing that is not needed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use maniple_region::{FieldMask, Shape};
use smallvec::SmallVec;

use super::super::{Application, Effect, Effects, Events, Fill, Instance, InstancePart, Preconditions, Source};
use super::plan::{Act, Action, End, FIELDS, Mask, Operator, Plan, Step};
use super::random::Random;

/// An instance: a piece of memory.
#[derive(Debug)]
pub(in super::super) struct Memory {
    pub(super) id: usize,
    /// The memory that holds its values. Several instances may have had one memory, one after the other.
    pub(super) memory: usize,
    pub(super) fields: FieldMask,
    pub(super) points: Mask,
    /// If it is a buffer.
    pub(super) operator: Option<Operator>,
    /// If it is a buffer, when it was contributed to first since it was emptied.
    pub(super) since: Cell<u64>,
    pub(super) ready: End,
    pub(super) is_lent: bool,
    pub(super) holders: Cell<usize>,
    pub(super) leftovers: RefCell<Vec<(End, Option<InstancePart>)>>,
}

impl Instance for Memory {
    type Id = usize;
    type Event = End;
    type Value = u64;

    fn id(&self) -> usize {
        self.id
    }

    fn fields(&self) -> &FieldMask {
        &self.fields
    }

    fn can_hold(&self, points: &Shape) -> bool {
        self.operator.is_none() && mask(points) & !self.points == 0
    }

    fn is_lent(&self) -> bool {
        self.is_lent
    }

    fn ready(&self) -> End {
        self.ready
    }

    fn holders(&self) -> usize {
        self.holders.get()
    }

    fn hold(&self) {
        self.holders.set(self.holders.get() + 1);
    }

    fn release(&self) {
        self.holders.set(self.holders.get() - 1);
    }

    fn leave_behind(&self, uses: impl IntoIterator<Item = (End, Option<InstancePart>)>) {
        self.leftovers.borrow_mut().extend(uses);
    }

    fn leave_behind_instead(&self, event: End) {
        *self.leftovers.borrow_mut() = vec![(event, None)];
    }

    fn leftovers(&self) -> SmallVec<[End; 2]> {
        let mut leftovers: SmallVec<[End; 2]> = self.leftovers.borrow().iter().map(|(end, _)| *end).collect();
        leftovers.sort_unstable();
        leftovers.dedup();
        leftovers
    }

    fn merged_leftovers(&self) -> SmallVec<[End; 2]> {
        self.leftovers()
    }

    fn leftovers_near(&self, _: &InstancePart) -> SmallVec<[(End, Option<InstancePart>); 2]> {
        self.leftovers.borrow().iter().cloned().collect()
    }
}

/// The points of a shape: of an interval from 0, or of a grid of 3 by 4.
pub(super) fn mask(points: &Shape) -> Mask {
    let number = |coords: &[i64]| match coords {
        [x] => *x,
        [x, y] => 4 * x + y,
        _ => unreachable!("there are intervals and grids"),
    };
    points.space().points().fold(0, |mask, point| mask | 1 << number(point.coords()))
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) plan: RefCell<Plan>,
    pub(super) random: Random,
    /// Whether ended uses may be forgotten.
    prunes: bool,
    /// Whether operations that have nothing to do with each other may not come to wait for each other.
    pub(super) keeps_apart: bool,
    /// One step is carried out in so many times; none if this is zero.
    pace: u64,
    /// The points of current values in memories, and of contributions in buffers that have not been applied.
    pub(super) holds: RefCell<Vec<[Mask; FIELDS]>>,
    are_buffers: RefCell<Vec<bool>>,
}

impl Machine {
    pub(super) fn new(seed: u64, prunes: bool, keeps_apart: bool, pace: u64) -> Self {
        let (plan, holds, are_buffers) = Default::default();
        Self { plan, random: Random::new(seed), prunes, keeps_apart, pace, holds, are_buffers }
    }

    /// A new memory with a value everywhere; contributions, if it is for a buffer.
    pub(super) fn memory(&self, value: u64, is_buffer: bool) -> usize {
        self.holds.borrow_mut().push([0; FIELDS]);
        self.are_buffers.borrow_mut().push(is_buffer);
        self.plan.borrow_mut().memory(value)
    }

    pub(super) fn add(&self, step: Step) -> End {
        self.plan.borrow_mut().add(step)
    }

    /// Perhaps a step ends.
    pub(super) fn advance(&self) {
        if self.pace > 0 && self.random.once_in(self.pace) {
            self.plan.borrow_mut().advance(&self.random);
        }
    }

    /// Values are no longer current but in one memory, where they are now.
    pub(super) fn make_current(&self, (field, points): (usize, Mask), only: Option<usize>) {
        let (mut holds, are_buffers) = (self.holds.borrow_mut(), self.are_buffers.borrow());
        for (memory, (holds, is_buffer)) in holds.iter_mut().zip(&*are_buffers).enumerate() {
            match is_buffer {
                true => {}
                false if only == Some(memory) => holds[field] |= points,
                false => holds[field] &= !points,
            }
        }
    }

    /// Contributions that have not been applied are overwritten.
    pub(super) fn drop_contributions(&self, (field, points): (usize, Mask)) {
        let (mut holds, are_buffers) = (self.holds.borrow_mut(), self.are_buffers.borrow());
        let buffers = holds.iter_mut().zip(&*are_buffers).filter(|(_, is_buffer)| **is_buffer);
        buffers.for_each(|(holds, _)| holds[field] &= !points);
    }

    /// Contributions are applied to what a memory holds.
    pub(super) fn apply(&self, application: &Application<Memory>) -> Vec<Action> {
        let Application { points, fields, from, into } = application;
        let (points, mut actions) = (mask(points), Vec::new());
        for field in fields.iter().map(|field| field.0 as usize) {
            let operator = from.operator.expect("contributions come from buffers");
            let holds = |memory: usize| self.holds.borrow()[memory][field];
            assert_eq!(points & !holds(from.memory), 0, "contributions are applied that there are not");
            self.holds.borrow_mut()[from.memory][field] &= !points;
            if into.operator.is_none() {
                assert_eq!(points & !holds(into.memory), 0, "contributions are applied to stale values");
                self.make_current((field, points), Some(into.memory));
            }
            let act = Act::Apply { from: from.memory, operator };
            actions.push(Action { act, memory: into.memory, field, points });
        }
        actions
    }
}

impl Events<End> for Machine {
    fn has_ended(&self, end: End) -> bool {
        self.advance();
        self.plan.borrow().has_ended(end)
    }

    fn has_succeeded(&self, end: End) -> bool {
        self.advance();
        let plan = self.plan.borrow();
        plan.has_ended(end) && !plan.has_failed(end)
    }

    fn merge(&self, needed: &[End]) -> End {
        self.add(Step { needs: needed.to_vec(), ..Step::default() })
    }
}

/// Tells the machine.
pub(super) struct Teller<'a>(pub(super) &'a Machine);

impl Effects<Memory> for Teller<'_> {
    type Events = Machine;

    fn events(&self) -> &Machine {
        self.0
    }

    fn pruning(&self) -> Option<&Machine> {
        self.0.prunes.then_some(self.0)
    }

    fn is_catching_up(&self) -> bool {
        false
    }

    fn keeps_apart(&self) -> bool {
        self.0.keeps_apart
    }

    fn rank(&mut self, sources: &[(Arc<Memory>, FieldMask)], destination: &Memory) -> Vec<usize> {
        assert!(sources.iter().all(|(source, _)| source.id != destination.id));
        // Any order, not always of all.
        let mut left: Vec<usize> = (0..sources.len()).collect();
        let mut order = Vec::new();
        while !left.is_empty() && !self.0.random.once_in(8) {
            order.push(left.swap_remove(self.0.random.next() as usize % left.len()));
        }
        order
    }

    fn carry_out(&mut self, effect: Effect<'_, Memory>, after: &Preconditions<End>) -> End {
        let mut actions = Vec::new();
        match effect {
            Effect::Move(movements) => {
                for movement in movements {
                    let (points, to) = (mask(&movement.points), movement.destination.memory);
                    assert_eq!(movement.route(), movements[0].route());
                    let act = match &movement.source {
                        Source::Instance(from) => Act::Copy { from: from.memory },
                        Source::Fill(Fill::Value(value)) => Act::Fill { value: *value },
                        Source::Fill(Fill::Lost(_)) => Act::Fill { value: 0 },
                    };
                    for field in movement.fields.iter().map(|field| field.0 as usize) {
                        let holds = &mut self.0.holds.borrow_mut();
                        assert_eq!(points & holds[to][field], 0, "values are put where they are");
                        if let Some(from) = movement.from() {
                            assert_eq!(points & !holds[from.memory][field], 0, "stale values are copied");
                        }
                        holds[to][field] |= points;
                        actions.push(Action { act, memory: to, field, points });
                    }
                }
            }
            Effect::Apply(applications) => {
                let order = |application: &Application<Memory>| application.from.since.get();
                assert!(applications.is_sorted_by_key(order), "not in program order");
                applications.iter().for_each(|application| actions.extend(self.0.apply(application)));
            }
        }
        let (needs, follows) = (after.needs.to_vec(), after.follows.to_vec());
        let end = self.0.add(Step { needs, follows, actions, ..Step::default() });
        self.0.advance();
        end
    }

    fn leave_to_operation(&mut self, _: usize) {}
}
