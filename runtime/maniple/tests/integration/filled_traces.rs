//! Fills and invalidations in traces are replayed with the launches.

use maniple::machine::{Affinity, MemoryKind, ProcessorKind};
use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::record::check;
use maniple::{FieldMask, Machine, Statistics};

#[derive(Fields)]
struct Cell {
    value: i64,
    sum: i64,
    scratch: f64,
    pair: [u8; 2],
}

const CELLS: usize = 24;

#[task(leaf)]
fn add(#[reads(value)] from: Piece<Cell>, #[reduces(Sum, sum)] near: Piece<Cell>) {
    let sum: i64 = from.points().map(|point| from.value[point]).sum();
    near.points().for_each(|point| near.sum.fold(point, sum % 97 + 1));
}

#[task(leaf)]
fn take(
    #[reads(sum)]
    #[writes(value)]
    cells: Piece<Cell>,
    factor: i64,
) -> i64 {
    cells.points().for_each(|point| cells.value[point] = (cells.value[point] * factor + cells.sum[point]) % 1009);
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn halve(
    #[reads(value)]
    #[discards(scratch)]
    cells: Piece<Cell>,
) {
    cells.points().for_each(|point| cells.scratch[point] = cells.value[point] as f64 / 2.0);
}

#[task(leaf)]
fn see(#[reads(scratch)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|point| cells.scratch[point]).sum()
}

#[task(leaf)]
fn fail_unless(#[writes(sum)] cells: Piece<Cell>, good: bool) -> Result<()> {
    cells.points().for_each(|point| cells.sum[point] += 1);
    if good { Ok(()) } else { Err(Error::application("not good")) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Named,
    None,
    Off,
}

/// Runs a program whose step is marked as a trace or not, in runtimes of several kinds, half of which are recorded, and
/// gives what it has come to, and what was counted. The record must prove that it was right.
fn everywhere<T: PartialEq + std::fmt::Debug + Send + 'static>(
    program: impl AsyncFn(&Context, Marks) -> Result<T>,
) -> Vec<(Marks, T, Statistics)> {
    let mut all = Vec::new();
    for marks in [Marks::Off, Marks::Named, Marks::None] {
        for number in 0..6 {
            let mapper = if number % 3 == 0 { DefaultMapper::piecewise() } else { DefaultMapper::new() };
            let builder = Runtime::builder().workers(1 + number % 2).tracing(marks != Marks::Off).mapper(mapper);
            let runtime = builder.record_operations(number >= 3).build().unwrap();
            let outcome = runtime.run(async |cx| program(cx, marks).await).unwrap();
            if number >= 3 {
                let proof = check(&runtime.take_record()).unwrap_or_else(|violation| panic!("{marks:?}: {violation}"));
                assert!(marks == Marks::Off || proof.replayed > 0, "{marks:?}: {proof:?}");
            }
            all.push((marks, outcome, runtime.statistics()));
        }
    }
    all
}

fn step<R>(cx: &Context, marks: Marks, body: impl FnOnce(&Context) -> R) -> R {
    if marks == Marks::Named { cx.trace("step", body) } else { body(cx) }
}

/// All outcomes are the first one, and all that could be replayed was.
fn same_and_replayed<T: PartialEq + std::fmt::Debug>(all: &[(Marks, T, Statistics)], replays: u64) {
    let (_, right, _) = &all[0];
    for (marks, outcome, statistics) in all {
        assert_eq!(outcome, right, "{marks:?}");
        assert!(*marks == Marks::Off || statistics.replays >= replays, "{marks:?}: {statistics:?}");
    }
}

const STEPS: usize = 60;

#[test]
fn a_fill_at_the_beginning_of_each_run_is_replayed() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let (tiles, near) = (cells.blocks([8])?, cells.tiles([8], [1])?);
        cx.fill(&cells, Cell::value, 7)?;
        let mut total = 0;
        for turn in 0..STEPS {
            step(cx, marks, |cx| -> Result<()> {
                cx.fill(&cells, Cell::sum, 3)?;
                cx.index_launch(tiles.colors(), add(&tiles, &near));
                cx.index_launch(tiles.colors(), take(&tiles, turn as i64));
                Ok(())
            })?;
        }
        total += cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum::<i64>();
        Ok(total + cx.map_read(&cells, Cell::sum).await?.to_vec().iter().sum::<i64>())
    });
    same_and_replayed(&all, 20);
    assert!(all.iter().all(|(_, _, statistics)| statistics.replays_given_up <= 2), "{all:?}");
}

#[test]
fn what_the_fill_at_the_end_of_a_run_gave_is_what_the_next_run_finds() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let (tiles, near) = (cells.blocks([8])?, cells.tiles([8], [1])?);
        cx.fill(&cells, Cell::value, 7)?;
        cx.fill(&cells, Cell::sum, 11)?;
        let mut seen = Vec::new();
        for turn in 0..STEPS {
            seen.push(step(cx, marks, |cx| -> Result<_> {
                cx.index_launch(tiles.colors(), add(&tiles, &near));
                let seen = cx.index_launch(tiles.colors(), take(&tiles, turn as i64)).reduce(Sum);
                cx.fill(&cells, Cell::sum, 5)?;
                Ok(seen)
            })?);
        }
        let mut sums = Vec::new();
        for seen in seen {
            sums.push(seen.await?);
        }
        sums.push(cx.map_read(&cells, Cell::sum).await?[0]);
        Ok(sums)
    });
    assert_eq!(all[0].1.last(), Some(&5));
    same_and_replayed(&all, 20);
}

#[test]
fn invalidations_of_temporary_values_are_replayed() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let tiles = cells.blocks([8])?;
        cx.fill(&cells, Cell::value, 6)?;
        let mut seen = Vec::new();
        for _ in 0..STEPS {
            seen.push(step(cx, marks, |cx| -> Result<_> {
                cx.index_launch(tiles.colors(), halve(&tiles));
                let seen = cx.launch(see(&cells));
                cx.invalidate(&cells, Cell::scratch)?;
                Ok((seen, cx.launch(see(&cells))))
            })?);
        }
        for (full, empty) in seen {
            assert_eq!((full.await?, empty.await?), (3.0 * CELLS as f64, 0.0));
        }
        Ok(())
    });
    same_and_replayed(&all, 20);
}

#[test]
fn a_run_with_another_value_is_another_run() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let tiles = cells.blocks([8])?;
        let mut seen = Vec::new();
        for turn in 0..STEPS {
            let value = if turn % 10 == 9 { turn as i64 } else { 2 };
            seen.push(step(cx, marks, |cx| -> Result<_> {
                cx.fill(&cells, Cell::sum, value)?;
                let seen = cx.index_launch(tiles.colors(), take(&tiles, 1)).reduce(Sum);
                cx.fill(&tiles.piece(1)?, Cell::sum, value + 1)?;
                cx.index_launch(tiles.colors(), take(&tiles, 0));
                Ok(seen)
            })?);
        }
        let mut sums = Vec::new();
        for seen in seen {
            sums.push(seen.await?);
        }
        Ok(sums)
    });
    same_and_replayed(&all, 10);
}

#[test]
fn values_that_cannot_be_compared_end_replays_and_nothing_else() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let tiles = cells.blocks([8])?;
        for turn in 0..STEPS {
            // A fill of this kind now and then: in between there are replays.
            if turn % 20 == 10 {
                cx.fill(&cells, Cell::pair, [1, turn as u8])?;
            }
            step(cx, marks, |cx| cx.index_launch(tiles.colors(), take(&tiles, turn as i64)));
        }
        Ok((cx.map_read(&cells, Cell::pair).await?.to_vec(), cx.map_read(&cells, Cell::value).await?.to_vec()))
    });
    same_and_replayed(&all, 1);
}

#[test]
fn a_fill_makes_good_what_a_replayed_task_failed_to_write() {
    for marks in [Marks::Off, Marks::Named, Marks::None] {
        let runtime = Runtime::builder().workers(2).tracing(marks != Marks::Off).build().unwrap();
        let seen = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(CELLS)?;
            let mut looks = Vec::new();
            for turn in 0..STEPS {
                looks.push(step(cx, marks, |cx| -> Result<_> {
                    cx.fill(&cells, Cell::sum, 1)?;
                    let tried = cx.launch(fail_unless(&cells, turn % 8 != 7));
                    Ok((tried, cx.launch(take(&cells, 0))))
                })?);
            }
            let mut seen = Vec::new();
            for (tried, look) in looks {
                seen.push((tried.await.is_ok(), look.await.ok()));
            }
            Ok(seen)
        });
        // The task that takes the sum also needs the value, which a failed run has invalidated for all that follow.
        let seen = seen.unwrap();
        let good = |turn: usize| turn < 7;
        for (turn, (tried, look)) in seen.into_iter().enumerate() {
            assert_eq!(tried, turn % 8 != 7, "{marks:?}: turn {turn}");
            assert_eq!(look, good(turn).then_some(2 * CELLS as i64), "{marks:?}: turn {turn}");
        }
    }
}

#[test]
fn a_loop_of_nothing_but_fills_is_carried_out() {
    let all = everywhere_without_replays(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        for turn in 0..300 {
            step(cx, marks, |cx| -> Result<()> {
                cx.fill(&cells, Cell::sum, 1)?;
                cx.fill(&cells, Cell::value, turn % 2)?;
                cx.invalidate(&cells, Cell::scratch)
            })?;
        }
        Ok((cx.map_read(&cells, Cell::sum).await?[0], cx.map_read(&cells, Cell::value).await?[0]))
    });
    assert!(all.into_iter().all(|outcome| outcome == (1, 1)));
}

fn everywhere_without_replays<T>(program: impl AsyncFn(&Context, Marks) -> Result<T>) -> Vec<T> {
    let run = |marks| {
        let runtime = Runtime::builder().workers(2).window(4).tracing(marks != Marks::Off).build().unwrap();
        runtime.run(async |cx| program(cx, marks).await).unwrap()
    };
    [Marks::Off, Marks::Named, Marks::None].map(run).into()
}

#[test]
fn a_fill_that_is_refused_in_a_trace_counts_for_nothing() {
    let all = everywhere(async |cx, marks| {
        let (cells, gone) = (cx.region::<Cell>(CELLS)?, cx.region::<Cell>(4)?);
        let tiles = cells.blocks([8])?;
        cx.destroy_region(&gone)?;
        for turn in 0..STEPS {
            step(cx, marks, |cx| -> Result<()> {
                cx.fill(&cells, Cell::sum, 4)?;
                assert!(cx.fill(&gone, Cell::sum, 1).is_err() && cx.invalidate(&gone, Cell::sum).is_err());
                cx.index_launch(tiles.colors(), take(&tiles, turn as i64));
                Ok(())
            })?;
        }
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
    });
    same_and_replayed(&all, 20);
}

#[test]
fn regions_that_a_trace_does_not_use_come_and_go_within_it() {
    let all = everywhere(async |cx, marks| {
        let cells = cx.region::<Cell>(CELLS)?;
        let tiles = cells.blocks([8])?;
        for turn in 0..STEPS {
            let other = cx.region::<Cell>(4)?;
            step(cx, marks, |cx| -> Result<()> {
                cx.fill(&cells, Cell::sum, 4)?;
                cx.destroy_region(&other)?;
                let another = cx.region::<Cell>(4)?;
                cx.index_launch(tiles.colors(), take(&tiles, turn as i64));
                cx.destroy_region(&another)
            })?;
        }
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
    });
    same_and_replayed(&all, 20);
}

#[test]
fn invalidated_values_read_as_zero_whatever_their_type() {
    let outcome = Runtime::builder().workers(2).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(CELLS)?;
        cx.fill(&cells, Cell::value, 1)?;
        cx.fill(&cells, Cell::scratch, -0.5)?;
        cx.fill(&cells, Cell::pair, [3, 4])?;
        let half = cells.partition(2).equal()?.piece(1)?;
        cx.invalidate_fields(&half, &half.logical().fields().fields())?;
        // Of no field, and of no point.
        cx.invalidate_fields(&cells, &FieldMask::new())?;
        cx.invalidate(&cx.region::<Cell>(0)?, Cell::value)?;
        let value = cx.map_read(&cells, Cell::value).await?.to_vec();
        let scratch = cx.map_read(&cells, Cell::scratch).await?.to_vec();
        Ok((value, scratch, cx.map_read(&cells, Cell::pair).await?.to_vec()))
    });
    let halves = |cells: usize| (vec![1; cells], vec![0; cells]);
    let (value, scratch, pair) = outcome.unwrap();
    let (ones, zeros) = halves(CELLS / 2);
    assert_eq!(value, [ones, zeros].concat());
    assert!(scratch[..CELLS / 2].iter().all(|value| *value == -0.5));
    assert!(scratch[CELLS / 2..].iter().all(|value| value.to_bits() == 0));
    assert!(pair[..CELLS / 2].iter().all(|pair| *pair == [3, 4]) && pair[CELLS / 2..].iter().all(|p| *p == [0, 0]));
}

/// One processor, and memory for two fields of a thousand cells.
fn small() -> Machine {
    let mut machine = Machine::builder();
    let processor = machine.processor(ProcessorKind::Cpu);
    let memory = machine.memory(MemoryKind::System, 2 * 8 * 1000 + 512);
    machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1000, latency_ns: 100 });
    machine.build().unwrap()
}

#[test]
fn memory_of_invalidated_values_goes_to_others_and_of_no_others() {
    let fill_up = |invalidates: bool| {
        let runtime = Runtime::builder().machine(small()).build().unwrap();
        runtime.run(async |cx| {
            let mut named = Vec::new();
            for _ in 0..20 {
                let cells = cx.region::<Wide>(1000)?;
                cx.launch(write_wide(&cells)).await?;
                if invalidates {
                    cx.invalidate(&cells, Wide::value)?;
                }
                named.push(cells);
            }
            Ok(())
        })
    };
    fill_up(true).unwrap();
    assert!(matches!(fill_up(false), Err(error) if error.to_string().contains("memory")));
}

#[derive(Fields)]
struct Wide {
    value: f64,
}

#[task(leaf)]
fn write_wide(#[discards(value)] cells: Piece<Wide>) {
    cells.points().for_each(|point| cells.value[point] = 1.0);
}

#[test]
fn who_may_not_write_may_not_invalidate() {
    let outcome = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(CELLS)?;
        cx.launch(try_to_invalidate(&cells)).await
    });
    assert!(outcome.unwrap().contains("invalidation"));
}

#[task]
async fn try_to_invalidate(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<String> {
    match cx.invalidate(&cells, Cell::value) {
        Err(error @ Error::PrivilegeNotHeld { .. }) => Ok(error.to_string()),
        other => Err(Error::application(format!("{other:?}"))),
    }
}
