//! Sessions: random programs side by side in one, and sessions on several nodes.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use maniple::prelude::*;
use maniple::{Error, Machine};
use maniple_tests::environment::{Environment, Minds, Room};
use maniple_tests::execute::{Run, run_side_by_side};
use maniple_tests::generate::{Profile, generate};
use maniple_tests::nodes::{Connections, each_node};
use maniple_tests::oracle::World;
use maniple_tests::value::register_operators;

#[test]
fn programs_side_by_side_in_one_session_equal_the_oracle() {
    register_operators();
    for seed in 0..60_u64 {
        // A trace that one thread names would have the launches of all.
        let profile = Profile { loops: 0, ..if seed % 2 == 0 { Profile::FLAT } else { Profile::FULL } };
        let runs: Vec<Arc<Run>> = (0..3)
            .map(|thread| {
                let program = generate(1000 * thread + seed, profile);
                let (expected, fate) = World::run(&program.body).unwrap();
                let mut run = Run::new(program, expected, fate);
                run.names_mappers = true;
                Arc::new(run)
            })
            .collect();
        let runtime = Environment::new(seed, Room::Enough, Minds::Any).start(false, false, None).unwrap();
        run_side_by_side(&runs, &runtime).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (thread, run) in runs.iter().enumerate() {
            assert_eq!(run.deviations(), Vec::<String>::new(), "seed {seed}, thread {thread}");
        }
    }
}

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// Runs a program on each node, in a session, and gives the outcomes.
fn on_nodes<T: Send>(nodes: usize, program: impl Fn(usize, maniple::Session) -> Result<T> + Sync) -> Vec<Result<T>> {
    let connections = Connections::new(nodes);
    each_node(nodes, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
        let runtime = builder.network(connections.node(node)).build()?;
        program(node, runtime.begin()?)
    })
}

/// Launches from call to call; what the last launch sums up to.
fn calls(session: &maniple::Session, amounts: i64) -> Result<i64> {
    let cells = session.region::<Cell>(100)?;
    let pieces = cells.partition(8).equal()?;
    session.fill(&cells, Cell::value, 0)?;
    for amount in 0..amounts {
        session.index_launch(8, add(&pieces, amount));
    }
    session.wait(session.index_launch(8, sum(&pieces)).reduce(Sum))
}

#[test]
fn on_several_nodes_each_begins_one_and_all_come_to_the_same() {
    for nodes in [2, 3] {
        let sums = on_nodes(nodes, |_, session| {
            let sum = calls(&session, 30)?;
            let nodes = session.wait(session.per_node(1_u64).reduce(Sum))?;
            session.finish()?;
            Ok((sum, nodes))
        });
        for sum in sums {
            assert_eq!(sum.unwrap(), (100 * 30 * 29 / 2, nodes as u64));
        }
    }
}

#[test]
fn nodes_that_call_other_things_are_told() {
    let outcomes = on_nodes(2, |node, session| {
        let sum = calls(&session, 10 + node as i64);
        session.finish().and(sum)
    });
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::NodesDiffer { .. })), "{outcome:?}");
    }
}

#[test]
fn a_failure_on_one_node_is_told_on_all_when_they_finish() {
    let outcomes = on_nodes(2, |_, session| {
        let cells = session.region::<Cell>(100)?;
        let pieces = cells.partition(2).equal()?;
        session.fill(&cells, Cell::value, 0)?;
        session.index_launch(2, fail_at_one(&pieces));
        session.finish()
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("as planned"), "{error}");
    }
}

#[task(leaf)]
fn fail_at_one(#[point] point: Point<1>, #[writes(value)] _cells: Piece<Cell>) -> Result<()> {
    if point[0] == 1 { Err(Error::application("as planned")) } else { Ok(()) }
}

#[test]
fn sessions_that_are_dropped_on_all_nodes_end_together() {
    let outcomes = on_nodes(2, |_, session| {
        let sum = calls(&session, 3)?;
        drop(session);
        Ok(sum)
    });
    assert_eq!(outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [300, 300]);
}

#[test]
fn what_was_there_in_time_on_one_node_only_was_there_on_none() {
    let outcomes = on_nodes(2, |node, session| {
        let waits = Mutex::new(None);
        let mut seen = Vec::new();
        for there in [[true, false], [false, true], [false, false], [true, true]] {
            let answer = poll_fn(|context| {
                if there[node] {
                    return Poll::Ready(Ok(7));
                }
                *waits.lock().unwrap() = Some(context.waker().clone());
                Poll::Pending
            });
            seen.push(session.wait_for(answer, Duration::ZERO)?);
        }
        session.finish()?;
        Ok(seen)
    });
    for seen in outcomes {
        assert_eq!(seen.unwrap(), [None, None, None, Some(7)]);
    }
}
