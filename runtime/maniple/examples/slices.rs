//! Slices of an index launch on several nodes: one message takes a slice to its node, and one brings its results back.
//!
//! Run it with `cargo run -p maniple --example slices`.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, NodeSlice, TaskInfo};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::{Machine, Statistics};

/// Cuts what tasks launch into a slice a node. Without it all points stay, unless idle nodes steal some.
#[derive(Clone)]
struct Slices(DefaultMapper);

impl Mapper for Slices {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, _here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        let parts = launch.domain.split(nodes).into_iter().zip(0..);
        parts.map(|(domain, node)| NodeSlice { domain, node: NodeId(node), recurse: false }).collect()
    }

    fn permit_steal(&mut self, _task: &str, _thief: NodeId) -> bool {
        false
    }
}

#[task(leaf)]
fn square(#[point] at: Point<1>) -> i64 {
    at[0] * at[0]
}

/// Runs on one node, as any single task.
#[task]
async fn sum_of_squares(cx: &Context, count: i64) -> Result<i64> {
    cx.index_launch(0..count, square()).reduce(Sum).await
}

fn node(network: &Network, rank: u16) -> Result<(i64, Statistics)> {
    let machine = Machine::uniform(1, 1 << 20);
    let builder = Runtime::builder().machine(machine).mapper(Slices(DefaultMapper::new()));
    let runtime = builder.network(network.node(NodeId(rank))).build()?;
    let sum = runtime.run(async |cx| cx.launch(sum_of_squares(1_000)).await)?;
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
    println!("{sum}; node 0 ran {} tasks and sent {} slice, of {} tasks", first.tasks, first.slices_sent, second.tasks);
    assert_eq!((sum, same), (332_833_500, 332_833_500));
    assert_eq!((first.tasks, first.slices_sent, second.tasks), (501, 1, 500));
    Ok(())
}
