//! Sharding: a mapper decides which node of a job runs which points of a launch.
//!
//! Run it with `cargo run -p maniple --example sharding`.

use maniple::Machine;
use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Sharding, ShardingMapper};
use maniple::net::loopback::Network;
use maniple::prelude::*;

/// Work that grows with the number of the point, as in the elimination of a matrix.
#[task(leaf)]
fn eliminate(#[point] row: Point<1>) -> i64 {
    (0..row[0]).sum()
}

/// Runs a program on a node. The number of tasks that ran there.
fn node(network: &Network, rank: u16, sharding: &Sharding) -> Result<u64> {
    let sharding = sharding.clone();
    // Every node asks its own mapper, and all must answer the same: from the launch and the number of nodes alone.
    let mapper = ShardingMapper::new(DefaultMapper::new(), move |_launch, _nodes| sharding.clone());
    let machine = Machine::uniform(1, 1 << 20);
    let runtime = Runtime::builder().machine(machine).mapper(mapper).network(network.node(NodeId(rank))).build()?;
    let sum = runtime.run(async |cx| cx.index_launch(10, eliminate()).reduce(Sum).await)?;
    assert_eq!(sum, 120);
    Ok(runtime.statistics().tasks)
}

fn main() -> Result<()> {
    let by_work =
        Sharding::by_point("rows of about equal work", |row, _rows, _nodes| usize::from(row.coords()[0] >= 7));
    for (sharding, expected) in [
        (Sharding::Blocked, [5, 5]),
        (Sharding::Cyclic, [5, 5]), // points go around the nodes
        (Sharding::OnOne(1), [0, 10]),
        (by_work, [7, 3]),
    ] {
        let network = Network::seeded(2, 0, 10);
        let _pump = network.pump();
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| node(&network, 1, &sharding));
            (node(&network, 0, &sharding), second.join().expect("a node does not panic"))
        });
        let tasks = [first?, second?];
        println!("{sharding:?}: the nodes ran {tasks:?} tasks");
        assert_eq!(tasks, expected);
    }
    Ok(())
}
