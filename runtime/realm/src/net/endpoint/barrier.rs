//! The barrier: which rounds a node is in, as a function of what arrives.
//!
//! A dissemination barrier (Hensgen, Finkel, Manber, *Two Algorithms for Barrier Synchronization*, 1988): in round `k`
//! each node tells the one `2^k` further on that it is there, and waits to be told by the one `2^k` before. After
//! `log2(n)` rounds it has heard, through others, of all.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::machine::NodeId;
use crate::net::frame::{Header, Violation};

/// The frames to send and the waiters to call after a step.
pub(super) struct BarrierStep<T> {
    pub(super) send: SmallVec<[(NodeId, Header); 4]>,
    pub(super) done: Vec<T>,
}

impl<T> Default for BarrierStep<T> {
    fn default() -> Self {
        Self { send: SmallVec::new(), done: Vec::new() }
    }
}

/// A node's view of barriers, one after the other. `T` stands for a waiter.
pub(super) struct Barrier<T> {
    rank: usize,
    nodes: usize,
    /// The barrier that is next to be completed here.
    generation: u64,
    /// The round that it waits in, if it was entered.
    round: u32,
    waiting: VecDeque<T>,
    /// Rounds of which messages have come, in this generation and the next. No node can be further: to get there, this
    /// one must have entered the next.
    received: [u64; 2],
}

impl<T> Barrier<T> {
    pub(super) fn new(rank: NodeId, nodes: usize) -> Self {
        let rank = usize::from(rank.0);
        Self { rank, nodes, generation: 0, round: 0, waiting: VecDeque::new(), received: [0; 2] }
    }

    fn rounds(&self) -> u32 {
        self.nodes.next_power_of_two().trailing_zeros()
    }

    /// This node comes to a barrier; it may come to several before the first is complete.
    pub(super) fn enter(&mut self, ticket: T) -> BarrierStep<T> {
        let mut step = BarrierStep::default();
        self.waiting.push_back(ticket);
        if self.waiting.len() == 1 {
            self.tell(&mut step);
            self.advance(&mut step);
        }
        step
    }

    /// Another node is in a round.
    pub(super) fn receive(&mut self, from: NodeId, generation: u64, round: u32) -> Result<BarrierStep<T>, Violation> {
        let ahead = generation.wrapping_sub(self.generation);
        let distance = 1_usize.checked_shl(round).unwrap_or(0);
        if ahead > 1 || round >= self.rounds() || (usize::from(from.0) + distance) % self.nodes != self.rank {
            return Err(Violation::OutOfPlace("a barrier's round that is not due"));
        }
        let received = &mut self.received[(generation % 2) as usize];
        if *received & (1 << round) != 0 {
            return Err(Violation::OutOfPlace("a barrier's round for the second time"));
        }
        *received |= 1 << round;
        let mut step = BarrierStep::default();
        self.advance(&mut step);
        Ok(step)
    }

    /// Takes all waiters, when there will be no barrier any more.
    pub(super) fn give_up(&mut self) -> Vec<T> {
        self.waiting.drain(..).collect()
    }

    fn advance(&mut self, step: &mut BarrierStep<T>) {
        while !self.waiting.is_empty() {
            if self.round == self.rounds() {
                step.done.extend(self.waiting.pop_front());
                self.received[(self.generation % 2) as usize] = 0;
                self.generation += 1;
                self.round = 0;
                if !self.waiting.is_empty() {
                    self.tell(step);
                }
                continue;
            }
            if self.received[(self.generation % 2) as usize] & (1 << self.round) == 0 {
                return;
            }
            self.round += 1;
            self.tell(step);
        }
    }

    fn tell(&self, step: &mut BarrierStep<T>) {
        if self.round < self.rounds() {
            let to = NodeId(((self.rank + (1 << self.round)) % self.nodes) as u16);
            step.send.push((to, Header::Barrier { generation: self.generation, round: self.round }));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nodes come to some barriers, and what they tell each other arrives, in any order.
        #[test]
        fn nobody_passes_a_barrier_that_somebody_has_not_come_to(nodes in 1_usize..20, barriers in 1_usize..4, seed: u64) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut all: Vec<Barrier<usize>> = (0..nodes).map(|rank| Barrier::new(NodeId(rank as u16), nodes)).collect();
            let (mut entered, mut passed) = (vec![0; nodes], vec![0; nodes]);
            let mut under_way = Vec::new();
            loop {
                let may_enter: Vec<_> = (0..nodes).filter(|&node| entered[node] < barriers).collect();
                let choices = may_enter.len() + under_way.len();
                if choices == 0 {
                    break;
                }
                let choice = random.usize(..choices);
                let (node, step) = if let Some(&node) = may_enter.get(choice) {
                    entered[node] += 1;
                    (node, all[node].enter(entered[node]))
                } else {
                    let (from, to, header): (NodeId, NodeId, Header) = under_way.swap_remove(choice - may_enter.len());
                    let Header::Barrier { generation, round } = header else { unreachable!() };
                    (usize::from(to.0), all[usize::from(to.0)].receive(from, generation, round).unwrap())
                };
                under_way.extend(step.send.into_iter().map(|(to, header)| (NodeId(node as u16), to, header)));
                for ticket in step.done {
                    passed[node] += 1;
                    prop_assert_eq!(ticket, passed[node]);
                    prop_assert!(entered.iter().all(|&entered| entered >= ticket));
                }
            }
            prop_assert!(passed.iter().all(|&passed| passed == barriers));
        }
    }

    #[test]
    fn rounds_that_are_not_due_are_refused() {
        let mut barrier: Barrier<()> = Barrier::new(NodeId(0), 4);
        assert!(barrier.receive(NodeId(3), 2, 0).is_err(), "two generations ahead");
        assert!(barrier.receive(NodeId(3), 0, 2).is_err(), "a round too many");
        assert!(barrier.receive(NodeId(2), 0, 0).is_err(), "from the wrong node");
        assert!(barrier.receive(NodeId(3), 0, 0).is_ok());
        assert!(barrier.receive(NodeId(3), 0, 0).is_err(), "twice");
    }
}
