//! Nodes and edges to be drawn.

use std::collections::BTreeSet;

/// A graph to be drawn. Edges go from what comes first to what comes after it, and never in a circle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The subject of the graph.
    pub title: String,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// A name that no other node has.
    pub key: String,
    /// The text on the node, line by line.
    pub label: Vec<String>,
    /// Further text about the node, line by line.
    pub details: Vec<String>,
    /// The kind of thing that the node stands for.
    pub class: Class,
}

/// The kind of thing that a node stands for: nodes of a class look alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Class {
    /// A task, or a launch.
    Task,
    /// A task that launches others, or its end.
    Parent,
    /// A copy.
    Copy,
    /// A fill, or a buffer being emptied.
    Fill,
    /// Reductions being applied.
    Reduction,
    /// An inline mapping.
    Mapping,
    /// A fence.
    Fence,
    /// Several others together.
    Join,
}

/// An edge between two nodes, known by their positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The node that comes first.
    pub from: usize,
    /// The node that comes after it.
    pub to: usize,
    /// Why.
    pub labels: Vec<String>,
}

/// So many nodes are looked at at once when edges are left out. In tests few, to see that several times do as well.
const AT_ONCE: usize = if cfg!(test) { 64 } else { 1024 };

type Reached = [u64; AT_ONCE / 64];

/// The edges from one of the next few nodes that others imply, if nodes are known by their ranks and these are the
/// nodes before each.
fn implied_edges(before: &[Vec<usize>], start: usize) -> Vec<(usize, usize)> {
    let (mut implied, end) = (Vec::new(), start + AT_ONCE);
    // Which of the few each later node comes after.
    let mut reached: Vec<Reached> = vec![[0; AT_ONCE / 64]; before.len() - start];
    for node in start..before.len() {
        let mut here: Reached = [0; AT_ONCE / 64];
        for earlier in before[node].iter().filter_map(|earlier| earlier.checked_sub(start)) {
            here.iter_mut().zip(&reached[earlier]).for_each(|(here, earlier)| *here |= earlier);
        }
        for &earlier in before[node].iter().filter(|&&earlier| (start..end).contains(&earlier)) {
            let (word, bit) = ((earlier - start) / 64, (earlier - start) % 64);
            if here[word] >> bit & 1 == 1 {
                implied.push((earlier, node));
            }
            reached[node - start][word] |= 1 << bit;
        }
        reached[node - start].iter_mut().zip(here).for_each(|(all, here)| *all |= here);
    }
    implied
}

impl Class {
    /// A light colour, as `#rrggbb`.
    pub(super) fn color(self) -> &'static str {
        match self {
            Self::Task => "#cfe2ff",
            Self::Parent => "#e2d9f3",
            Self::Copy => "#ffe5d0",
            Self::Fill => "#fff3cd",
            Self::Reduction => "#f7d6e6",
            Self::Mapping => "#d1e7dd",
            Self::Fence => "#dee2e6",
            Self::Join => "#adb5bd",
        }
    }

    /// Returns the name of the class.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Parent => "task that launches, and its end",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Reduction => "reduction applied",
            Self::Mapping => "inline mapping",
            Self::Fence => "fence",
            Self::Join => "several together",
        }
    }
}

impl Graph {
    /// The graph without the edges that others imply: a node that comes after the end of a longer way comes after its
    /// beginning too (Aho, Garey and Ullman 1972). Takes time proportional to nodes times edges, but for 1024 nodes at
    /// once.
    #[must_use]
    pub fn reduced(mut self) -> Self {
        let order = self.order();
        let mut rank = vec![0; self.nodes.len()];
        order.iter().enumerate().for_each(|(place, &node)| rank[node] = place);
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        self.edges.iter().for_each(|edge| before[rank[edge.to]].push(rank[edge.from]));
        let mut implied = BTreeSet::new();
        for start in (0..order.len()).step_by(AT_ONCE) {
            implied.extend(implied_edges(&before, start));
        }
        self.edges.retain(|edge| !implied.contains(&(rank[edge.from], rank[edge.to])));
        self
    }

    /// The graph without some nodes: a node that came after a removed one comes after those that the removed one came
    /// after.
    pub(super) fn without(self, is_left_out: impl Fn(usize, &Node) -> bool) -> Self {
        let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.nodes.len()];
        let order = self.order();
        let left_out: Vec<bool> = self.nodes.iter().enumerate().map(|(index, node)| is_left_out(index, node)).collect();
        let mut edges: Vec<Vec<&Edge>> = vec![Vec::new(); self.nodes.len()];
        self.edges.iter().for_each(|edge| edges[edge.to].push(edge));
        for &node in &order {
            let mut all = BTreeSet::new();
            for edge in &edges[node] {
                match left_out[edge.from] {
                    true => all.extend(before[edge.from].iter().copied()),
                    false => drop(all.insert(edge.from)),
                }
            }
            before[node] = all;
        }
        let mut place = vec![0; self.nodes.len()];
        let kept = (0..self.nodes.len()).filter(|&node| !left_out[node]);
        kept.clone().enumerate().for_each(|(new, old)| place[old] = new);
        let labels = |from: usize, to: usize| {
            let known = edges[to].iter().find(|edge| edge.from == from);
            known.map_or_else(Vec::new, |edge| edge.labels.clone())
        };
        let new_edges = kept.clone().flat_map(|to| before[to].iter().map(move |&from| (from, to)));
        let new_edges =
            new_edges.map(|(from, to)| Edge { from: place[from], to: place[to], labels: labels(from, to) }).collect();
        let nodes = kept.map(|node| self.nodes[node].clone()).collect();
        Self { title: self.title, nodes, edges: new_edges }
    }

    /// The nodes, each behind all that it comes after; among those that may be next, in the order of the graph.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut waiting = vec![0_usize; self.nodes.len()];
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            waiting[edge.to] += 1;
            behind[edge.from].push(edge.to);
        }
        let mut ready: BTreeSet<usize> = (0..self.nodes.len()).filter(|&node| waiting[node] == 0).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for &later in &behind[node] {
                waiting[later] -= 1;
                if waiting[later] == 0 {
                    ready.insert(later);
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Graphs of more nodes than are looked at at once.
    fn graphs() -> impl Strategy<Value = Graph> {
        prop::collection::btree_set((0..200_usize, 1..30_usize), 0..400).prop_map(|pairs| {
            let node = |number: usize| Node {
                key: number.to_string(),
                label: Vec::new(),
                details: Vec::new(),
                class: Class::Task,
            };
            let edge = |(from, distance): (usize, usize)| Edge { from, to: from + distance, labels: Vec::new() };
            Graph {
                title: String::new(),
                nodes: (0..230).map(node).collect(),
                edges: pairs.into_iter().map(edge).collect(),
            }
        })
    }

    /// The nodes that each node comes after.
    fn before(graph: &Graph) -> Vec<BTreeSet<usize>> {
        let mut before = vec![BTreeSet::new(); graph.nodes.len()];
        for to in 0..graph.nodes.len() {
            for edge in graph.edges.iter().filter(|edge| edge.to == to) {
                let earlier: BTreeSet<usize> = before[edge.from].iter().copied().chain([edge.from]).collect();
                before[to].extend(earlier);
            }
        }
        before
    }

    proptest! {
        #[test]
        fn an_edge_is_left_out_if_it_leads_to_where_a_longer_way_leads(graph in graphs()) {
            let (all, reduced) = (before(&graph), graph.clone().reduced());
            let is_implied = |edge: &Edge| {
                let between = graph.edges.iter().filter(|other| other.to == edge.to);
                between.into_iter().any(|other| all[other.from].contains(&edge.from))
            };
            let expected: Vec<Edge> = graph.edges.iter().filter(|edge| !is_implied(edge)).cloned().collect();
            prop_assert_eq!(reduced.edges, expected);
        }
    }
}
