//! Index launches of tasks without regions that mappers slice across nodes: whichever node runs the points, each runs
//! once, and the results do not show where.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maniple::machine::NodeId;
use maniple::mapper::{Mapper, NodeSlice, RandomMapper, TaskInfo};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::record::check;
use maniple::simulation::Simulation;
use maniple::threads::nap;
use maniple::{AnyRect, Machine, Rect, Result, Statistics};
use maniple_tests::lifetime::{Lifetime, run_nodes};
use maniple_tests::mixed::{Size, expected, program};
use maniple_tests::nodes::{Connections, each_node};
use maniple_tests::slicing::{Slicing, evenly, halve, keep, on_nodes, pass_on, slice, slices, sum};
use maniple_tests::watch::silence_planned_panics;

/// How often each point of each run has run.
static RUNS: Mutex<Option<Runs>> = Mutex::new(None);

/// By the run and the point.
type Runs = HashMap<(u64, Vec<i64>), u32>;

fn new_run() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// How often each point of a run has run.
fn take_runs(run: u64) -> HashMap<Vec<i64>, u32> {
    let mut runs = RUNS.lock().unwrap();
    let all = std::mem::take(runs.get_or_insert_default());
    let (mine, others): (HashMap<_, _>, HashMap<_, _>) = all.into_iter().partition(|((of, _), _)| *of == run);
    *runs = Some(others);
    mine.into_iter().map(|((_, point), times)| (point, times)).collect()
}

/// Notes that a point runs, and gives something of all that it can see.
#[task(leaf)]
fn visit(#[point] at: Point<2>, run: u64, text: String, offset: i64) -> (i64, String) {
    *RUNS.lock().unwrap().get_or_insert_default().entry((run, vec![at[0], at[1]])).or_default() += 1;
    (at[0] * 1000 + at[1] + offset, format!("{text} at {at}"))
}

#[task(leaf)]
fn first_offset() -> i64 {
    100
}

/// The results of visits, in their order; the offset is a future.
#[task]
async fn visits(cx: &Context, rows: i64, columns: i64, run: u64) -> Result<Vec<(i64, String)>> {
    let offset = cx.launch(first_offset());
    let domain = Rect::new([2, -1], [1 + rows, columns - 2]);
    cx.index_launch(domain, visit(run, "seen".to_owned(), offset)).all().await
}

fn expected_visits(rows: i64, columns: i64) -> Vec<(i64, String)> {
    let points = (2..2 + rows).flat_map(|row| (-1..columns - 1).map(move |column| (row, column)));
    points.map(|(row, column)| (row * 1000 + column + 100, format!("seen at ({row}, {column})"))).collect()
}

#[test]
fn each_point_of_a_sliced_launch_runs_once_and_results_come_in_order() {
    for nodes in 1..=4 {
        for slicing in [evenly as Slicing, keep, halve] {
            let run = new_run();
            let outcomes = on_nodes(&slices(slicing), nodes, async |cx| cx.launch(visits(7, 5, run)).await);
            for (values, ..) in &outcomes {
                assert_eq!(values.as_ref().unwrap(), &expected_visits(7, 5), "on {nodes} nodes");
            }
            let times = take_runs(run);
            assert!(times.len() == 35 && times.values().all(|&times| times == 1), "on {nodes} nodes: {times:?}");
            assert_eq!(sum(&outcomes, |s| s.tasks), 35 + 2, "each is counted where it ran");
            assert_eq!(sum(&outcomes, |s| s.slices_sent), sum(&outcomes, |s| s.slices_received));
        }
    }
}

#[test]
fn every_node_runs_its_slice() {
    let run = new_run();
    let outcomes = on_nodes(&slices(evenly), 3, async |cx| cx.launch(visits(9, 3, run)).await);
    let tasks: Vec<u64> = outcomes.iter().map(|(_, statistics, _)| statistics.tasks).collect();
    assert_eq!(tasks, [9 + 2, 9, 9]);
    take_runs(run);
}

#[test]
fn a_slice_that_is_to_be_sliced_again_goes_on_to_a_third_node() {
    let run = new_run();
    let outcomes = on_nodes(&slices(halve), 3, async |cx| cx.launch(visits(16, 1, run)).await);
    let count = |of: fn(&Statistics) -> u64| outcomes.iter().map(|(_, s, _)| of(s)).collect::<Vec<_>>();
    // 8 stay; of the 8 that go to node 1, 4 go on to node 2; of those 2 to node 0; of those 1 to node 1, which keeps it
    // as it can't be halved.
    assert_eq!(count(|s| s.tasks), [8 + 2 + 1, 4 + 1, 2]);
    assert_eq!(count(|s| s.slices_received), [1, 2, 1]);
    take_runs(run);
}

#[task(leaf)]
fn square(#[point] at: Point<1>) -> i64 {
    at[0] * at[0]
}

#[task]
async fn squares(cx: &Context, points: i64) -> Result<i64> {
    cx.index_launch(0..points, square()).reduce(Sum).await
}

#[test]
fn a_sliced_launch_of_a_thousand_points_takes_two_messages_a_slice() {
    const POINTS: i64 = 1000;
    // Frames of protocols (heartbeats, ends of programs) come to the same with and without, give or take some.
    let frames = |slicing| {
        let outcomes = on_nodes(&slices(slicing), 4, async |cx| cx.launch(squares(POINTS)).await);
        let squares = (0..POINTS).map(|at| at * at).sum::<i64>();
        assert!(outcomes.iter().all(|(sum, ..)| *sum.as_ref().unwrap() == squares));
        (outcomes.iter().map(|(.., frames)| frames).sum::<u64>(), sum(&outcomes, |s| s.slices_sent))
    };
    let ((kept, none), (sliced, three)) = (frames(keep), frames(evenly));
    println!("{kept} frames if all stays, {sliced} if three of four slices go");
    assert_eq!((none, three), (0, 3));
    assert!(sliced < kept + 20, "{sliced} frames, and {kept} if all stays");
}

/// Launches in turn: one launch again in each point, single tasks, and waits for all.
#[task]
async fn branch(cx: &Context, #[point] at: Point<1>, depth: i64, before: i64) -> Result<i64> {
    if depth == 0 {
        return Ok(at[0] + before);
    }
    let single = cx.launch(first_offset());
    let children = cx.index_launch(0..1 + at[0] % 3, branch(depth - 1, at[0] + before));
    Ok(children.reduce(Sum).await? + single.await? * depth)
}

fn branched(at: i64, depth: i64, before: i64) -> i64 {
    if depth == 0 {
        return at + before;
    }
    (0..1 + at % 3).map(|child| branched(child, depth - 1, at + before)).sum::<i64>() + 100 * depth
}

#[task(leaf)]
fn nothing(#[point] at: Point<1>, run: u64) {
    *RUNS.lock().unwrap().get_or_insert_default().entry((run, vec![at[0]])).or_default() += 1;
}

/// Index launches of all kinds: with results and without, of leaf tasks and others, given values, futures and results
/// point by point.
#[task]
async fn of_all_kinds(cx: &Context, points: i64, rounds: i64, run: u64) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for round in 0..rounds {
        let quiet = cx.index_launch(0..points, nothing(run));
        let squares = cx.index_launch(0..points, square());
        let before = squares.get(0)?;
        let branches = cx.index_launch(0..points, branch(round % 3, &before));
        // One result for each point can't be sent: these stay.
        let again = cx.index_launch(0..points, branch(0, &branches));
        cx.trace("squares", |cx| cx.index_launch(0..points, square()));
        // Of leaf tasks with their data, which read, write and contribute to pieces that overlap.
        let size = Size {
            rows: 3 * points,
            pieces: points,
            rounds: 2,
            halo: round % 3,
            is_cyclic: round % 2 == 0,
            is_traced: false,
        };
        let with_data = cx.launch(program(size));
        all.append(&mut again.all().await?);
        quiet.await?;
        assert_eq!(with_data.await?, expected(size));
    }
    Ok(all)
}

fn of_all_kinds_expected(points: i64, rounds: i64) -> Vec<i64> {
    let of_round = |round: i64| (0..points).map(move |at| at + branched(at, round % 3, 0));
    (0..rounds).flat_map(of_round).collect()
}

/// Counts of a simulation.
struct Simulated {
    slices: u64,
    turns: u64,
}

fn simulate(seed: u64, killed: Option<(usize, u64)>) -> Simulated {
    let mut random = fastrand::Rng::with_seed(seed);
    let (nodes, workers) = (2 + seed as usize % 3, 1 + seed as usize % 2);
    let (points, rounds, run) = (random.i64(1..12), random.i64(1..5), new_run());
    let network = Network::seeded(nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let lifetimes: Vec<_> = (0..nodes).map(|_| Lifetime::default()).collect();
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, lifetime) = (network.node(NodeId(node as u16)), lifetimes[node].clone());
            simulation.thread(format!("node {node}"), move || {
                let factory = move |_: &Machine, processor: maniple::ProcessorId| {
                    let seed = seed + 100 * node as u64 + u64::from(processor.0);
                    let mapper =
                        if seed.is_multiple_of(3) { RandomMapper::steady(seed) } else { RandomMapper::new(seed) };
                    Box::new(lifetime.of(mapper)) as Box<dyn Mapper>
                };
                let builder = Runtime::builder().machine(Machine::uniform(workers as u32, 1 << 24)).workers(workers);
                let builder = builder.mapper_for(factory).record_operations(seed.is_multiple_of(5));
                let runtime = builder.network(transport).build().unwrap();
                let values = runtime.run(async |cx| cx.launch(of_all_kinds(points, rounds, run)).await);
                if killed.is_none() {
                    check(&runtime.take_record()).unwrap();
                    let is_open = || runtime.statistics().open_exchanges > 0;
                    // The last messages may be under way.
                    (0..2000).take_while(|_| is_open()).for_each(|_| nap(Duration::from_micros(500)));
                    assert!(!is_open(), "seed {seed}: something is kept");
                }
                (values, runtime.statistics())
            })
        })
        .collect();
    let (report, outcomes) = run_nodes(simulation, &network, &answers, &lifetimes, seed, killed);
    let times = take_runs(run);
    for (values, _) in &outcomes {
        match values {
            Ok(values) => assert_eq!(values, &of_all_kinds_expected(points, rounds), "seed {seed}"),
            Err(error) => assert!(killed.is_some(), "seed {seed}: {error}"),
        }
    }
    let is_once = |times: u32| if killed.is_some() { i64::from(times) <= rounds } else { i64::from(times) == rounds };
    assert!(times.values().all(|&times| is_once(times)), "seed {seed}: {times:?}");
    assert!(killed.is_some() || times.len() as i64 == points, "seed {seed}: {times:?}");
    let slices = outcomes.iter().map(|(_, statistics)| statistics.slices_received).sum();
    Simulated { slices, turns: report.turns }
}

#[test]
fn programs_whose_mappers_slice_at_random_have_the_values_of_sequential_ones() {
    let slices: u64 = (0..150).map(|seed| simulate(seed, None).slices).sum();
    println!("{slices} slices");
    assert!(slices > 2_000, "{slices}");
}

#[test]
fn when_a_node_dies_that_has_others_slices_all_end() {
    silence_planned_panics();
    for seed in 2000..2080 {
        let Simulated { turns, .. } = simulate(seed, None);
        let mut random = fastrand::Rng::with_seed(seed);
        simulate(seed, Some((random.usize(..2 + seed as usize % 3), random.u64(..turns))));
    }
}

#[task(leaf)]
fn stumble(#[point] at: Point<1>) -> Result<i64> {
    match at[0] {
        1 => Err(maniple::Error::from_task("failed on purpose".to_owned())),
        6 => panic!("on purpose"),
        _ => Ok(at[0]),
    }
}

/// Stumbles without a result.
#[task(leaf)]
fn stumble_quietly(#[point] at: Point<1>, _before: i64) {
    assert!(at[0] != 6, "quietly on purpose");
}

fn text<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    outcome.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
}

/// The outcomes of each point of launches that fail.
#[task]
async fn faultyloops(cx: &Context) -> Result<[Vec<String>; 3]> {
    let first = cx.index_launch(8, stumble());
    let second = cx.index_launch(8, stumble_quietly(0));
    // Given what has failed.
    let third = cx.index_launch(8, stumble_quietly(first.get(6)?));
    let mut outcomes = [const { Vec::new() }; 3];
    for point in 0..8 {
        outcomes[0].push(text(first.get(point)?.await));
        outcomes[1].push(text(second.get(point)?.await));
        outcomes[2].push(text(third.get(point)?.await));
    }
    Ok(outcomes)
}

#[test]
fn points_that_fail_elsewhere_fail_as_at_home_and_the_others_do_not() {
    silence_planned_panics();
    let kept = on_nodes(&slices(keep), 2, async |cx| cx.launch(faultyloops()).await);
    let sliced = on_nodes(&slices(evenly), 2, async |cx| cx.launch(faultyloops()).await);
    for (kept, sliced) in kept.into_iter().zip(sliced) {
        let (kept, sliced) = (kept.0.unwrap(), sliced.0.unwrap());
        for (kept, sliced) in kept.iter().flatten().zip(sliced.iter().flatten()) {
            // But that it happened elsewhere is told, and at home where it was launched.
            let [at_home, there] = [kept, sliced].map(|text| text.split(" (launched at ").next().unwrap_or_default());
            assert_eq!(at_home, there.trim_start_matches("on node 1: "));
        }
        let [first, second, third] = sliced;
        assert_eq!((&*first[0], &*first[7], &*second[5], &*second[7]), ("0", "7", "()", "()"));
        assert!(first[1].contains("stumble") && first[1].contains("(1)") && first[1].contains("failed on purpose"));
        assert!(
            first[6].contains("on node 1") && first[6].contains("panicked") && first[6].contains("(6)"),
            "{first:?}"
        );
        assert!(second[6].contains("quietly on purpose"), "{second:?}");
        assert!(third.iter().all(|text| *text == first[6]), "who is given what failed fails with it: {third:?}");
    }
}

#[test]
fn slices_that_make_no_sense_are_an_error_of_the_mapper_that_says_what_was_expected() {
    fn lacking(launch: &TaskInfo<'_>, _: NodeId, _: usize) -> Vec<NodeSlice> {
        launch.domain.split(4).into_iter().skip(1).map(|part| slice(part, 1, false)).collect()
    }
    fn doubled(launch: &TaskInfo<'_>, _: NodeId, _: usize) -> Vec<NodeSlice> {
        vec![slice(launch.domain, 1, false), slice(launch.domain.split(4)[1], 0, false)]
    }
    fn outside(_: &TaskInfo<'_>, _: NodeId, _: usize) -> Vec<NodeSlice> {
        vec![slice(AnyRect::from(Rect::<1>::from(0..9)), 1, false)]
    }
    fn flat(_: &TaskInfo<'_>, _: NodeId, _: usize) -> Vec<NodeSlice> {
        vec![slice(AnyRect::from(Rect::<2>::new([0, 0], [7, 0])), 1, false)]
    }
    fn nowhere(launch: &TaskInfo<'_>, _: NodeId, nodes: usize) -> Vec<NodeSlice> {
        vec![slice(launch.domain, nodes, false)]
    }
    /// Right at first, wrong where it arrives.
    fn later(launch: &TaskInfo<'_>, here: NodeId, _: usize) -> Vec<NodeSlice> {
        if here.0 == 1 { Vec::new() } else { vec![slice(launch.domain, 1, true)] }
    }
    let expected = "every point of (0)..=(7) exactly once, on nodes 0 to 1";
    for (slicing, problem) in [
        (lacking as Slicing, "gave {(0)..=(1)} to no node"),
        (doubled, "gave {(2)..=(3)} in slice (2)..=(3) and in one before"),
        (outside, "gave the slice (0)..=(8), which sticks out"),
        (flat, "which sticks out"),
        (nowhere, "gave the slice (0)..=(7) to node 2, which there is not"),
        (later, "gave {(0)..=(7)} to no node"),
    ] {
        for (outcome, ..) in on_nodes(&slices(slicing), 2, async |cx| cx.launch(squares(8)).await) {
            let error = outcome.unwrap_err().to_string();
            assert!(
                error.contains("slice_across_nodes") && error.contains(problem) && error.contains(expected),
                "{error}"
            );
        }
    }
}

#[test]
fn a_slice_that_is_sent_to_and_fro_for_ever_is_an_error() {
    for (outcome, ..) in on_nodes(&slices(pass_on), 2, async |cx| cx.launch(squares(8)).await) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("slice_across_nodes") && error.contains("were sent 64 times before"), "{error}");
    }
}

/// Not for serde.
#[derive(Clone, Debug, PartialEq)]
struct Local(i64);

#[task(leaf)]
fn given_what_stays(#[point] at: Point<1>, local: Local) -> i64 {
    at[0] + local.0
}

#[task(leaf)]
fn gives_what_stays(#[point] at: Point<1>) -> Local {
    Local(at[0])
}

#[task]
async fn staying(cx: &Context) -> Result<i64> {
    let locals = cx.index_launch(8, gives_what_stays()).all().await?;
    assert_eq!(locals, (0..8).map(Local).collect::<Vec<_>>());
    cx.index_launch(8, given_what_stays(Local(1))).reduce(Sum).await
}

#[test]
fn launches_whose_arguments_or_results_cannot_be_sent_stay_and_no_mapper_is_asked() {
    fn panics(_: &TaskInfo<'_>, _: NodeId, _: usize) -> Vec<NodeSlice> {
        panic!("nobody should ask")
    }
    for (outcome, ..) in on_nodes(&slices(panics), 2, async |cx| cx.launch(staying()).await) {
        assert_eq!(outcome.unwrap(), 36);
    }
    // What the top-level task launches is dealt to nodes already.
    for (outcome, ..) in on_nodes(&slices(panics), 2, async |cx| cx.index_launch(8, square()).reduce(Sum).await) {
        assert_eq!(outcome.unwrap(), 140);
    }
}

/// The same launch in each turn of a loop that is named as a trace.
#[task]
async fn looping(cx: &Context, turns: i64) -> Result<i64> {
    let mut sum = 0;
    for _ in 0..turns {
        sum += cx.trace("turn", |cx| cx.index_launch(8, square())).reduce(Sum).await?;
    }
    Ok(sum)
}

#[test]
fn a_launch_that_is_sliced_is_sliced_each_time_and_not_replayed_and_one_that_is_kept_is() {
    // Without records, for which nothing is replayed differently, but more is asked.
    for (slicing, sent) in [(evenly as Slicing, 20), (keep, 0)] {
        let connections = Connections::new(2);
        let statistics = each_node(2, |node| {
            let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1).mapper(slices(slicing));
            let runtime = builder.network(connections.node(node)).build().unwrap();
            let value = runtime.run(async |cx| cx.launch(looping(20)).await).unwrap();
            assert_eq!(value, 20 * 140);
            runtime.statistics()
        });
        let [one, other] = &statistics[..] else { panic!("two nodes") };
        let replays = one.replays + other.replays;
        assert_eq!((one.slices_sent + other.slices_sent, replays > 0), (sent, sent == 0), "{replays} replays");
    }
}

/// Slices that are to be sliced again go around, and one node's program panics after so many fills, perhaps while
/// others' slices that have come through it are away.
fn panic_amid_slices(seed: u64) {
    const NODES: usize = 3;
    let fills = seed % 40;
    let network = Network::seeded(NODES, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let lifetimes: Vec<_> = (0..NODES).map(|_| Lifetime::default()).collect();
    for (node, lifetime) in lifetimes.iter().enumerate() {
        let (transport, lifetime) = (network.node(NodeId(node as u16)), lifetime.clone());
        simulation.thread(format!("node {node}"), move || {
            let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
            let builder = builder.mapper_for(move |_, _| Box::new(lifetime.of(slices(halve))));
            let body = move || {
                let runtime = builder.network(transport).build().unwrap();
                let outcome = runtime.run(async |cx| {
                    let sums = cx.launch(squares(64));
                    let rows = cx.region::<Row>(4)?;
                    (0..fills).try_for_each(|fill| cx.fill(&rows, Row::value, fill as i64))?;
                    assert!(node != 1, "on purpose");
                    sums.await
                });
                assert!(outcome.is_err(), "seed {seed}: node 1 has not come to the end");
            };
            let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
            assert_eq!(panicked, node == 1, "seed {seed}");
        });
    }
    let report = simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    assert!(report.left.is_empty(), "seed {seed}: threads are left: {:?}", report.left);
    assert!(lifetimes.iter().all(Lifetime::is_over), "seed {seed}: a runtime stays in memory");
}

#[derive(Fields)]
struct Row {
    value: i64,
}

#[test]
fn a_node_whose_program_panics_while_slices_are_away_leaves_nothing_behind() {
    silence_planned_panics();
    (0..120).for_each(panic_amid_slices);
}
