//! Random circuits.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// The shape of a random circuit. Equal shapes give equal circuits.
// What serde knows is compared between nodes when a task is given it: so nodes that were told to make different
// circuits say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitShape {
    /// The number of pieces.
    pub pieces: usize,
    /// Nodes in each piece.
    pub nodes_per_piece: usize,
    /// Wires that start in each piece.
    pub wires_per_piece: usize,
    /// How many wires of a hundred end in the piece that they start in.
    pub percent_inside: u8,
    /// The seed of the random choices.
    pub seed: u64,
}

/// A node at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeValues {
    /// The capacity for charge, in charge a volt.
    pub capacitance: f64,
    /// The share of the voltage that is lost in a step.
    pub leakage: f64,
    /// The voltage.
    pub voltage: f64,
}

/// A wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireValues {
    /// The number of the node where it starts.
    pub from: usize,
    /// The number of the node where it ends.
    pub to: usize,
    /// The resistance.
    pub resistance: f64,
}

impl CircuitShape {
    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.pieces * self.nodes_per_piece
    }

    /// The number of wires.
    #[must_use]
    pub fn wires(&self) -> usize {
        self.pieces * self.wires_per_piece
    }

    /// The nodes of a piece. Those of piece `p` are numbered from `p * nodes_per_piece`.
    pub fn nodes_of(&self, piece: usize) -> impl Iterator<Item = NodeValues> + use<> {
        let mut random = self.random(piece, 0);
        (0..self.nodes_per_piece).map(move |_| NodeValues {
            capacitance: 1.0 + random.f64(),
            leakage: 1e-4 * random.f64(),
            voltage: 1.0 + random.f64(),
        })
    }

    /// The wires that start in a piece. Resistances grow with the number of wires a node, so that explicit steps are
    /// stable.
    pub fn wires_of(&self, piece: usize) -> impl Iterator<Item = WireValues> + use<> {
        let shape = *self;
        let mut random = self.random(piece, 1);
        let crowding = 1.0 + (2 * self.wires_per_piece) as f64 / self.nodes_per_piece as f64;
        (0..self.wires_per_piece).map(move |_| WireValues {
            from: shape.node_in(piece, &mut random),
            to: shape.far_end(piece, &mut random),
            resistance: crowding * (1.0 + random.f64()),
        })
    }

    fn far_end(&self, piece: usize, random: &mut Rng) -> usize {
        let stays = self.pieces == 1 || random.u8(..100) < self.percent_inside;
        if stays {
            return self.node_in(piece, random);
        }
        let other = random.usize(..self.pieces - 1);
        self.node_in(if other < piece { other } else { other + 1 }, random)
    }

    fn node_in(&self, piece: usize, random: &mut Rng) -> usize {
        piece * self.nodes_per_piece + random.usize(..self.nodes_per_piece)
    }

    /// Independent numbers for each piece and use.
    fn random(&self, piece: usize, stream: u64) -> Rng {
        let mut seeds = Rng::with_seed(self.seed ^ (2 * piece as u64 + stream).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Rng::with_seed(seeds.u64(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: CircuitShape =
        CircuitShape { pieces: 4, nodes_per_piece: 10, wires_per_piece: 1000, percent_inside: 80, seed: 7 };

    #[test]
    fn a_shape_is_always_the_same_circuit() {
        assert!(SHAPE.wires_of(2).eq(SHAPE.wires_of(2)));
        assert!(SHAPE.nodes_of(2).eq(SHAPE.nodes_of(2)));
        let other = CircuitShape { seed: 8, ..SHAPE };
        assert!(!other.wires_of(2).eq(SHAPE.wires_of(2)));
        assert!(!SHAPE.nodes_of(1).eq(SHAPE.nodes_of(2)));
    }

    #[test]
    fn wires_start_in_their_piece_and_end_there_as_often_as_asked() {
        let wires: Vec<_> = SHAPE.wires_of(3).collect();
        assert!(wires.iter().all(|wire| (30..40).contains(&wire.from) && wire.to < 40));
        let inside = wires.iter().filter(|wire| (30..40).contains(&wire.to)).count();
        assert!((750..850).contains(&inside), "{inside} of 1000");
    }

    #[test]
    fn the_only_piece_keeps_all_its_wires() {
        let shape = CircuitShape { pieces: 1, percent_inside: 0, ..SHAPE };
        assert!(shape.wires_of(0).all(|wire| wire.to < 10));
    }
}
