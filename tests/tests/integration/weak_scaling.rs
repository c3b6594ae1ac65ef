//! The circuit, one piece a node: what a node does in a step is the same on 16 nodes and on many more. `nodes.rs` has a stencil.
//!
//! Many are 256, or as many as `MANIPLE_MANY_NODES` says. 1,024 take half a minute and 6 GB, as each node finds out once which of all others it exchanges what
//! with.

use maniple::Result;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple_tests::circuit::Circuit;
use maniple_tests::nodes::{Nodes, on_nodes};

/// What the busiest of so many nodes, each with one piece, does in ten steps, once all is known: launches, visits of the analysis, parcels, frames.
/// And what the circuit has come to.
fn work_of_steps(nodes: usize) -> ([u64; 4], i64) {
    let network = Network::seeded(nodes, nodes as u64, 10);
    let job = Nodes::over_loopback(nodes, &network);
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
