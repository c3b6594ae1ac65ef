//! Index launches of leaf tasks that mappers slice across nodes: their data goes along, and what they have made comes
//! back.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, NodeSlice, TaskInfo};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Machine, Result, Statistics};
use maniple_tests::mixed::{Size, expected, program};
use maniple_tests::nodes::{Connections, each_node};
use maniple_tests::slicing::{Slices, evenly, halve, keep, on_nodes, pass_on, slices, sum};
use maniple_tests::watch::silence_planned_panics;

/// A row of data a point.
#[derive(Fields)]
struct Row {
    value: i64,
}

#[task(leaf)]
fn number(#[point] at: Point<1>, #[writes(value)] rows: Piece<Row>) -> i64 {
    rows.points()
        .map(|point| {
            rows.value[point] += 7 * point[0];
            rows.value[point]
        })
        .sum::<i64>()
        + at[0]
}

/// The sum of the results of a launch with data, and the values that it leaves.
#[task]
async fn numbers(cx: &Context, points: i64) -> Result<(i64, Vec<i64>)> {
    let rows = cx.region::<Row>(2 * points as usize)?;
    cx.fill(&rows, Row::value, 3)?;
    let sum = cx.index_launch(0..points, number(&rows.partition(points as usize).equal()?)).reduce(Sum).await?;
    Ok((sum, cx.map_read(&rows, Row::value).await?.to_vec()))
}

#[test]
fn a_node_without_room_for_a_slice_of_leaf_tasks_leaves_them_where_they_are() {
    const SIZE: Size = Size { rows: 40, pieces: 6, rounds: 4, halo: 2, is_cyclic: false, is_traced: false };
    let connections = Connections::new(2);
    let statistics = each_node(2, |node| {
        // The second one has none even for one piece.
        let machine = Machine::uniform(1, [1 << 24, 100][node]);
        let builder = Runtime::builder().machine(machine).workers(1).mapper(slices(evenly));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let values = runtime.run(async |cx| cx.launch(program(SIZE)).await).unwrap();
        assert_eq!(values, expected(SIZE));
        runtime.statistics()
    });
    let [one, other] = &statistics[..] else { panic!("two nodes") };
    assert_eq!((one.tasks_sent + other.tasks_sent, one.tasks_received + other.tasks_received), (0, 0));
    assert!(one.slices_sent + other.slices_sent > 0, "they were asked");
}

#[test]
fn tasks_of_a_slice_that_wait_for_each_others_memory_leave_in_parts() {
    const SIZE: Size = Size { rows: 40, pieces: 8, rounds: 3, halo: 4, is_cyclic: false, is_traced: false };
    let (mut retries, mut good) = (0, 0);
    for seed in 0..60 {
        let bytes = 1600 + 120 * seed;
        let network = Network::seeded(2, seed, 10);
        let mut simulation = Simulation::new(seed).network(&network);
        let answers = [0, 1].map(|node| {
            let (transport, mapper) = (network.node(NodeId(node)), Slices(evenly, DefaultMapper::piecewise()));
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(2, bytes)).workers(2).mapper(mapper);
                let runtime = builder.network(transport).build().unwrap();
                let values = runtime.run(async |cx| cx.launch(program(SIZE)).await);
                (values, runtime.statistics())
            })
        });
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        for (values, statistics) in answers.map(|answer| answer.take().unwrap()) {
            retries += statistics.mapping_retries;
            match values {
                Ok(values) => assert_eq!(values, expected(SIZE), "seed {seed}"),
                Err(error) => {
                    assert!(error.to_string().contains("room"), "seed {seed}: {error}");
                    continue;
                }
            }
            good += 1;
        }
    }
    println!("{retries} retries, {good} programs had room");
    assert!(retries > 50 && (20..120).contains(&good), "{retries} retries, {good} programs had room");
}

#[test]
fn the_data_of_a_slice_of_leaf_tasks_goes_with_it_in_a_few_messages() {
    const POINTS: i64 = 1000;
    let frames = |slicing| {
        let outcomes = on_nodes(&slices(slicing), 4, async |cx| cx.launch(numbers(POINTS)).await);
        let expected = numbers_expected(POINTS);
        assert!(outcomes.iter().all(|(found, ..)| *found.as_ref().unwrap() == expected));
        let counts =
            [sum(&outcomes, |s| s.slices_sent), sum(&outcomes, |s| s.tasks_sent), sum(&outcomes, |s| s.tasks_received)];
        assert_eq!(sum(&outcomes, |s| s.tasks), POINTS as u64 + 1);
        (outcomes.iter().map(|(.., frames)| frames).sum::<u64>(), counts)
    };
    let ((kept, none), (sliced, [slices, sent, received])) = (frames(keep), frames(evenly));
    println!("{kept} frames if all stays, {sliced} if three of four slices go, in {slices} messages");
    assert_eq!(none, [0; 3]);
    assert_eq!((sent, received), (750, 750));
    // Three, unless a node has nothing better to do before the last task of a slice is ready, as on a machine with
    // other work; far fewer than tasks.
    assert!(
        (3..250).contains(&slices) && sliced < kept + 300,
        "{slices} slices, {sliced} frames, and {kept} if all stays"
    );
}

/// Some leave while others come: none is forgotten, whenever a worker sends what there is.
#[test]
fn tasks_of_a_slice_that_come_while_others_leave_go_too() {
    const POINTS: i64 = 24;
    let mut sent = 0;
    for seed in 0..300 {
        let network = Network::seeded(2, seed, 10);
        let mut simulation = Simulation::new(seed).network(&network);
        let answers = [0, 1].map(|node| {
            let transport = network.node(NodeId(node));
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(4, 1 << 24)).workers(4);
                let runtime = builder.mapper(slices(evenly)).network(transport).build().unwrap();
                let found = runtime.run(async |cx| cx.launch(numbers(POINTS)).await).unwrap();
                (found, runtime.statistics().slices_sent)
            })
        });
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        for (found, slices) in answers.map(|answer| answer.take().unwrap()) {
            assert_eq!(found, numbers_expected(POINTS), "seed {seed}");
            sent += slices;
        }
    }
    assert!(sent > 300, "some slices go in parts: {sent}");
}

fn numbers_expected(points: i64) -> (i64, Vec<i64>) {
    let values: Vec<i64> = (0..2 * points).map(|row| 3 + 7 * row).collect();
    (values.iter().sum::<i64>() + (0..points).sum::<i64>(), values)
}

#[test]
fn leaf_tasks_of_a_slice_that_is_to_be_sliced_again_go_on_with_their_data() {
    let outcomes = on_nodes(&slices(halve), 3, async |cx| cx.launch(numbers(16)).await);
    for (found, ..) in &outcomes {
        assert_eq!(found.as_ref().unwrap(), &numbers_expected(16));
    }
    let count = |of: fn(&Statistics) -> u64| outcomes.iter().map(|(_, s, _)| of(s)).collect::<Vec<_>>();
    // 8 stay; of the 8 that go to node 1, 4 go on to node 2; of those 2 to node 0; of those 1 to node 1, which keeps it
    // as it can't be halved. The first node also runs the task that launches.
    assert_eq!(count(|s| s.tasks), [8 + 1 + 1, 4 + 1, 2]);
    assert_eq!(count(|s| s.tasks_sent), [8, 0, 0]);
    assert_eq!(count(|s| s.tasks_received), [1, 4 + 1, 2]);
    assert_eq!(sum(&outcomes, |s| s.slices_sent), sum(&outcomes, |s| s.slices_received));
}

#[test]
fn what_has_gone_on_to_a_node_without_room_runs_at_home() {
    let connections = Connections::new(3);
    let statistics = each_node(3, |node| {
        let machine = Machine::uniform(1, [1 << 24, 1 << 24, 0][node]);
        let builder = Runtime::builder().machine(machine).workers(1).mapper(slices(halve));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let found = runtime.run(async |cx| cx.launch(numbers(16)).await);
        assert_eq!(found.unwrap(), numbers_expected(16));
        runtime.statistics()
    });
    // Of the four that come to the third node two go on to the first, and one of these to the second.
    let tasks: Vec<u64> = statistics.iter().map(|statistics| statistics.tasks).collect();
    assert_eq!(tasks, [8 + 1 + 1 + 2, 4 + 1, 0]);
}

#[task(leaf)]
fn stumble(#[point] at: Point<1>, #[writes(value)] rows: Piece<Row>) -> Result<i64> {
    rows.points().for_each(|point| rows.value[point] = point[0]);
    match at[0] {
        9 => Err(maniple::Error::from_task("failed on purpose".to_owned())),
        14 => panic!("on purpose"),
        _ => Ok(at[0]),
    }
}

/// The outcomes of each point.
#[task]
async fn faultyloops(cx: &Context) -> Result<Vec<String>> {
    let rows = cx.region::<Row>(16)?;
    cx.fill(&rows, Row::value, 0)?;
    let launched = cx.index_launch(16, stumble(&rows.partition(16).equal()?));
    let mut outcomes = Vec::new();
    for point in 0..16 {
        outcomes.push(launched.get(point)?.await.map_or_else(|error| error.to_string(), |value| value.to_string()));
    }
    Ok(outcomes)
}

#[test]
fn points_that_fail_where_they_have_gone_on_to_fail_as_at_home_and_the_others_do_not() {
    silence_planned_panics();
    let outcomes = |slicing| {
        let mut all = on_nodes(&slices(slicing), 3, async |cx| cx.launch(faultyloops()).await).into_iter();
        all.next().unwrap().0.unwrap()
    };
    let (kept, sliced) = (outcomes(keep), outcomes(halve));
    assert!(kept[9].contains("failed on purpose"), "{kept:?}");
    // Its place is told too, unless another hook of the process hides it.
    assert!(kept[14].contains("(14) panicked") && kept[14].contains(": on purpose (launched at "), "{kept:?}");
    for (point, (kept, sliced)) in kept.iter().zip(&sliced).enumerate() {
        match point {
            // Where it was is told besides.
            9 | 14 => assert!(sliced.contains("on purpose") && sliced.contains(&format!("({point})")), "{sliced}"),
            _ => assert_eq!((kept, sliced), (&point.to_string(), &point.to_string())),
        }
    }
}

#[test]
fn data_that_is_sent_to_and_fro_for_ever_is_an_error() {
    for (outcome, ..) in on_nodes(&slices(pass_on), 2, async |cx| cx.launch(numbers(8)).await) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("slice_across_nodes") && error.contains("were sent 64 times before"), "{error}");
    }
}

#[test]
fn a_mapper_that_slices_what_has_come_wrongly_is_told_so_where_the_launch_is() {
    /// Halves first, then loses a point.
    fn lossy(launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        let mut slices = halve(launch, here, nodes);
        if here.0 == 1 {
            slices.pop();
        }
        slices
    }
    for (outcome, ..) in on_nodes(&slices(lossy), 2, async |cx| cx.launch(numbers(8)).await) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("`slice_across_nodes` gave {(6)..=(7)} to no node"), "{error}");
    }
}
