//! Mappers by name on several nodes: each deals its own launches, and lends its own tasks.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, Sharding, TaskInfo};
use maniple::prelude::*;
use maniple::{Machine, Statistics};
use maniple_tests::nodes::{Connections, each_node};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

#[task(leaf)]
fn square(number: i64) -> i64 {
    number * number
}

/// On node 0, launches leaf tasks for the mapper that keeps them, or the one that sends them away.
#[task]
async fn launch_some(cx: &Context, away: bool) -> Result<i64> {
    let task = square(3);
    let task = if away { task.mapper("last") } else { task };
    cx.index_launch(6, task).reduce(Sum).await
}

/// Deals everything to the last node, and sends what it can there.
#[derive(Clone)]
struct Last(DefaultMapper);

impl Mapper for Last {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn shard_launch(&mut self, _: &TaskInfo<'_>, nodes: usize) -> Sharding {
        Sharding::OnOne(nodes - 1)
    }

    fn slice_across_nodes(
        &mut self,
        launch: &TaskInfo<'_>,
        _: NodeId,
        nodes: usize,
    ) -> Vec<maniple::mapper::NodeSlice> {
        let last = NodeId(nodes as u16 - 1);
        vec![maniple::mapper::NodeSlice { domain: launch.domain, node: last, recurse: false }]
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

/// Keeps everything: no node takes anything.
#[derive(Clone)]
struct Keeps;

impl Mapper for Keeps {
    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

fn on_nodes(program: impl AsyncFn(&Context) -> Result<i64> + Sync) -> Vec<(i64, Statistics)> {
    let connections = Connections::new(2);
    each_node(2, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
        let builder = builder.mapper(Keeps).mapper_named("last", Last(DefaultMapper::new()));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let value = runtime.run(async |cx| program(cx).await).unwrap();
        (value, runtime.statistics())
    })
}

#[test]
fn each_mapper_deals_the_launches_that_are_for_it() {
    let outcomes = on_nodes(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(8).equal()?;
        cx.fill(&cells, Cell::value, 0)?;
        cx.index_launch(8, add(&pieces, 1));
        cx.index_launch(8, add(&pieces, 1).mapper("last"));
        let values = cx.map_read(&cells, Cell::value).await?;
        Ok(values.to_vec().iter().sum())
    });
    assert_eq!(outcomes.iter().map(|(sum, _)| *sum).collect::<Vec<_>>(), [128, 128]);
    // Half of the first launch, and none or all of the second.
    assert_eq!(outcomes.iter().map(|(_, statistics)| statistics.tasks).collect::<Vec<_>>(), [4, 12]);
}

#[test]
fn each_mapper_deals_the_memory_that_is_attached_for_it() {
    let outcomes = on_nodes(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(8).equal()?;
        let mut counts = 0;
        for context in [cx, &cx.with_mapper("last")?] {
            let attached = context.attach_pieces(&pieces, Cell::value, |_| vec![1; 8])?;
            cx.index_launch(8, add(&pieces, 1));
            counts = 10 * counts + cx.detach_pieces(attached)?.await?.len() as i64;
        }
        Ok(counts)
    });
    // Half of the pieces each, and then all on the last node.
    assert_eq!(outcomes.iter().map(|(counts, _)| *counts).collect::<Vec<_>>(), [40, 48]);
}

#[test]
fn each_mapper_lends_the_tasks_that_are_for_it() {
    for (away, sent) in [(false, 0), (true, 1)] {
        let outcomes = on_nodes(async |cx| cx.launch(launch_some(away)).await);
        assert_eq!(outcomes.iter().map(|(sum, _)| *sum).collect::<Vec<_>>(), [54, 54]);
        let slices: Vec<u64> = outcomes.iter().map(|(_, statistics)| statistics.slices_sent).collect();
        assert_eq!(slices, [sent, 0], "away: {away}");
    }
}

#[test]
fn nodes_whose_mappers_have_other_names_or_another_order_are_told_before_they_launch() {
    let connections = Connections::new(2);
    let errors = each_node(2, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
        let names = if node == 0 { ["one", "other"] } else { ["other", "one"] };
        let builder = names.into_iter().fold(builder, |builder, name| builder.mapper_named(name, Keeps));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        runtime.run(async |cx| cx.execution_fence().await).unwrap_err().to_string()
    });
    for error in errors {
        let told = "where node 0 has the mappers `one`, `other`, in this order, node 1 has the mappers `other`, `one`";
        assert!(error.contains(told), "{error}");
    }
}
