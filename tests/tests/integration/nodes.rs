//! Programs on several nodes: what they compute is what they compute on one, whatever the network does; and what goes
//! wrong on one is heard of on all.
//!
//! The nodes are runtimes of one process, connected as `MANIPLE_TESTS_OVER` says; `processes.rs` and
//! `apps/tests/nodes.rs` have processes instead.

mod differences;
mod outcomes;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use maniple::machine::NodeId;
use maniple::mapper::{Sharding, TaskInfo};
use maniple::net::loopback::{Network, Traffic};
use maniple::prelude::*;
use maniple::profile::{Completeness, Recording};
use maniple::{Error, Result, Statistics};
use maniple_tests::nodes::{Connections, Nodes, each_node, on_nodes};
use maniple_tests::trial::{Family, Trial};
use maniple_tests::watch::silence_planned_panics;

/// See `random_programs.rs`.
const PATIENCE: Duration = Duration::from_secs(60);

/// Random programs on 2 to 8 nodes, each node with a machine, a mapper, a window and delays of its own.
fn equal_the_oracle(family: Family, programs: u64) {
    silence_planned_panics();
    let (mut failures, mut sent, mut tasks) = (String::new(), 0, 0);
    for seed in 0..programs {
        let trial = Trial { nodes: 2 + seed as usize % 7, ..Trial::new(family, seed) };
        let outcome = trial.watch(trial.program(), PATIENCE);
        (sent, tasks) = (sent + outcome.statistics.parcels_sent, tasks + outcome.statistics.tasks);
        if !outcome.is_right() {
            let (nodes, deviations) = (trial.nodes, outcome.deviations.join("\n  "));
            failures += &format!("\nfamily {family}, seed {seed}, {nodes} nodes:\n  {deviations}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(sent > programs / 2 && tasks > programs, "node 0 has sent {sent} parcels and run {tasks} tasks");
}

#[test]
fn flat_programs_on_several_nodes_equal_the_oracle() {
    equal_the_oracle(Family::Flat, 280);
}

#[test]
fn programs_of_nested_tasks_on_several_nodes_equal_the_oracle() {
    equal_the_oracle(Family::Nested, 200);
}

#[test]
fn loops_that_are_replayed_on_several_nodes_equal_the_oracle() {
    equal_the_oracle(Family::Looping, 100);
}

#[test]
fn what_survives_failing_tasks_on_several_nodes_equals_the_oracle() {
    equal_the_oracle(Family::Faulty, 140);
    equal_the_oracle(Family::FaultyLoops, 50);
}

#[test]
fn what_survives_want_of_memory_on_several_nodes_equals_the_oracle() {
    equal_the_oracle(Family::Tight, 170);
}

#[test]
fn what_survives_unsound_mappers_on_several_nodes_equals_the_oracle() {
    equal_the_oracle(Family::Unsound, 140);
}

#[derive(Fields)]
struct Cell {
    value: f64,
    next: f64,
}

#[task(leaf)]
fn start(#[discards(value)] tile: Piece<Cell>) {
    tile.points().for_each(|point| tile.value[point] = (point[0] * point[0] % 17) as f64);
}

#[task(leaf)]
fn smooth(#[discards(next)] tile: Piece<Cell>, #[reads(value)] around: Piece<Cell>) {
    for point in tile.points() {
        let side = |step: i64| around.value.get([point[0] + step]).unwrap_or(0.0);
        tile.next[point] = (side(-1) + 2.0 * around.value[point] + side(1)) / 4.0;
    }
}

#[task(leaf)]
fn take_over(
    #[writes(value)]
    #[reads(next)]
    tile: Piece<Cell>,
) -> f64 {
    tile.points().for_each(|point| tile.value[point] = tile.next[point]);
    tile.points().map(|point| tile.value[point]).sum()
}

/// A stencil with a tile for each of so many points; what each node has done in the steps after the first, and the sum
/// at the end.
async fn stencil(cx: &Context, tiles: usize, steps: usize) -> Result<(Partition<Cell>, Partition<Cell>, f64)> {
    let cells = cx.region::<Cell>(4 * tiles)?;
    let split = cells.partition(tiles).equal()?;
    let around = cells.around(&split, [1])?;
    cx.index_launch(tiles, start(&split));
    let mut sum = None;
    for _ in 0..steps {
        cx.index_launch(tiles, smooth(&split, &around));
        sum = Some(cx.index_launch(tiles, take_over(&split)).reduce(Sum));
    }
    let sum = sum.unwrap().await?;
    Ok((split, around, sum))
}

#[test]
fn a_stencil_gives_the_same_on_any_number_of_nodes() {
    let expected = on_nodes(Nodes::new(1), async |cx, _| Ok(stencil(cx, 24, 10).await?.2)).remove(0).unwrap();
    for nodes in [2, 3, 5, 24, 30] {
        for sum in on_nodes(Nodes::new(nodes), async |cx, _| Ok(stencil(cx, 24, 10).await?.2)) {
            let sum = sum.unwrap();
            assert!((sum - expected).abs() < 1e-9, "{sum} on {nodes} nodes, not {expected}");
        }
    }
}

/// Each tile where its number's last bits say, so that tiles that are neighbours are on several nodes.
fn scattered() -> Sharding {
    Sharding::by_point("scattered", |point, _, nodes| (point.coords()[0] as usize * 5 / 3) % nodes)
}

#[test]
fn a_loop_at_whose_results_nobody_looks_leaves_nothing_pending_on_any_node() {
    let program = async |cx: &Context, runtime: &Runtime| {
        // As many launches are under way in the first steps as ever will be.
        stencil(cx, 2, 2_000).await?;
        let before = runtime.statistics().most_pending;
        stencil(cx, 2, 10_000).await?;
        Ok((before, runtime.statistics().most_pending))
    };
    for nodes in [1, 2] {
        for pending in on_nodes(Nodes::new(nodes), program) {
            let (before, after) = pending.unwrap();
            assert!(
                after < before + 5_000,
                "{before} operations and events were pending, and after more steps {after}"
            );
        }
    }
}

#[test]
fn a_stencil_gives_the_same_however_it_is_dealt_to_nodes() {
    let program = async |cx: &Context, _: &Runtime| Ok(stencil(cx, 24, 10).await?.2);
    let expected = on_nodes(Nodes::new(1), program).remove(0).unwrap();
    let shardings: [fn(usize, &TaskInfo<'_>, usize) -> Sharding; 4] = [
        |_, _, _| Sharding::Cyclic,
        |_, _, _| Sharding::OnOne(1),
        |_, _, _| scattered(),
        // Each task in its own way.
        |_, launch, _| match launch.name {
            "start" => Sharding::Cyclic,
            "smooth" => Sharding::Blocked,
            _ => scattered(),
        },
    ];
    for sharding in shardings {
        for sum in on_nodes(Nodes::new(3).dealt(sharding), program) {
            let sum = sum.unwrap();
            assert!((sum - expected).abs() < 1e-9, "{sum}, not {expected}");
        }
    }
}

/// How many tasks each of four nodes runs of a launch over ten tiles, and of one on the eighth of them.
fn tasks_by_node(sharding: fn(usize, &TaskInfo<'_>, usize) -> Sharding) -> Vec<(u64, u64)> {
    let counted = on_nodes(Nodes::new(4).dealt(sharding), async |cx, runtime| {
        let tiles = cx.region::<Cell>(40)?.partition(10).equal()?;
        cx.index_launch(10, start(&tiles));
        cx.execution_fence().await?;
        let all = runtime.statistics().tasks;
        cx.launch(start(&tiles.piece(7)?));
        cx.execution_fence().await?;
        Ok((all, runtime.statistics().tasks - all))
    });
    counted.into_iter().map(Result::unwrap).collect()
}

#[test]
fn a_launch_runs_where_the_mapper_deals_it_and_a_single_task_where_its_piece_is_dealt() {
    assert_eq!(tasks_by_node(|_, _, _| Sharding::Blocked), [(2, 0), (3, 0), (2, 0), (3, 1)]);
    assert_eq!(tasks_by_node(|_, _, _| Sharding::Cyclic), [(3, 0), (3, 0), (2, 0), (2, 1)]);
    assert_eq!(tasks_by_node(|_, _, _| Sharding::OnOne(2)), [(0, 0), (0, 0), (10, 1), (0, 0)]);
    let high = |_: usize, _: &TaskInfo<'_>, _: usize| {
        Sharding::by_point("high", |point, _, nodes| if point.coords()[0] < 7 { 0 } else { nodes - 2 })
    };
    assert_eq!(tasks_by_node(high), [(7, 0), (0, 0), (3, 1), (0, 0)]);
}

#[test]
fn launches_that_repeat_are_dealt_once() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let counted = |_: usize, _: &TaskInfo<'_>, _: usize| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Sharding::Cyclic
    };
    on_nodes(Nodes::new(2).dealt(counted), async |cx, _| stencil(cx, 6, 20).await).into_iter().for_each(|outcome| {
        outcome.unwrap();
    });
    // Three tasks on two nodes.
    assert_eq!(ASKED.load(Ordering::Relaxed), 6);
}

#[test]
fn a_point_that_is_dealt_to_a_node_that_there_is_not_is_an_error_on_all_nodes() {
    let wild =
        |_: usize, _: &TaskInfo<'_>, _: usize| Sharding::by_point("wild", |point, _, _| point.coords()[0] as usize);
    let outcomes = on_nodes(Nodes::new(3).dealt(wild), async |cx, _| {
        let tiles = cx.region::<Cell>(24)?.partition(6).equal()?;
        cx.index_launch(6, start(&tiles));
        Ok(())
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        let expected = "mapper call `shard_launch` for `start`, by `wild`, gives point (3) to node 3, but there are 3 nodes, counted from 0 (launched at tests/tests/integration/nodes.rs:";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// The work of the busiest of so many nodes, each with one tile, in ten steps of a stencil, once all is known:
/// launches, visits of the analysis, parcels, frames.
fn work_of_a_step(nodes: usize) -> [u64; 4] {
    let network = Network::seeded(nodes, nodes as u64, 10);
    let job = Nodes::over_loopback(nodes, &network);
    let before_and_after = on_nodes(job, async |cx, runtime| {
        let (split, around, _) = stencil(cx, nodes, 3).await?;
        cx.execution_fence().await?;
        let read = || (runtime.statistics(), network.traffic(NodeId(runtime.node() as u16)));
        let before: (Statistics, Traffic) = read();
        for _ in 0..10 {
            cx.index_launch(nodes, smooth(&split, &around));
            cx.index_launch(nodes, take_over(&split));
        }
        cx.execution_fence().await?;
        Ok((before, read()))
    });
    let done = before_and_after.into_iter().map(|read| {
        let ((before, sent), (after, sent_after)) = read.unwrap();
        [
            after.launches - before.launches,
            after.logical_visits - before.logical_visits,
            after.parcels_sent - before.parcels_sent,
            sent_after.frames - sent.frames,
        ]
    });
    done.reduce(|most, one| std::array::from_fn(|index| most[index].max(one[index]))).unwrap()
}

#[test]
fn what_a_node_does_in_a_step_does_not_grow_with_the_number_of_nodes() {
    let (few, many) = (work_of_a_step(16), work_of_a_step(1024));
    println!("launches, visits, parcels, frames: {few:?} on 16 nodes, {many:?} on 1,024");
    for (few, many) in few.into_iter().zip(many) {
        assert!(few > 0 && many <= 2 * few, "{many} on 1,024 nodes, {few} on 16");
    }
}

#[task(leaf)]
fn fail_at(#[point] at: Point<1>, #[writes(value)] tile: Piece<Cell>, where_: i64) -> Result<f64, String> {
    if at[0] == where_ {
        Err(format!("{} has no answer", at[0]))
    } else {
        Ok(tile.value[tile.points().next().unwrap()])
    }
}

/// As [`smooth`], but one tile has no answer.
#[task(leaf)]
fn smooth_unless(
    #[point] at: Point<1>,
    #[discards(next)] tile: Piece<Cell>,
    #[reads(value)] around: Piece<Cell>,
    where_: i64,
) -> Result<(), String> {
    for point in tile.points() {
        tile.next[point] = around.value[point];
    }
    if at[0] == where_ { Err(format!("{} has no answer", at[0])) } else { Ok(()) }
}

/// The values after so many steps of two launches, of which the first exchanges data between nodes; and how many
/// launches were replayed at once.
async fn smoothed(cx: &Context, runtime: &Runtime, (steps, marked): (usize, bool)) -> Result<(Vec<u64>, u64)> {
    let cells = cx.region::<Cell>(24)?;
    let split = cells.partition(6).equal()?;
    let around = cells.around(&split, [1])?;
    cx.index_launch(6, start(&split));
    let step = |cx: &Context| {
        cx.index_launch(6, smooth(&split, &around));
        cx.index_launch(6, take_over(&split));
    };
    (0..steps).for_each(|_| if marked { cx.trace("step", step) } else { step(cx) });
    let values = cx.map_read(&cells, Cell::value).await?.to_vec();
    Ok((values.into_iter().map(f64::to_bits).collect(), runtime.statistics().replayed_at_once))
}

#[test]
fn most_launches_of_a_loop_are_replayed_at_once_with_their_exchanges() {
    // The first of them arrive before anything is recorded, as many as the window lets in, and stand in line.
    const STEPS: usize = 2_000;
    let run = |nodes, marked| {
        on_nodes(Nodes::new(nodes), async |cx, runtime| smoothed(cx, runtime, (STEPS, marked)).await)
            .into_iter()
            .map(Result::unwrap)
    };
    let (expected, _) = run(1, true).next().unwrap();
    for (nodes, marked) in [(2, true), (3, true), (2, false), (3, false)] {
        for (node, (values, at_once)) in run(nodes, marked).enumerate() {
            assert_eq!(values, expected, "node {node} of {nodes}");
            assert!(at_once as usize > STEPS, "node {node} of {nodes}, marked: {marked}: {at_once} of {}", 2 * STEPS);
        }
    }
}

#[test]
fn a_failure_in_a_step_that_is_replayed_spreads_to_the_neighbours_on_other_nodes() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let cells = cx.region::<Cell>(24)?;
        let split = cells.partition(6).equal()?;
        let around = cells.around(&split, [1])?;
        cx.index_launch(6, start(&split));
        let mut last = None;
        for step in 0..100 {
            cx.index_launch(6, smooth_unless(&split, &around, if step == 90 { 5 } else { -1 }));
            last = Some(cx.index_launch(6, take_over(&split)));
        }
        // A tile further in each step.
        let first = last.unwrap().get(0)?.await;
        assert!(runtime.statistics().replays > 10, "{:?}", runtime.statistics());
        first
    });
    for (node, outcome) in outcomes.iter().enumerate() {
        let error = outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("`smooth_unless` at point (5) failed: 5 has no answer"), "node {node}: {error}");
    }
}

#[test]
fn results_that_the_program_keeps_stay_those_of_their_own_launch() {
    const STEPS: i64 = 300;
    let outcomes = on_nodes(Nodes::new(2), async |cx, runtime| {
        let cells = cx.region::<Cell>(24)?;
        let split = cells.partition(6).equal()?;
        let around = cells.around(&split, [1])?;
        cx.index_launch(6, start(&split));
        let mut kept = Vec::new();
        for step in 0..STEPS {
            // The last one fails, all others end well; most are let go of at once, as in most programs.
            let where_ = if step == STEPS - 1 { 5 } else { -1 };
            let results = cx.index_launch(6, smooth_unless(&split, &around, where_));
            if step % 7 == 0 || step == STEPS - 1 {
                kept.push((step, results));
            }
            if step == STEPS / 2 {
                // The program looks at what it lets go of later.
                kept.last().unwrap().1.get(0)?.await?;
            }
        }
        let mut failed = Vec::new();
        for (step, results) in kept {
            for point in 0..6 {
                if results.get(point)?.await.is_err() {
                    failed.push((step, point));
                }
            }
        }
        assert!(runtime.statistics().replays > 10, "{:?}", runtime.statistics());
        Ok(failed)
    });
    for outcome in outcomes {
        assert_eq!(outcome.unwrap(), [(STEPS - 1, 5)]);
    }
}

#[test]
fn all_nodes_learn_of_a_task_that_fails_on_one() {
    let outcomes = on_nodes(Nodes::new(4), async |cx, _| {
        let cells = cx.region::<Cell>(40)?;
        let split = cells.partition(8).equal()?;
        cx.index_launch(8, start(&split));
        // The program does not look at the result.
        cx.index_launch(8, fail_at(&split, 5));
        Ok(())
    });
    for (node, outcome) in outcomes.iter().enumerate() {
        let error = outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("`fail_at` at point (5) failed: 5 has no answer"), "{error}");
        assert_eq!(error.starts_with("on node 2: "), node != 2, "{error}");
    }
}

#[derive(Clone, Debug)]
struct Unsendable;

#[task(leaf)]
fn give_unsendable(#[reads(value)] _tile: Piece<Cell>) -> Unsendable {
    Unsendable
}

#[test]
fn a_result_that_cannot_be_sent_says_what_to_do() {
    for outcome in on_nodes(Nodes::new(2), async |cx, _| {
        let cells = cx.region::<Cell>(4)?;
        cx.index_launch(2, give_unsendable(&cells.partition(2).equal()?)).all().await
    }) {
        let error = outcome.unwrap_err();
        assert!(matches!(&error, Error::NotSendable { task } if task == "give_unsendable"), "{error}");
    }
}

#[test]
fn each_node_can_say_something_of_itself() {
    for outcome in on_nodes(Nodes::new(5), async |cx, runtime| cx.per_node(runtime.node() as u64 * 10).all().await) {
        assert_eq!(outcome.unwrap(), [0, 10, 20, 30, 40]);
    }
}

#[test]
fn a_node_of_which_nothing_is_heard_is_named_by_all_others_and_ends_too() {
    let network = Network::seeded(3, 3, 10);
    let job = Nodes::over_loopback(3, &network);
    let outcomes = on_nodes(job, async |cx, runtime| {
        let (split, around, _) = stencil(cx, 6, 2).await?;
        if runtime.node() == 1 {
            network.silence(NodeId(1), Duration::from_secs(5));
        }
        for _ in 0..10 {
            cx.index_launch(6, smooth(&split, &around));
            cx.index_launch(6, take_over(&split));
        }
        cx.execution_fence().await
    });
    for (node, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.unwrap_err();
        let Error::NodeLost { node: lost, reason } = &error else { panic!("{error}") };
        assert_eq!(*lost == 1, node != 1, "{error}");
        assert!(reason.contains("nothing was heard"), "{error}");
    }
}

/// A program that has dropped its runtime may end the process next: nothing of the profile may be left to be written by
/// then, though workers that have nothing to do ask other nodes for some until the end.
#[test]
fn a_profile_is_whole_when_the_runtime_has_gone() {
    const ROUNDS: usize = 300;
    let profile = |node: usize| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("whole.mprof.node{node}"));
    for round in 0..ROUNDS {
        let connections = Connections::new(2);
        let completeness = each_node(2, |node| {
            let transport = connections.node(node);
            let builder = Runtime::builder().workers(2).network(transport).profile(profile(node).with_extension(""));
            let runtime = builder.build().unwrap();
            runtime.run(async |cx| Ok(cx.colors(5).volume())).unwrap();
            drop(runtime);
            Recording::read(&profile(node)).unwrap().completeness
        });
        assert_eq!(completeness, [Completeness::Whole; 2], "round {round}");
    }
}

/// A node whose program fails compares nothing at its end. The next program's nodes must not compare what they do with
/// what others did before.
#[test]
fn a_program_that_fails_on_one_node_leaves_nothing_behind_for_the_next() {
    let connections = Connections::new(3);
    let outcomes = each_node(3, |node| {
        let builder = Runtime::builder().workers(1).network(connections.node(node));
        let runtime = builder.build().unwrap();
        let failed = runtime.run(async |cx| {
            cx.region::<Cell>(40)?;
            if node == 1 { Err(Error::application("no more")) } else { Ok(()) }
        });
        let sum = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(40)?;
            cx.fill(&cells, Cell::value, 1.0)?;
            let split = cells.partition(8).equal()?;
            cx.index_launch(8, take_over(&split)).reduce(Sum).await
        });
        // What others say last may be on its way.
        let mut open = (0..1000).map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            runtime.statistics().open_exchanges
        });
        let is_closed = open.any(|open| open == 0);
        (failed.unwrap_err().to_string(), is_closed, sum.map_err(|error| error.to_string()))
    });
    for (failed, is_closed, sum) in outcomes {
        assert!(failed.ends_with("no more"), "{failed}");
        assert_eq!((is_closed, sum), (true, Ok(0.0)));
    }
}
