//! Tests that mappers and projections do no harm, whatever they answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use maniple::mapper::{
    DefaultMapper, InstanceChoice, Mapper, MappingContext, MappingFailure, RequirementMapping, Reuse, TaskInfo,
};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId, RegionError};

#[derive(Fields)]
struct Cell {
    left: i64,
    right: i64,
}

#[task(leaf)]
fn write_right(#[writes(right)] cells: Piece<Cell>, value: i64) {
    for point in cells.points() {
        cells.right[point] = value;
    }
}

#[task(leaf)]
fn read_right(#[reads(right)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.right[point]).sum()
}

#[task(leaf)]
fn read_both(#[reads(left, right)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.left[point] + cells.right[point]).sum()
}

#[task]
async fn read_later(cx: &Context, #[reads(left, right)] cells: Region<Cell>, gate: Arc<AtomicBool>) -> Result<i64> {
    let is_open = |context: &mut std::task::Context<'_>| {
        context.waker().wake_by_ref();
        if gate.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    };
    std::future::poll_fn(is_open).await;
    cx.launch(read_right(&cells).tag(1)).await
}

/// Tasks with the tag 1 are put where both fields are, as far as can be told; `read_both` makes that instance.
#[derive(Clone)]
struct Together;

impl Mapper for Together {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mut choice = InstanceChoice::in_memory(context.machine().memories_visible_from(processor)[0].memory);
        if task.name == "read_both" {
            choice.reuse = Reuse::Never;
        }
        if task.tag == 1 {
            let both = context.instances(0).into_iter().find(|known| known.fields.len() == 2);
            choice.reuse = both.map_or(Reuse::Any, |both| Reuse::Only(both.id));
        }
        choice.into()
    }
}

#[test]
fn a_task_uses_an_instance_of_its_parents_only_for_the_fields_that_it_was_given_there() {
    let runtime = Runtime::builder().workers(2).mapper(Together).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(write_right(&cells, 1));
        cx.launch(read_both(&cells)).await?;
        // This one has `right` in the first instance and `left` in the second; then the second gets newer values of
        // `right`.
        let gate = Arc::new(AtomicBool::new(false));
        let old = cx.launch(read_later(&cells, Arc::clone(&gate)));
        cx.launch(write_right(&cells, 2).tag(1)).await?;
        gate.store(true, Ordering::Release);
        Ok((old.await?, cx.launch(read_right(&cells).tag(1)).await?))
    });
    assert_eq!(outcome.unwrap(), (4, 8));
}

#[task(leaf)]
fn write_two(#[writes(left)] one: Piece<Cell>, #[writes(left)] other: Piece<Cell>) -> bool {
    one.space().overlaps(other.space())
}

#[test]
fn a_projection_that_is_no_pure_function_gives_no_task_the_same_data_twice() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let quarters = cx.region::<Cell>(8)?.partition(4).equal()?;
        for honest_calls in 0..8 {
            let calls = AtomicUsize::new(0);
            let shifted = quarters.project(move |point| {
                let is_honest = calls.fetch_add(1, Ordering::Relaxed) < honest_calls;
                if is_honest { (point[0] + 2).into() } else { point }
            });
            let overlaps = cx.index_launch(2, write_two(&quarters, &shifted)).all().await;
            assert!(!overlaps.unwrap_or_default().contains(&true));
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_projection_that_panics_when_it_is_asked_again_fails_its_point() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let quarters = cx.region::<Cell>(8)?.partition(4).equal()?;
        let calls = AtomicUsize::new(0);
        let late = quarters.project(move |point| {
            assert!(calls.fetch_add(1, Ordering::Relaxed) < 4, "asked again");
            point
        });
        cx.index_launch(4, read_right(late)).await
    });
    assert!(matches!(outcome, Err(Error::Region(RegionError::ProjectionPanicked { .. }))), "{outcome:?}");
}

#[test]
fn a_piece_of_a_region_that_fits_nowhere_gets_an_instance_of_its_own() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(i64::MAX as usize)?;
        let pieces = cells.partition_into(2.into(), vec![Rect::from(0..4).into(), Rect::from(4..8).into()])?;
        cx.index_launch(2, write_right(&pieces, 1));
        let whole = cx.launch(read_right(&cells)).await;
        assert!(matches!(whole, Err(Error::OutOfMemory { failure: MappingFailure::TooLarge { .. }, .. })), "{whole:?}");
        cx.index_launch(2, read_right(&pieces)).reduce(Sum).await
    });
    assert_eq!(outcome.unwrap(), 8);
}

#[test]
fn copies_that_nobody_needs_make_room_for_others() {
    // Room for the 64 cells, and for half as many again.
    let machine = Machine::uniform(2, 800);
    let runtime = Runtime::builder().machine(machine).mapper(DefaultMapper::piecewise()).build().unwrap();
    let sums = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        let (quarters, eighths) = (cells.partition(4).equal()?, cells.tiles([8], [2])?);
        cx.index_launch(4, write_right(&quarters, 1)).await?;
        let mut sums = Vec::new();
        for color in 0..8 {
            sums.push(cx.launch(read_right(&eighths.piece(color)?)).await?);
        }
        Ok(sums)
    });
    assert_eq!(sums.unwrap(), [10, 12, 12, 12, 12, 12, 12, 10]);
}

#[test]
fn a_region_may_be_read_through_ever_new_partitions() {
    let runtime = Runtime::builder().workers(2).mapper(DefaultMapper::piecewise()).build().unwrap();
    let used = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        cx.launch(write_right(&cells, 1)).await?;
        for round in 0..3000 {
            let piece = cells.part(Rect::<1>::from(round % 60..round % 60 + 4))?;
            assert_eq!(cx.launch(read_right(&piece)).await?, 4);
        }
        Ok(runtime.machine().memories().iter().map(|memory| runtime.bytes_used(memory.id)).sum::<u64>())
    });
    let bytes = used.unwrap();
    assert!(bytes < 600 * 4 * 8, "{bytes} bytes are in use for 64 cells");
}

#[test]
fn memory_that_the_system_refuses_is_an_error_that_names_memory_task_and_bytes() {
    // More bytes than any system gives, in a memory that has still more by the model of the machine.
    let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 52)).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1 << 48)?;
        let refused = cx.launch(write_right(&cells, 1)).await;
        let Err(Error::SystemRefused { operation, memory, bytes, .. }) = &refused else { panic!("{refused:?}") };
        assert_eq!((operation.as_str(), memory.0, *bytes), ("write_right", 0, 1 << 51));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("cannot place `write_right`: the system refused 2251799813685248 bytes"), "{message}");
        assert!(message.contains("for memory 0,") && message.contains("use smaller pieces"), "{message}");
        cx.launch(write_right(&cx.region::<Cell>(4)?, 1)).await
    });
    outcome.unwrap();
}

#[task(leaf)]
fn end_when(#[reads(right)] _cells: Piece<Cell>, gate: Arc<AtomicBool>, ended: Arc<AtomicUsize>) {
    while !gate.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    ended.fetch_add(1, Ordering::SeqCst);
}

/// Launches 20 tasks, which can end once so many have been launched; the most that had been launched and not ended.
#[task]
async fn launches(cx: &Context, #[reads(right)] cells: Region<Cell>, opens_after: usize) -> usize {
    let (gate, ended) = (Arc::new(AtomicBool::new(opens_after == 0)), Arc::new(AtomicUsize::new(0)));
    let mut most = 0;
    for launched in 1..=20 {
        cx.launch(end_when(&cells, Arc::clone(&gate), Arc::clone(&ended)));
        most = most.max(launched - ended.load(Ordering::SeqCst));
        if launched >= opens_after {
            gate.store(true, Ordering::SeqCst);
        }
    }
    most
}

/// Lets each task run so many operations ahead.
#[derive(Clone)]
struct Ahead(Option<usize>);

impl Mapper for Ahead {
    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> maniple::mapper::TaskMapping {
        maniple::mapper::TaskMapping { window: self.0, ..DefaultMapper::new().map_task(task, context) }
    }
}

#[test]
fn a_task_runs_no_further_ahead_than_its_mapper_says() {
    let most = |window, opens_after| {
        let runtime = Runtime::builder().workers(2).mapper(Ahead(window)).build().unwrap();
        let most = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(4)?;
            cx.fill(&cells, Cell::right, 0)?;
            cx.launch(launches(&cells, opens_after)).await
        });
        most.unwrap()
    };
    // Ten must be in flight for any to end.
    assert!(most(None, 10) >= 10);
    assert!(most(Some(12), 10) <= 12);
    for window in [1, 2, 3] {
        assert!(most(Some(window), 0) <= window);
    }
    // 0 means 1.
    assert_eq!(most(Some(0), 0).max(1), 1);
}
