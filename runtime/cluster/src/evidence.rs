//! The evidence that nodes show each other when they differ, and the difference that it proves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::log::Digested;
use crate::names::Rank;

/// An operation that can be described when nodes differ.
pub trait Describe: Send + 'static {
    /// Describes the act of a node that does the operation, to follow the node's name: `launches task a`.
    fn describe(&self) -> String;

    /// Advises on observations that two nodes have made differently, by name: see
    /// [`DeterminismCheck::observe`](crate::DeterminismCheck::observe). The text follows the description of the first
    /// difference.
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

/// The evidence of one node, shown when nodes differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) node: Rank,
    /// The operations since the last comparison, each with its digest.
    pub(crate) operations: Vec<(u64, String)>,
    pub(crate) observed: BTreeMap<String, i64>,
}

impl Evidence {
    /// That of a node which has done these operations.
    pub(crate) fn new<O: Describe>(node: Rank, operations: &[Digested<O>], observed: BTreeMap<String, i64>) -> Self {
        let operations = operations.iter().map(|(digest, operation)| (*digest, operation.describe())).collect();
        Self { node, operations, observed }
    }
}

/// Describes the first difference between nodes, after the same operations on each, and observations that may explain
/// it.
pub(crate) fn difference<O: Describe>(shown: &[Evidence]) -> String {
    first_difference(shown) + &O::explain(&differing(shown))
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

/// Returns the observations that the first node and another one have made differently.
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
