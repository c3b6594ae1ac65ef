//! What a compiled graph enforces: read from the counters and the lists that workers go by, not from what these were made of. So whoever
//! proves something from it proves it of the graph that runs.

use super::Edge;
use super::compile::{Graph, JUNCTION};

/// What a node waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predecessors {
    /// Nodes of the same run, in ascending order.
    pub same_run: Vec<Edge>,
    /// Nodes of the run before, in ascending order. Those of the first run wait for none.
    pub run_before: Vec<Edge>,
}

impl Graph {
    /// What each node of the specification waits for, without what others imply: of the edges that it was compiled from, those that are left.
    ///
    /// A node waits for its predecessors because it counts them. If one should count too few, it may begin before any given one of them has
    /// ended, and so is said to wait for none.
    #[must_use]
    pub fn predecessors(&self) -> Vec<Predecessors> {
        let mut found = vec![Predecessors::default(); self.nodes.len()];
        for place in 0..self.nodes.len() {
            let edge = |needs: bool| Edge { node: place as u32, needs };
            self.next.of(place).iter().for_each(|next| found[next.place()].same_run.push(edge(next.needs())));
            self.next_run.of(place).iter().for_each(|next| found[next.place()].run_before.push(edge(next.needs())));
        }
        for (place, found) in found.iter_mut().enumerate() {
            let same_run = found.same_run.iter().filter(|edge| self.ends_in_first_run(edge.node as usize)).count();
            let counts = [same_run, found.same_run.len() + found.run_before.len()];
            if self.nodes[place].predecessors.map(|count| count as usize) != counts {
                *found = Predecessors::default();
            }
        }
        let of_specification =
            self.nodes.iter().filter(|node| node.index != JUNCTION).map(|node| node.index as usize + 1);
        let mut all = vec![Predecessors::default(); of_specification.max().unwrap_or(0)];
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.index != JUNCTION) {
            all[node.index as usize] = self.without_junctions(&found, place);
        }
        all
    }

    /// A junction of nodes of the run before is not passed in the first run: nothing comes before it.
    fn ends_in_first_run(&self, place: usize) -> bool {
        let node = &self.nodes[place];
        node.index != JUNCTION || node.predecessors[0] > 0
    }

    /// What a node waits for, itself or by way of a junction, by the numbers of the specification.
    fn without_junctions(&self, found: &[Predecessors], place: usize) -> Predecessors {
        let mut all = Predecessors::default();
        for edge in &found[place].same_run {
            match self.nodes[edge.node as usize].index {
                // Junctions come after nodes, never after junctions.
                JUNCTION => {
                    let through =
                        |earlier: &Edge| self.numbered(Edge { needs: earlier.needs && edge.needs, ..*earlier });
                    all.same_run.extend(found[edge.node as usize].same_run.iter().map(through));
                    all.run_before.extend(found[edge.node as usize].run_before.iter().map(through));
                }
                _ => all.same_run.push(self.numbered(*edge)),
            }
        }
        all.run_before.extend(found[place].run_before.iter().map(|edge| self.numbered(*edge)));
        all.same_run.sort_unstable();
        all.run_before.sort_unstable();
        all
    }

    fn numbered(&self, edge: Edge) -> Edge {
        Edge { node: self.nodes[edge.node as usize].index, ..edge }
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
        NodeSpec { stage: 0, home: ProcessorId(0), pinned: false, takes: false, after, after_previous }
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
        let mut nodes: Vec<_> = (0..4).map(|_| node(&[], &[4, 5, 6, 7])).collect();
        nodes.extend((4..8).map(|_| node(&[0, 1, 2, 3], &[])));
        let graph = compiled(nodes);
        assert!(graph.nodes.iter().filter(|node| node.index == JUNCTION && node.predecessors[1] == 4).count() == 2);
        for (number, predecessors) in graph.predecessors().iter().enumerate() {
            let (same_run, run_before) = (before(&predecessors.same_run), before(&predecessors.run_before));
            match number {
                ..4 => assert_eq!((same_run, run_before), (vec![], vec![4, 5, 6, 7])),
                _ => assert_eq!((same_run, run_before), (vec![0, 1, 2, 3], vec![])),
            }
        }
    }

    #[test]
    fn a_node_that_counts_too_few_predecessors_waits_for_none_in_particular() {
        for run in 0..2 {
            let mut graph = compiled(vec![node(&[], &[1]), node(&[0], &[]), node(&[0], &[])]);
            let place = graph.nodes.iter().position(|node| node.index == 1).expect("it was placed");
            graph.nodes[place].predecessors[run] = 0;
            let predecessors = graph.predecessors();
            assert_eq!(predecessors[1], Predecessors::default());
            assert_eq!((before(&predecessors[0].run_before), before(&predecessors[2].same_run)), (vec![1], vec![0]));
        }
    }
}
