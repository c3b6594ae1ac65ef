//! The order that a compiled graph enforces. It is read from the lists that workers go by, not from the specification
//! that these were made of. So a proof from it holds for the graph that runs.

use super::Edge;
use super::compile::{Graph, JUNCTION};

/// The conditions that a node waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predecessors {
    /// That this stage is open.
    pub stage: u32,
    /// Nodes of the same run, in ascending order.
    pub same_run: Vec<Edge>,
    /// Nodes of the run before, in ascending order. Those of the first run wait for none.
    pub run_before: Vec<Edge>,
}

impl Graph {
    /// The conditions that each node of the specification waits for, without those that others imply: of the edges that
    /// the graph was compiled from, the ones that are left.
    #[must_use]
    pub fn predecessors(&self) -> Vec<Predecessors> {
        let of_specification =
            self.nodes.iter().filter(|node| node.index != JUNCTION).map(|node| node.index as usize + 1);
        let mut all = vec![Predecessors::default(); of_specification.max().unwrap_or(0)];
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.index != JUNCTION) {
            let predecessors = &mut all[node.index as usize];
            predecessors.stage = node.stage;
            self.collect_predecessors(place, true, predecessors);
            predecessors.same_run.sort_unstable();
            predecessors.run_before.sort_unstable();
        }
        all
    }

    /// Adds what a node waits for, itself or by way of a junction, by the numbers of the specification.
    fn collect_predecessors(&self, place: usize, needs: bool, all: &mut Predecessors) {
        for predecessor in self.before(place) {
            let edge = Edge { node: self.nodes[predecessor.place()].index, needs: needs && predecessor.needs() };
            match predecessor.is_of_previous_run() {
                true => all.run_before.push(edge),
                false if edge.node == JUNCTION => self.collect_predecessors(predecessor.place(), edge.needs, all),
                false => all.same_run.push(edge),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::compile::tests::{closure, specs};
    use super::super::compile::{After, unreduced};
    use super::super::{GraphSpec, NodeSpec};
    use super::*;
    use crate::machine::ProcessorId;

    fn compiled(nodes: Vec<NodeSpec>) -> Graph {
        Graph::new(&GraphSpec { stages: 1, nodes }, &[ProcessorId(0)])
    }

    fn node(after: &[u32], after_previous: &[u32]) -> NodeSpec {
        let edges = |nodes: &[u32]| nodes.iter().map(|&node| Edge { node, needs: true }).collect();
        let (after, after_previous) = (edges(after), edges(after_previous));
        NodeSpec {
            stage: 0,
            home: ProcessorId(0),
            pinned: false,
            others: Vec::new(),
            takes: false,
            after,
            after_previous,
        }
    }

    fn before(edges: &[Edge]) -> Vec<u32> {
        edges.iter().map(|edge| edge.node).collect()
    }

    proptest! {
        #[test]
        fn a_compiled_graph_enforces_the_order_that_it_was_compiled_from(nodes in specs()) {
            let enforced = compiled(nodes.clone()).predecessors().into_iter();
            let enforced: Vec<After> =
                enforced.map(|node| After { same: node.same_run, previous: node.run_before }).collect();
            for needed_only in [false, true] {
                prop_assert_eq!(closure(&enforced, needed_only), closure(&unreduced(&nodes), needed_only));
            }
        }
    }

    #[test]
    fn nodes_wait_for_what_comes_before_the_junction_that_they_share() {
        let (first, second): (Vec<u32>, Vec<u32>) = ((0..16).collect(), (16..32).collect());
        let mut nodes: Vec<_> = first.iter().map(|_| node(&[], &second)).collect();
        nodes.extend(second.iter().map(|_| node(&first, &[])));
        let graph = compiled(nodes);
        assert_eq!(graph.junctions(), 2);
        for (number, predecessors) in graph.predecessors().iter().enumerate() {
            let (same_run, run_before) = (before(&predecessors.same_run), before(&predecessors.run_before));
            match number {
                ..16 => assert_eq!((same_run, run_before), (vec![], second.clone())),
                _ => assert_eq!((same_run, run_before), (first.clone(), vec![])),
            }
        }
    }
}
