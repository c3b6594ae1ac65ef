//! A collective as one node sees it: contributions go up a tree, one outcome comes down, in `O(log n)` steps.
//!
//! The tree is binomial: below node `r` are `r + 1`, `r + 2`, `r + 4` and so on, as far as these steps are smaller than
//! `r`'s lowest bit. Each child stands for the nodes from itself to the next child, so what is combined in the order of
//! children is combined in the order of nodes: the outcome is the same on every run, and there is one outcome, whatever
//! rounding does.
//!
//! Of at most [four](FEW) nodes each sends its contribution to all others, and all combine the same in the same order:
//! one step instead of two or more, for a few messages more.

use bytes::Bytes;

use crate::names::Rank;

/// Combines the contributions of a node and of the nodes below it, in the order of nodes.
pub type Combine = Box<dyn FnOnce(Vec<Bytes>) -> Bytes + Send>;

/// Is given the outcome.
pub type Done = Box<dyn FnOnce(Bytes) + Send>;

/// Up to so many nodes send their contributions to each other directly.
const FEW: usize = 4;

/// A collective that is not over, as one node sees it.
#[derive(Default)]
pub(crate) struct Collective {
    mine: Option<(Bytes, Combine, Done)>,
    /// The contributions of other nodes, in the order of nodes.
    others: Vec<(Rank, Option<Bytes>)>,
    /// Set once the contribution was sent up.
    done: Option<Done>,
}

/// The next step of a collective on this node.
pub(crate) enum CollectiveStep {
    /// Nothing, until something else arrives.
    Wait,
    /// The contribution goes up to this node.
    Up(Rank, Bytes),
    /// The outcome is there. It goes [down](outcome_goes_to).
    Finish(Bytes, Done),
}

/// The node above, unless this is the root.
pub(crate) fn parent(rank: Rank) -> Option<Rank> {
    (rank > 0).then(|| rank & (rank - 1))
}

/// The nodes right below, in order.
pub(crate) fn children(rank: Rank, nodes: usize) -> impl Iterator<Item = Rank> {
    let limit = if rank == 0 { usize::MAX } else { rank & rank.wrapping_neg() };
    (0..usize::BITS)
        .map(|bit| 1 << bit)
        .take_while(move |&step| step < limit && rank + step < nodes)
        .map(move |step| rank + step)
}

/// The nodes that a node sends its own contribution to as it is: all others, if there are few.
pub(crate) fn contribution_goes_to(rank: Rank, nodes: usize) -> impl Iterator<Item = Rank> {
    let others = if nodes <= FEW { nodes } else { 0 };
    (0..others).filter(move |&other| other != rank)
}

/// The nodes that a node sends the outcome to, once it has it.
pub(crate) fn outcome_goes_to(rank: Rank, nodes: usize) -> impl Iterator<Item = Rank> {
    children(rank, nodes).filter(move |_| nodes > FEW)
}

impl Collective {
    /// Of a node among so many.
    pub(crate) fn new(rank: Rank, nodes: usize) -> Self {
        let others: Vec<Rank> = match nodes <= FEW {
            true => contribution_goes_to(rank, nodes).collect(),
            false => children(rank, nodes).collect(),
        };
        Self { others: others.into_iter().map(|other| (other, None)).collect(), ..Self::default() }
    }

    /// This node's own contribution.
    pub(crate) fn contribute(
        &mut self,
        rank: Rank,
        nodes: usize,
        contribution: (Bytes, Combine, Done),
    ) -> CollectiveStep {
        self.mine = Some(contribution);
        self.advance(rank, nodes)
    }

    /// The contribution of another node. None if it has no place here, or was there before.
    #[must_use]
    pub(crate) fn receive(&mut self, rank: Rank, nodes: usize, from: Rank, bytes: Bytes) -> Option<CollectiveStep> {
        let (_, contribution) = self.others.iter_mut().find(|(other, _)| *other == from)?;
        if contribution.replace(bytes).is_some() {
            return None;
        }
        Some(self.advance(rank, nodes))
    }

    /// The outcome has come down. None if it can't have.
    pub(crate) fn finish(&mut self) -> Option<Done> {
        self.done.take()
    }

    fn advance(&mut self, rank: Rank, nodes: usize) -> CollectiveStep {
        if self.others.iter().any(|(_, contribution)| contribution.is_none()) {
            return CollectiveStep::Wait;
        }
        let Some((mine, combine, done)) = self.mine.take() else { return CollectiveStep::Wait };
        let mut all = Vec::with_capacity(1 + self.others.len());
        let (below, above): (Vec<_>, Vec<_>) = self.others.drain(..).partition(|(other, _)| *other < rank);
        all.extend(below.into_iter().filter_map(|(_, contribution)| contribution));
        all.push(mine);
        all.extend(above.into_iter().filter_map(|(_, contribution)| contribution));
        let combined = combine(all);
        match parent(rank).filter(|_| nodes > FEW) {
            None => CollectiveStep::Finish(combined, done),
            Some(parent) => {
                self.done = Some(done);
                CollectiveStep::Up(parent, combined)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;
    use std::sync::mpsc::channel;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::concatenate;

    #[test]
    fn every_node_but_the_root_is_below_one_other_that_knows_it() {
        for nodes in 1..70 {
            for rank in 1..nodes {
                let parent = parent(rank).unwrap();
                assert!(parent < rank && children(parent, nodes).any(|child| child == rank), "{rank} of {nodes}");
            }
            let edges: usize = (0..nodes).map(|rank| children(rank, nodes).count()).sum();
            assert_eq!(edges, nodes - 1);
        }
    }

    #[test]
    fn the_tree_is_as_deep_as_the_logarithm_of_its_nodes() {
        let depth = |mut rank: Rank| std::iter::from_fn(move || parent(rank).inspect(|&above| rank = above)).count();
        assert_eq!((0..1024).map(depth).max(), Some(10));
        assert_eq!(children(0, 1024).count(), 10);
    }

    /// Runs one computation in a random order of contributions and messages.
    fn run(nodes: usize, order: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let (sender, outcomes) = channel();
        let mut at: Vec<_> = (0..nodes).map(|rank| Collective::new(rank, nodes)).collect();
        let mut open: Vec<(Rank, Option<(Rank, Bytes)>)> = (0..nodes).map(|rank| (rank, None)).collect();
        let down = Rc::new(RefCell::new(VecDeque::new()));
        let mut order = order.iter().cycle();
        while !open.is_empty() {
            let (rank, message) = open.swap_remove(order.next().unwrap().index(open.len()));
            let sender = sender.clone();
            let step = match message {
                Some((from, bytes)) => at[rank].receive(rank, nodes, from, bytes).unwrap(),
                None => {
                    let done: Done = Box::new(move |outcome| sender.send((rank, outcome)).unwrap());
                    let mine = Bytes::from(vec![rank as u8]);
                    open.extend(contribution_goes_to(rank, nodes).map(|other| (other, Some((rank, mine.clone())))));
                    at[rank].contribute(rank, nodes, (mine, Box::new(concatenate), done))
                }
            };
            match step {
                CollectiveStep::Wait => {}
                CollectiveStep::Up(parent, bytes) => open.push((parent, Some((rank, bytes)))),
                CollectiveStep::Finish(outcome, done) => {
                    done(outcome.clone());
                    down.borrow_mut().extend(outcome_goes_to(rank, nodes).map(|child| (child, outcome.clone())));
                }
            }
        }
        while let Some((rank, outcome)) = { down.borrow_mut().pop_front() } {
            at[rank].finish().unwrap()(outcome.clone());
            down.borrow_mut().extend(outcome_goes_to(rank, nodes).map(|child| (child, outcome.clone())));
        }
        drop(sender);
        let mut found: Vec<_> = outcomes.iter().collect();
        found.sort_by_key(|(rank, _)| *rank);
        assert_eq!(found.len(), nodes);
        found.into_iter().map(|(_, outcome)| outcome.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn contributions_are_combined_in_the_order_of_nodes_whatever_comes_first(
            nodes in 1..40_usize, order in prop::collection::vec(any::<prop::sample::Index>(), 1..80)
        ) {
            let expected: Vec<u8> = (0..nodes as u8).collect();
            prop_assert!(run(nodes, &order).iter().all(|outcome| *outcome == expected));
        }
    }
}
