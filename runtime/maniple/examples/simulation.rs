//! A deterministic simulation: two nodes with all their threads and messages in one thread, as a seed decides.
//!
//! Run it with `cargo run -p maniple --example simulation -- 7`, where 7 is the seed.

use maniple::Machine;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::{Hang, Simulation};

#[task(leaf)]
fn square(#[point] at: Point<1>) -> i64 {
    at[0] * at[0]
}

/// Runs a program on two simulated nodes. How many turns it took.
fn simulate(seed: u64) -> std::result::Result<u64, Hang> {
    let network = Network::seeded(2, seed, 10);
    let mut simulation = Simulation::new(seed).network(&network);
    let nodes = [0, 1].map(|rank| {
        let transport = network.node(NodeId(rank));
        simulation.thread(format!("node {rank}"), move || {
            let machine = Machine::uniform(2, 1 << 20);
            let runtime = Runtime::builder().machine(machine).network(transport).build()?;
            runtime.run(async |cx| cx.index_launch(10, square()).reduce(Sum).await)
        })
    });
    let report = simulation.run()?; // if nothing can go on any more, this tells what waits for what
    assert!(nodes.iter().all(|node| matches!(node.take(), Some(Ok(285)))));
    Ok(report.turns)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(7), |seed| seed.parse())?;
    let turns = simulate(seed)?;
    println!("seed {seed} takes {turns} turns");
    assert_eq!(simulate(seed)?, turns, "a seed runs the same way each time");
    Ok(())
}
