//! Do all nodes run the same program? If not, which operation is the first that differs?
//!
//! Each node hashes its operations as it goes. At certain points, which come at the same operations in equal programs, nodes compare their hashes, up a tree and
//! down again; nobody waits for that. Where they differ, they show each other what they have launched since they last agreed. The points are: when
//! the program is about to wait for other nodes, where differing programs would wait for ever; after so many operations; and the end.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use maniple_region::{LogicalRegion, Requirement, Target};
use maniple_space::{AnySpace, for_dimension};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use super::node::{COMPARISON, Node, TogetherName, decode, encode};
use super::sharding::Shares;
use super::spread::{frame, frames};
use super::tree::together;
use crate::future::Origin;
use crate::launch::LaunchSite;
use crate::task::digest::Digest;
use crate::task::number::Number;

/// Operations are compared after so many at the latest.
const INTERVAL: usize = 256;

/// An operation of the program, to be compared with other nodes'.
#[derive(Clone)]
pub(crate) struct Noted {
    /// The same on all nodes, if the operation is.
    pub(crate) hash: u64,
    pub(crate) what: What,
}

/// What an operation is, for messages.
#[derive(Clone)]
pub(crate) enum What {
    /// Of which task over what, how it is dealt to nodes, and with which arguments, if they can be compared.
    Launch(Arc<LaunchSite>, Arc<str>, Option<Digest>),
    /// What the node does, to what, and with which number.
    Use(&'static str, LogicalRegion, Option<Number>),
    /// What the node does with the results of an operation, which has this number.
    Results(&'static str, u64, Origin),
    Other(&'static str),
}

impl What {
    fn describe(&self) -> String {
        match self {
            Self::Launch(site, dealt, digest) => {
                let over = if site.index_launch { format!(" over {}", site.domain) } else { String::new() };
                let data = site.bounds.iter().map(|bound| {
                    let Requirement { target, privilege, .. } = &bound.requirement;
                    format!("{privilege} {} of {target}", bound.requirement.field_names())
                });
                let data = data.collect::<Vec<_>>().join(", ");
                let with = digest.as_ref().map(Digest::to_string).filter(|with| !with.is_empty());
                let with = with.map_or_else(String::new, |with| format!(" with arguments {with}"));
                format!(
                    "launches task `{}`{over}{with} {dealt}{}{data}",
                    site.name(),
                    if data.is_empty() { "" } else { ", which " }
                )
            }
            Self::Use(what, region, number) => {
                let points = for_dimension!(region.space().space(), |space| space.volume());
                let with = number.map_or_else(String::new, |number| format!(" with {number}"));
                format!("{what} {region} ({points} points){with}")
            }
            Self::Results(what, operation, of) => {
                format!("{what} the results of operation {operation}, `{}`", of.name())
            }
            Self::Other(what) => (*what).to_owned(),
        }
    }
}

/// The hash of a launch, its shares and what they use, which says the same of the same launch on every node. Of each requirement: the number of its
/// region, if it is known, and a number that says which node uses what.
pub(crate) fn hash_of(site: &LaunchSite, shares: &Shares, used: impl Iterator<Item = (Option<u64>, u64)>) -> u64 {
    let mut hasher = FxHasher::default();
    shares.hash(&mut hasher);
    // Neither names of partitions nor projections are compared, but what comes of them.
    used.for_each(|used| used.hash(&mut hasher));
    site.name().hash(&mut hasher);
    (site.domain, site.index_launch, site.tag).hash(&mut hasher);
    for bound in &site.bounds {
        let Requirement { target, fields, privilege, .. } = &bound.requirement;
        (fields, privilege.to_string()).hash(&mut hasher);
        if let Target::Partition(partition, _) = target {
            if partition.partitioning().elsewhere().is_none() {
                hash_space(partition.partitioning().union().space(), &mut hasher);
            }
            partition.partitioning().colors().hash(&mut hasher);
        }
        hash_space(target.bound().space().space(), &mut hasher);
    }
    hasher.finish()
}

/// The hash of a launch with its arguments.
pub(crate) fn hash_with(launch: u64, arguments: Option<&Digest>) -> u64 {
    let Some(arguments) = arguments else { return launch };
    let mut hasher = FxHasher::default();
    (launch, arguments).hash(&mut hasher);
    hasher.finish()
}

/// The hash of something that is done to a whole region, whose own number is known or not, with a number or not.
pub(crate) fn hash_of_use(
    what: &str,
    (region, known_as): (&LogicalRegion, Option<u64>),
    number: Option<Number>,
) -> u64 {
    let mut hasher = FxHasher::default();
    (what, known_as, number).hash(&mut hasher);
    hash_space(region.space().space(), &mut hasher);
    hasher.finish()
}

fn hash_space(space: &AnySpace, hasher: &mut FxHasher) {
    for_dimension!(space, |space| (space.rects().len(), space.bounds(), space.volume()).hash(hasher));
}

/// What one node has done since all last agreed.
#[derive(Default)]
pub(crate) struct Agreement(Mutex<Log>);

#[derive(Default)]
struct Log {
    /// Of all operations.
    hash: u64,
    /// How many they are.
    count: usize,
    /// Whether the program has ended: who looks at its results later does so on some nodes only, perhaps.
    is_over: bool,
    since: Vec<Noted>,
    /// What mappers have answered. Nodes need not get the same answers: they may agree on one by themselves.
    tunables: Arc<Mutex<BTreeMap<String, i64>>>,
}

/// So many names of tunables are remembered.
const MOST_TUNABLES: usize = 64;

impl Log {
    fn add(&mut self, noted: Noted) {
        let mut hasher = FxHasher::default();
        (self.hash, noted.hash).hash(&mut hasher);
        self.hash = hasher.finish();
        self.since.push(noted);
        self.count += 1;
    }
}

/// What a node says when nodes compare.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Claim {
    operations: u64,
    hash: u64,
}

/// What a node shows when they differ.
#[derive(Serialize, Deserialize)]
struct Shown {
    node: Rank,
    operations: Vec<(u64, String)>,
    /// What its mapper has answered for each tunable.
    tunables: BTreeMap<String, i64>,
}

impl Agreement {
    /// Adds an operation.
    pub(crate) fn note(&self, node: &Arc<Node>, noted: Noted) {
        let mut log = self.0.lock();
        log.add(noted);
        let is_early = log.count < INTERVAL && log.count.is_power_of_two();
        if is_early || log.since.len() == INTERVAL {
            compare(node, &mut log);
        }
    }

    /// Remembers what a mapper has answered, to name it should the nodes differ.
    pub(crate) fn note_tunable(&self, name: &str, answer: i64) {
        let tunables = Arc::clone(&self.0.lock().tunables);
        let mut tunables = tunables.lock();
        if let Some(known) = tunables.get_mut(name) {
            *known = answer;
        } else if tunables.len() < MOST_TUNABLES {
            tunables.insert(name.to_owned(), answer);
        }
    }

    /// Adds an operation without data.
    pub(crate) fn note_other(&self, node: &Arc<Node>, what: &'static str) {
        let mut hasher = FxHasher::default();
        what.hash(&mut hasher);
        self.note(node, Noted { hash: hasher.finish(), what: What::Other(what) });
    }

    /// Adds that the program does something with the results of an operation, for which it will wait: so it compares what has been done. It does not wait
    /// for that.
    pub(crate) fn note_results(&self, node: &Arc<Node>, what: &'static str, (operation, of): (u64, &Origin)) {
        let mut log = self.0.lock();
        if log.is_over {
            return;
        }
        let mut hasher = FxHasher::default();
        (what, operation).hash(&mut hasher);
        log.add(Noted { hash: hasher.finish(), what: What::Results(what, operation, of.clone()) });
        compare(node, &mut log);
    }

    /// Compares what has been done with what other nodes have. It does not wait for that.
    pub(crate) fn compare(&self, node: &Arc<Node>) {
        let mut log = self.0.lock();
        if !log.is_over {
            compare(node, &mut log);
        }
    }

    /// The program has ended, perhaps with a failure; if without, what it has done is compared for the last time. The hash of all of it.
    pub(crate) fn end(&self, node: &Arc<Node>, has_failed: bool) -> u64 {
        let mut log = self.0.lock();
        if !has_failed {
            compare(node, &mut log);
        }
        log.is_over = true;
        log.hash
    }
}

fn compare(node: &Arc<Node>, log: &mut Log) {
    let operation = node.number_comparison();
    let claim = Claim { operations: node.operations(), hash: log.hash };
    // With room for as many again: what grows step by step is copied each time.
    let room = if log.since.len() == INTERVAL { INTERVAL } else { 0 };
    let since = std::mem::replace(&mut log.since, Vec::with_capacity(room));
    let all_alike = |parts: Vec<Bytes>| {
        let differ = parts.iter().any(|part| part != &parts[0]);
        // Nothing: they differ.
        if differ { Bytes::new() } else { parts.into_iter().next().unwrap_or_default() }
    };
    let (node_again, tunables) = (Arc::clone(node), Arc::clone(&log.tunables));
    let done = move |outcome: Bytes| match decode::<Claim>(&outcome) {
        Some(agreed) => node_again.hear_of_all(agreed.operations),
        None => show(&node_again, operation, &since, tunables.lock().clone()),
    };
    let name = TogetherName { operation, part: COMPARISON };
    node.together(name, encode(&claim).into(), Box::new(all_alike), Box::new(done));
}

/// The part of names of what nodes show each other, which nothing else has.
const SHOW: u32 = COMPARISON - 1;

/// Nodes differ: each shows what it has done since they agreed.
fn show(node: &Arc<Node>, operation: u64, since: &[Noted], tunables: BTreeMap<String, i64>) {
    let operations = since.iter().map(|noted| (noted.hash, noted.what.describe())).collect();
    let mine = frame(&encode(&Shown { node: node.rank(), operations, tunables }));
    let node_again = Arc::clone(node);
    let done = move |all: Bytes| {
        let shown: Vec<Shown> = frames(&all).filter_map(decode).collect();
        node_again.differ(first_difference(&shown) + &differing_tunables(&shown));
    };
    node.together(TogetherName { operation, part: SHOW }, mine, Box::new(together), Box::new(done));
}

fn first_difference(shown: &[Shown]) -> String {
    let Some((first, others)) = shown.split_first() else { return "nothing is known of what they do".to_owned() };
    let longest = shown.iter().map(|node| node.operations.len()).max().unwrap_or(0);
    let hash = |node: &Shown, at: usize| node.operations.get(at).map(|(hash, _)| *hash);
    let what = |node: &'_ Shown, at: usize| {
        node.operations.get(at).map_or_else(|| "waits, or has come to its end".to_owned(), |(_, what)| what.clone())
    };
    for at in 0..longest {
        if let Some(other) = others.iter().find(|other| hash(other, at) != hash(first, at)) {
            let (one, mut another) = (what(first, at), what(other, at));
            if one == another {
                another = "does so too, but with other points in its pieces, or another tag".to_owned();
            }
            return format!("where node {} {one}, node {} {another}", first.node, other.node);
        }
    }
    "some wait where others go on, after the same operations".to_owned()
}

/// The tunables for which mappers have answered differently: the program may differ for that.
fn differing_tunables(shown: &[Shown]) -> String {
    let Some((first, others)) = shown.split_first() else { return String::new() };
    let differing = first.tunables.iter().filter_map(|(name, &one)| {
        let differs = |other: &&Shown| other.tunables.get(name).is_some_and(|&answer| answer != one);
        let other = others.iter().find(differs)?;
        let (rank, another) = (other.node, other.tunables.get(name)?);
        Some(format!(
            "; the mapper of node {} answers {one} for tunable `{name}`, that of node {rank} {another}",
            first.node
        ))
    });
    let differing: String = differing.collect();
    if differing.is_empty() { differing } else { differing + ": take one answer for all nodes by `Context::per_node`" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_that_were_answered_differently_are_named() {
        let node = |rank: Rank, answers: &[(&str, i64)]| {
            let tunables = answers.iter().map(|(name, answer)| ((*name).to_owned(), *answer)).collect();
            Shown { node: rank, operations: Vec::new(), tunables }
        };
        let nodes = [node(0, &[("pieces", 4), ("steps", 1)]), node(1, &[("steps", 1)]), node(2, &[("pieces", 2)])];
        let said = "; the mapper of node 0 answers 4 for tunable `pieces`, that of node 2 2: take one answer for all nodes by `Context::per_node`";
        assert_eq!(differing_tunables(&nodes), said);
        assert_eq!(differing_tunables(&nodes[..2]), "");
    }

    fn shown(node: Rank, operations: &[(u64, &str)]) -> Shown {
        let operations = operations.iter().map(|(hash, what)| (*hash, (*what).to_owned())).collect();
        Shown { node, operations, tunables: BTreeMap::new() }
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
    fn what_differs_though_it_is_called_the_same_is_explained() {
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
