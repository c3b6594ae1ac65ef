//! Data of two nodes that passes by, block after block: each node needs room for its own half and for one block of the
//! other's.
//!
//! Run it with `cargo run -p maniple --example forgotten_copies`.

use maniple::Machine;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;

const BLOCKS: usize = 16;
const POINTS: usize = 1_000;
/// Of one block.
const BYTES: u64 = 8 * POINTS as u64;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0] as f64);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// Both nodes sum up each block.
async fn program(cx: &Context, forgets: bool) -> Result<f64> {
    let cells = cx.region::<Cell>(BLOCKS * POINTS)?;
    let blocks = cells.partition(BLOCKS).equal()?;
    cx.index_launch(BLOCKS, number(&blocks));
    let mut total = 0.0;
    for block in 0..BLOCKS as i64 {
        let block = blocks.piece(block)?;
        let both = cx.index_launch(2, sum(&block));
        if forgets {
            cx.forget_copies(&block, &cells.logical().fields().fields())?;
        }
        total += both.reduce(Sum).await?;
    }
    Ok(total)
}

/// Runs the program on one node. Returns the sum that the node finds.
fn node(network: &Network, rank: u16, forgets: bool) -> Result<f64> {
    // Room for half of the data, and for a few blocks more.
    let machine = Machine::uniform(1, (BLOCKS as u64 / 2 + 4) * BYTES);
    let runtime = Runtime::builder().machine(machine).network(network.node(NodeId(rank))).build()?;
    runtime.run(async |cx| program(cx, forgets).await)
}

fn run(forgets: bool) -> [Result<f64>; 2] {
    let network = Network::seeded(2, 0, 10); // it delays messages as the seed 0 says
    let _pump = network.pump(); // moves them
    std::thread::scope(|scope| {
        let second = scope.spawn(|| node(&network, 1, forgets));
        [node(&network, 0, forgets), second.join().expect("a node does not panic")]
    })
}

fn main() {
    for found in run(false) {
        println!("where copies are kept: {}", found.expect_err("they do not fit"));
    }
    for found in run(true) {
        let all = BLOCKS * POINTS;
        assert_eq!(found.expect("few blocks of the other half are there at a time"), (all * (all - 1)) as f64);
    }
    println!("where copies are forgotten, both nodes have summed up all blocks");
}
