//! Points of index launches that idle nodes steal: many in one message.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Launch, Machine, Result, Statistics};
use maniple_tests::watch::silence_planned_panics;

const ROUNDS: i64 = 8;
const POINTS: i64 = 24;

/// Launches of its own, so it is no leaf task.
#[task]
async fn branch(cx: &Context, #[point] at: Point<1>, round: i64) -> Result<i64> {
    let (one, other) = (cx.launch(leaf(at[0] + round)), cx.launch(leaf(round)));
    Ok(one.await? + other.await?)
}

#[task]
fn leaf(value: i64) -> i64 {
    3 * value
}

/// Index launches without regions, one after the other.
#[task]
async fn branches(cx: &Context) -> Result<Vec<i64>> {
    let mut sums = Vec::new();
    for round in 0..ROUNDS {
        let values = cx.index_launch(0..POINTS, branch(round)).all().await?;
        sums.push(values.into_iter().enumerate().map(|(at, value)| (at as i64 + 1) * value).sum());
    }
    Ok(sums)
}

fn branches_expected() -> Vec<i64> {
    (0..ROUNDS).map(|round| (0..POINTS).map(|at| (at + 1) * (3 * (at + round) + 3 * round)).sum()).collect()
}

#[derive(Fields)]
struct Row {
    value: i64,
}

#[task]
fn number(#[point] at: Point<1>, #[writes(value)] rows: Piece<Row>, round: i64) -> i64 {
    assert!(round < ROUNDS || at[0] % 5 != 0, "no good, at {}", at[0]);
    rows.points().for_each(|row| rows.value[row] = row[0] + round);
    at[0]
}

/// Leaf tasks with regions, one launch after the other.
#[task]
async fn numbers(cx: &Context) -> Result<Vec<i64>> {
    let rows = cx.region::<Row>(2 * POINTS as usize)?;
    let pieces = rows.partition(POINTS as usize).equal()?;
    for round in 0..ROUNDS {
        let sum = cx.index_launch(0..POINTS, number(&pieces, round)).reduce(Sum).await?;
        assert_eq!(sum, (0..POINTS).sum::<i64>());
    }
    let read = cx.map_read(&rows, Row::value).await?.to_vec();
    let some_fail = cx.index_launch(0..POINTS, number(&pieces, ROUNDS));
    for at in 0..POINTS {
        match some_fail.get(at)?.await {
            Ok(value) => assert!(value == at && at % 5 != 0),
            Err(error) => assert!(error.to_string().contains(&format!("no good, at {at}")) && at % 5 == 0, "{error}"),
        }
    }
    Ok(read)
}

fn numbers_expected() -> Vec<i64> {
    (0..2 * POINTS).map(|row| row + ROUNDS - 1).collect()
}

/// Runs a program on nodes of one worker: what they have done, all together.
fn simulate(
    seed: u64,
    mapper: impl Mapper + Clone + Send + 'static,
    program: fn() -> Launch<Vec<i64>>,
    expected: &[i64],
) -> [u64; 3] {
    let nodes = 2 + seed as usize % 3;
    let network = Network::seeded(nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, mapper) = (network.node(NodeId(node as u16)), mapper.clone());
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1).mapper(mapper);
                let runtime = builder.network(transport).build().unwrap();
                (runtime.run(async |cx| cx.launch(program()).await).unwrap(), runtime.statistics())
            })
        })
        .collect();
    simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    let outcomes: Vec<_> = answers.iter().map(|answer| answer.take().unwrap()).collect();
    assert!(outcomes.iter().all(|(values, _)| values == expected), "seed {seed}");
    let sum = |of: fn(&Statistics) -> u64| outcomes.iter().map(|(_, statistics)| of(statistics)).sum::<u64>();
    assert_eq!(sum(|s| s.slices_sent), sum(|s| s.slices_received), "seed {seed}");
    [sum(|s| s.slices_sent), sum(|s| s.tasks_sent), sum(|s| s.tasks)]
}

#[test]
fn idle_nodes_steal_slices_of_launches_without_regions() {
    let mut stolen = 0;
    for seed in 0..30 {
        let [slices, _, tasks] = simulate(seed, DefaultMapper::new(), branches, &branches_expected());
        assert_eq!(tasks, 1 + (3 * POINTS * ROUNDS) as u64, "seed {seed}: each task is counted where it ran");
        stolen += slices;
    }
    println!("{stolen} slices");
    assert!(stolen > 100, "{stolen}");
}

#[test]
fn idle_nodes_steal_many_leaf_tasks_with_their_data_in_one_message() {
    silence_planned_panics();
    let (mut messages, mut stolen) = (0, 0);
    for seed in 0..30 {
        let [slices, tasks, _] = simulate(seed, DefaultMapper::new(), numbers, &numbers_expected());
        messages += slices;
        stolen += tasks;
    }
    println!("{stolen} tasks, {messages} slices");
    assert!(messages > 100 && stolen > 3 * messages, "{stolen} tasks in {messages} slices");
}

/// Keeps what waits.
#[derive(Clone, Default)]
struct Keeps(DefaultMapper);

impl Mapper for Keeps {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

#[test]
fn a_mapper_may_keep_its_slices() {
    for seed in 0..10 {
        let [slices, tasks, _] = simulate(seed, Keeps::default(), branches, &branches_expected());
        assert_eq!((slices, tasks), (0, 0), "seed {seed}");
    }
}
