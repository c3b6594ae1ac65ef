//! Rules of the programming model, one a test.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{FieldType, MemoryId, Privilege, Requirement};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.value[point] = point[0];
    }
}

#[task(leaf)]
fn increment(#[writes(value)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.value[point] += 1;
    }
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn count(#[point] piece: Point<1>, factor: i64) -> i64 {
    piece[0] * factor
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

#[test]
fn a_launch_is_analysed_once_however_many_points_it_has() {
    let visits = |points: usize| {
        let runtime = runtime();
        let visits = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(points)?;
            let pieces = cells.partition(points).equal()?;
            cx.index_launch(points, increment(&pieces)).await?;
            let before = runtime.statistics().logical_visits;
            for _ in 0..5 {
                cx.index_launch(points, increment(&pieces));
                cx.index_launch(points, sum(&pieces));
            }
            Ok(runtime.statistics().logical_visits - before)
        });
        visits.unwrap()
    };
    assert_eq!(visits(10), visits(10_000));
}

#[test]
fn a_steady_loop_makes_no_instances_and_copies_nothing() {
    let runtime = runtime();
    let statistics = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let pieces = cells.partition(4).equal()?;
        cx.index_launch(4, number(&pieces)).await?;
        let before = runtime.statistics();
        for _ in 0..10 {
            cx.index_launch(4, increment(&pieces));
            cx.launch(sum(&cells)).await?;
        }
        Ok((before, runtime.statistics()))
    });
    let (before, after) = statistics.unwrap();
    assert_eq!((after.instances, after.copies, after.fills), (before.instances, before.copies, before.fills));
}

#[test]
fn data_that_is_discarded_is_not_moved() {
    let runtime = Runtime::builder().workers(2).mapper(DefaultMapper::piecewise()).build().unwrap();
    let copies = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let (halves, thirds) = (cells.partition(2).equal()?, cells.partition(3).equal()?);
        cx.index_launch(2, number(&halves)).await?;
        cx.index_launch(3, number(&thirds)).await?;
        let discarded = runtime.statistics().copies;
        cx.index_launch(2, increment(&halves)).await?;
        Ok((discarded, runtime.statistics().copies))
    });
    // Three pieces were cut anew without a copy; halves are put together from four overlaps.
    assert_eq!(copies.unwrap(), (0, 4));
}

#[test]
fn fields_read_as_zero_until_they_are_written_or_filled() {
    let sums = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        let before = cx.launch(sum(&cells)).await?;
        cx.fill(&cells, Cell::value, 5)?;
        Ok((before, cx.launch(sum(&cells)).await?))
    });
    assert_eq!(sums.unwrap(), (0, 50));
}

#[test]
fn regions_over_the_same_rows_and_columns_are_distinct_data() {
    let sums = runtime().run(async |cx| {
        let first = cx.region::<Cell>(10)?;
        let second = cx.region_like::<Cell, _, 1>(&first)?;
        cx.launch(number(&first));
        Ok((cx.launch(sum(&first)).await?, cx.launch(sum(&second)).await?))
    });
    assert_eq!(sums.unwrap(), (45, 0));
}

#[test]
fn futures_are_passed_on_without_waiting() {
    let total = runtime().run(async |cx| {
        let map = cx.index_launch(5, count(2));
        let total = map.reduce(Sum);
        // The total is the factor of the next launch; of the third, each point has its own.
        let next = cx.index_launch(5, count(&total));
        let last = cx.index_launch(5, count(&next));
        Ok((total.await?, next.all().await?, last.reduce(Max).await?))
    });
    assert_eq!(total.unwrap(), (20, vec![0, 20, 40, 60, 80], 320));
}

#[test]
fn futures_can_be_computed_with() {
    let result = runtime().run(async |cx| {
        let map = cx.index_launch(4, count(1));
        let (sum, largest) = (map.reduce(Sum), map.reduce(Max));
        sum.zip_with(&largest, |sum, largest| 10 * sum + largest).map(|both| both as f64).await
    });
    assert_eq!(result.unwrap(), 63.0);
}

#[task]
async fn make_region(cx: &Context, rows: usize) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(rows)?;
    cx.launch(number(&cells));
    Ok(cells)
}

#[test]
fn a_region_that_a_child_made_is_its_parents_afterwards() {
    let total = runtime().run(async |cx| {
        let cells = cx.launch(make_region(10)).await?;
        cx.launch(increment(&cells));
        cx.launch(sum(&cells)).await
    });
    assert_eq!(total.unwrap(), 55);
}

#[task]
async fn increment_halves(cx: &Context, #[writes(value)] cells: Region<Cell>, depth: u32) -> Result<()> {
    if depth == 0 || cells.volume() < 2 {
        return cx.launch(increment(&cells)).await;
    }
    let halves = cells.partition(2).equal()?;
    cx.index_launch(2, increment_halves(&halves, depth - 1));
    cx.index_launch(2, increment_halves(&halves, depth - 1));
    Ok(())
}

#[test]
fn tasks_launch_tasks_to_any_depth() {
    for mapper in [DefaultMapper::new(), DefaultMapper::piecewise()] {
        let runtime = Runtime::builder().workers(2).mapper(mapper).build().unwrap();
        let total = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(16)?;
            cx.launch(increment_halves(&cells, 4));
            cx.launch(sum(&cells)).await
        });
        assert_eq!(total.unwrap(), 16 * 16);
    }
}

/// Channels that test tasks talk through; a task that waits longer than this for another has lost.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_inner_task_starts_before_its_data_is_there_and_its_children_wait() {
    let (started, has_started) = mpsc::channel();
    let has_started = Mutex::new(has_started);
    let writer = TaskDefinition::new("writer").leaf(TaskOptions::default(), move |call| {
        has_started.lock().unwrap().recv_timeout(LONG).expect("the inner task runs while its data is being written");
        call.write::<i64, 1>(0, Cell::value.id())?.fill(7);
        Ok(Value::new(()))
    });
    let options = TaskOptions { inner: true, ..TaskOptions::default() };
    let inner = TaskDefinition::new("inner").with_context(options, move |call| {
        let started = started.clone();
        async move {
            started.send(()).expect("the writer listens");
            let cells = call.region::<Cell, 1>(0)?;
            Ok(Value::new(call.context().launch(sum(&cells)).await?))
        }
    });
    let total = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        let require =
            |privilege| Requirement::new(cells.logical().clone(), maniple::FieldMask::of(Cell::value.id()), privilege);
        let write = TaskLauncher::new(&Arc::new(writer)).requirement(require(Privilege::Discard));
        let read = TaskLauncher::new(&Arc::new(inner)).requirement(require(Privilege::Read));
        cx.launch(write.typed::<()>());
        cx.launch(read.typed::<i64>()).await
    });
    assert_eq!(total.unwrap(), 70);
}

#[test]
fn an_execution_fence_orders_tasks_that_share_nothing_and_a_mapping_fence_does_not() {
    // Without an execution fence the first task can wait for the second; with it, the second comes after.
    let (ping, pinged) = mpsc::channel();
    let pinged = Mutex::new(pinged);
    let first = Arc::new(TaskDefinition::new("first").leaf(TaskOptions::default(), move |_| {
        pinged.lock().unwrap().recv_timeout(LONG).expect("the second task runs beside the first");
        Ok(Value::new(()))
    }));
    let second = Arc::new(TaskDefinition::new("second").leaf(TaskOptions::default(), move |_| {
        let _ = ping.send(());
        Ok(Value::new(()))
    }));
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str| {
        let order = Arc::clone(&order);
        let body = move |_: &maniple::task::LeafCall<'_>| {
            std::thread::yield_now();
            order.lock().unwrap().push(name);
            Ok(Value::new(()))
        };
        TaskLauncher::new(&Arc::new(TaskDefinition::new(name).leaf(TaskOptions::default(), body))).typed::<()>()
    };
    runtime()
        .run(async |cx| {
            cx.launch(TaskLauncher::new(&first).typed::<()>());
            cx.mapping_fence();
            cx.launch(TaskLauncher::new(&second).typed::<()>());
            for _ in 0..20 {
                cx.execution_fence();
                cx.launch(noting("before"));
                cx.execution_fence();
                cx.launch(noting("after"));
            }
            Ok(())
        })
        .unwrap();
    let order = order.lock().unwrap();
    assert_eq!(order.len(), 40);
    assert!(order.chunks(2).all(|pair| pair == ["before", "after"]), "{order:?}");
}

#[test]
fn memory_goes_when_its_region_does() {
    let runtime = runtime();
    let used = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1000)?;
        cx.launch(increment(&cells));
        cx.launch(sum(&cells)).await?;
        let used = runtime.bytes_used(MemoryId(0));
        cx.destroy_region(cells.logical())?;
        Ok(used)
    });
    assert!(used.unwrap() >= 8000);
    let end = Instant::now() + LONG;
    while runtime.bytes_used(MemoryId(0)) > 0 {
        assert!(Instant::now() < end, "the memory of the region stays in use");
        std::thread::yield_now();
    }
}

#[test]
fn no_more_operations_are_in_flight_than_the_window_allows() {
    let window = 8;
    let runtime = Runtime::builder().workers(2).window(window).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let gate = Arc::new(TaskDefinition::new("gate").leaf(TaskOptions::default(), move |_| {
        released.lock().unwrap().recv_timeout(LONG).expect("somebody opens the gate");
        Ok(Value::new(()))
    }));
    let runtime = &runtime;
    std::thread::scope(|scope| {
        let launching = scope.spawn(move || {
            runtime.run(async |cx| {
                for _ in 0..4 * window {
                    cx.launch(TaskLauncher::new(&gate).typed::<()>());
                }
                Ok(())
            })
        });
        // As long as the gate is shut, launches stop at the window.
        while runtime.statistics().launches < window as u64 {
            std::thread::yield_now();
        }
        for opened in 0..4 * window as u64 {
            assert!(runtime.statistics().launches <= opened + window as u64);
            release.send(()).unwrap();
        }
        launching.join().unwrap().unwrap();
    });
    assert_eq!(runtime.statistics().tasks, 4 * window as u64);
}

#[test]
fn a_field_that_takes_a_freed_ones_place_starts_at_zero() {
    let values = runtime().run(async |cx| {
        let rows = cx.index_space(&IndexSpace::from(Rect::<1>::from(0..4)).into());
        let fields = cx.field_space(1);
        let cells = Region::<(), 1>::try_from_logical({
            fields.allocate("old", FieldType::of::<i64>())?;
            cx.logical_region(&rows, &fields)?
        })?;
        let old = maniple::Field::<(), i64>::new(maniple::FieldId(0));
        cx.fill(&cells, old, 9)?;
        let before = cx.map_read(&cells, old).await?.values()[2];
        assert!(fields.allocate("one too many", FieldType::of::<i64>()).is_err());
        cx.free_field(&fields, old.id())?;
        assert!(cx.map_read(&cells, old).await.is_err(), "a freed field is refused");
        let new = maniple::Field::<(), i64>::new(fields.allocate("new", FieldType::of::<i64>())?);
        assert_eq!(new.id(), old.id());
        Ok((before, cx.map_read(&cells, new).await?.values()[2]))
    });
    assert_eq!(values.unwrap(), (9, 0));
}

#[test]
fn a_launch_that_is_the_first_to_use_such_a_field_finds_zero_too() {
    let values = runtime().run(async |cx| {
        let rows = cx.index_space(&IndexSpace::from(Rect::<1>::from(0..4)).into());
        let fields = cx.field_space(2);
        let allocate = |name| fields.allocate(name, FieldType::of::<i64>());
        let (old, kept) = (allocate("old")?, maniple::Field::<(), i64>::new(allocate("kept")?));
        let cells = Region::<(), 1>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
        cx.fill(&cells, maniple::Field::<(), i64>::new(old), 9)?;
        cx.fill(&cells, kept, 9)?;
        cx.free_field(&fields, old)?;
        let new = maniple::Field::<(), i64>::new(allocate("new")?);
        assert_eq!(new.id(), old);
        cx.copy(cells.field(new), cells.field(kept));
        Ok(cx.map_read(&cells, kept).await?.to_vec())
    });
    assert_eq!(values.unwrap(), [0; 4]);
}

#[test]
fn such_a_field_starts_at_zero_though_the_first_launch_that_names_it_is_refused() {
    for traced in [false, true] {
        let values = runtime().run(async |cx| {
            let rows = cx.index_space(&IndexSpace::from(Rect::<1>::from(0..4)).into());
            let fields = cx.field_space(1);
            let allocate = |name| fields.allocate(name, FieldType::of::<i64>());
            let old = maniple::Field::<(), i64>::new(allocate("old")?);
            let cells = Region::<(), 1>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
            cx.fill(&cells, old, 9)?;
            cx.free_field(&fields, old.id())?;
            let new = maniple::Field::<(), i64>::new(allocate("new")?);
            let copy = |cx: &Context| cx.copy(cells.field(new), cells.field(new));
            let refused = if traced { cx.trace("copy", copy) } else { copy(cx) };
            assert!(refused.await.is_err(), "a copy onto itself");
            Ok(cx.map_read(&cells, new).await?.to_vec())
        });
        assert_eq!(values.unwrap(), [0; 4], "traced: {traced}");
    }
}

#[test]
fn a_launch_is_refused_once_its_field_is_freed_though_the_same_was_allowed_before() {
    let refused = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(number(&cells)).await?;
        cx.launch(number(&cells)).await?;
        cx.free_field(cells.logical().fields(), Cell::value.id())?;
        Ok(cx.launch(number(&cells)).await)
    });
    assert!(refused.unwrap().is_err(), "a freed field is refused");
}

#[test]
fn variants_do_the_same_and_the_first_for_the_processor_is_the_default() {
    #[task(leaf, variant_of(sum))]
    fn sum_backwards(#[reads(value)] cells: Piece<Cell>) -> i64 {
        cells.points().collect::<Vec<_>>().into_iter().rev().map(|point| cells.value[point]).sum()
    }
    let total = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(number(&cells));
        cx.launch(sum(&cells)).await
    });
    assert_eq!(total.unwrap(), 45);
}

#[test]
fn a_copy_takes_effect_in_program_order_also_across_regions() {
    let result = runtime().run(async |cx| {
        let (from, to) = (cx.region::<Cell>(10)?, cx.region::<Cell>(6)?);
        cx.launch(number(&from));
        cx.copy(from.field(Cell::value), to.field(Cell::value));
        cx.launch(increment(&from));
        let copied = cx.launch(sum(&to)).await?;
        cx.copy(to.field(Cell::value), to.field(Cell::other));
        cx.fill(&to, Cell::value, 0)?;
        let other = cx.map_read(&to, Cell::other).await?;
        Ok((copied, other.values().span(to.bounds()).to_vec()))
    });
    assert_eq!(result.unwrap(), (15, vec![0, 1, 2, 3, 4, 5]));
}
