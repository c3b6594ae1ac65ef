//! A program on two nodes, both in one process.
//!
//! Run it with `cargo run -p maniple --example two_nodes`. On a cluster the same program runs as one process a node.

use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::{Machine, Statistics};

#[derive(Fields)]
struct Cell {
    old: f64,
    new: f64,
}

#[task(leaf)]
fn number(#[discards(old)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.old[cell] = cell[0] as f64;
    }
}

#[task(leaf)]
fn shift(#[reads(old)] around: Piece<Cell>, #[discards(new)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.new[cell] = around.old.get(cell[0] - 1).unwrap_or(-1.0);
    }
}

#[task(leaf)]
fn sum(#[reads(new)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.new[cell]).sum()
}

/// The program, which every node runs. Each node runs its own points, and gets from the other node the data that these
/// need.
async fn program(cx: &Context) -> Result<f64> {
    let cells = cx.region::<Cell>(100)?;
    let (pieces, around) = (cells.blocks([25])?, cells.tiles([25], [1])?);
    cx.index_launch(4, number(&pieces));
    cx.index_launch(4, shift(&around, &pieces));
    cx.index_launch(4, sum(&pieces)).reduce(Sum).await
}

fn node(network: &Network, rank: u16) -> Result<(f64, Statistics)> {
    let machine = Machine::uniform(1, 1 << 20);
    let runtime = Runtime::builder().machine(machine).network(network.node(NodeId(rank))).build()?;
    let sum = runtime.run(program)?;
    Ok((sum, runtime.statistics()))
}

fn main() -> Result<()> {
    let network = Network::seeded(2, 0, 10); // it delays messages as the seed 0 says
    let _pump = network.pump(); // moves them
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| node(&network, 1));
        (node(&network, 0), second.join().expect("a node does not panic"))
    });
    for (sum, statistics) in [first?, second?] {
        println!(
            "{sum}; this node ran {} of 12 tasks, and sent {} bytes",
            statistics.tasks, statistics.parcel_bytes_sent
        );
        assert_eq!((sum, statistics.tasks), (4_850.0, 6));
    }
    Ok(())
}
