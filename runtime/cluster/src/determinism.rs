//! The control-determinism check: do all nodes run the same program? If not, which operation is the first that differs?
//!
//! Each node computes a digest of its operations as it goes. At certain points, which come at the same operations in equal programs, nodes compare their digests, up a
//! tree and down again; no thread waits for that. Where they differ, they show each other what they have done since they last agreed. The points are: when the program is about to
//! wait for other nodes, where differing programs would wait for ever; after so many operations; and the end.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::job::Job;
use crate::names::{COMPARISON, CollectiveName, EVIDENCE, Rank};
use crate::wire::{decode, encode};

/// Digests are compared after so many operations at the latest.
const INTERVAL: usize = 256;

/// An operation that can be described when nodes differ.
pub trait Describe: Send + 'static {
    /// What a node does by it, to follow the node's name: `launches task a`.
    fn describe(&self) -> String;

    /// What to do about observations of which two nodes have made different ones, by name: see [`DeterminismCheck::observe`]. To follow the description of the first difference.
    fn explain(differing: &[Differing<'_>]) -> String {
        let _ = differing;
        String::new()
    }
}

/// An observation that two nodes have made differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differing<'a> {
    /// Its name.
    pub name: &'a str,
    /// Two nodes, with what each has observed.
    pub observed: [(Rank, i64); 2],
}

/// What one node has done since all last agreed.
pub struct DeterminismCheck<O>(Mutex<Log<O>>);

struct Log<O> {
    /// Of all operations.
    digest: u64,
    /// How many they are.
    count: usize,
    /// Whether the program has ended. Its results may be looked at later, on some nodes only.
    is_over: bool,
    /// The operations since the last comparison, each with its digest.
    since: Vec<(u64, O)>,
    /// What may explain a difference. Nodes need not have observed the same: they may agree on one answer by themselves.
    observed: Arc<Mutex<BTreeMap<String, i64>>>,
}

/// So many names of observations are remembered.
const MOST_OBSERVED: usize = 64;

impl<O> Default for DeterminismCheck<O> {
    fn default() -> Self {
        let observed = Arc::default();
        Self(Mutex::new(Log { digest: 0, count: 0, is_over: false, since: Vec::new(), observed }))
    }
}

/// What a node says when nodes compare.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Claim {
    operations: u64,
    digest: u64,
}

/// What a node shows when they differ.
#[derive(Serialize, Deserialize)]
struct Evidence {
    node: Rank,
    /// The operations since the last comparison, each with its digest.
    operations: Vec<(u64, String)>,
    observed: BTreeMap<String, i64>,
}

/// What a node says when the program has ended on it.
#[derive(Serialize, Deserialize)]
struct Ended {
    failure: Option<Failure>,
    /// How many comparisons it has begun.
    comparisons: u64,
    /// Of all that it has done.
    digest: u64,
}

impl<O: Describe> DeterminismCheck<O> {
    /// Adds an operation with its digest, which is the same on all nodes, if the operation is.
    pub fn add(&self, job: &Job, (digest, operation): (u64, O)) {
        let mut log = self.0.lock();
        log.add(digest, operation);
        let is_early = log.count < INTERVAL && log.count.is_power_of_two();
        if is_early || log.since.len() == INTERVAL {
            compare(job, &mut log);
        }
    }

    /// Adds an operation for which the program will wait, and compares. Nothing after the [end](Self::end).
    pub fn add_awaited(&self, job: &Job, (digest, operation): (u64, O)) {
        let mut log = self.0.lock();
        if !log.is_over {
            log.add(digest, operation);
            compare(job, &mut log);
        }
    }

    /// Remembers something that the program was told here, to name it should the nodes differ.
    pub fn observe(&self, name: &str, value: i64) {
        let observed = Arc::clone(&self.0.lock().observed);
        let mut observed = observed.lock();
        if let Some(known) = observed.get_mut(name) {
            *known = value;
        } else if observed.len() < MOST_OBSERVED {
            observed.insert(name.to_owned(), value);
        }
    }

    /// Compares digests with the other nodes. It does not wait for that.
    pub fn compare(&self, job: &Job) {
        let mut log = self.0.lock();
        if !log.is_over {
            compare(job, &mut log);
        }
    }

    /// The program has ended here, perhaps with a failure: compares for the last time, if without, and waits for the other nodes. The failure of the first node that has
    /// failed, if one has.
    pub fn end(&self, job: &Job, failure: Option<Failure>) -> Option<Failure> {
        job.end_program(failure.clone());
        let digest = self.finish(job, failure.is_some());
        let name = CollectiveName { operation: job.begin_operation("end"), part: 0 };
        let (ended, outcome) = (job.realm().user_event(), Arc::new(Mutex::new(None)));
        let (result, waiting, again) = (Arc::clone(&outcome), job.realm().clone(), job.clone());
        let mine = encode(&Ended { failure, comparisons: job.comparisons(), digest });
        job.all_gather(name, &mine, move |all| {
            // What came before from a node, such as its part of a comparison, is here.
            let ends: Vec<Ended> = all.decode().flatten().collect();
            let differ = |of: fn(&Ended) -> u64| ends.iter().any(|end| of(end) != of(&ends[0]));
            if ends.iter().all(|end| end.failure.is_none()) && differ(|end| end.digest) {
                // If all have come to the last comparison, they are about to show where: that ends the job.
                if differ(|end| end.comparisons) {
                    again.differ("some have compared what they do more often than others".to_owned());
                }
                return;
            }
            again.end_comparisons(ends.iter().map(|end| end.comparisons).max().unwrap_or_default());
            *result.lock() = ends.into_iter().find_map(|end| end.failure);
            waiting.trigger(ended);
        });
        // Should the others be lost, the realm has given up.
        let _ = job.realm().wait(ended.event());
        outcome.lock().take()
    }

    /// Compares for the last time, unless the program has failed. The digest of all of it.
    fn finish(&self, job: &Job, has_failed: bool) -> u64 {
        let mut log = self.0.lock();
        if !has_failed {
            compare(job, &mut log);
        }
        log.is_over = true;
        log.digest
    }
}

impl<O> Log<O> {
    fn add(&mut self, digest: u64, operation: O) {
        let mut hasher = FxHasher::default();
        (self.digest, digest).hash(&mut hasher);
        self.digest = hasher.finish();
        self.since.push((digest, operation));
        self.count += 1;
    }
}

fn compare<O: Describe>(job: &Job, log: &mut Log<O>) {
    let operation = job.begin_comparison();
    let claim = Claim { operations: job.operations(), digest: log.digest };
    // With room for as many again: a vector that grows step by step is copied each time.
    let room = if log.since.len() == INTERVAL { INTERVAL } else { 0 };
    let since = std::mem::replace(&mut log.since, Vec::with_capacity(room));
    let all_alike = |parts: Vec<Bytes>| {
        let differ = parts.iter().any(|part| part != &parts[0]);
        // Empty: they differ.
        if differ { Bytes::new() } else { parts.into_iter().next().unwrap_or_default() }
    };
    let (again, observed) = (job.clone(), Arc::clone(&log.observed));
    let done = move |outcome: Bytes| match decode::<Claim>(&outcome) {
        Some(agreed) => again.note_operations_of_all(agreed.operations),
        None => show(&again, operation, &since, observed.lock().clone()),
    };
    let name = CollectiveName { operation, part: COMPARISON };
    job.all_reduce(name, encode(&claim).into(), Box::new(all_alike), Box::new(done));
}

/// Nodes differ: each shows what it has done since they agreed.
fn show<O: Describe>(job: &Job, operation: u64, since: &[(u64, O)], observed: BTreeMap<String, i64>) {
    let operations = since.iter().map(|(digest, operation)| (*digest, operation.describe())).collect();
    let mine = encode(&Evidence { node: job.rank(), operations, observed });
    let again = job.clone();
    job.all_gather(CollectiveName { operation, part: EVIDENCE }, &mine, move |all| {
        let shown: Vec<Evidence> = all.decode().flatten().collect();
        again.differ(first_difference(&shown) + &O::explain(&differing(&shown)));
    });
}

fn first_difference(shown: &[Evidence]) -> String {
    let Some((first, others)) = shown.split_first() else { return "nothing is known of what they do".to_owned() };
    let longest = shown.iter().map(|node| node.operations.len()).max().unwrap_or(0);
    let digest = |node: &Evidence, at: usize| node.operations.get(at).map(|(digest, _)| *digest);
    let what = |node: &'_ Evidence, at: usize| {
        node.operations.get(at).map_or_else(|| "waits, or has come to its end".to_owned(), |(_, what)| what.clone())
    };
    for at in 0..longest {
        if let Some(other) = others.iter().find(|other| digest(other, at) != digest(first, at)) {
            let (one, mut another) = (what(first, at), what(other, at));
            if one == another {
                another = "does so too, but with other points in its pieces, or another tag".to_owned();
            }
            return format!("where node {} {one}, node {} {another}", first.node, other.node);
        }
    }
    "some wait where others go on, after the same operations".to_owned()
}

/// What the first node has observed and another one differently.
fn differing(shown: &[Evidence]) -> Vec<Differing<'_>> {
    let Some((first, others)) = shown.split_first() else { return Vec::new() };
    let differing = first.observed.iter().filter_map(|(name, &one)| {
        let differs = |other: &&Evidence| other.observed.get(name).is_some_and(|&another| another != one);
        let other = others.iter().find(differs)?;
        Some(Differing { name, observed: [(first.node, one), (other.node, *other.observed.get(name)?)] })
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_that_differ_are_named() {
        let node = |rank: Rank, observed: &[(&str, i64)]| {
            let observed = observed.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            Evidence { node: rank, operations: Vec::new(), observed }
        };
        let nodes = [node(0, &[("pieces", 4), ("steps", 1)]), node(1, &[("steps", 1)]), node(2, &[("pieces", 2)])];
        assert_eq!(differing(&nodes), [Differing { name: "pieces", observed: [(0, 4), (2, 2)] }]);
        assert_eq!(differing(&nodes[..2]), []);
    }

    fn shown(node: Rank, operations: &[(u64, &str)]) -> Evidence {
        let operations = operations.iter().map(|(digest, what)| (*digest, (*what).to_owned())).collect();
        Evidence { node, operations, observed: BTreeMap::new() }
    }

    #[test]
    fn the_first_operation_that_differs_is_shown_from_both_sides() {
        let nodes = [
            shown(0, &[(1, "launches a"), (2, "launches b"), (3, "launches c")]),
            shown(1, &[(1, "launches a"), (2, "launches b"), (3, "launches c")]),
            shown(2, &[(1, "launches a"), (7, "launches d"), (3, "launches c")]),
        ];
        assert_eq!(first_difference(&nodes), "where node 0 launches b, node 2 launches d");
    }

    #[test]
    fn operations_that_differ_under_one_description_are_explained() {
        let nodes = [shown(0, &[(1, "launches a")]), shown(1, &[(2, "launches a")])];
        let difference =
            "where node 0 launches a, node 1 does so too, but with other points in its pieces, or another tag";
        assert_eq!(first_difference(&nodes), difference);
    }

    #[test]
    fn a_node_that_waits_where_others_launch_is_told_of() {
        let nodes = [shown(0, &[(1, "launches a")]), shown(1, &[(1, "launches a"), (2, "launches b")])];
        assert_eq!(first_difference(&nodes), "where node 0 waits, or has come to its end, node 1 launches b");
    }
}
