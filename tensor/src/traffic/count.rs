//! Counts of the messages of each step. Tensors do not depend on each other.

use std::collections::BTreeMap;

use super::holders::{Homes, nearest, without};
use super::message::{Cause, Message, Traffic};
use super::needs::{Needs, Parts, together};
use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::placement::{Placed, Placement, PlacementError};
use crate::plan::{Plan, Privilege};
use crate::rectangle::Rectangle;

/// Traffic can't be told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrafficError {
    /// A tensor has no placement.
    #[error("there is no placement for {tensor}, only for {given}; give one")]
    NoPlacement {
        /// The tensor.
        tensor: String,
        /// The tensors with placements.
        given: String,
    },
    /// A placement does not fit.
    #[error("the placement of {tensor} does not fit: {reason}")]
    Placement {
        /// The tensor.
        tensor: String,
        /// Why.
        reason: PlacementError,
    },
}

impl Traffic {
    /// The traffic of `plan` on `machine`, when its tensors have these placements at the beginning, and the result is
    /// to have its placement in the end. The time it takes grows with processors, steps, and pieces: for many, see
    /// [`Traffic::estimated`].
    ///
    /// # Errors
    ///
    /// [`TrafficError`], if a placement is missing or does not fit.
    pub fn new(
        plan: &Plan,
        machine: &Machine,
        placements: &[(TensorVariable, Placement)],
    ) -> Result<Self, TrafficError> {
        let order = plan.order();
        let tensors: Vec<TensorVariable> = plan.leaf().tensors.clone();
        let near = nearest(machine);
        let mut traffic = Self {
            machine: machine.clone(),
            tensors,
            steps: order.steps(),
            messages: Vec::new(),
            memory: Vec::new(),
            unlisted: None,
        };
        let mut most = vec![0; machine.size()];
        let mut now = vec![vec![0; machine.size()]; order.steps().max(1) as usize];
        for (number, tensor) in traffic.tensors.iter().enumerate() {
            let homes = Homes::new(&place(tensor, machine, placements)?);
            let size = tensor.element().size();
            let mut count = Count { homes: &homes, near: &near, step: 0, sent: BTreeMap::new() };
            let (fixed, privilege) = plan.innermost_fetch(tensor.name());
            let mut state = TensorState::new(privilege, plan.initial.is_some(), machine.size());
            let mut needs_of_leaves = Needs::new(plan, &order, tensor, fixed, false);
            let outer = plan.outer_fetches(tensor.name()).into_iter();
            let mut outer: Vec<Needs<'_>> = outer.map(|fixed| Needs::new(plan, &order, tensor, fixed, true)).collect();
            for step in 0..order.steps() {
                count.step = step;
                for fetch in outer.iter_mut().filter(|fetch| order.is_first(step, 0, fetch.depth())) {
                    state.bring(&mut count, fetch.at(step, machine.size()));
                }
                let needed = needs_of_leaves.at(step, machine.size());
                let held = match &mut outer[..] {
                    [] => state.step(&mut count, needed),
                    outer => {
                        let fetched: Vec<&Parts> =
                            outer.iter_mut().map(|fetch| fetch.at(step, machine.size())).collect();
                        state.step(&mut count, &together(&fetched, needed))
                    }
                };
                for (sum, elements) in now[step as usize].iter_mut().zip(held) {
                    *sum += elements as u64 * size as u64;
                }
            }
            state.end(&mut count);
            for (processor, sum) in most.iter_mut().enumerate() {
                *sum += homes.volume(processor) as u64 * size as u64;
            }
            traffic.messages.extend(count.sent.into_iter().map(|((step, cause, from, to), (elements, hull))| {
                let bytes = elements as u64 * size as u64;
                Message { step, cause, tensor: number, from, to, hull, elements, bytes }
            }));
        }
        traffic.messages.sort_by_key(|message| message.step);
        for (processor, sum) in most.iter_mut().enumerate() {
            *sum += now.iter().map(|held| held[processor]).max().unwrap_or(0);
        }
        traffic.memory = most;
        Ok(traffic)
    }
}

/// The placement of a tensor on a machine.
pub(super) fn place(
    tensor: &TensorVariable,
    machine: &Machine,
    placements: &[(TensorVariable, Placement)],
) -> Result<Placed, TrafficError> {
    let given = placements.iter().find(|(other, _)| other.name() == tensor.name());
    let Some((_, placement)) = given else {
        let given: Vec<_> = placements.iter().map(|(tensor, _)| tensor.name()).collect();
        return Err(TrafficError::NoPlacement { tensor: tensor.name().to_owned(), given: given.join(", ") });
    };
    Placed::new(placement, &Rectangle::whole(tensor.dimensions()), machine)
        .map_err(|reason| TrafficError::Placement { tensor: tensor.name().to_owned(), reason })
}

/// Messages of one tensor so far, and where it is placed.
struct Count<'a> {
    homes: &'a Homes,
    near: &'a [Vec<Vec<usize>>],
    step: i64,
    sent: BTreeMap<(i64, Cause, usize, usize), (i64, Rectangle)>,
}

impl Count<'_> {
    /// Notes that a part is sent, if it has elements.
    fn send(&mut self, step: i64, cause: Cause, from: usize, to: usize, part: &Rectangle) {
        if from == to || part.is_empty() {
            return;
        }
        let sent = self.sent.entry((step, cause, from, to));
        let (elements, hull) = sent.or_insert_with(|| (0, Rectangle::empty(part.order())));
        *elements += part.volume();
        *hull = hull.hull(part);
    }

    /// Brings parts to the processors that need them, as far as they have no copies.
    fn fetch_all(&mut self, needed: &Parts, copies: &Parts) {
        let homes = self.homes;
        for (processor, parts) in needed.iter().enumerate() {
            let mut missing = Vec::new();
            for part in parts {
                let mut rest = vec![part.clone()];
                copies[processor].iter().for_each(|copy| without(&mut rest, copy));
                missing.iter().for_each(|other| without(&mut rest, other));
                missing.append(&mut rest);
            }
            for part in &missing {
                for (home, part) in homes.parts(processor, part) {
                    self.fetch(processor, &home.processors, part, copies);
                }
            }
        }
    }

    /// Brings a part that is placed elsewhere, on `homes`, to a processor: from there, or a nearer one among those that
    /// have copies.
    fn fetch(&mut self, to: usize, homes: &[usize], part: Rectangle, copies: &Parts) {
        let mut missing = vec![part];
        for near in &self.near[to] {
            for &from in near {
                for copy in &copies[from] {
                    for part in &missing {
                        self.send(self.step, Cause::Fetch, from, to, &part.intersection(copy));
                    }
                    without(&mut missing, copy);
                }
            }
            if let Some(&from) = near.iter().find(|from| homes.contains(from)) {
                missing.iter().for_each(|part| self.send(self.step, Cause::Fetch, from, to, part));
                return;
            }
        }
    }
}

/// Which processors have something beside what is placed on them.
enum TensorState {
    /// Copies of tensors that are only read: what each processor needed in the last step.
    Copies(Parts),
    /// The newest elements, disjoint, each with the processor that wrote it.
    Written {
        newest: Vec<(Rectangle, usize)>,
        /// Whether old elements matter, and those that were not written so far.
        read: bool,
        filled: bool,
    },
    /// Buffers whose elements are still to be combined with those that are placed; and what was combined so far.
    Buffers { held: Parts, changed: Vec<Rectangle> },
}

impl TensorState {
    fn new(privilege: Privilege, filled: bool, processors: usize) -> Self {
        let nothing = || vec![Vec::new(); processors];
        match privilege {
            Privilege::Read => Self::Copies(nothing()),
            Privilege::ReadWrite => Self::Written { newest: Vec::new(), read: true, filled },
            Privilege::Write => Self::Written { newest: Vec::new(), read: false, filled },
            Privilege::Reduce(_) => Self::Buffers { held: nothing(), changed: Vec::new() },
        }
    }

    /// Brings parts of a tensor that is only read to processors, beside what they have.
    fn bring(&mut self, count: &mut Count<'_>, parts: &Parts) {
        let Self::Copies(copies) = self else { return };
        count.fetch_all(parts, copies);
        for (copies, parts) in copies.iter_mut().zip(parts) {
            copies.extend(parts.iter().filter(|part| !copies.contains(part)).cloned().collect::<Vec<_>>());
        }
    }

    /// One step in which processors need these parts. Gives the number of elements that each has then beside what is
    /// placed on it.
    fn step(&mut self, count: &mut Count<'_>, needed: &Parts) -> Vec<i64> {
        let homes = count.homes;
        let beside = |(processor, parts): (usize, &Vec<Rectangle>)| -> i64 {
            parts.iter().map(|part| homes.elsewhere(processor, part)).sum()
        };
        match self {
            Self::Copies(copies) => {
                if copies == needed {
                    return needed.iter().enumerate().map(beside).collect();
                }
                let old = |(processor, parts): (usize, &Vec<Rectangle>)| -> Vec<Rectangle> {
                    parts.iter().filter(|part| !needed[processor].contains(part)).cloned().collect()
                };
                let both: Parts = copies
                    .iter()
                    .enumerate()
                    .map(old)
                    .zip(needed)
                    .map(|(old, new)| [&old, &new[..]].concat())
                    .collect();
                count.fetch_all(needed, copies);
                copies.clone_from(needed);
                both.iter().enumerate().map(beside).collect()
            }
            Self::Written { newest, read, filled } => {
                // A processor that has written something before, and needs it again, has it.
                let same = newest.iter().map(|(part, by)| (*by, part)).eq(each(needed));
                let before = newest.clone();
                for (processor, part) in each(needed).filter(|_| !same) {
                    let mut rest = vec![part.clone()];
                    for (written, by) in &before {
                        if *read {
                            count.send(count.step, Cause::Fetch, *by, processor, &part.intersection(written));
                        }
                        without(&mut rest, written);
                    }
                    if *read && !*filled {
                        for part in &rest {
                            for (home, part) in homes.parts(processor, part) {
                                count.fetch(processor, &home.processors, part, &vec![Vec::new(); needed.len()]);
                            }
                        }
                    }
                    *newest = std::mem::take(newest)
                        .into_iter()
                        .flat_map(|(written, by)| written.minus(part).into_iter().map(move |written| (written, by)))
                        .collect();
                    newest.push((part.clone(), processor));
                }
                let mut held = vec![0; needed.len()];
                for (part, processor) in newest {
                    held[*processor] += homes.elsewhere(*processor, part);
                }
                held
            }
            Self::Buffers { held, changed } => {
                for (processor, part) in each(held) {
                    if !needed[processor].contains(part) {
                        combine(count, count.step - 1, processor, part, changed);
                    }
                }
                held.clone_from(needed);
                held.iter().enumerate().map(beside).collect()
            }
        }
    }

    /// After the last step.
    fn end(self, count: &mut Count<'_>) {
        let homes = count.homes;
        let last = count.step;
        match self {
            Self::Copies(_) => {}
            Self::Written { newest, .. } => {
                for home in &homes.all {
                    for (part, by) in &newest {
                        for part in home.within(part) {
                            home.processors.iter().for_each(|&to| count.send(last, Cause::Return, *by, to, &part));
                        }
                    }
                }
            }
            Self::Buffers { held, mut changed } => {
                each(&held).for_each(|(processor, part)| combine(count, last, processor, part, &mut changed));
                for home in &homes.all {
                    for part in changed.iter().flat_map(|part| home.within(part)) {
                        let first = home.processors[0];
                        home.processors.iter().for_each(|&to| count.send(last, Cause::Return, first, to, &part));
                    }
                }
            }
        }
    }
}

fn each(parts: &Parts) -> impl Iterator<Item = (usize, &Rectangle)> {
    parts.iter().enumerate().flat_map(|(processor, parts)| parts.iter().map(move |part| (processor, part)))
}

/// Sends a buffer to where its elements are placed; if they are in several places, to the first.
fn combine(count: &mut Count<'_>, step: i64, from: usize, part: &Rectangle, changed: &mut Vec<Rectangle>) {
    let homes = count.homes;
    for home in &homes.all {
        for part in home.within(part) {
            count.send(step, Cause::Reduce, from, home.processors[0], &part);
        }
    }
    let mut new = vec![part.clone()];
    changed.iter().for_each(|before| without(&mut new, before));
    changed.append(&mut new);
}
