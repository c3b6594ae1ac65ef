//! Tasks without regions that idle nodes take from others: whichever node runs them, and with all that can go wrong
//! there, their launcher cannot tell.

use std::sync::Barrier;

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, Sharding, ShardingMapper};
use maniple::prelude::*;
use maniple::{Machine, Result, Statistics};
use maniple_tests::nodes::{Connections, Nodes, each_node, on_nodes};

#[task]
async fn fibonacci(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let first = cx.launch(fibonacci(n - 1));
    let second = cx.launch(fibonacci(n - 2));
    Ok(first.await? + second.await?)
}

fn sequential(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

#[test]
fn a_recursion_has_the_same_value_on_any_number_of_nodes() {
    for nodes in 1..=6 {
        let values = on_nodes(Nodes::new(nodes), async |cx, _| {
            let first = cx.launch(fibonacci(16)).await?;
            Ok((first, cx.launch(fibonacci(11)).await?))
        });
        for value in values {
            assert_eq!(value.unwrap(), (sequential(16), sequential(11)), "on {nodes} nodes");
        }
    }
}

/// Two tasks that can only end if they run at the same time. Each says on which thread it ran.
#[task]
fn meet(_left: String, right: Option<Vec<u32>>) -> (String, Option<Vec<u32>>) {
    static MEETING: Barrier = Barrier::new(2);
    MEETING.wait();
    (format!("{:?}", std::thread::current().id()), right)
}

#[task]
async fn both(cx: &Context) -> Result<bool> {
    let one = cx.launch(meet("one".to_owned(), Some(vec![1, 2])));
    let other = cx.launch(meet("two".to_owned(), None));
    let (one, other) = (one.await?, other.await?);
    assert_eq!((one.1, other.1), (Some(vec![1, 2]), None), "arguments and values arrive as they left");
    Ok(one.0 != other.0)
}

#[test]
fn a_node_that_has_nothing_to_do_runs_what_another_has_no_worker_for() {
    let apart = on_nodes(Nodes::new(2), async |cx, _| cx.launch(both()).await);
    assert!(apart.into_iter().all(|apart| apart.unwrap()));
}

#[task]
async fn find_faults(cx: &Context, depth: u32) -> Result<u32> {
    if depth == 0 {
        return Ok(1);
    }
    let children: Vec<_> = (0..3).map(|_| cx.launch(find_faults(depth - 1))).collect();
    let bad = cx.launch(fail(depth));
    let mut sum = 0;
    for child in children {
        sum += child.await?;
    }
    let error = bad.await.unwrap_err().to_string();
    assert!(error.contains("no good") && error.contains(&format!("at {depth}")), "{error}");
    Ok(sum)
}

#[task]
async fn fail(_cx: &Context, depth: u32) -> Result<u32> {
    if depth.is_multiple_of(2) {
        panic!("no good, at {depth}");
    }
    Err(maniple::Error::from_task(format!("no good, at {depth}")))
}

#[test]
fn what_fails_elsewhere_fails_for_its_launcher() {
    maniple_tests::watch::silence_planned_panics();
    for nodes in [2, 5] {
        let sums = on_nodes(Nodes::new(nodes), async |cx, _| cx.launch(find_faults(5)).await);
        assert!(sums.into_iter().all(|sum| sum.unwrap() == 243));
    }
}

/// Not for serde.
#[derive(Clone, Debug, PartialEq)]
struct Local(u32);

#[task]
async fn stay(cx: &Context, depth: Local) -> Result<u32> {
    let Local(depth) = depth;
    if depth == 0 {
        return Ok(1);
    }
    let (one, other) = (cx.launch(stay(Local(depth - 1))), cx.launch(stay(Local(depth - 1))));
    Ok(one.await? + other.await?)
}

#[task]
async fn count_where_they_stay(cx: &Context) -> Result<u32> {
    cx.launch(stay(Local(10))).await
}

/// The statistics of each node after a program.
fn statistics(
    mapper: impl Mapper + Clone + Sync + 'static,
    body: impl AsyncFn(&Context) -> Result<u32> + Sync,
) -> Vec<(u32, Statistics)> {
    let connections = Connections::new(3);
    each_node(3, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1).mapper(mapper.clone());
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let value = runtime.run(async |cx| body(cx).await).unwrap();
        (value, runtime.statistics())
    })
}

#[test]
fn tasks_whose_arguments_cannot_be_sent_stay_where_they_are() {
    let nodes = statistics(DefaultMapper::default(), async |cx| cx.launch(count_where_they_stay()).await);
    let tasks: Vec<u64> = nodes.iter().map(|(_, statistics)| statistics.tasks).collect();
    assert!(nodes.iter().all(|(value, _)| *value == 1024));
    assert_eq!(tasks.iter().filter(|&&tasks| tasks > 1).count(), 1, "{tasks:?}");
}

/// Keeps what it has.
#[derive(Clone)]
struct Keeps;

impl Mapper for Keeps {
    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

#[task]
async fn tree(cx: &Context, depth: u32) -> Result<u32> {
    if depth == 0 {
        return Ok(1);
    }
    let (one, other) = (cx.launch(tree(depth - 1)), cx.launch(tree(depth - 1)));
    Ok(one.await? + other.await?)
}

#[test]
fn a_mapper_may_keep_its_tasks() {
    // Also if another mapper stands before it.
    let mapper = ShardingMapper::new(Keeps, |_, _| Sharding::Blocked);
    let nodes = statistics(mapper, async |cx| cx.launch(tree(12)).await);
    let tasks: Vec<u64> = nodes.iter().map(|(_, statistics)| statistics.tasks).collect();
    assert!(nodes.iter().all(|(value, _)| *value == 4096));
    assert_eq!(tasks.iter().filter(|&&tasks| tasks > 0).count(), 1, "{tasks:?}");
}
