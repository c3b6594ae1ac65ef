//! Traces change what things cost, and nothing else.

use std::sync::{Arc, Barrier, OnceLock};

use maniple::mapper::DefaultMapper;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    old: i64,
    new: i64,
}

/// `near` reaches one cell further on either side.
#[task(leaf)]
fn blur(#[reads(old)] near: Piece<Cell>, #[discards(new)] cells: Piece<Cell>, factor: i64) {
    for point in cells.points() {
        let beside = |offset| near.old.get(point[0] + offset).unwrap_or(1);
        cells.new[point] = (beside(-1) + factor * beside(0) + beside(1)) % 1_000_003;
    }
}

#[task(leaf)]
fn keep(
    #[reads(new)]
    #[writes(old)]
    cells: Piece<Cell>,
) {
    cells.points().for_each(|point| cells.old[point] = cells.new[point]);
}

#[task(leaf)]
fn total(#[reads(old)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.old[point]).sum()
}

const CELLS: i64 = 40;

/// The same on an array.
fn expected(steps: i64) -> Vec<i64> {
    let mut old = vec![7; CELLS as usize];
    for step in 0..steps {
        let at = |cell: i64| if (0..CELLS).contains(&cell) { old[cell as usize] } else { 1 };
        old = (0..CELLS).map(|cell| (at(cell - 1) + step * at(cell) + at(cell + 1)) % 1_000_003).collect();
    }
    old
}

/// How a program marks its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Named,
    None,
}

/// Runs some steps; a total is taken now and then, which no trace has.
fn run(runtime: &Runtime, steps: i64, look_every: i64, marks: Marks) -> (Vec<i64>, Vec<i64>) {
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let tiles = cells.blocks([8])?;
        let near = cells.tiles([8], [1])?;
        cx.fill(&cells, Cell::old, 7)?;
        let mut totals = Vec::new();
        for step in 0..steps {
            let body = |cx: &Context| {
                cx.index_launch(tiles.colors(), blur(&near, &tiles, step));
                cx.index_launch(tiles.colors(), keep(&tiles));
            };
            match marks {
                Marks::Named => cx.trace("step", body),
                Marks::None => body(cx),
            }
            if step % look_every == look_every - 1 {
                totals.push(cx.index_launch(tiles.colors(), total(&tiles)).reduce(Sum));
            }
        }
        let mut sums = Vec::new();
        for total in totals {
            sums.push(total.await?);
        }
        Ok((cx.map_read(&cells, Cell::old).await?.to_vec(), sums))
    });
    outcome.expect("nothing fails")
}

#[test]
fn a_traced_loop_computes_what_the_untraced_one_does() {
    for workers in [1, 2, 4] {
        for marks in [Marks::Named, Marks::None] {
            for look_every in [1, 7, 1000] {
                let runtime = Runtime::builder().workers(workers).build().expect("there are threads");
                let (values, sums) = run(&runtime, 60, look_every, marks);
                assert_eq!(values, expected(60), "{workers} workers, {marks:?}, a look every {look_every}");
                let totals =
                    (1..=60).filter(|step| step % look_every == 0).map(|step| expected(step).iter().sum::<i64>());
                assert_eq!(sums, totals.collect::<Vec<_>>());
                let statistics = runtime.statistics();
                assert!(
                    statistics.replays > 0,
                    "{workers} workers, {marks:?}, a look every {look_every}: {statistics:?}"
                );
            }
        }
    }
}

#[test]
fn nearly_all_steps_of_a_traced_loop_are_replayed() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    run(&runtime, 200, 1000, Marks::Named);
    let statistics = runtime.statistics();
    assert!(statistics.replays >= 195, "{statistics:?}");
    assert!(statistics.recordings <= 3, "{statistics:?}");
}

#[test]
fn nothing_is_traced_where_that_is_switched_off() {
    let runtime = Runtime::builder().workers(2).tracing(false).build().expect("there are threads");
    let (values, _) = run(&runtime, 30, 10, Marks::Named);
    assert_eq!(values, expected(30));
    assert_eq!(runtime.statistics().replays, 0);
}

#[test]
fn a_region_that_was_destroyed_is_refused_though_it_was_replayed_before() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let tiles = cells.blocks([8])?;
        for _ in 0..10 {
            cx.trace("step", |cx| cx.index_launch(tiles.colors(), keep(&tiles)));
        }
        cx.destroy_partition(&tiles)?;
        let refused = cx.trace("step", |cx| cx.index_launch(tiles.colors(), keep(&tiles))).await;
        Ok(refused.expect_err("the partition is gone").to_string())
    });
    assert!(outcome.expect("the failure was seen").contains("destroyed"));
    assert!(runtime.statistics().replays > 0);
}

#[task(leaf)]
fn fail_at(#[writes(old)] cells: Piece<Cell>, #[point] tile: Point<1>, step: i64) -> Result<()> {
    if step == 7 && tile[0] == 2 {
        return Err(Error::application("tile 2 had enough"));
    }
    cells.points().for_each(|point| cells.old[point] += 1);
    Ok(())
}

#[test]
fn a_task_that_fails_in_a_replay_fails_what_needs_it_and_nothing_else() {
    for marks in [Marks::Named, Marks::None] {
        let runtime = Runtime::builder().workers(2).build().expect("there are threads");
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(CELLS as usize)?;
            let tiles = cells.blocks([8])?;
            let mut launched = Vec::new();
            for step in -40..20 {
                let body = |cx: &Context| cx.index_launch(tiles.colors(), fail_at(&tiles, step));
                launched.push(match marks {
                    Marks::Named => cx.trace("step", body),
                    Marks::None => body(cx),
                });
            }
            let mut failures = Vec::new();
            for (step, map) in (-40..20).zip(launched) {
                for tile in 0..5 {
                    if let Err(error) = map.get(tile)?.await {
                        failures.push((step, tile, error.to_string().contains("had enough")));
                    }
                }
            }
            let others = cx.map_read(&tiles.piece(1)?, Cell::old).await?.to_vec();
            let lost = cx.map_read(&tiles.piece(2)?, Cell::old).await.map(|values| values.to_vec());
            Ok((failures, others, lost.is_err()))
        });
        let (failures, others, lost) = outcome.expect("all failures were seen");
        let expected: Vec<_> = (7..20).map(|step| (step, 2, true)).collect();
        assert_eq!(failures, expected, "{marks:?}");
        assert_eq!(others, [60; 8], "{marks:?}");
        assert!(lost, "{marks:?}: the values of the failed tile are lost");
        assert!(runtime.statistics().replays > 0, "{marks:?}: {:?}", runtime.statistics());
    }
}

#[task(leaf)]
fn scale(#[writes(old)] cells: Piece<Cell>, factor: i64) -> i64 {
    let mut sum = 0;
    for point in cells.points() {
        cells.old[point] = (cells.old[point] * factor + 1) % 1009;
        sum += cells.old[point];
    }
    sum
}

#[test]
fn futures_pass_from_replayed_launches_to_replayed_launches() {
    let model = |steps: i64| {
        let (mut values, mut factor) = (vec![1_i64; CELLS as usize], 3);
        for _ in 0..steps {
            values.iter_mut().for_each(|value| *value = (*value * factor + 1) % 1009);
            factor = values.iter().sum::<i64>() % 7 + 1;
        }
        (values, factor)
    };
    for marks in [Marks::Named, Marks::None] {
        let runtime = Runtime::builder().workers(2).build().expect("there are threads");
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(CELLS as usize)?;
            let tiles = cells.blocks([8])?;
            cx.fill(&cells, Cell::old, 1)?;
            let mut factor = cx.index_launch(1, identity(3)).reduce(Sum);
            for _ in 0..300 {
                let body = |cx: &Context| cx.index_launch(tiles.colors(), scale(&tiles, &factor)).reduce(Sum);
                let sum = match marks {
                    Marks::Named => cx.trace("step", body),
                    Marks::None => body(cx),
                };
                factor = sum.map(|sum| sum % 7 + 1);
            }
            Ok((cx.map_read(&cells, Cell::old).await?.to_vec(), factor.await?))
        });
        assert_eq!(outcome.expect("nothing fails"), model(300), "{marks:?}");
        assert!(runtime.statistics().replays > 0, "{marks:?}: {:?}", runtime.statistics());
    }
}

#[task(leaf)]
fn identity(value: i64) -> i64 {
    value
}

#[test]
fn a_window_of_one_launch_is_enough_for_a_trace_of_several() {
    for (marks, steps) in [(Marks::Named, 30), (Marks::None, 100)] {
        let runtime = Runtime::builder().workers(2).window(1).build().expect("there are threads");
        let (values, _) = run(&runtime, steps, 1000, marks);
        assert_eq!(values, expected(steps), "{marks:?}");
        assert!(runtime.statistics().replays > 0, "{marks:?}");
    }
}

/// Holds a task up.
#[derive(Default)]
struct Gate {
    has_begun: OnceLock<()>,
    is_open: OnceLock<()>,
}

#[task(leaf)]
fn add_when_open(#[writes(old)] cells: Piece<Cell>, gate: Arc<Gate>) {
    let _ = gate.has_begun.set(());
    gate.is_open.wait();
    cells.old[0] += 1;
}

#[test]
fn a_task_that_waits_for_a_replay_goes_on_with_the_one_that_follows() {
    let runtime = Runtime::builder().workers(2).window(8).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        cx.fill(&cells, Cell::old, 0)?;
        let open = Arc::new(Gate { is_open: OnceLock::from(()), ..Gate::default() });
        let launch = |gate: &_| drop(cx.launch(add_when_open(&cells, Arc::clone(gate))));
        // When the gate opens is a race with launches that find the window full, which other turns decide otherwise.
        for turn in 0..TURNS {
            let (closed, comes) = (Arc::new(Gate::default()), Arc::new(OnceLock::new()));
            let (gate, long_one_comes) = (Arc::clone(&closed), Arc::clone(&comes));
            let opens = std::thread::spawn(move || {
                long_one_comes.wait();
                (0..turn * 200).for_each(|_| std::hint::spin_loop());
                gate.is_open.set(())
            });
            // Replays of the short one have a window of six. Two launches and the end of the trace wait; three more
            // stand in line.
            (0..2).for_each(|_| cx.trace("short", |_| launch(&closed)));
            closed.has_begun.wait();
            let _ = comes.set(());
            cx.trace("long", |_| (0..4).for_each(|_| launch(&open)));
            opens.join().expect("it opens the gate").expect("it is opened once");
            cx.execution_fence().await?;
        }
        cx.launch(look(&cells, false)).await
    });
    assert_eq!(outcome.expect("no task fails"), TURNS * (2 + 4));
    assert!(runtime.statistics().replays >= TURNS as u64);
}

const TURNS: i64 = 200;

#[task(leaf)]
fn look(#[reads(old)] cells: Piece<Cell>, fails: bool) -> Result<i64> {
    if fails { Err(Error::application("seen enough")) } else { Ok(cells.old[0]) }
}

#[test]
fn a_task_that_only_looked_and_failed_in_a_replay_fails_nothing_in_later_ones() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        cx.fill(&cells, Cell::old, 7)?;
        let looks: Vec<_> = (0..20).map(|step| cx.trace("look", |cx| cx.launch(look(&cells, step == 9)))).collect();
        let mut failed = Vec::new();
        for (step, seen) in looks.into_iter().enumerate() {
            if seen.await.is_err() {
                failed.push(step);
            }
        }
        Ok(failed)
    });
    assert_eq!(outcome.expect("the failure was seen"), [9]);
    assert!(runtime.statistics().replays > 10, "{:?}", runtime.statistics());
}

#[task(leaf)]
fn add_one(#[reduces(Sum, old)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.old.fold(point, 1));
}

#[task(leaf)]
fn look_with(#[reads(old)] cells: Piece<Cell>, factor: i64) -> i64 {
    factor * cells.old[0]
}

/// Contributions that a task finds in its instance are not lost because the task gets no arguments: they are applied
/// all the same, once.
#[test]
fn a_task_without_arguments_in_a_replay_spoils_nothing_that_is_moved_for_it() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        // These overlap, so contributions go to buffers.
        let near = cells.tiles([8], [1])?;
        cx.fill(&cells, Cell::old, 0)?;
        let (good, bad) = (cx.launch(identity(1)), cx.launch(fail()));
        let mut looks = Vec::new();
        for step in 0..20 {
            let factor = if step == 9 { &bad } else { &good };
            looks.push(cx.trace("step", |cx| {
                cx.index_launch(near.colors(), add_one(&near));
                cx.launch(look_with(&cells, factor))
            }));
        }
        let mut seen = Vec::new();
        for look in looks {
            seen.push(look.await.ok());
        }
        Ok(seen)
    });
    let expected: Vec<_> = (0..20).map(|step| (step != 9).then_some(step + 1)).collect();
    assert_eq!(outcome.expect("the failure was seen"), expected);
    assert!(runtime.statistics().replays > 10, "{:?}", runtime.statistics());
}

#[task(leaf)]
fn add_one_unless(#[reduces(Sum, old)] cells: Piece<Cell>, fails: bool) -> Result<()> {
    cells.points().for_each(|point| cells.old.fold(point, 1));
    if fails { Err(Error::application("added too much")) } else { Ok(()) }
}

/// Waits until the launching task has launched everything.
#[task(leaf)]
fn hold(everybody: Arc<Barrier>) -> bool {
    everybody.wait();
    true
}

/// Every run adds to what is there, none writes it anew: so one contribution that is lost spoils all that follows, also
/// what was launched ahead.
#[test]
fn values_that_a_replay_spoils_are_spoilt_in_all_later_runs() {
    for mapper in [DefaultMapper::new(), DefaultMapper::piecewise()] {
        let runtime = Runtime::builder().workers(2).mapper(mapper).build().expect("there are threads");
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(CELLS as usize)?;
            cx.fill(&cells, Cell::old, 0)?;
            let everybody = Arc::new(Barrier::new(2));
            let (right, wrong) = (cx.launch(constant(false)), cx.launch(hold(Arc::clone(&everybody))));
            let mut looks = Vec::new();
            for step in 0..20 {
                let fails = if step == 9 { &wrong } else { &right };
                looks.push(cx.trace("step", |cx| {
                    let seen = cx.launch(look_with(&cells, 1));
                    cx.launch(add_one_unless(&cells, fails));
                    seen
                }));
            }
            everybody.wait();
            let mut seen = Vec::new();
            for look in looks {
                seen.push(look.await.ok());
            }
            Ok(seen)
        });
        let expected: Vec<_> = (0..20).map(|step| (step <= 9).then_some(step)).collect();
        assert_eq!(outcome.expect("the failure was seen"), expected);
        // Runs 1 to 8 at least: the failure may be seen before later ones are issued.
        assert!(runtime.statistics().replays >= 8, "{:?}", runtime.statistics());
    }
}

#[task(leaf)]
fn constant(value: bool) -> bool {
    value
}

#[test]
fn a_launch_that_is_refused_in_a_trace_has_not_seen_how_its_arguments_ended() {
    for traced in [false, true] {
        let runtime = Runtime::builder().workers(2).build().expect("there are threads");
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(CELLS as usize)?;
            let tiles = cells.blocks([8])?;
            cx.destroy_partition(&tiles)?;
            let factor = cx.launch(fail());
            let body = |cx: &Context| cx.index_launch(tiles.colors(), scale(&tiles, &factor));
            let refused = if traced { cx.trace("step", body) } else { body(cx) };
            assert!(refused.await.expect_err("the partition is gone").to_string().contains("destroyed"));
            Ok(())
        });
        let error = outcome.expect_err("nobody has seen that the first task failed");
        assert!(error.to_string().contains("no factor today"), "traced: {traced}: {error}");
    }
}

#[task(leaf)]
fn fail() -> Result<i64> {
    Err(Error::application("no factor today"))
}

#[test]
fn launches_that_differ_now_and_then_are_right_and_counted() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let tiles = cells.blocks([8])?;
        for step in 0..40 {
            cx.trace("step", |cx| {
                cx.index_launch(tiles.colors(), scale(&tiles, 2));
                if step % 10 == 9 {
                    cx.index_launch(tiles.colors(), scale(&tiles, 5));
                }
                cx.index_launch(tiles.colors(), scale(&tiles, 3));
            });
        }
        Ok(cx.map_read(&cells, Cell::old).await?.to_vec())
    });
    let mut value = 0;
    for step in 0..40 {
        value = (value * 2 + 1) % 1009;
        value = if step % 10 == 9 { (value * 5 + 1) % 1009 } else { value };
        value = (value * 3 + 1) % 1009;
    }
    assert_eq!(outcome.expect("nothing fails"), [value; CELLS as usize]);
    let statistics = runtime.statistics();
    assert!(statistics.replays > 20 && statistics.replays_given_up == 4, "{statistics:?}");
}

#[test]
fn runs_of_one_trace_may_begin_differently() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let tiles = cells.blocks([8])?;
        for step in 0..30 {
            cx.trace("step", |cx| {
                if step % 3 == 2 {
                    cx.index_launch(tiles.colors(), keep(&tiles));
                }
                cx.index_launch(tiles.colors(), scale(&tiles, 2));
            });
        }
        Ok(cx.map_read(&cells, Cell::old).await?.to_vec())
    });
    let model = |value: i64, step: i64| (if step % 3 == 2 { 0 } else { value } * 2 + 1) % 1009;
    assert_eq!(outcome.expect("nothing fails"), [(0..30).fold(0, model); CELLS as usize]);
    assert!(runtime.statistics().replays > 10, "{:?}", runtime.statistics());
}
