//! Work stealing between nodes: idle nodes take tasks without regions from a node that has more than it has workers
//! for.
//!
//! Run it with `cargo run -p maniple --example stealing`.

use std::sync::Barrier;

use maniple::Machine;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;

/// Waits until two of these run at once. Each node has one worker here: that can only be if another node has stolen
/// one.
#[task(leaf)]
fn meet(number: u64) -> u64 {
    static MEETING: Barrier = Barrier::new(2);
    MEETING.wait();
    number
}

/// Runs on one node; its children are launched there.
#[task]
async fn launch_two(cx: &Context) -> Result<u64> {
    let first = cx.launch(meet(1));
    let second = cx.launch(meet(2));
    Ok(first.await? + second.await?)
}

fn node(network: &Network, rank: u16) -> Result<(u64, u64)> {
    let machine = Machine::uniform(1, 1 << 20);
    let runtime = Runtime::builder().machine(machine).network(network.node(NodeId(rank))).build()?;
    let sum = runtime.run(async |cx| cx.launch(launch_two()).await)?;
    Ok((sum, runtime.statistics().tasks))
}

fn main() -> Result<()> {
    let network = Network::seeded(2, 0, 10);
    let _pump = network.pump();
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| node(&network, 1));
        (node(&network, 0), second.join().expect("a node does not panic"))
    });
    let ((sum, first), (same, second)) = (first?, second?);
    println!("{sum}; node 0 ran {first} tasks, and node 1 stole {second}");
    assert_eq!((sum, same), (3, 3));
    assert_eq!((first, second), (2, 1));
    Ok(())
}
