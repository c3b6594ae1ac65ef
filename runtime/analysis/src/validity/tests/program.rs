//! Programs: operations one after the other with instances chosen at random, against a model that carries them out in
//! this order.

use std::sync::Arc;

use maniple_region::operators::{Product, Sum};
use maniple_region::{FieldId, FieldMask, OperatorId};

use super::super::{Access, AccessPlace, Analysis, Instances, Mode, Places, Preconditions, Preparation, ValidityState};
use super::choosing::clear;
use super::machine::{Machine, Memory, Teller, mask};
use super::plan::{Act, Action, Bits, Column, End, FIELDS, Mask, Operator, POINTS, Step, each};
use super::random::Random;
use super::world::World;

/// One access of an operation: which region, which fields, how, and a seed for the choice of instances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) region: u8,
    pub(super) fields: u8,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Discard,
    Reduce(Operator),
}

/// When an operation begins to use its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// When all of it is there.
    Together,
    /// When each access's is there.
    Each,
    /// When all of it is there, but for what it does itself.
    Leaf,
}

#[derive(Clone, Debug)]
pub(super) enum Command {
    Operation {
        accesses: Vec<Wanted>,
        style: Style,
        fails: bool,
    },
    /// An earlier operation, with the same instances where they are of values.
    Again {
        which: u8,
        fails: bool,
    },
    Fill {
        region: u8,
        fields: u8,
    },
    /// An operation that was to write could not be mapped.
    Lose {
        region: u8,
        fields: u8,
    },
    Refine {
        partition: u8,
        fields: u8,
    },
    /// Forgets copies in some of the instances.
    Forget {
        instances: u8,
    },
    /// Lets go of instances that are not needed.
    Retire,
    /// Steps end.
    Advance,
}

/// Of what region a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Fresh,
    /// Of one whose values came in two instances.
    Inherited,
    /// Of one to which it may only contribute, by addition: in buffers, or to values.
    Contributing {
        to_buffers: bool,
    },
}

/// An access with its instances.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) wanted: Wanted,
    pub(super) mode: Mode,
    pub(super) instances: Instances<Memory>,
    pub(super) homes: Instances<Memory>,
}

struct Known {
    chosen: Vec<Chosen>,
    style: Style,
    places: Places,
}

/// An instance, with the region that it was made for and the operations that were mapped to it.
pub(super) struct Entry {
    pub(super) instance: Arc<Memory>,
    pub(super) region: usize,
    pub(super) users: Vec<End>,
}

pub(super) struct Program {
    pub(super) world: World,
    pub(super) machine: Machine,
    pub(super) state: ValidityState<Memory>,
    pub(super) instances: Vec<Entry>,
    /// Memories without an instance, whether they are for buffers, and after what they may be used.
    pub(super) free: Vec<(usize, bool, Vec<End>)>,
    /// The number of the latest instance.
    pub(super) latest: usize,
    known: Vec<Known>,
    /// The model's values, and where they are lost.
    values: [Column; FIELDS],
    lost: [Mask; FIELDS],
    order: u64,
    /// The ends of operations, and whether they must fail.
    outcomes: Vec<(End, bool)>,
    past: Vec<Past>,
}

/// The uses of an operation, and its steps, the end last: none if it happens without a step.
struct Past {
    wanted: Vec<Wanted>,
    steps: std::ops::Range<usize>,
}

pub(super) fn fields_of(bits: u8) -> FieldMask {
    let fields: FieldMask = (0..FIELDS as u32).filter(|field| bits >> field & 1 != 0).map(FieldId).collect();
    if fields.is_empty() { FieldMask::of(FieldId(0)) } else { fields }
}

pub(super) fn operator_id(operator: Operator) -> OperatorId {
    match operator {
        Operator::Sum => OperatorId::of::<Sum>(),
        Operator::Product => OperatorId::of::<Product>(),
    }
}

impl Program {
    pub(super) fn new(world: World, machine: Machine, start: Start) -> Self {
        let state = ValidityState::fresh(world.root.clone());
        let (instances, free, known, outcomes, past) = Default::default();
        let (values, lost) = ([[0; POINTS]; FIELDS], [0; FIELDS]);
        let (latest, order) = (0, 0);
        let mut program =
            Self { world, machine, state, instances, free, latest, known, values, lost, order, outcomes, past };
        match start {
            Start::Fresh => {}
            Start::Inherited => {
                let (got, ready) = program.get(&[0b0101, 0b1010], None);
                program.state = ValidityState::inherited(program.world.root.clone(), &got, ready);
            }
            Start::Contributing { to_buffers } => {
                let (fields, operator): (&[u8], _) =
                    if to_buffers { (&[1, 2, 4, 8], Some(Operator::Sum)) } else { (&[0b0101, 0b1010], None) };
                let (sink, ready) = program.get(fields, operator);
                program.state = ValidityState::contributing(program.world.root.clone(), sink, ready);
            }
        }
        program
    }

    /// Instances from a parent, and when they are ready.
    fn get(&mut self, fields: &[u8], operator: Option<Operator>) -> (Instances<Memory>, End) {
        let (all, mut got) = (self.points(0), Instances::new());
        for &bits in fields {
            let (value, fields) = (operator.map_or(u64::from(bits), Operator::identity), fields_of(bits));
            let memory = self.machine.memory(value, operator.is_some());
            for field in fields.iter().map(|field| field.0 as usize) {
                self.values[field] = [value; POINTS];
                self.machine.make_current((field, all), Some(memory));
            }
            let instance = self.instance((memory, End::default()), (0, &fields), (operator, true));
            got.push((fields, instance));
        }
        let write = |instance: &Arc<Memory>, field: FieldId| {
            let (memory, field) = (instance.memory, field.0 as usize);
            Action { act: Act::Write(self.values[field]), memory, field, points: all }
        };
        let actions = got.iter().flat_map(|(fields, instance)| fields.iter().map(move |field| write(instance, field)));
        let ready = self.machine.add(Step { actions: actions.collect(), ..Step::default() });
        (got, ready)
    }

    pub(super) fn points(&self, region: usize) -> Mask {
        mask(self.world.regions[region].space().shape())
    }

    pub(super) fn region(&self, region: u8) -> usize {
        region as usize % self.world.regions.len()
    }

    pub(super) fn random(&self) -> &Random {
        &self.machine.random
    }

    pub(super) fn run(&mut self, command: &Command) {
        match *command {
            Command::Operation { ref accesses, style, fails } => self.operation(accesses, style, fails),
            Command::Again { which, fails } => {
                if !self.known.is_empty() {
                    let known = self.known.swap_remove(which as usize % self.known.len());
                    self.again(known, fails);
                }
            }
            Command::Fill { .. } if self.state.sink().is_some() => {}
            Command::Fill { region, fields: bits } => {
                let (region, fields, value) = (self.region(region), fields_of(bits), self.random().next());
                self.state.fill(&self.world.regions[region], &fields, value);
                self.note(vec![Wanted { region: region as u8, fields: bits, kind: Kind::Discard }], 0..0);
                self.replace(region, &fields, Some(value));
            }
            Command::Lose { region, fields: bits } => {
                let (region, fields) = (self.region(region), fields_of(bits));
                let lost = self.machine.add(Step { fails: true, ..Step::default() });
                let wanted = vec![Wanted { region: region as u8, fields: bits, kind: Kind::Discard }];
                self.note(wanted, lost.0..lost.0 + 1);
                self.state.lose(&self.world.regions[region], &fields, lost);
                self.replace(region, &fields, None);
            }
            Command::Refine { partition, fields } => {
                let partition = &self.world.partitions[partition as usize % self.world.partitions.len()];
                self.state.refine(&fields_of(fields), partition);
            }
            Command::Forget { instances } => {
                self.known.truncate(self.known.len() / 2);
                let may_go = |memory: &Memory| instances >> (memory.id % 8) & 1 != 0;
                self.state.forget_copies(may_go, &self.machine);
                self.compare();
            }
            Command::Retire => self.retire(),
            Command::Advance => self.machine.plan.borrow_mut().advance(&self.machine.random),
        }
        self.machine.advance();
    }

    /// The model gives fields one value, or loses them.
    fn replace(&mut self, region: usize, fields: &FieldMask, value: Option<u64>) {
        let points = self.points(region);
        for field in fields.iter().map(|field| field.0 as usize) {
            if self.state.sink().is_some() {
                // Nothing is overwritten.
                self.lost[field] |= points;
                continue;
            }
            self.machine.make_current((field, points), None);
            self.machine.drop_contributions((field, points));
            each(points).for_each(|point| self.values[field][point] = value.unwrap_or(0));
            match value {
                Some(_) => self.lost[field] &= !points,
                None => self.lost[field] |= points,
            }
        }
    }

    /// The state knows no current values that are not there. Copies that it has forgotten are forgotten here.
    fn compare(&mut self) {
        let mut holds = vec![[0; FIELDS]; self.machine.holds.borrow().len()];
        self.state.each_set(&self.world.root, &fields_of(0xF), |fields, set| {
            for view in set.views() {
                let points = view.valid().shape(set.shape()).map_or(0, mask);
                let memory = view.instance().memory;
                fields.iter().for_each(|field| holds[memory][field.0 as usize] |= points);
            }
            for pending in set.pending() {
                let points = pending.cover().shape(set.shape()).map_or(0, mask);
                let memory = pending.buffer().memory;
                let fields = fields.intersection(&pending.buffer().fields);
                fields.iter().for_each(|field| holds[memory][field.0 as usize] |= points);
            }
        });
        for (known, held) in holds.iter().zip(&*self.machine.holds.borrow()) {
            for (known, held) in known.iter().zip(held) {
                assert_eq!(known & !held, 0, "the state believes in stale values");
            }
        }
        // The values in a sink are its giver's: of them nothing is known.
        if self.state.sink().is_none() {
            *self.machine.holds.borrow_mut() = holds;
        }
    }

    fn operation(&mut self, accesses: &[Wanted], style: Style, fails: bool) {
        let mut wanted: Vec<Wanted> = Vec::new();
        for &access in accesses {
            let only = self.state.sink().map(|_| Kind::Reduce(Operator::Sum));
            let access = Wanted { kind: only.unwrap_or(access.kind), ..access };
            if !wanted.iter().any(|&other| self.interfere(access, other)) {
                wanted.push(access);
            }
        }
        let mut before = prepared(style, wanted.len());
        let mut chosen: Vec<Chosen> = Vec::new();
        for (number, &access) in wanted.iter().enumerate() {
            let is_twice =
                (wanted.iter().enumerate()).any(|(other, &second)| other != number && self.share(access, second));
            let one = self.choose(access, is_twice, &chosen, (number, &mut before));
            chosen.push(one);
        }
        self.issue(Known { chosen, style, places: Places::new() }, before, fails);
    }

    fn again(&mut self, mut known: Known, fails: bool) {
        let mut before = prepared(known.style, known.chosen.len());
        for number in 0..known.chosen.len() {
            if let Mode::ReduceInBuffer(_) = known.chosen[number].mode {
                let (wanted, taken) = (known.chosen[number].wanted, known.chosen[..number].to_vec());
                known.chosen[number] = self.choose(wanted, true, &taken, (number, &mut before));
                known.places.clear();
            }
        }
        self.issue(known, before, fails);
    }

    fn share(&self, a: Wanted, b: Wanted) -> bool {
        let regions = self.points(self.region(a.region)) & self.points(self.region(b.region));
        regions != 0 && fields_of(a.fields).overlaps(&fields_of(b.fields))
    }

    fn interfere(&self, a: Wanted, b: Wanted) -> bool {
        let agree = a.kind == b.kind && matches!(a.kind, Kind::Read | Kind::Reduce(_));
        self.share(a, b) && !agree
    }

    /// Has the analysis prepare an operation, adds its steps, and has the analysis know it.
    fn issue(&mut self, mut known: Known, mut before: Preparation<Memory>, fails: bool) {
        let steps = self.steps();
        self.each_access(&mut known, |analysis, access, places| {
            analysis.prepare(access, places, &mut before);
        });
        if known.chosen.iter().all(|chosen| chosen.mode == Mode::Discard) {
            assert_eq!(self.steps(), steps, "something is done for values that are overwritten");
        }
        let is_lost = |chosen: &Chosen| {
            let points = self.points(self.region(chosen.wanted.region));
            let needs = matches!(chosen.wanted.kind, Kind::Read | Kind::Write);
            needs && fields_of(chosen.wanted.fields).iter().any(|field| self.lost[field.0 as usize] & points != 0)
        };
        let must_fail = fails || known.chosen.iter().any(is_lost);
        let parts: Vec<_> = known.chosen.iter().map(|chosen| self.uses(chosen)).collect();
        let first = self.steps() + 1;
        let event = match known.style {
            Style::Each => {
                let step = |(after, actions): (&Preconditions<End>, Vec<Action>)| {
                    let (needs, follows) = (after.needs.to_vec(), after.follows.to_vec());
                    self.machine.add(Step { needs, follows, actions, ..Step::default() })
                };
                // One that uses nothing has one list all the same.
                let needs = before.after().iter().zip(parts).map(step).collect();
                self.machine.add(Step { needs, fails, ..Step::default() })
            }
            Style::Together | Style::Leaf => {
                let beginning = before.take_beginning();
                let mut actions = Vec::new();
                if let Some(beginning) = beginning {
                    beginning.empties.iter().for_each(|buffer| actions.extend(clear(buffer)));
                    beginning.applications.iter().for_each(|one| actions.extend(self.machine.apply(one)));
                }
                actions.extend(parts.into_iter().flatten());
                let after = before.after_mut();
                let (needs, follows) = (after.needs.to_vec(), after.follows.to_vec());
                self.machine.add(Step { needs, follows, actions, fails, ..Step::default() })
            }
        };
        self.note(known.chosen.iter().map(|chosen| chosen.wanted).collect(), first..event.0 + 1);
        self.machine.advance();
        self.outcomes.push((event, must_fail));
        for chosen in &known.chosen {
            self.happen(chosen, must_fail, event);
        }
        self.each_access(&mut known, |analysis, access, places| _ = analysis.commit(access, places, event));
        before.ends_with(event);
        self.order += 1;
        self.known.push(known);
    }

    fn each_access(
        &mut self,
        known: &mut Known,
        mut visit: impl FnMut(&mut Analysis<'_, Memory, Teller<'_>>, &Access<'_, Memory>, &[AccessPlace]),
    ) {
        let (mut teller, mut first) = (Teller(&self.machine), 0);
        for (number, chosen) in known.chosen.iter().enumerate() {
            let region = &self.world.regions[chosen.wanted.region as usize % self.world.regions.len()];
            let Chosen { mode, instances, homes, .. } = chosen;
            let (number, order) = ((number, 0), (self.order, 0));
            let access = Access { number, region, mode: *mode, instances, homes, order };
            let mut analysis = Analysis::new(&mut self.state, self.world.forest.shapes(), &mut teller);
            let end = analysis.locate(&access, &mut known.places, first);
            visit(&mut analysis, &access, &known.places[first..end]);
            first = end;
        }
    }

    /// A number that tells what an operation does at a point: odd, so that products forget nothing.
    fn number(&self, field: usize, point: usize) -> u64 {
        Random::new(self.order << 16 | (field << 8 | point) as u64).next() | 1
    }

    fn column(&self, field: usize) -> Column {
        std::array::from_fn(|point| self.number(field, point))
    }

    /// Returns the actions of an operation by an access.
    fn uses(&self, chosen: &Chosen) -> Vec<Action> {
        let points = self.points(self.region(chosen.wanted.region));
        let mut actions = Vec::new();
        for (fields, instance) in &chosen.instances {
            for field in fields.iter().map(|field| field.0 as usize) {
                let (memory, numbers) = (instance.memory, self.column(field));
                let mut act = |act| actions.push(Action { act, memory, field, points });
                if let Kind::Read | Kind::Write = chosen.wanted.kind {
                    act(Act::Read(self.values[field]));
                }
                match chosen.wanted.kind {
                    Kind::Read => {}
                    Kind::Write | Kind::Discard => act(Act::Write(numbers)),
                    Kind::Reduce(operator) => act(Act::Reduce(operator, numbers)),
                }
            }
        }
        actions
    }

    /// An operation happens in the model.
    fn happen(&mut self, chosen: &Chosen, has_failed: bool, event: End) {
        let points = self.points(self.region(chosen.wanted.region));
        for (fields, instance) in &chosen.instances {
            let entry = self.instances.iter_mut().find(|entry| entry.instance.id == instance.id);
            entry.unwrap().users.push(event);
            instance.since.set(instance.since.get().min(self.order));
            for field in fields.iter().map(|field| field.0 as usize) {
                let numbers = self.column(field);
                let values = &mut self.values[field];
                match chosen.wanted.kind {
                    Kind::Read => continue,
                    Kind::Write | Kind::Discard => {
                        each(points).for_each(|point| values[point] = numbers[point]);
                        self.machine.make_current((field, points), Some(instance.memory));
                        self.machine.drop_contributions((field, points));
                    }
                    Kind::Reduce(operator) => {
                        each(points).for_each(|point| values[point] = operator.apply(values[point], numbers[point]));
                        match chosen.mode {
                            Mode::ReduceInPlace(_) => self.machine.make_current((field, points), Some(instance.memory)),
                            _ => self.machine.holds.borrow_mut()[instance.memory][field] |= points,
                        }
                    }
                }
                match chosen.wanted.kind {
                    _ if has_failed => self.lost[field] |= points,
                    Kind::Discard => self.lost[field] &= !points,
                    _ => {}
                }
            }
        }
    }

    fn note(&mut self, wanted: Vec<Wanted>, steps: std::ops::Range<usize>) {
        self.past.push(Past { wanted, steps });
    }

    /// An operation comes after no other but those that it has to come after: where both use the same values and one
    /// of them changes these, and what those come after for the same reason.
    fn check_that_nothing_waits_in_vain(&self) {
        let waited_for = self.machine.plan.borrow().waited_for();
        let mut may = Vec::<Bits>::new();
        for (number, Past { wanted, steps }) in self.past.iter().enumerate() {
            let mut all = Bits::default();
            for (earlier, past) in self.past[..number].iter().enumerate() {
                let mut pairs = wanted.iter().flat_map(|&one| past.wanted.iter().map(move |&other| (one, other)));
                if pairs
                    .any(|(one, other)| self.share(one, other) && (one.kind, other.kind) != (Kind::Read, Kind::Read))
                {
                    all.add_all(&may[earlier]);
                    all.add(earlier);
                }
            }
            for (earlier, past) in self.past[..number].iter().enumerate().filter(|(_, past)| !past.steps.is_empty()) {
                let end = past.steps.end - 1;
                if let (Some(step), false) = (steps.clone().find(|&step| waited_for[step].has(end)), all.has(earlier)) {
                    let plan = self.machine.plan.borrow();
                    panic!("{wanted:?} waits for {:?} in vain: {:#?}", past.wanted, plan.way(step, end));
                }
            }
            may.push(all);
        }
    }

    fn steps(&self) -> usize {
        self.machine.plan.borrow().len()
    }

    /// Everything is looked at once more. Then the plan is carried out, in several orders.
    pub(super) fn finish(&mut self) {
        if self.state.sink().is_some() {
            self.drain()
        } else {
            self.read_all()
        }
        if self.machine.keeps_apart {
            self.check_that_nothing_waits_in_vain();
        }
        let random = self.machine.random.clone();
        let mut plan = self.machine.plan.borrow_mut();
        plan.check_order();
        plan.finish(&random);
        for &(event, must_fail) in &self.outcomes {
            assert_eq!(plan.has_failed(event), must_fail, "operation at step {}", event.0);
        }
        (0..3).for_each(|_| plan.run_again(&random));
    }

    /// Every value is read, and read again, for which nothing is to be done.
    fn read_all(&mut self) {
        let first = self.world.regions.len() - POINTS;
        for (region, field) in (first..first + POINTS).flat_map(|region| (0..FIELDS).map(move |field| (region, field)))
        {
            let read = Wanted { region: region as u8, fields: 1 << field, kind: Kind::Read };
            self.operation(&[read], Style::Together, false);
            let (steps, known) = (self.steps(), self.known.pop().expect("it was just issued"));
            self.again(known, false);
            assert_eq!(self.steps(), steps + 1, "something is done for values that are there");
        }
        self.compare();
    }

    /// Drains the state into the sink, and has the holder of the sink look at it.
    fn drain(&mut self) {
        let (mut after, mut teller) = (Preconditions::default(), Teller(&self.machine));
        Analysis::new(&mut self.state, self.world.forest.shapes(), &mut teller).drain(&mut after);
        let read = |(fields, instance): &(FieldMask, Arc<Memory>)| {
            let (memory, points) = (instance.memory, instance.points);
            let read = |field: usize| Action { act: Act::Read(self.values[field]), memory, field, points };
            fields.iter().map(|field| read(field.0 as usize)).collect::<Vec<_>>()
        };
        let actions = self.state.sink().into_iter().flatten().flat_map(read).collect();
        let (needs, follows) = (after.needs.to_vec(), after.follows.to_vec());
        let event = self.machine.add(Step { needs, follows, actions, ..Step::default() });
        self.outcomes.push((event, self.lost.iter().any(|points| *points != 0)));
    }
}

fn prepared(style: Style, accesses: usize) -> Preparation<Memory> {
    match style {
        Style::Together => Preparation::together(),
        Style::Each => Preparation::each(accesses),
        Style::Leaf => Preparation::with_beginning(),
    }
}
