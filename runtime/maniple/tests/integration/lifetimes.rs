//! Regions that nothing can name any more are forgotten, with their memory; so are failures that were seen.

use maniple::machine::{Affinity, MemoryKind};
use maniple::prelude::*;
use maniple::{Error, Machine, MemoryId, ProcessorKind, Result};

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn set(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] = 1.5);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// 80 kB in a memory of 1 MB.
const ROWS: usize = 10_000;

fn runtime() -> Runtime {
    let mut builder = Machine::builder();
    builder.processor(ProcessorKind::Cpu);
    builder.processor(ProcessorKind::Cpu);
    builder.memory(MemoryKind::System, 1 << 20);
    builder.connect_nodes(Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
    Runtime::builder().machine(builder.build().unwrap()).build().unwrap()
}

/// Makes a region, and fails if it is told to.
#[task]
async fn scratch(cx: &Context, fails: bool) -> Result<f64> {
    let cells = cx.region::<Cell>(ROWS)?;
    cx.launch(set(&cells));
    let sum = cx.launch(total(&cells)).await?;
    if fails { Err(Error::application("on purpose")) } else { Ok(sum) }
}

/// As `scratch`, but has a region from its launcher.
#[task]
async fn scratch_beside(cx: &Context, #[reads(value)] cells: Region<Cell>, fails: bool) -> Result<f64> {
    cx.launch(total(&cells)).await?;
    cx.launch(scratch(fails)).await
}

/// As `scratch`, but returns the region.
#[task]
async fn make(cx: &Context) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(ROWS)?;
    cx.launch(set(&cells));
    Ok(cells)
}

#[test]
fn regions_that_tasks_leave_behind_without_a_name_are_forgotten_whatever_became_of_the_tasks() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        for turn in 0..200 {
            let fails = turn % 2 == 0;
            assert_eq!(cx.launch(scratch(fails)).await.is_err(), fails, "turn {turn}");
            assert_eq!(cx.launch(scratch_beside(&cells, fails)).await.is_err(), fails, "turn {turn}");
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_region_that_a_task_returns_lives_as_long_as_its_handle() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let kept = cx.launch(make()).await?;
        for turn in 0..100 {
            let made = cx.launch(make()).await?;
            assert_eq!(cx.launch(total(&made)).await?, 1.5 * ROWS as f64, "turn {turn}");
        }
        cx.launch(total(&kept)).await
    });
    assert_eq!(outcome.unwrap(), 1.5 * ROWS as f64);
}

#[test]
fn a_region_whose_last_handle_a_task_drops_is_forgotten() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        for _ in 0..100 {
            let cells = cx.region::<Cell>(ROWS)?;
            cx.launch(set(&cells)).await?;
            // A part of it is a name too.
            let part = cells.partition(2).equal()?.piece(0)?;
            drop(cells);
            assert_eq!(cx.launch(total(&part)).await?, 0.75 * ROWS as f64);
        }
        Ok(runtime.bytes_used(MemoryId(0)))
    });
    assert!(outcome.unwrap() <= 1 << 20);
}

#[task(leaf)]
fn fail(#[writes(value)] _cells: Piece<Cell>) -> Result<()> {
    Err(Error::application("on purpose"))
}

#[test]
fn a_failure_that_a_mapping_has_shown_is_seen() {
    for awaits in [false, true] {
        let runtime = runtime();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            cx.launch(fail(&cells));
            cx.launch(set(&cells.partition(2).equal()?.piece(0)?));
            let mapping = cx.map_read(&cells, Cell::value);
            if awaits {
                assert!(mapping.await.is_err());
            }
            Ok(())
        });
        // A failure that the program was not told of is not seen.
        assert_eq!(outcome.is_ok(), awaits, "{outcome:?}");
    }
}

#[test]
fn a_failure_that_a_partition_has_shown_is_seen() {
    #[derive(Fields)]
    struct Colored {
        color: i64,
    }
    #[task(leaf)]
    fn paint(#[writes(color)] cells: Piece<Colored>) -> Result<()> {
        let _ = cells;
        Err(Error::application("on purpose"))
    }
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Colored>(10)?;
        cx.launch(paint(&cells));
        assert!(cx.partition_by_field(&cells, Colored::color, 3).await.is_err());
        let others = cx.region::<Colored>(10)?;
        assert!(cx.copy(cells.field(Colored::color), others.field(Colored::color)).await.is_err());
        Ok(())
    });
    outcome.unwrap();
}
