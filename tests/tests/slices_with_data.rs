//! Index launches of leaf tasks that mappers slice across nodes: their data goes along, and what they have made comes back.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use maniple::machine::NodeId;
use maniple::mapper::DefaultMapper;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Machine, Result};
use maniple_tests::mixed::{Size, expected, program};
use maniple_tests::nodes::{Connections, each_node};
use maniple_tests::slicing::{Slices, evenly, keep, on_nodes, slices, sum};

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

/// What a launch with data gives, and leaves.
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
        let values: Vec<i64> = (0..2 * POINTS).map(|row| 3 + 7 * row).collect();
        let expected = (values.iter().sum::<i64>() + (0..POINTS).sum::<i64>(), values);
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
    // Three, unless a node has nothing better to do before the last task of a slice is ready.
    assert!(
        (3..40).contains(&slices) && sliced < kept + 100,
        "{slices} slices, {sliced} frames, and {kept} if all stays"
    );
}
