//! Nodes whose programs differ and end without waiting for each other: they are told so in whatever order messages come.

use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Machine, Result, Runtime};

#[derive(Fields)]
struct Cell {
    value: i64,
}

/// What nodes come to that make a region, one of them perhaps a larger one.
fn outcomes(seed: u64, nodes: usize, larger: Option<usize>) -> Vec<Result<()>> {
    let network = Network::seeded(nodes, seed, 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let transport = network.node(NodeId(node as u16));
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1);
                let runtime = builder.network(transport).build().unwrap();
                runtime.run(async |cx| {
                    let cells = cx.region::<Cell>(if larger == Some(node) { 20 } else { 10 })?;
                    cx.fill(&cells, Cell::value, 1)
                })
            })
        })
        .collect();
    simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    answers.into_iter().map(|answer| answer.take().unwrap()).collect()
}

#[test]
fn nodes_that_end_with_other_things_done_are_told_in_whatever_order_messages_come() {
    for seed in 0..300 {
        let nodes = 2 + seed as usize % 3;
        for outcome in outcomes(seed, nodes, Some(nodes - 1)) {
            let error = outcome.expect_err(&format!("seed {seed}")).to_string();
            let both = ["makes Cell region", "(10 points)", "(20 points)"];
            assert!(both.iter().all(|part| error.contains(part)), "seed {seed}: {error}");
        }
    }
}

#[test]
fn nodes_that_do_the_same_end_well_in_whatever_order_messages_come() {
    for seed in 0..100 {
        outcomes(seed, 2 + seed as usize % 3, None).into_iter().for_each(|outcome| outcome.unwrap());
    }
}
