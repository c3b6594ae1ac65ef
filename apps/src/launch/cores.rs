//! Cores of their own for the nodes of this machine: nodes that wait for each other by looking must not take each
//! other's time.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A share of this machine's cores for each of its nodes.
pub struct Shares {
    all: CpuSet,
    shares: Vec<CpuSet>,
}

impl Shares {
    /// Cores next to each other for each of so many nodes; none if there are fewer cores than nodes, or only one node,
    /// or the system does not say.
    #[must_use]
    pub fn new(nodes: usize) -> Option<Self> {
        let all = sched_getaffinity(None).ok()?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core)).collect();
        if nodes < 2 || cores.len() < nodes {
            return None;
        }
        let share = |node: usize| {
            let mut share = CpuSet::new();
            cores[parts(cores.len(), nodes, node)].iter().for_each(|&core| share.set(core));
            share
        };
        Some(Self { all, shares: (0..nodes).map(share).collect() })
    }

    /// Does something, such as starting a process, on the share of the node that is `node`th on this machine. What it
    /// starts stays there.
    pub fn on_share<R>(&self, node: usize, start: impl FnOnce() -> R) -> R {
        // If the system refuses, the node runs on all cores: slower, and as right.
        let is_bound = self.shares.get(node).is_some_and(|share| sched_setaffinity(None, share).is_ok());
        let started = start();
        if is_bound {
            let _ = sched_setaffinity(None, &self.all);
        }
        started
    }
}

fn parts(cores: usize, nodes: usize, node: usize) -> std::ops::Range<usize> {
    node * cores / nodes..(node + 1) * cores / nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_cover_all_cores_and_none_is_empty() {
        for (cores, nodes) in [(2, 2), (7, 3), (64, 5), (4, 4)] {
            let shares: Vec<_> = (0..nodes).map(|node| parts(cores, nodes, node)).collect();
            assert!(shares.iter().all(|share| !share.is_empty()));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((shares[0].start, shares[nodes - 1].end), (0, cores));
        }
    }

    #[test]
    fn one_node_or_more_nodes_than_cores_have_none() {
        assert!(Shares::new(1).is_none());
        assert!(Shares::new(CpuSet::MAX_CPU + 1).is_none());
    }

    #[test]
    fn what_is_started_runs_on_its_share_and_the_starter_on_all_cores_afterwards() {
        let Some(shares) = Shares::new(2) else { return };
        let before = sched_getaffinity(None).unwrap();
        let within = shares.on_share(1, || std::thread::spawn(|| sched_getaffinity(None).unwrap()).join().unwrap());
        assert!(within == shares.shares[1] && within != before);
        assert!(sched_getaffinity(None).unwrap() == before);
    }
}
