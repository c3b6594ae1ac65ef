//! Cores of their own for the nodes of this machine: nodes that wait for each other by looking must not take each
//! other's time.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How often, and how far apart, it is looked whether others use the cores.
const LOOKS: usize = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A share of this machine's cores for each of its nodes.
pub struct Shares {
    all: CpuSet,
    shares: Vec<CpuSet>,
}

impl Shares {
    /// The shares of [`new`](Self::new), unless other programs use so many of the machine's cores now that a node with
    /// one core of its own could find it taken: it would wait for that program each time, and all nodes for it.
    #[must_use]
    pub fn new_if_idle(nodes: usize) -> Option<Self> {
        let shares = Self::new(nodes)?;
        // The least of a few looks: what starts and ends in between is no load.
        let looks = (0..LOOKS).map_while(|look| {
            if look > 0 {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            running(&std::fs::read_to_string("/proc/loadavg").ok()?)
        });
        let others = looks.min().map_or(0, |running| running.saturating_sub(1));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (nodes + others <= cores).then_some(shares)
    }

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

/// How many threads of the machine run or could run now, this one among them, by its `/proc/loadavg`.
fn running(load: &str) -> Option<usize> {
    load.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
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
    fn threads_that_run_are_read_from_the_load() {
        assert_eq!(running("0.60 2.95 3.74 3/451 12345\n"), Some(3));
        assert_eq!((running(""), running("0.60 2.95 3.74 many 1")), (None, None));
    }

    #[test]
    fn nodes_have_no_cores_of_their_own_where_others_use_them() {
        let Some(cores) = Shares::new(2).map(|shares| shares.all.count() as usize) else { return };
        let is_over = &std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| while !is_over.load(std::sync::atomic::Ordering::Relaxed) {});
            }
            // So many threads run, whatever else does.
            let shares = Shares::new_if_idle(cores);
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(shares.is_none());
        });
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
