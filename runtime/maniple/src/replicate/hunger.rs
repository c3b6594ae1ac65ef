//! Which nodes are to be given something to do.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;

/// The nodes that have asked for something, and those that may have another leaf task before they ask again.
#[derive(Default)]
pub(super) struct Hunger {
    nodes: Mutex<Nodes>,
    // What others read without the lock. It is written under it.
    has_asked: AtomicBool,
    takes_leaves: AtomicBool,
}

#[derive(Default)]
struct Nodes {
    /// Those that have asked, and were not given anything since.
    asked: VecDeque<Rank>,
    /// Those that run a leaf task of ours, or have just sent one back: the next one is better on its way by the time that they ask. Only while more tasks could begin here than
    /// there are workers, as others may have given them something to do since.
    again: VecDeque<Rank>,
}

impl Hunger {
    /// Whether a node has asked, and was not given anything since.
    #[inline]
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Whether a node is to be given a leaf task.
    #[inline]
    pub(super) fn takes_leaves(&self) -> bool {
        self.takes_leaves.load(Ordering::Relaxed)
    }

    /// A node has asked.
    pub(super) fn ask(&self, node: Rank) {
        self.change(|nodes| {
            if !nodes.asked.contains(&node) {
                nodes.asked.push_back(node);
            }
        });
    }

    /// A node has sent a leaf task back that it had asked for.
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

    /// Gives the first of those that have asked something; if there is something to be given, that has not asked any more.
    pub(super) fn feed_first<G>(&self, give: impl FnOnce(Rank) -> Option<G>) -> Option<(Rank, G)> {
        self.change(|nodes| {
            let &first = nodes.asked.front()?;
            let given = give(first)?;
            nodes.asked.pop_front();
            Some((first, given))
        })
    }

    /// The node that is to be given a leaf task next, if it is permitted to have one: it is about to be given that. Each is given one before any is given another.
    pub(super) fn take(&self, is_permitted: impl FnOnce(Rank) -> bool) -> Option<Rank> {
        self.change(|nodes| {
            let first = nodes.asked.front().or(nodes.again.front()).copied().filter(|&first| is_permitted(first))?;
            match nodes.asked.pop_front() {
                Some(_) => nodes.come_again(first),
                None => drop(nodes.again.pop_front()),
            }
            Some(first)
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Nodes) -> R) -> R {
        let mut nodes = self.nodes.lock();
        let result = change(&mut nodes);
        self.has_asked.store(!nodes.asked.is_empty(), Ordering::SeqCst);
        self.takes_leaves.store(!nodes.asked.is_empty() || !nodes.again.is_empty(), Ordering::SeqCst);
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

    fn taken(hunger: &Hunger) -> Vec<Rank> {
        std::iter::from_fn(|| hunger.take(|_| true)).collect()
    }

    #[test]
    fn each_node_that_asks_is_given_two_leaf_tasks_but_none_a_second_before_all_have_one() {
        let hunger = Hunger::default();
        [2, 1, 2, 3].into_iter().for_each(|node| hunger.ask(node));
        assert!(hunger.has_asked() && hunger.takes_leaves());
        assert_eq!(taken(&hunger), [2, 1, 3, 2, 1, 3]);
        assert!(!hunger.has_asked() && !hunger.takes_leaves());
        hunger.may_have_another(1);
        assert!(!hunger.has_asked() && hunger.takes_leaves());
        assert_eq!(taken(&hunger), [1]);
    }

    #[test]
    fn when_the_backlog_is_over_only_those_are_fed_that_ask() {
        let hunger = Hunger::default();
        hunger.ask(1);
        assert_eq!(hunger.take(|_| true), Some(1));
        hunger.ask(2);
        hunger.backlog_is_over();
        assert_eq!(hunger.feed_first(|_| Some("a task")), Some((2, "a task")));
        assert_eq!(taken(&hunger), []);
    }

    #[test]
    fn who_is_refused_stays_hungry() {
        let hunger = Hunger::default();
        hunger.ask(1);
        assert_eq!((hunger.take(|_| false), hunger.feed_first(|_| None::<()>)), (None, None));
        assert!(hunger.has_asked() && hunger.takes_leaves());
    }
}
