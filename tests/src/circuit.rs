//! The circuit, with pieces so small that what it costs is what the runtime does.
//!
//! Pieces form a ring. Each has two private nodes and two shared ones, of which the first is a ghost of the piece to
//! the left and the second of the piece to the right, as in `golden_circuit.rs`.

use std::ops::Range;

use maniple::Result;
use maniple::prelude::*;

#[derive(Fields)]
struct Node {
    voltage: i64,
    charge: i64,
}

#[derive(Fields)]
struct Wire {
    current: i64,
}

#[task(leaf)]
fn calc_new_currents(
    #[writes(current)] wires: Piece<Wire>,
    #[reads(voltage)] private: Piece<Node>,
    #[reads(voltage)] shared: Piece<Node>,
    #[reads(voltage)] ghost: Piece<Node>,
) {
    let sum: i64 = private.points().map(|point| private.voltage[point]).sum();
    let sum = shared.points().map(|point| shared.voltage[point]).fold(sum, i64::wrapping_add);
    let sum = ghost.points().map(|point| 3 * ghost.voltage[point]).fold(sum, i64::wrapping_add);
    wires.points().for_each(|point| wires.current[point] += sum + point[0]);
}

#[task(leaf)]
fn distribute_charge(
    #[reads(current)] wires: Piece<Wire>,
    #[reduces(Sum, charge)] private: Piece<Node>,
    #[reduces(Sum, charge)] shared: Piece<Node>,
    #[reduces(Sum, charge)] ghost: Piece<Node>,
) {
    let current: i64 = wires.points().map(|point| wires.current[point]).sum();
    private.points().for_each(|point| private.charge.fold(point, current));
    shared.points().for_each(|point| shared.charge.fold(point, current + point[0]));
    ghost.points().for_each(|point| ghost.charge.fold(point, 2 * current));
}

#[task(leaf)]
fn update_voltages(
    #[writes(voltage, charge)] private: Piece<Node>,
    #[writes(voltage, charge)] shared: Piece<Node>,
) -> i64 {
    let mut sum = 0;
    for point in private.points() {
        private.voltage[point] += private.charge[point] % 1000;
        private.charge[point] = 0;
        sum += private.voltage[point] * (point[0] + 1);
    }
    for point in shared.points() {
        shared.voltage[point] += shared.charge[point] % 1000;
        shared.charge[point] = 0;
        sum += shared.voltage[point] * (point[0] + 1);
    }
    sum
}

/// The partitions of a circuit.
pub struct Circuit {
    wires: Partition<Wire>,
    private: Partition<Node>,
    shared: Partition<Node>,
    ghost: Partition<Node>,
}

impl Circuit {
    /// A circuit of so many pieces.
    ///
    /// # Errors
    /// If it could not be made.
    pub fn new(cx: &Context, pieces: usize) -> Result<Self> {
        let nodes = cx.region::<Node>(4 * pieces)?;
        let of = |piece: i64, range: Range<i64>| {
            let piece = 4 * piece.rem_euclid(pieces as i64);
            Rect::<1>::from(piece + range.start..piece + range.end)
        };
        let kinds = (0..pieces as i64).flat_map(|piece| [(0, of(piece, 0..2)), (1, of(piece, 2..4))]);
        let kinds = nodes.partition(2).by_coloring(&kinds.collect::<Vec<_>>())?;
        let (all_private, all_shared) = (kinds.piece(0)?, kinds.piece(1)?);
        let ghost = |piece: i64| IndexSpace::from_rects([of(piece - 1, 3..4), of(piece + 1, 2..3)]);
        Ok(Self {
            wires: cx.region::<Wire>(2 * pieces)?.partition(pieces).equal()?,
            private: all_private.partition(pieces).by(|color| IndexSpace::from(of(color.coords()[0], 0..2)))?,
            shared: all_shared.partition(pieces).by(|color| IndexSpace::from(of(color.coords()[0], 2..4)))?,
            ghost: all_shared.partition(pieces).by(|color| ghost(color.coords()[0]))?,
        })
    }

    /// One step; what it sums up to.
    pub fn step(&self, cx: &Context, pieces: usize) -> FutureMap<i64> {
        let Self { wires, private, shared, ghost } = self;
        cx.index_launch(pieces, calc_new_currents(wires, private, shared, ghost));
        cx.index_launch(pieces, distribute_charge(wires, private, shared, ghost));
        cx.index_launch(pieces, update_voltages(private, shared))
    }
}
