//! Migration: leaf tasks that a mapper sends to another node, with their data.
//!
//! Run it with `cargo run -p maniple --example migration`.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, TaskInfo};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::{Machine, Statistics};

/// Sends point `p` of what tasks launch to node `p` modulo the number of nodes.
#[derive(Clone)]
struct Deals(DefaultMapper);

impl Mapper for Deals {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, _here: NodeId, nodes: usize) -> Option<NodeId> {
        Some(NodeId((task.index() % nodes as u64) as u16))
    }
}

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>, by: i64) {
    for cell in cells.points() {
        cells.value[cell] += by;
    }
}

/// Runs on one node, as any single task. Two of the points that it launches go to the other node, with their cells,
/// which come back.
#[task]
async fn solve(cx: &Context) -> Result<i64> {
    let cells = cx.region::<Cell>(100)?;
    cx.index_launch(4, increase(&cells.partition(4).equal()?, 7));
    Ok(cx.map_read(&cells, Cell::value).await?.iter().sum())
}

fn node(network: &Network, rank: u16) -> Result<(i64, Statistics)> {
    let machine = Machine::uniform(1, 1 << 20);
    let builder = Runtime::builder().machine(machine).mapper(Deals(DefaultMapper::new()));
    let runtime = builder.network(network.node(NodeId(rank))).build()?;
    let sum = runtime.run(async |cx| cx.launch(solve()).await)?;
    Ok((sum, runtime.statistics()))
}

fn main() -> Result<()> {
    let network = Network::seeded(2, 0, 10);
    let _pump = network.pump();
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| node(&network, 1));
        (node(&network, 0), second.join().expect("a node does not panic"))
    });
    let ((sum, first), (same, second)) = (first?, second?);
    println!("{sum}; node 0 sent {} tasks, and node 1 ran {}", first.tasks_sent, second.tasks_received);
    assert_eq!((sum, same), (700, 700));
    assert_eq!((first.tasks_sent, second.tasks_received), (2, 2));
    Ok(())
}
