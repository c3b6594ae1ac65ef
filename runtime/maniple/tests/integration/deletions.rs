//! Deletions are in program order: a name that a task destroys is destroyed from there on in the program, and tasks
//! that were launched before go on undisturbed, whenever they run.

use std::sync::{Arc, Mutex, mpsc};

use maniple::prelude::*;
use maniple::{AnySpace, Error, FieldSpace, FieldType, IndexSpaceNode, RegionError, Result};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, what: i64) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

fn is_destroyed<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Region(RegionError::Destroyed { .. } | RegionError::NoSuchField { .. })))
}

/// A gate for which a task waits before it goes on, so that it surely does when its launcher has gone on.
#[derive(Clone)]
struct Gate(Arc<Mutex<mpsc::Receiver<()>>>);

fn gate() -> (mpsc::Sender<()>, Gate) {
    let (open, opened) = mpsc::channel();
    (open, Gate(Arc::new(Mutex::new(opened))))
}

impl Gate {
    fn wait(&self) {
        self.0.lock().unwrap().recv().expect("somebody opens the gate");
    }
}

/// Uses all that it holds once the gate is open, and has a task of its own do so too.
#[task]
async fn late(
    cx: &Context,
    #[writes(value)] cells: Region<Cell>,
    halves: Option<Partition<Cell>>,
    gate: Gate,
    deep: bool,
) -> Result<i64> {
    if deep {
        return cx.launch(late(&cells, halves, gate, false)).await;
    }
    gate.wait();
    let halves = match halves {
        Some(halves) => halves,
        None => cells.partition(2).equal()?,
    };
    cx.index_launch(2, add(&halves, 1));
    let quarters = halves.piece(0)?.partition(2).equal()?;
    cx.index_launch(2, add(&quarters, 10));
    cx.fill(&halves.piece(1)?, Cell::value, 100)?;
    let seen = cx.map_read(&cells, Cell::value).await?[0];
    Ok(seen + cx.launch(total(&cells)).await?)
}

#[test]
fn a_region_that_is_destroyed_remains_for_tasks_that_were_launched_before() {
    for deep in [false, true] {
        let sum = runtime().run(async |cx| {
            let cells = cx.region::<Cell>(4)?;
            let (open, gate) = gate();
            let sum = cx.launch(late(&cells, None, gate, deep));
            cx.destroy_region(&cells)?;
            assert!(is_destroyed(cx.launch(total(&cells)).await));
            assert!(is_destroyed(cx.destroy_region(&cells)));
            open.send(()).unwrap();
            sum.await
        });
        assert_eq!(sum.unwrap(), 11 + 2 * 11 + 200);
    }
}

#[test]
fn a_partition_that_is_destroyed_remains_for_tasks_that_were_launched_before_and_for_no_others() {
    for deep in [false, true] {
        let sum = runtime().run(async |cx| {
            let cells = cx.region::<Cell>(4)?;
            let halves = cells.partition(2).equal()?;
            let (open, gate) = gate();
            let sum = cx.launch(late(&cells, Some(halves.clone()), gate.clone(), deep));
            cx.destroy_partition(&halves)?;
            assert!(is_destroyed(cx.index_launch(2, add(&halves, 1)).await));
            assert!(is_destroyed(cx.destroy_partition(&halves)));
            open.send(()).unwrap();
            let sum = sum.await?;
            // It can name the partition, but comes after it.
            let later = cx.launch(late(&cells, Some(halves), gate, deep));
            open.send(()).unwrap();
            assert!(is_destroyed(later.await.map_err(innermost)));
            Ok(sum)
        });
        assert_eq!(sum.unwrap(), 11 + 2 * 11 + 200);
    }
}

/// The innermost error of a task's failure.
fn innermost(mut error: Error) -> Error {
    while let Error::TaskFailed { source, .. } = &error {
        match source.downcast_ref::<Error>() {
            Some(inner) => error = inner.clone(),
            None => break,
        }
    }
    error
}

fn space() -> AnySpace {
    AnySpace::from(Rect::<1>::from(0..4))
}

/// Makes a region of what its launcher has made, once the gate is open.
#[task]
async fn make(cx: &Context, space: IndexSpaceNode, fields: Arc<FieldSpace>, gate: Gate) -> Result<i64> {
    gate.wait();
    let region = Region::<Cell>::try_from_logical(cx.logical_region(&space, &fields)?)?;
    cx.index_partition(&space, 1, &[self::space()])?;
    cx.fill(&region, Cell::value, 7)?;
    cx.launch(total(&region)).await
}

#[test]
fn spaces_that_are_destroyed_remain_for_tasks_that_were_launched_before_and_for_no_others() {
    for destroys_fields in [false, true] {
        let sum = runtime().run(async |cx| {
            let (rows, fields) = (cx.index_space(&space()), cx.field_space(1));
            fields.allocate("value", FieldType::of::<i64>())?;
            let (open, gate) = gate();
            let made = cx.launch(make(rows.clone(), Arc::clone(&fields), gate.clone()));
            if destroys_fields {
                cx.destroy_field_space(&fields)?;
            } else {
                cx.destroy_index_space(&rows)?;
            }
            assert!(is_destroyed(cx.logical_region(&rows, &fields)));
            let later = cx.launch(make(rows, fields, gate));
            open.send(()).unwrap();
            open.send(()).unwrap();
            let later = later.await;
            assert!(is_destroyed(later.map_err(innermost)));
            made.await
        });
        assert_eq!(sum.unwrap(), 28);
    }
}

/// Uses a field of a region that it makes itself, before and after the gate.
#[task]
async fn keep(cx: &Context, space: IndexSpaceNode, fields: Arc<FieldSpace>, gates: (Gate, Gate)) -> Result<i64> {
    let region = Region::<Cell>::try_from_logical(cx.logical_region(&space, &fields)?)?;
    cx.fill(&region, Cell::value, 7)?;
    cx.launch(add(&region, 1)).await?;
    gates.0.wait();
    cx.launch(add(&region, 1)).await?;
    gates.1.wait();
    cx.launch(total(&region)).await
}

#[test]
fn a_field_that_is_freed_remains_for_tasks_that_were_launched_before() {
    let outcome = runtime().run(async |cx| {
        let (rows, fields) = (cx.index_space(&space()), cx.field_space(1));
        let old = fields.allocate("old", FieldType::of::<i64>())?;
        let cells = Region::<Cell>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
        let (first, second, third) = (gate(), gate(), gate());
        let held = cx.launch(late(&cells, None, first.1, true));
        let kept = cx.launch(keep(rows, Arc::clone(&fields), (second.1, third.1)));
        cx.free_field(&fields, old)?;
        assert!(is_destroyed(cx.launch(total(&cells)).await));
        assert!(is_destroyed(cx.free_field(&fields, old)));
        second.0.send(()).unwrap();
        // The same id: new for this task, as it was for those before.
        assert_eq!(fields.allocate("new", FieldType::of::<i64>())?, old);
        let new = cx.launch(total(&cells));
        third.0.send(()).unwrap();
        first.0.send(()).unwrap();
        Ok((held.await?, kept.await?, new.await?))
    });
    assert_eq!(outcome.unwrap(), (11 + 2 * 11 + 200, 36, 0));
}

#[task]
async fn destroys_its_own(cx: &Context, gate: Gate) -> Result<i64> {
    let cells = cx.region::<Cell>(4)?;
    let halves = cells.partition(2).equal()?;
    let (open, inner) = self::gate();
    let sum = cx.launch(late(&cells, Some(halves.clone()), inner, true));
    cx.destroy_partition(&halves)?;
    cx.destroy_region(&cells)?;
    open.send(()).unwrap();
    gate.wait();
    sum.await
}

#[test]
fn what_a_task_destroys_of_its_own_remains_for_those_that_it_launched_before() {
    let sum = runtime().run(async |cx| {
        let (open, gate) = gate();
        let sum = cx.launch(destroys_its_own(gate));
        open.send(()).unwrap();
        sum.await
    });
    assert_eq!(sum.unwrap(), 11 + 2 * 11 + 200);
}

#[test]
fn a_mapping_outlives_its_region() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.fill(&cells, Cell::value, 3)?;
        let mapping = cx.map_read(&cells, Cell::value).await?;
        cx.destroy_region(&cells)?;
        cx.execution_fence().await?;
        Ok(mapping.to_vec())
    });
    assert_eq!(outcome.unwrap(), [3; 4]);
}

#[test]
fn what_one_run_has_destroyed_is_destroyed_in_later_ones() {
    let runtime = runtime();
    let (rows, old) = runtime
        .run(async |cx| {
            let (rows, old) = (cx.index_space(&space()), cx.region::<Cell>(4)?);
            cx.destroy_index_space(&rows)?;
            cx.destroy_region(&old)?;
            Ok((rows, old))
        })
        .unwrap();
    for _ in 0..2 {
        let outcome = runtime.run(async |cx| {
            assert!(is_destroyed(cx.logical_region(&rows, &cx.field_space(1))));
            assert!(is_destroyed(cx.destroy_region(&old)));
            Ok(is_destroyed(cx.fill(&old, Cell::value, 1)))
        });
        assert!(outcome.unwrap());
    }
}

#[test]
fn launches_that_are_replayed_stop_where_their_partition_is_destroyed() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let halves = cells.partition(2).equal()?;
        for turn in 0..20 {
            if turn == 15 {
                cx.destroy_partition(&halves)?;
            }
            let added = cx.trace("turn", |cx| cx.index_launch(2, add(&halves, 1)));
            if turn >= 15 {
                assert!(is_destroyed(added.await), "turn {turn}");
            }
        }
        cx.launch(total(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 60);
}

/// Frees a field of what it makes, gives its id to another, and returns the region.
#[task]
async fn renew(cx: &Context) -> Result<Region<Cell>> {
    let (rows, fields) = (cx.index_space(&space()), cx.field_space(2));
    let old = fields.allocate("old", FieldType::of::<i64>())?;
    let other = fields.allocate("other", FieldType::of::<f64>())?;
    let cells = Region::<Cell>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
    cx.fill(&cells, Cell::value, 7)?;
    cx.free_field(&fields, old)?;
    cx.free_field(&fields, other)?;
    assert_eq!(fields.allocate("new", FieldType::of::<i64>())?, old);
    cx.launch(add(&cells, 3));
    Ok(cells)
}

#[test]
fn what_a_task_has_destroyed_of_its_own_is_destroyed_for_its_launcher() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.launch(renew()).await?;
        let other = maniple::Field::<Cell, f64>::new(maniple::FieldId(1));
        assert!(is_destroyed(cx.fill(&cells, other, 1.0)));
        cx.launch(total(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 12);
}

#[test]
fn a_piece_lives_as_long_as_its_partition() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        let refused = cx.destroy_region(halves.piece(0)?);
        assert!(matches!(refused, Err(Error::Region(RegionError::PieceDestroyed { .. }))), "{refused:?}");
        cx.fill(&cells, Cell::value, 1)?;
        let sum = cx.launch(total(&halves.piece(0)?)).await?;
        cx.destroy_region(&cells)?;
        assert!(is_destroyed(cx.fill(&cells, Cell::value, 1)));
        Ok(sum)
    });
    assert_eq!(outcome.unwrap(), 4);
}

#[task]
async fn free(cx: &Context, fields: Arc<FieldSpace>, field: maniple::FieldId) -> Result<bool> {
    Ok(matches!(cx.free_field(&fields, field), Err(Error::NotTheMaker { .. })))
}

#[task]
async fn make_fields(cx: &Context) -> Result<Arc<FieldSpace>> {
    let fields = cx.field_space(4);
    fields.allocate("made below", FieldType::of::<i64>())?;
    Ok(fields)
}

#[test]
fn fields_are_freed_by_the_task_that_made_their_space_or_its_parent_once_it_has_ended() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let fields = cx.field_space(8);
        let a = fields.allocate("a", FieldType::of::<i64>())?;
        assert!(cx.launch(free(Arc::clone(&fields), a)).await?);
        // So its id is not given to another.
        let b = fields.allocate("b", FieldType::of::<i64>())?;
        assert!(a != b && fields.find("a") == Some(a));
        cx.free_field(&fields, a)?;
        assert_eq!(fields.allocate("c", FieldType::of::<i64>())?, a);
        let below = cx.launch(make_fields()).await?;
        let made = below.find("made below").unwrap();
        cx.free_field(&below, made)?;
        Ok(fields)
    });
    let fields = outcome.unwrap();
    // What an earlier run has made is the next one's.
    let outcome = runtime.run(async |cx| cx.free_field(&fields, fields.find("b").unwrap()));
    outcome.unwrap();
}

#[test]
fn what_one_thread_has_destroyed_is_destroyed_for_what_others_launch_afterwards() {
    let outcome = runtime().run(async |cx| {
        for _ in 0..200 {
            let cells = cx.region::<Cell>(8)?;
            let (destroyed, seen) = mpsc::channel();
            std::thread::scope(|threads| {
                let (context, named) = (cx.clone(), cells.clone());
                threads.spawn(move || {
                    // It launches without a pause, so that numbers are handed out by both.
                    while seen.try_recv().is_err() {
                        drop(context.launch(total(&named)));
                    }
                    let refused = context.launch(total(&named)).wait();
                    assert!(is_destroyed(refused), "the other thread has told of it");
                });
                let other = cx.region::<Cell>(8).unwrap();
                (0..20).for_each(|_| drop(cx.launch(add(&other, 1))));
                cx.destroy_region(&cells).unwrap();
                destroyed.send(()).unwrap();
            });
        }
        Ok(())
    });
    // Launches just before the deletion, and just after, are not the program's concern here.
    let _ = outcome;
}
