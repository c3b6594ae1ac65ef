//! Plans: steps with what each comes after, what comes of them in any order that this allows, and whether it allows too
//! much.

use std::collections::BTreeMap;

use super::random::Random;

/// How many points and fields there are at most.
pub(super) const POINTS: usize = 12;
pub(super) const FIELDS: usize = 4;

/// One value a point.
pub(super) type Column = [u64; POINTS];
/// Points as bits.
pub(super) type Mask = u16;

/// The end of a step, by its number from 1 on; 0 is the end of something long ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct End(pub(super) usize);

/// Steps as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    pub(super) fn add(&mut self, number: usize) {
        self.0.resize(self.0.len().max(number / 64 + 1), 0);
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn add_all(&mut self, others: &Self) {
        self.0.resize(self.0.len().max(others.0.len()), 0);
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }
}

/// Two operators that do not commute with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Sum,
    Product,
}

impl Operator {
    pub(super) fn identity(self) -> u64 {
        if self == Self::Sum { 0 } else { 1 }
    }

    pub(super) fn apply(self, value: u64, contribution: u64) -> u64 {
        match self {
            Self::Sum => value.wrapping_add(contribution),
            Self::Product => value.wrapping_mul(contribution),
        }
    }
}

/// An act of a step on the values of one field in one memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Copy {
        from: usize,
    },
    Fill {
        value: u64,
    },
    Apply {
        from: usize,
        operator: Operator,
    },
    /// A task finds these values.
    Read(Column),
    /// A task writes these values.
    Write(Column),
    /// A task contributes these.
    Reduce(Operator, Column),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) act: Act,
    pub(super) memory: usize,
    pub(super) field: usize,
    pub(super) points: Mask,
}

impl Action {
    /// The memories that it uses, and whether it changes them.
    fn uses(&self) -> impl Iterator<Item = (usize, bool)> + use<> {
        let from = match self.act {
            Act::Copy { from } | Act::Apply { from, .. } => Some((from, false)),
            _ => None,
        };
        from.into_iter().chain([(self.memory, !matches!(self.act, Act::Read(_)))])
    }
}

/// The points of a mask.
pub(super) fn each(points: Mask) -> impl Iterator<Item = usize> {
    (0..POINTS).filter(move |point| points >> point & 1 != 0)
}

#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) needs: Vec<End>,
    pub(super) follows: Vec<End>,
    pub(super) actions: Vec<Action>,
    /// It fails by itself.
    pub(super) fails: bool,
    /// The steps that had ended when it was added.
    pub(super) ended: Bits,
}

impl Step {
    fn waits_for(&self) -> impl Iterator<Item = &End> {
        self.needs.iter().chain(&self.follows).filter(|end| !self.ended.has(end.0))
    }
}

/// All memories' values at some time, and which steps have ended, and failed.
#[derive(Clone, Debug, Default)]
struct Run {
    memories: Vec<[Column; FIELDS]>,
    ended: Bits,
    failed: Bits,
}

impl Run {
    fn is_ready(&self, step: &Step) -> bool {
        let has_ended = |end: &End| end.0 == 0 || self.ended.has(end.0);
        step.needs.iter().chain(&step.follows).all(has_ended)
            && (0..).zip(&step.ended.0).all(|(word, bits)| {
                let ended = self.ended.0.get(word).copied().unwrap_or(0);
                bits & !ended == 0
            })
    }

    fn carry_out(&mut self, number: usize, step: &Step) {
        if step.needs.iter().any(|need| self.failed.has(need.0)) {
            self.failed.add(number);
        } else {
            step.actions.iter().for_each(|action| self.act(number, action));
            if step.fails {
                self.failed.add(number);
            }
        }
        self.ended.add(number);
    }

    fn act(&mut self, number: usize, &Action { act, memory, field, points }: &Action) {
        for point in each(points) {
            let value = self.memories[memory][field][point];
            self.memories[memory][field][point] = match act {
                Act::Copy { from } => self.memories[from][field][point],
                Act::Fill { value } => value,
                Act::Apply { from, operator } => operator.apply(value, self.memories[from][field][point]),
                Act::Write(column) => column[point],
                Act::Reduce(operator, column) => operator.apply(value, column[point]),
                Act::Read(column) => {
                    let expected = column[point];
                    assert_eq!(
                        value, expected,
                        "step {number} finds another value of field {field} at {point} in {memory}"
                    );
                    value
                }
            };
        }
    }
}

/// A list of steps, of which some have been carried out already.
#[derive(Debug, Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    /// The memories as they were when they were made.
    fresh: Vec<[Column; FIELDS]>,
    now: Run,
}

impl Plan {
    /// A new memory with a value everywhere.
    pub(super) fn memory(&mut self, value: u64) -> usize {
        for memories in [&mut self.fresh, &mut self.now.memories] {
            memories.push([[value; POINTS]; FIELDS]);
        }
        self.fresh.len() - 1
    }

    pub(super) fn add(&mut self, step: Step) -> End {
        self.steps.push(Step { ended: self.now.ended.clone(), ..step });
        End(self.steps.len())
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn has_ended(&self, end: End) -> bool {
        end.0 == 0 || self.now.ended.has(end.0)
    }

    pub(super) fn has_failed(&self, end: End) -> bool {
        self.now.failed.has(end.0)
    }

    /// Carries one step out, if any can be.
    pub(super) fn advance(&mut self, random: &Random) {
        advance(&self.steps, &mut self.now, random);
    }

    /// Carries all steps out.
    pub(super) fn finish(&mut self, random: &Random) {
        while advance(&self.steps, &mut self.now, random) {}
        assert!((1..=self.steps.len()).all(|number| self.now.ended.has(number)), "some steps wait for each other");
    }

    /// Carries all steps out from the beginning, in another order. Each fails again or not.
    pub(super) fn run_again(&self, random: &Random) {
        let mut run = Run { memories: self.fresh.clone(), ..Run::default() };
        while advance(&self.steps, &mut run, random) {}
        for number in 1..=self.steps.len() {
            assert_eq!(run.failed.has(number), self.now.failed.has(number), "step {number}");
        }
    }

    /// The steps that each step waits for, from step 0 on: those that it was told to come after, unless they had ended
    /// then, and what these wait for.
    pub(super) fn waited_for(&self) -> Vec<Bits> {
        let mut before = vec![Bits::default()];
        for step in &self.steps {
            let mut all = Bits::default();
            for end in step.waits_for() {
                all.add_all(&before[end.0]);
                all.add(end.0);
            }
            before.push(all);
        }
        before
    }

    /// The steps by which one waits for another, if it does.
    pub(super) fn way(&self, from: usize, to: usize) -> Option<Vec<(usize, &Step)>> {
        let step = &self.steps[from.checked_sub(1)?];
        let mut further = step.waits_for();
        let mut way = if from == to { Vec::new() } else { further.find_map(|end| self.way(end.0, to))? };
        way.push((from, step));
        Some(way)
    }

    /// Any two steps of which one changes what the other uses come after each other.
    pub(super) fn check_order(&self) {
        let mut before = vec![Bits::default()];
        let mut users: BTreeMap<(usize, usize, usize), Vec<(usize, bool)>> = BTreeMap::new();
        for (step, number) in self.steps.iter().zip(1..) {
            let mut all = step.ended.clone();
            for end in step.needs.iter().chain(&step.follows) {
                assert!(end.0 < number, "step {number} comes after a later one");
                all.add_all(&before[end.0]);
                all.add(end.0);
            }
            for action in &step.actions {
                for (memory, changes) in action.uses() {
                    for point in each(action.points) {
                        let earlier = users.entry((memory, action.field, point)).or_default();
                        for &(other, _) in
                            earlier.iter().filter(|(other, changed)| *other < number && (changes || *changed))
                        {
                            let Action { field, .. } = action;
                            let ordered = all.has(other);
                            assert!(
                                ordered,
                                "{other} and {number} both use field {field} at {point} in {memory}: {self:#?}"
                            );
                        }
                        earlier.push((number, changes));
                    }
                }
            }
            before.push(all);
        }
    }
}

/// Carries out one of the steps that can be, in a run. False if none can be.
fn advance(steps: &[Step], run: &mut Run, random: &Random) -> bool {
    let ready = |number: &usize| !run.ended.has(*number) && run.is_ready(&steps[number - 1]);
    let ready: Vec<usize> = (1..=steps.len()).filter(ready).collect();
    let Some(&number) = random.pick(&ready) else { return false };
    run.carry_out(number, &steps[number - 1]);
    true
}
