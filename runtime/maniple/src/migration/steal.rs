//! The policy of stealing: which node is asked for work, and which node gets some.
//!
//! A node without work asks the others, one after the other; a node that has no task to spare remembers the thief, and
//! gives it the next one. Whether a thief may have a certain task is for the mapper to say (`Mapper::permit_steal`,
//! `permit_steal_with_data`), which the callers ask.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;

/// A node asks so many others at most, and begins with another one the next time. More would be more messages the more
/// nodes there are.
const MOST_ASKED: usize = 8;

/// The victims that this node has asked since it ran out of work.
#[derive(Default)]
pub(super) struct Search {
    /// Whether it has asked, and was given nothing since.
    is_asking: AtomicBool,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    first: usize,
    refused: usize,
}

impl Search {
    /// This node is idle: whether it is to ask, which it has not done yet.
    pub(super) fn begin(&self) -> bool {
        if self.is_asking.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut asked = self.asked.lock();
        (asked.first, asked.refused) = (asked.first.wrapping_add(1), 0);
        true
    }

    /// A victim has nothing to spare.
    pub(super) fn refused(&self) {
        self.asked.lock().refused += 1;
    }

    /// This node was given something.
    pub(super) fn end(&self) {
        self.is_asking.store(false, Ordering::Release);
    }

    /// The next node to ask, as seen from this one of so many; none if enough have refused.
    pub(super) fn next_victim(&self, rank: Rank, nodes: usize) -> Option<Rank> {
        let (asked, others) = (self.asked.lock(), nodes - 1);
        let step = || (asked.first % others + asked.refused) % others;
        (asked.refused < others.min(MOST_ASKED)).then(|| (rank + 1 + step()) % nodes)
    }
}

/// The nodes that want work of this one.
#[derive(Default)]
pub(super) struct Thieves {
    nodes: Mutex<Nodes>,
    // What others read without the lock. It is written under it.
    have_asked: AtomicBool,
    take_leaves: AtomicBool,
}

#[derive(Default)]
struct Nodes {
    /// The nodes that have asked, and were not given anything since.
    asked: VecDeque<Rank>,
    /// The nodes that run a stolen leaf task, or have just sent back the results of their stolen tasks: the next leaf
    /// task is better on its way by the time that they ask. Only while more tasks could begin here than there are
    /// workers, as others may have given them work since.
    again: VecDeque<Rank>,
    /// The number of batches for thieves that leaf tasks join.
    batches: usize,
}

impl Thieves {
    /// Whether a node has asked, and was not given anything since.
    #[inline]
    pub(super) fn have_asked(&self) -> bool {
        self.have_asked.load(Ordering::Relaxed)
    }

    /// Whether a leaf task that is about to run is to go to a thief.
    #[inline]
    pub(super) fn take_leaves(&self) -> bool {
        self.take_leaves.load(Ordering::Relaxed)
    }

    /// A node has asked.
    pub(super) fn ask(&self, node: Rank) {
        self.change(|nodes| {
            if !nodes.asked.contains(&node) {
                nodes.asked.push_back(node);
            }
        });
    }

    /// A node has sent back the results of what it had stolen.
    pub(super) fn may_have_another(&self, node: Rank) {
        self.change(|nodes| {
            if !nodes.asked.contains(&node) {
                nodes.come_again(node);
            }
        });
    }

    /// Nothing but what runs could begin here: nodes are given something only if they ask again.
    pub(super) fn backlog_is_over(&self) {
        self.change(|nodes| nodes.again.clear());
    }

    /// Gives the first of those that have asked something; if there is something to be given, that has not asked any
    /// more.
    pub(super) fn give_first<G>(&self, give: impl FnOnce(Rank) -> Option<G>) -> Option<(Rank, G)> {
        self.change(|nodes| {
            let &first = nodes.asked.front()?;
            let given = give(first)?;
            nodes.asked.pop_front();
            Some((first, given))
        })
    }

    /// The node that gets a leaf task next, if it is permitted to have that. Each gets one before any gets another; but
    /// one that is to get its share of a launch is given nothing else before it asks again, or has sent that back.
    pub(super) fn take(&self, is_share: bool, is_permitted: impl FnOnce(Rank) -> bool) -> Option<Rank> {
        self.change(|nodes| {
            let first = nodes.asked.front().or(nodes.again.front()).copied().filter(|&first| is_permitted(first))?;
            match nodes.asked.pop_front() {
                Some(_) if is_share => nodes.again.retain(|&other| other != first),
                Some(_) => nodes.come_again(first),
                None => drop(nodes.again.pop_front()),
            }
            Some(first)
        })
    }

    /// Whether a node is to get a leaf task that belongs to no batch.
    pub(super) fn want_leaves(&self) -> bool {
        let nodes = self.nodes.lock();
        !nodes.asked.is_empty() || !nodes.again.is_empty()
    }

    /// Leaf tasks join a batch for a thief from now on.
    pub(super) fn open_batch(&self) {
        self.change(|nodes| nodes.batches += 1);
    }

    /// They join it no more.
    pub(super) fn close_batch(&self) {
        self.change(|nodes| nodes.batches -= 1);
    }

    fn change<R>(&self, change: impl FnOnce(&mut Nodes) -> R) -> R {
        let mut nodes = self.nodes.lock();
        let result = change(&mut nodes);
        let has_asked = !nodes.asked.is_empty();
        self.have_asked.store(has_asked, Ordering::SeqCst);
        self.take_leaves.store(has_asked || !nodes.again.is_empty() || nodes.batches > 0, Ordering::SeqCst);
        result
    }
}

impl Nodes {
    fn come_again(&mut self, node: Rank) {
        if !self.again.contains(&node) {
            self.again.push_back(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(thieves: &Thieves) -> Vec<Rank> {
        std::iter::from_fn(|| thieves.take(false, |_| true)).collect()
    }

    #[test]
    fn each_node_that_asks_is_given_two_leaf_tasks_but_none_a_second_before_all_have_one() {
        let thieves = Thieves::default();
        [2, 1, 2, 3].into_iter().for_each(|node| thieves.ask(node));
        assert!(thieves.have_asked() && thieves.take_leaves());
        assert_eq!(taken(&thieves), [2, 1, 3, 2, 1, 3]);
        assert!(!thieves.have_asked() && !thieves.take_leaves());
        thieves.may_have_another(1);
        assert!(!thieves.have_asked() && thieves.take_leaves());
        assert_eq!(taken(&thieves), [1]);
    }

    #[test]
    fn a_node_that_is_given_its_share_of_a_launch_gets_nothing_else_before_it_asks_again() {
        let thieves = Thieves::default();
        thieves.ask(1);
        thieves.may_have_another(2);
        assert_eq!(thieves.take(true, |_| true), Some(1));
        thieves.open_batch();
        assert_eq!(taken(&thieves), [2]);
        assert!(thieves.take_leaves() && !thieves.want_leaves(), "leaf tasks join the batch");
        thieves.close_batch();
        assert!(!thieves.take_leaves());
    }

    #[test]
    fn when_the_backlog_is_over_only_those_get_something_that_ask() {
        let thieves = Thieves::default();
        thieves.ask(1);
        assert_eq!(thieves.take(false, |_| true), Some(1));
        thieves.ask(2);
        thieves.backlog_is_over();
        assert_eq!(thieves.give_first(|_| Some("a task")), Some((2, "a task")));
        assert_eq!(taken(&thieves), []);
    }

    #[test]
    fn who_is_refused_has_still_asked() {
        let thieves = Thieves::default();
        thieves.ask(1);
        assert_eq!((thieves.take(false, |_| false), thieves.give_first(|_| None::<()>)), (None, None));
        assert!(thieves.have_asked() && thieves.take_leaves());
    }
}
