//! Nodes in layers, so that every edge goes down, and few cross (Sugiyama, Tagawa and Toda 1981; Gansner et al. 1993,
//! sections 2 and 3).

use crate::picture::graph::Graph;

/// A graph in layers. An edge that spans several layers goes through a place of its own in each of those between; one
/// with labels spans at least two, so that the labels have a place.
pub(super) struct Layered {
    /// The content of each place.
    pub(super) places: Vec<LayerPlace>,
    /// The places of each layer, from left to right.
    pub(super) layers: Vec<Vec<usize>>,
    /// For each edge of the graph, the places that it goes through, from the first to the last.
    pub(super) paths: Vec<Vec<usize>>,
    /// The neighbours of each place in the layer above and in the layer below.
    pub(super) above: Vec<Vec<usize>>,
    pub(super) below: Vec<Vec<usize>>,
}

/// The content of a place. Nodes have the first places, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LayerPlace {
    /// The node of this position.
    Node(usize),
    /// A line on its way.
    Line,
    /// The labels of the edge of this position.
    Labels(usize),
}

/// How often the layers are put in order, down and up in turn.
const SWEEPS: usize = 12;

impl Layered {
    /// Puts a graph in layers. Takes time near-linear in the places.
    pub(super) fn of(graph: &Graph) -> Self {
        let layer = layers_of(graph);
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let mut layered = Self {
            places: (0..graph.nodes.len()).map(LayerPlace::Node).collect(),
            layers: vec![Vec::new(); count],
            paths: Vec::with_capacity(graph.edges.len()),
            above: vec![Vec::new(); graph.nodes.len()],
            below: vec![Vec::new(); graph.nodes.len()],
        };
        (0..graph.nodes.len()).for_each(|node| layered.layers[layer[node]].push(node));
        for (index, edge) in graph.edges.iter().enumerate() {
            let mut path = vec![edge.from];
            let between = layer[edge.from] + 1..layer[edge.to];
            let middle = between.start + between.len() / 2;
            for layer in between {
                let has_labels = layer == middle && !edge.labels.is_empty();
                path.push(layered.add(if has_labels { LayerPlace::Labels(index) } else { LayerPlace::Line }, layer));
            }
            path.push(edge.to);
            for step in path.windows(2) {
                layered.below[step[0]].push(step[1]);
                layered.above[step[1]].push(step[0]);
            }
            layered.paths.push(path);
        }
        layered.untangle();
        layered
    }

    fn add(&mut self, place: LayerPlace, layer: usize) -> usize {
        let index = self.places.len();
        self.places.push(place);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.layers[layer].push(index);
        index
    }

    /// Orders each layer by where the neighbours are, down and up in turn, and keeps the order with the fewest
    /// crossings.
    fn untangle(&mut self) {
        let (mut best, mut fewest) = (self.layers.clone(), self.crossings());
        for sweep in 0..SWEEPS {
            if fewest == 0 {
                break;
            }
            let down = sweep % 2 == 0;
            let mut rank = self.ranks();
            let order: Vec<usize> =
                if down { (0..self.layers.len()).collect() } else { (0..self.layers.len()).rev().collect() };
            for layer in order {
                let neighbours = if down { &self.above } else { &self.below };
                let center = |place: usize| -> f64 {
                    let near = &neighbours[place];
                    let sum: f64 = near.iter().map(|&neighbour| rank[neighbour]).sum();
                    if near.is_empty() { rank[place] } else { sum / near.len() as f64 }
                };
                let mut places: Vec<(f64, usize)> =
                    self.layers[layer].iter().map(|&place| (center(place), place)).collect();
                places.sort_by(|a, b| a.0.total_cmp(&b.0));
                let places: Vec<usize> = places.into_iter().map(|(_, place)| place).collect();
                places.iter().enumerate().for_each(|(index, &place)| rank[place] = index as f64);
                self.layers[layer] = places;
            }
            let crossings = self.crossings();
            if crossings < fewest {
                (best, fewest) = (self.layers.clone(), crossings);
            }
        }
        self.layers = best;
    }

    /// Returns the position of each place in its layer.
    fn ranks(&self) -> Vec<f64> {
        let mut rank = vec![0.0; self.places.len()];
        for layer in &self.layers {
            layer.iter().enumerate().for_each(|(index, &place)| rank[place] = index as f64);
        }
        rank
    }

    /// How many pairs of lines between neighbouring layers cross.
    pub(super) fn crossings(&self) -> u64 {
        let rank = self.ranks();
        let mut total = 0;
        for layer in &self.layers {
            let mut ends: Vec<usize> = Vec::new();
            for &place in layer {
                let mut below: Vec<usize> = self.below[place].iter().map(|&below| rank[below] as usize).collect();
                below.sort_unstable();
                ends.extend(below);
            }
            total += inversions(&ends);
        }
        total
    }
}

/// How many layers all edges of a graph go past.
pub(super) fn passed(graph: &Graph) -> usize {
    let layer = layers_of(graph);
    graph.edges.iter().map(|edge| layer[edge.to] - layer[edge.from] - 1).sum()
}

/// The layer of each node: below all that it comes after, and as low as its first successor lets it, so that lines are
/// short.
fn layers_of(graph: &Graph) -> Vec<usize> {
    let order = graph.order();
    let mut layer = vec![0; graph.nodes.len()];
    let mut behind: Vec<Vec<(usize, usize)>> = vec![Vec::new(); graph.nodes.len()];
    let mut has_predecessor = vec![false; graph.nodes.len()];
    for edge in &graph.edges {
        behind[edge.from].push((edge.to, if edge.labels.is_empty() { 1 } else { 2 }));
        has_predecessor[edge.to] = true;
    }
    for &node in &order {
        for &(later, length) in &behind[node] {
            layer[later] = layer[later].max(layer[node] + length);
        }
    }
    for &node in order.iter().filter(|&&node| !has_predecessor[node]) {
        if let Some(lowest) = behind[node].iter().map(|&(later, length)| layer[later] - length).min() {
            layer[node] = lowest;
        }
    }
    layer
}

/// How many pairs of a list are in descending order, by counting into a binary indexed tree (Fenwick 1994).
fn inversions(list: &[usize]) -> u64 {
    let size = list.iter().max().map_or(0, |largest| largest + 1);
    let mut counts = vec![0_u64; size + 1];
    let mut total = 0;
    for (seen, &value) in list.iter().enumerate() {
        let (mut index, mut not_larger) = (value + 1, 0);
        while index > 0 {
            not_larger += counts[index];
            index &= index - 1;
        }
        total += seen as u64 - not_larger;
        let mut index = value + 1;
        while index <= size {
            counts[index] += 1;
            index += index & index.wrapping_neg();
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::inversions;

    proptest! {
        #[test]
        fn crossings_are_pairs_in_descending_order(list in prop::collection::vec(0..20_usize, 0..60)) {
            let pairs = (0..list.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
            let descending = pairs.filter(|&(earlier, later)| list[earlier] > list[later]).count() as u64;
            prop_assert_eq!(inversions(&list), descending);
        }
    }
}
