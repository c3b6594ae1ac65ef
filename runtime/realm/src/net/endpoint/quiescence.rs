//! Finding out that nothing happens any more, anywhere.
//!
//! Two waves of counting (after F. Mattern, *Algorithms for Distributed Termination Detection*, 1987, the four-counter
//! method). Nodes form a binary tree; a wave goes down as probes and comes up as sums of what nodes have sent, have
//! handled, and how often they became active. A node answers only when it has come to the detection itself and is
//! passive. All is quiet if two waves in a row find the same sums, and as much handled as sent.
//!
//! **Why this is never early.** Every count only grows, so equal sums mean that no node's counts changed between its
//! two answers. Between those lies, for every node, the moment `t` when the first wave ended. A node that was passive
//! at its first answer and was not activated until its second is passive at `t`. So at `t` all nodes are passive, and
//! what was sent by then is what was handled by then: no message is under way. (A message counts as handled after its
//! handler has ended, and what the handler sent has been counted.)

use std::collections::VecDeque;

use super::barrier::BarrierStep;
use crate::machine::NodeId;
use crate::net::frame::{Header, Violation};

/// The counts of what a node has done so far, or several nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) handled: u64,
    pub(super) activations: u64,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent.wrapping_add(other.sent),
            handled: self.handled.wrapping_add(other.handled),
            activations: self.activations.wrapping_add(other.activations),
        }
    }
}

/// A node's view of the detection. `T` stands for a waiter.
pub(super) struct Quiescence<T> {
    rank: usize,
    nodes: usize,
    waiting: VecDeque<T>,
    /// The last wave that reached this node.
    wave: u64,
    /// Whether it has not been answered yet.
    open: bool,
    /// Which of the two children have answered it, and what.
    answered: [bool; 2],
    below: Counts,
    /// The sums that the wave before found; at the root alone.
    before: Option<Counts>,
}

impl<T> Quiescence<T> {
    pub(super) fn new(rank: NodeId, nodes: usize) -> Self {
        Self {
            rank: usize::from(rank.0),
            nodes,
            waiting: VecDeque::new(),
            wave: 0,
            open: false,
            answered: [false; 2],
            below: Counts::default(),
            before: None,
        }
    }

    fn children(&self) -> impl Iterator<Item = NodeId> + use<T> {
        let nodes = self.nodes;
        [2 * self.rank + 1, 2 * self.rank + 2]
            .into_iter()
            .filter(move |&child| child < nodes)
            .map(|child| NodeId(child as u16))
    }

    fn is_parent(&self, node: NodeId) -> bool {
        self.rank > 0 && usize::from(node.0) == (self.rank - 1) / 2
    }

    /// Whether there is a waiter.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// This node comes to the detection.
    pub(super) fn enter(&mut self, ticket: T) {
        self.waiting.push_back(ticket);
    }

    /// A wave comes down.
    pub(super) fn probe(&mut self, from: NodeId, wave: u64, step: &mut BarrierStep<T>) -> Result<(), Violation> {
        if !self.is_parent(from) || self.open || wave != self.wave + 1 {
            return Err(Violation::OutOfPlace("a probe that is not due"));
        }
        self.open(step);
        Ok(())
    }

    /// A wave comes up.
    pub(super) fn report(&mut self, from: NodeId, wave: u64, counts: Counts) -> Result<(), Violation> {
        let child = usize::from(from.0).wrapping_sub(2 * self.rank + 1);
        match self.answered.get_mut(child) {
            Some(answered) if self.open && wave == self.wave && !*answered => *answered = true,
            _ => return Err(Violation::OutOfPlace("a report that is not due")),
        }
        self.below = self.below.plus(counts);
        Ok(())
    }

    /// The root has found that all is quiet.
    pub(super) fn quiet(&mut self, from: NodeId, wave: u64, step: &mut BarrierStep<T>) -> Result<(), Violation> {
        if !self.is_parent(from) || self.open || wave != self.wave || self.waiting.is_empty() {
            return Err(Violation::OutOfPlace("an end that is not due"));
        }
        self.end(step);
        Ok(())
    }

    /// Takes all waiters, when quiescence will not be found any more.
    pub(super) fn give_up(&mut self) -> Vec<T> {
        self.waiting.drain(..).collect()
    }

    /// Goes on as far as can be; after every change, also of what `sample` tells: the node's counts if it is passive.
    pub(super) fn settle(&mut self, sample: &dyn Fn() -> Option<Counts>, step: &mut BarrierStep<T>) {
        while !self.waiting.is_empty() {
            if !self.open {
                if self.rank > 0 {
                    return;
                }
                self.open(step);
            }
            let answers = self.answered.iter().filter(|&&answered| answered).count();
            if answers < self.children().count() {
                return;
            }
            let Some(own) = sample() else { return };
            let found = self.below.plus(own);
            if self.rank > 0 {
                self.open = false;
                let parent = NodeId(((self.rank - 1) / 2) as u16);
                let Counts { sent, handled, activations } = found;
                step.send.push((parent, Header::Report { wave: self.wave, sent, handled, activations }));
                return;
            }
            let is_balanced = found.sent == found.handled;
            if is_balanced && self.before == Some(found) {
                self.open = false;
                self.end(step);
            } else if self.nodes == 1 && !is_balanced {
                // Alone, a wave is no message that takes a while: look again when something has changed.
                return;
            } else {
                self.open = false;
                self.before = Some(found);
            }
        }
    }

    fn open(&mut self, step: &mut BarrierStep<T>) {
        self.wave += 1;
        self.open = true;
        self.answered = [false; 2];
        self.below = Counts::default();
        step.send.extend(self.children().map(|child| (child, Header::Probe { wave: self.wave })));
    }

    fn end(&mut self, step: &mut BarrierStep<T>) {
        self.before = None;
        step.send.extend(self.children().map(|child| (child, Header::Quiet { wave: self.wave })));
        step.done.extend(self.waiting.pop_front());
    }
}
