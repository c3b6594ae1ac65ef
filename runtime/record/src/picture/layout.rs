//! The layout of boxes and lines on a page.

use crate::picture::graph::{Class, Graph, Node};
use crate::picture::layers::{LayerPlace, Layered};

/// A graph on a page. Lengths are in pixels, from the upper left corner.
pub(super) struct PageLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// For each node its box.
    pub(super) boxes: Vec<Frame>,
    /// For each edge its line.
    pub(super) lines: Vec<Line>,
}

/// A line from one box down to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The vertical pieces that it is made of, from top to bottom: where, from and to which height. Between them it
    /// swings from one to the next.
    pub(super) pieces: Vec<(f64, f64, f64)>,
    /// The middle of its labels.
    pub(super) labels: Option<(f64, f64)>,
}

/// A box, by its centre.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// How wide a letter is, nearly; the page's font is not known here.
const LETTER: f64 = 6.4;
/// How high a line of text is.
pub(super) const LINE: f64 = 14.0;
/// How much smaller the labels of edges are.
pub(super) const SMALL: f64 = 0.8;
const PADDING: f64 = 10.0;
/// The least distance between boxes, and between a box and a line.
const GAP: f64 = 14.0;
/// The distance between layers.
const STEP: f64 = 42.0;
const MARGIN: f64 = 20.0;
/// How often boxes are moved to where their neighbours are.
const ROUNDS: usize = 10;

impl PageLayout {
    pub(super) fn of(graph: &Graph) -> Self {
        let layered = Layered::of(graph);
        let size = |place: &LayerPlace| match *place {
            LayerPlace::Node(node) => size(&graph.nodes[node]),
            LayerPlace::Line => (0.0, 0.0),
            LayerPlace::Labels(edge) => text_size(&graph.edges[edge].labels, SMALL),
        };
        let sizes: Vec<(f64, f64)> = layered.places.iter().map(size).collect();
        let xs = columns(&layered, &sizes);
        let left = xs.iter().zip(&sizes).map(|(x, size)| x - size.0 / 2.0).fold(0.0, f64::min);
        let right = xs.iter().zip(&sizes).map(|(x, size)| x + size.0 / 2.0).fold(left, f64::max);
        let (bands, height) = bands(&layered, &sizes);
        let frame = |place: usize| {
            let (top, bottom) = bands[place];
            let (width, height) = sizes[place];
            Frame { x: xs[place] - left + MARGIN, y: (top + bottom) / 2.0, width, height }
        };
        let boxes: Vec<Frame> = (0..graph.nodes.len()).map(frame).collect();
        let line = |path: &Vec<usize>| {
            let mut line = Line::default();
            for &place in path {
                let ((top, bottom), Frame { x, y, height, .. }) = (bands[place], frame(place));
                // A line goes straight through a layer, so that it touches no box; to a box it has to come nearer.
                line.pieces.push(match layered.places[place] {
                    LayerPlace::Node(_) if line.pieces.is_empty() => (x, y + height / 2.0, bottom),
                    LayerPlace::Node(_) => (x, top, y - height / 2.0),
                    LayerPlace::Line | LayerPlace::Labels(_) => (x, top, bottom),
                });
                if let LayerPlace::Labels(_) = layered.places[place] {
                    line.labels = Some((x, y));
                }
            }
            line
        };
        let lines = layered.paths.iter().map(line).collect();
        Self { width: right - left + 2.0 * MARGIN, height, boxes, lines }
    }
}

/// For each place the upper and lower edge of its layer; and the height of the page.
fn bands(layered: &Layered, sizes: &[(f64, f64)]) -> (Vec<(f64, f64)>, f64) {
    let (mut bands, mut y) = (vec![(0.0, 0.0); layered.places.len()], MARGIN);
    let has_nodes = |layer: &[usize]| layer.iter().any(|&place| matches!(layered.places[place], LayerPlace::Node(_)));
    for (index, layer) in layered.layers.iter().enumerate() {
        let height = layer.iter().map(|&place| sizes[place].1).fold(0.0, f64::max);
        layer.iter().for_each(|&place| bands[place] = (y, y + height));
        // Labels are near to the boxes above and below.
        let is_between = !has_nodes(layer) || layered.layers.get(index + 1).is_some_and(|next| !has_nodes(next));
        y += height + if is_between { STEP / 2.0 } else { STEP };
    }
    (bands, y)
}

fn size(node: &Node) -> (f64, f64) {
    if node.class == Class::Join {
        return (8.0, 8.0);
    }
    let (width, height) = text_size(&node.label, 1.0);
    (width + 2.0 * PADDING, height + PADDING)
}

fn text_size(lines: &[String], scale: f64) -> (f64, f64) {
    let letters = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    (letters as f64 * LETTER * scale, lines.len() as f64 * LINE * scale)
}

/// The middle of each place: in the order of its layer, without overlaps, and as near to its neighbours as that allows.
/// Each layer in turn is put where that is so exactly, for the places of the layers next to it as they are.
fn columns(layered: &Layered, sizes: &[(f64, f64)]) -> Vec<f64> {
    let mut xs = vec![0.0; layered.places.len()];
    for layer in &layered.layers {
        let mut x = 0.0;
        for &place in layer {
            xs[place] = x + sizes[place].0 / 2.0;
            x += sizes[place].0 + GAP;
        }
    }
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let all = || layered.layers.iter();
        let order: Vec<&Vec<usize>> = if down { all().collect() } else { all().rev().collect() };
        for layer in order {
            let wishes: Vec<(f64, f64)> = layer.iter().map(|&place| wish(layered, &xs, place, down)).collect();
            let distances = layer.windows(2).map(|pair| (sizes[pair[0]].0 + sizes[pair[1]].0) / 2.0 + GAP);
            let placed = spread(&wishes, &distances.collect::<Vec<_>>());
            layer.iter().zip(placed).for_each(|(&place, x)| xs[place] = x);
        }
    }
    xs
}

/// Returns the position that a place wishes for, and the weight of the wish. Places on lines that go through several
/// layers wish to go straight.
fn wish(layered: &Layered, xs: &[f64], place: usize, down: bool) -> (f64, f64) {
    let neighbours = if down { &layered.above[place] } else { &layered.below[place] };
    let is_node = |place: usize| matches!(layered.places[place], LayerPlace::Node(_));
    let strength = |neighbour: usize| if is_node(place) || is_node(neighbour) { 1.0 } else { 8.0 };
    let weight: f64 = neighbours.iter().map(|&neighbour| strength(neighbour)).sum();
    if weight == 0.0 {
        return (xs[place], 0.1);
    }
    let sum: f64 = neighbours.iter().map(|&neighbour| xs[neighbour] * strength(neighbour)).sum();
    (sum / weight, weight)
}

/// The positions, in order and at least so far from each other, with the least sum of weighted squares of distances
/// from what was wished: the pool-adjacent-violators algorithm (Ayer et al. 1955) on positions from which the distances
/// have been taken off.
fn spread(wishes: &[(f64, f64)], distances: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0];
    distances.iter().for_each(|distance| offsets.push(offsets[offsets.len() - 1] + distance));
    // Blocks of positions that touch: where the first is, with which weight, and how many there are.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (&(wish, weight), offset) in wishes.iter().zip(&offsets) {
        let mut block = (wish - offset, weight, 1);
        while let Some(&(x, weight, count)) = blocks.last().filter(|last| last.0 > block.0) {
            let total = weight + block.1;
            block = ((x * weight + block.0 * block.1) / total, total, count + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let firsts = blocks.into_iter().flat_map(|(x, _, count)| std::iter::repeat_n(x, count));
    firsts.zip(&offsets).map(|(x, offset)| x + offset).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::spread;

    fn cost(wishes: &[(f64, f64)], positions: &[f64]) -> f64 {
        wishes.iter().zip(positions).map(|((wish, weight), position)| weight * (wish - position).powi(2)).sum()
    }

    proptest! {
        #[test]
        fn places_keep_their_distances_and_moving_any_of_them_makes_it_no_better(
            wishes in prop::collection::vec((-100.0..100.0_f64, 0.1..8.0_f64), 1..20),
            distance in 1.0..30.0_f64,
        ) {
            let distances = vec![distance; wishes.len() - 1];
            let found = spread(&wishes, &distances);
            let is_apart = |positions: &[f64]| positions.windows(2).all(|pair| pair[1] - pair[0] > distance - 1e-9);
            prop_assert!(is_apart(&found), "{found:?}");
            // Any run of neighbours, a little to the left or to the right. The cost is convex, so that is enough.
            for first in 0..found.len() {
                for last in first..found.len() {
                    for step in [-1e-3, 1e-3] {
                        let mut other = found.clone();
                        other[first..=last].iter_mut().for_each(|position| *position += step);
                        prop_assert!(!is_apart(&other) || cost(&wishes, &other) > cost(&wishes, &found) - 1e-9);
                    }
                }
            }
        }
    }
}
