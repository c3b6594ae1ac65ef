//! Points of index launches that idle nodes steal: many in one message.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, RandomMapper};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Launch, Machine, Result, Statistics};
use maniple_tests::lifetime::{Lifetime, run_nodes};
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

type Program = fn() -> Launch<Vec<i64>>;

/// Counts of a simulation, over all nodes.
struct Simulated {
    slices: u64,
    tasks_sent: u64,
    tasks: u64,
    turns: u64,
}

/// Runs a program on nodes of one worker. One may be killed at some turn.
fn simulate<M: Mapper + 'static>(
    seed: u64,
    mapper: impl Fn(u64) -> M + Clone + Send + 'static,
    (program, expected): (Program, &[i64]),
    killed: Option<(usize, u64)>,
) -> Simulated {
    let nodes = 2 + seed as usize % 3;
    let network = Network::seeded(nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let lifetimes: Vec<_> = (0..nodes).map(|_| Lifetime::default()).collect();
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, mapper) = (network.node(NodeId(node as u16)), mapper.clone());
            let lifetime = lifetimes[node].clone();
            simulation.thread(format!("node {node}"), move || {
                let factory = move |_: &Machine, _: maniple::ProcessorId| {
                    Box::new(lifetime.of(mapper(seed + 100 * node as u64))) as Box<dyn Mapper>
                };
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
                let runtime = builder.mapper_for(factory).network(transport).build().unwrap();
                (runtime.run(async |cx| cx.launch(program()).await), runtime.statistics())
            })
        })
        .collect();
    let (report, outcomes) = run_nodes(simulation, &network, &answers, &lifetimes, seed, killed);
    for (values, _) in &outcomes {
        match values {
            Ok(values) => assert_eq!(values, expected, "seed {seed}"),
            Err(error) => assert!(killed.is_some(), "seed {seed}: {error}"),
        }
    }
    let sum = |of: fn(&Statistics) -> u64| outcomes.iter().map(|(_, statistics)| of(statistics)).sum::<u64>();
    assert!(killed.is_some() || sum(|s| s.slices_sent) == sum(|s| s.slices_received), "seed {seed}");
    Simulated {
        slices: sum(|s| s.slices_sent),
        tasks_sent: sum(|s| s.tasks_sent),
        tasks: sum(|s| s.tasks),
        turns: report.turns,
    }
}

fn default(_: u64) -> DefaultMapper {
    DefaultMapper::new()
}

#[test]
fn idle_nodes_steal_slices_of_launches_without_regions() {
    let mut stolen = 0;
    for seed in 0..30 {
        let Simulated { slices, tasks, .. } = simulate(seed, default, (branches, &branches_expected()), None);
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
        let Simulated { slices, tasks_sent, .. } = simulate(seed, default, (numbers, &numbers_expected()), None);
        messages += slices;
        stolen += tasks_sent;
    }
    println!("{stolen} tasks, {messages} slices");
    assert!(messages > 100 && stolen > 3 * messages, "{stolen} tasks in {messages} slices");
}

#[test]
fn programs_of_which_slices_are_stolen_at_random_have_the_values_of_sequential_ones() {
    silence_planned_panics();
    for seed in 0..60 {
        simulate(seed, RandomMapper::new, (branches, &branches_expected()), None);
        simulate(seed, RandomMapper::new, (numbers, &numbers_expected()), None);
    }
}

#[test]
fn when_a_node_dies_that_has_stolen_slices_all_end() {
    silence_planned_panics();
    for seed in 0..40 {
        for program in [(branches as Program, branches_expected()), (numbers, numbers_expected())] {
            let program = (program.0, &program.1[..]);
            let Simulated { turns, .. } = simulate(seed, default, program, None);
            let mut random = fastrand::Rng::with_seed(seed);
            simulate(seed, default, program, Some((random.usize(..2 + seed as usize % 3), random.u64(..turns))));
        }
    }
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
        let kept = simulate(seed, |_| Keeps::default(), (branches, &branches_expected()), None);
        assert_eq!((kept.slices, kept.tasks_sent), (0, 0), "seed {seed}");
    }
}
