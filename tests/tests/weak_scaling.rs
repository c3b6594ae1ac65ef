//! The circuit, one piece a node: what a node does in a step is the same on 16 nodes and on many more. `nodes.rs` has a stencil.
//!
//! Many are 256, or as many as `MANIPLE_MANY_NODES` says. With 1,024 a build that is not optimised takes minutes, as each node finds out once which of
//! all others it exchanges what with.
//!
//! Pieces form a ring. Each has two private nodes and two shared ones, of which the first is a ghost of the piece to the left and the second of the piece to
//! the right, as in `golden_circuit.rs`.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::ops::Range;

use maniple::Result;
use maniple::machine::NodeId;
use maniple::prelude::*;
use maniple_tests::nodes::{Nodes, on_nodes};

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
struct Circuit {
    wires: Partition<Wire>,
    private: Partition<Node>,
    shared: Partition<Node>,
    ghost: Partition<Node>,
}

impl Circuit {
    fn new(cx: &Context, pieces: usize) -> Result<Self> {
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
    fn step(&self, cx: &Context, pieces: usize) -> FutureMap<i64> {
        let Self { wires, private, shared, ghost } = self;
        cx.index_launch(pieces, calc_new_currents(wires, private, shared, ghost));
        cx.index_launch(pieces, distribute_charge(wires, private, shared, ghost));
        cx.index_launch(pieces, update_voltages(private, shared))
    }
}

/// What the busiest of so many nodes, each with one piece, does in ten steps, once all is known: launches, visits of the analysis, parcels, frames.
/// And what the circuit has come to.
fn work_of_steps(nodes: usize) -> ([u64; 4], i64) {
    let job = Nodes::new(nodes);
    let network = job.network.clone();
    let outcomes = on_nodes(job, async |cx, runtime| {
        let circuit = Circuit::new(cx, nodes)?;
        let read = || {
            let (done, sent) = (runtime.statistics(), network.traffic(NodeId(runtime.node() as u16)));
            [done.launches, done.logical_visits, done.parcels_sent, sent.frames]
        };
        for _ in 0..3 {
            circuit.step(cx, nodes);
        }
        cx.execution_fence().await?;
        let before = read();
        for _ in 0..9 {
            circuit.step(cx, nodes);
        }
        let last = circuit.step(cx, nodes);
        cx.execution_fence().await?;
        let after = read();
        Ok((std::array::from_fn(|count| after[count] - before[count]), last.reduce(Sum).await?))
    });
    let (work, sums): (Vec<[u64; 4]>, Vec<i64>) = outcomes.into_iter().map(Result::unwrap).unzip();
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    let most = work.into_iter().reduce(|most, one| std::array::from_fn(|count| most[count].max(one[count])));
    (most.unwrap(), sums[0])
}

/// What the circuit comes to on one node.
fn expected(pieces: usize) -> i64 {
    let outcome = on_nodes(Nodes::new(1), async |cx, _| {
        let circuit = Circuit::new(cx, pieces)?;
        for _ in 0..12 {
            circuit.step(cx, pieces);
        }
        circuit.step(cx, pieces).reduce(Sum).await
    });
    outcome.into_iter().next().unwrap().unwrap()
}

fn many_nodes() -> usize {
    std::env::var("MANIPLE_MANY_NODES").map_or(256, |many| many.parse().expect("MANIPLE_MANY_NODES is a number"))
}

#[test]
fn what_a_node_does_in_a_step_of_the_circuit_does_not_grow_with_the_number_of_nodes() {
    let nodes = many_nodes();
    let ((few, sum_of_few), (many, sum_of_many)) = (work_of_steps(16), work_of_steps(nodes));
    println!("launches, visits, parcels, frames: {few:?} on 16 nodes, {many:?} on {nodes}");
    assert_eq!((sum_of_few, sum_of_many), (expected(16), expected(nodes)), "what the circuit comes to");
    for (few, many) in few.into_iter().zip(many) {
        assert!(few > 0 && many <= 2 * few, "{many} on {nodes} nodes, {few} on 16");
    }
}
