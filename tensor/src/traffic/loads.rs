//! The loads of some processors: the elements that they get and send, without going through all processors.
//!
//! The needs of a processor in a step, and the part of them that is not placed there and was not needed in the step
//! before, follow from its own coordinates. Senders are not looked for: the processors on which the tensor is placed
//! share the sending evenly. On grids of more processors or steps than are looked at, each stands for those up to the
//! next one.

use super::count::{TrafficError, place};
use super::holders::without;
use super::needs::{Needs, Parts, together};
use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::placement::{Along, Placed, Placement};
use crate::plan::{Plan, PlanOrder, Privilege};
use crate::rectangle::Rectangle;

/// So many processors are looked at, or a few more.
const PROCESSORS: f64 = 64.0;
/// So many steps are looked at.
const STEPS: i64 = 8;

/// Some of many things that are numbered, each with how many it stands for.
pub(crate) type Sample = Vec<(i64, f64)>;

/// The first, the last, and some between.
fn spread(count: i64, most: i64) -> Sample {
    let chosen: Vec<i64> = match count <= most {
        true => (0..count).collect(),
        false => (0..most).map(|number| (number as i128 * (count - 1) as i128 / (most - 1) as i128) as i64).collect(),
    };
    let ends = chosen.iter().skip(1).copied().chain([count]);
    chosen.iter().zip(ends).map(|(&at, end)| (at, (end - at) as f64)).collect()
}

/// The processors that are looked at: corners of the grid, and some between.
fn processors(machine: &Machine) -> Sample {
    if machine.size() as f64 <= PROCESSORS {
        return spread(machine.size() as i64, i64::MAX);
    }
    let extents = machine.extents();
    let long = extents.iter().filter(|extent| **extent > 1).count();
    let each = (PROCESSORS.powf(1.0 / long as f64).round() as i64).max(2);
    extents.iter().fold(vec![(0, 1.0)], |all, &extent| {
        let along = spread(extent as i64, each);
        let next = |&(number, weight): &(i64, f64)| {
            along.iter().map(move |(at, more)| (number * extent as i64 + at, weight * more)).collect::<Vec<_>>()
        };
        all.iter().flat_map(next).collect()
    })
}

/// The steps that are looked at. The first one is like no other: nothing was there before.
fn steps(count: i64) -> Sample {
    if count <= STEPS {
        return spread(count, STEPS);
    }
    let others = spread(count - 1, STEPS - 1).into_iter().map(|(step, weight)| (step + 1, weight));
    std::iter::once((0, 1.0)).chain(others).collect()
}

/// The numbers of elements that one processor gets and sends of one tensor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Before each of the steps, and after the last one.
    pub received: Vec<f64>,
    /// The same.
    pub sent: Vec<f64>,
    /// The number of messages for that, in both directions.
    pub messages: Vec<f64>,
    /// The elements that are placed on it.
    pub placed: f64,
    /// Whether another processor has the same, and is before it.
    pub is_copy: bool,
    /// The elements that it has beside those, in each step.
    pub beside: Vec<f64>,
}

/// The loads of some processors.
pub(crate) struct Loads {
    /// The processors.
    pub processors: Sample,
    /// The steps.
    pub steps: Sample,
    /// Of each tensor, the result first, and each of the processors.
    pub of: Vec<(TensorVariable, Vec<Load>)>,
}

impl Loads {
    pub(crate) fn new(
        plan: &Plan,
        machine: &Machine,
        placements: &[(TensorVariable, Placement)],
    ) -> Result<Self, TrafficError> {
        let order = plan.order();
        let mut loads = Self { processors: processors(machine), steps: steps(order.steps().max(1)), of: Vec::new() };
        for tensor in &plan.leaf().tensors {
            let placed = place(tensor, machine, placements)?;
            let of = loads.tensor(plan, &order, tensor, &placed);
            loads.of.push((tensor.clone(), of));
        }
        Ok(loads)
    }

    fn tensor(&self, plan: &Plan, order: &PlanOrder, tensor: &TensorVariable, placed: &Placed) -> Vec<Load> {
        let (fixed, privilege) = plan.innermost_fetch(tensor.name());
        let size = placed.machine().size();
        let leaves = Needs::new(plan, order, tensor, fixed, false);
        let outer = plan.outer_fetches(tensor.name()).into_iter();
        let outer: Vec<Needs<'_>> = outer.map(|fixed| Needs::new(plan, order, tensor, fixed, true)).collect();
        let reads_old = privilege == Privilege::ReadWrite && plan.initial.is_none();
        let pieces: usize = placed.colors().into_iter().product();
        let piece = (placed.domain().volume() as f64 / pieces as f64).max(1.0);
        let load = |&(processor, _): &(i64, f64)| {
            let needed = |step: i64| -> Vec<Rectangle> {
                let of = |needs: &Needs<'_>| -> Parts { vec![needs.of(step, processor as usize, size)] };
                let outer: Vec<Parts> = outer.iter().map(of).collect();
                together(&outer.iter().collect::<Vec<_>>(), &of(&leaves)).remove(0)
            };
            let point = placed.machine().point(processor as usize);
            let home = placed.piece(&point);
            let elsewhere = |parts: &[Rectangle]| -> f64 {
                parts.iter().map(|part| part.volume() as f64 - home.within(part).volume() as f64).sum()
            };
            let is_copy = placed.copies_before(&point);
            let mut load = Load { placed: home.volume() as f64, is_copy, ..Load::default() };
            let messages = |elements: f64| if elements > 0.0 { (elements / piece).ceil() } else { 0.0 };
            let (mut returned, mut own) = (0.0, 0.0);
            for &(step, weight) in &self.steps {
                let now = needed(step);
                let before = if step > 0 { needed(step - 1) } else { Vec::new() };
                let mut missing = now.clone();
                before.iter().for_each(|part| without(&mut missing, part));
                let (new, all) = (elsewhere(&missing), elsewhere(&now));
                let (received, sent) = match privilege {
                    Privilege::Read => (new, 0.0),
                    Privilege::ReadWrite | Privilege::Write => {
                        returned += new * weight;
                        own += weight * missing.iter().map(|part| home.within(part).volume() as f64).sum::<f64>();
                        (if reads_old { new } else { 0.0 }, 0.0)
                    }
                    // The buffer of the step before.
                    Privilege::Reduce(_) if step > 0 && now != before => (0.0, elsewhere(&before)),
                    Privilege::Reduce(_) => (0.0, 0.0),
                };
                load.messages.push(messages(received + sent));
                load.received.push(received);
                load.sent.push(sent);
                load.beside.push(match privilege {
                    Privilege::Read => all + elsewhere(&before) * f64::from(u8::from(now != before)),
                    _ => all,
                });
            }
            // What was computed elsewhere comes to where it is placed.
            let last = needed(order.steps().max(1) - 1);
            let (received, sent) = match privilege {
                Privilege::Read => (0.0, 0.0),
                Privilege::ReadWrite | Privilege::Write => ((load.placed - own).max(0.0), returned),
                Privilege::Reduce(_) => (0.0, elsewhere(&last)),
            };
            load.received.push(received);
            load.sent.push(sent);
            load.messages.push(messages(received) + messages(sent));
            load
        };
        let mut loads: Vec<Load> = self.processors.iter().map(load).collect();
        self.share(&mut loads, placed, privilege);
        loads
    }

    /// Has those on which a tensor is placed send what is received, or receive what is sent to be reduced.
    fn share(&self, loads: &mut [Load], placed: &Placed, privilege: Privilege) {
        let holders = placed.machine().size() as f64 * placed.part_of_machine();
        for place in 0..=self.steps.len() {
            let sum = |of: fn(&Load) -> &Vec<f64>| -> f64 {
                loads.iter().zip(&self.processors).map(|(load, (_, weight))| of(load)[place] * weight).sum()
            };
            let (received, sent) = (sum(|load| &load.received), sum(|load| &load.sent));
            let messages = sum(|load| &load.messages) / holders;
            for load in loads.iter_mut().filter(|load| load.placed > 0.0) {
                match privilege {
                    Privilege::Reduce(_) => load.received[place] += sent / holders,
                    _ if place < self.steps.len() => load.sent[place] += received / holders,
                    _ => continue,
                }
                load.messages[place] += messages;
            }
        }
    }

    /// The elements of a tensor that move.
    pub(crate) fn moved(&self, tensor: usize) -> f64 {
        let (_, loads) = &self.of[tensor];
        let weights = self.steps.iter().map(|(_, weight)| *weight).chain([1.0]).enumerate();
        let at = |place: usize, of: fn(&Load) -> &Vec<f64>| -> f64 {
            loads.iter().zip(&self.processors).map(|(load, (_, weight))| of(load)[place] * weight).sum()
        };
        weights.map(|(place, weight)| weight * at(place, |load| &load.sent).max(at(place, |load| &load.received))).sum()
    }

    /// The most bytes that one processor has at a time.
    pub(crate) fn memory(&self) -> f64 {
        let size = |tensor: &TensorVariable| tensor.element().size() as f64;
        let of = |number: usize| {
            let placed: f64 = self.of.iter().map(|(tensor, loads)| loads[number].placed * size(tensor)).sum();
            let at = |step: usize| -> f64 {
                self.of.iter().map(|(tensor, loads)| loads[number].beside[step] * size(tensor)).sum()
            };
            placed + (0..self.steps.len()).map(at).fold(0.0, f64::max)
        };
        (0..self.processors.len()).map(of).fold(0.0, f64::max)
    }
}

impl Placed {
    /// Whether a processor before this one has the same piece.
    fn copies_before(&self, point: &[usize]) -> bool {
        let along = self.placement().levels.iter().flat_map(|level| &level.grid);
        along.zip(point).any(|(along, index)| *along == Along::Broadcast && *index > 0)
    }

    /// Which part of the processors has pieces, as far as faces say.
    fn part_of_machine(&self) -> f64 {
        let along = self.placement().levels.iter().flat_map(|level| &level.grid);
        let faces = along.zip(self.machine().extents()).filter(|(along, _)| matches!(along, Along::Fixed(_)));
        faces.map(|(_, extent)| 1.0 / extent as f64).product()
    }
}
