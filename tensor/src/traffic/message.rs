//! Messages, and sums of them.

use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::rectangle::Rectangle;

/// A part of a tensor that one processor sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of the step.
    pub step: i64,
    /// Why it is sent.
    pub cause: Cause,
    /// The number of the tensor in [`Traffic::tensors`].
    pub tensor: usize,
    /// The number of the processor that has the elements.
    pub from: usize,
    /// The number of the processor that gets them.
    pub to: usize,
    /// The smallest rectangle with all elements that are sent.
    pub hull: Rectangle,
    /// How many elements are sent.
    pub elements: i64,
    /// How many bytes these are.
    pub bytes: u64,
}

/// Why something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// It is needed in the step, and fetched before.
    Fetch,
    /// Values are combined with a part of the result, after the step.
    Reduce,
    /// A part of the result goes to where it is placed, after the last step.
    Return,
}

/// All that a plan moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub(super) machine: Machine,
    pub(super) tensors: Vec<TensorVariable>,
    pub(super) steps: i64,
    pub(super) messages: Vec<Message>,
    pub(super) memory: Vec<u64>,
    /// If messages are not listed: the bytes of each tensor, and the most that a processor has.
    pub(super) unlisted: Option<(Vec<u64>, u64)>,
}

impl Traffic {
    /// Whether all messages are listed; otherwise bytes are [estimated](Self::estimated).
    pub fn is_listed(&self) -> bool {
        self.unlisted.is_none()
    }

    /// The most bytes that one processor has at one time.
    pub fn most_memory(&self) -> u64 {
        self.unlisted.as_ref().map_or_else(|| self.memory.iter().copied().max().unwrap_or(0), |(_, most)| *most)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The tensors, the result first.
    pub fn tensors(&self) -> &[TensorVariable] {
        &self.tensors
    }

    /// How many steps there are.
    pub fn steps(&self) -> i64 {
        self.steps
    }

    /// The messages, in order of steps; at most one in each step between two processors for each tensor and cause. None
    /// if they are not [listed](Self::is_listed).
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The most bytes that each processor has at one time: what is placed on it, and what it fetched or computed beside
    /// it. Nothing if messages are not [listed](Self::is_listed), for which there is
    /// [`most_memory`](Self::most_memory).
    pub fn memory(&self) -> &[u64] {
        &self.memory
    }

    fn sum(&self, wanted: impl Fn(&Message) -> bool) -> u64 {
        self.messages.iter().filter(|message| wanted(message)).map(|message| message.bytes).sum()
    }

    /// How many bytes are sent.
    pub fn bytes(&self) -> u64 {
        self.unlisted.as_ref().map_or_else(|| self.sum(|_| true), |(bytes, _)| bytes.iter().sum())
    }

    /// How many bytes of the tensor called `name` are sent.
    pub fn of_tensor(&self, name: &str) -> u64 {
        match &self.unlisted {
            None => self.sum(|message| self.tensors[message.tensor].name() == name),
            Some((bytes, _)) => {
                let of = self.tensors.iter().zip(bytes).filter(|(tensor, _)| tensor.name() == name);
                of.map(|(_, bytes)| bytes).sum()
            }
        }
    }

    /// How many bytes are sent in a step.
    pub fn of_step(&self, step: i64) -> u64 {
        self.sum(|message| message.step == step)
    }

    /// How many bytes each processor sends.
    pub fn sent(&self) -> Vec<u64> {
        self.of_processors(|message| message.from)
    }

    /// How many bytes each processor gets.
    pub fn received(&self) -> Vec<u64> {
        self.of_processors(|message| message.to)
    }

    fn of_processors(&self, processor: impl Fn(&Message) -> usize) -> Vec<u64> {
        let mut sums = vec![0; self.machine.size()];
        self.messages.iter().for_each(|message| sums[processor(message)] += message.bytes);
        sums
    }

    /// How many bytes are sent between processors for which `node` differs: if several processors share a memory, these
    /// are what really moves.
    pub fn between(&self, node: impl Fn(usize) -> usize) -> u64 {
        self.sum(|message| node(message.from) != node(message.to))
    }

    /// How many hops two processors are apart, where each dimension of each grid is a ring: for each level of the
    /// machine.
    pub fn distance(&self, mut from: usize, mut to: usize) -> Vec<usize> {
        let mut hops = Vec::with_capacity(self.machine.levels().len());
        for grid in self.machine.levels().iter().rev() {
            let mut here = 0;
            for &extent in grid.extents().iter().rev() {
                here += ring(from, to, extent);
                (from, to) = (from / extent, to / extent);
            }
            hops.push(here);
        }
        hops.reverse();
        hops
    }
}

/// How far the last coordinates of two processors are apart, where this dimension is a ring of so many.
pub(super) fn ring(from: usize, to: usize, extent: usize) -> usize {
    let apart = (from % extent).abs_diff(to % extent);
    apart.min(extent - apart)
}
