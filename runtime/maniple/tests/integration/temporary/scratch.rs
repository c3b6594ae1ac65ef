//! Scratch regions: temporary data whose names and instances are used again, so that loops with it are replayed.

use std::sync::{Arc, Condvar, Mutex};

use maniple::prelude::*;
use maniple::{Error, Field, FieldId, FieldSpace, FieldType, IndexSpaceNode, Rect};

use super::{
    Cell, Other, STEPS, add_by_way_of, double, everywhere, known_late, runtime, small, tiled, total, total_of_child,
    tree, values,
};

#[test]
fn a_loop_with_temporary_regions_is_replayed() {
    let outcome = everywhere(async |cx, step| {
        let (cells, tiles) = tiled(cx)?;
        let mut seen = Vec::new();
        for number in 0..STEPS {
            step(cx, &mut |cx| {
                let (one, other) = (cx.scratch_like::<Cell, _, _>(&cells)?, cx.scratch_like::<Cell, _, _>(&cells)?);
                let (ones, others) = (one.split_like(&tiles)?, other.split_like(&tiles)?);
                // What an earlier step has left there is gone.
                seen.push(cx.launch(total(&other)));
                add_by_way_of(cx, [&ones, &others], &tiles);
                // In one order or the other.
                if number.is_multiple_of(2) {
                    drop(one);
                    drop(other);
                }
                Ok(())
            })?;
        }
        for zero in seen {
            assert_eq!(zero.await?, 0);
        }
        values(cx, &cells).await
    });
    assert_eq!(outcome, [(0..STEPS).fold(3, |value: i64, _| (value + 4 * value) % 1009); 24]);
}

#[test]
fn a_scratch_region_takes_over_the_name_of_one_that_was_dropped_with_the_same_rows_and_fields() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let first = cx.scratch_like::<Cell, _, _>(&cells)?;
        let name = tree(&first);
        let meanwhile = cx.scratch_like::<Cell, _, _>(&cells)?;
        assert_ne!(tree(&meanwhile), name);
        drop(first);
        assert_ne!(tree(&cx.scratch_like::<Other, _, _>(&cells)?), name);
        assert_ne!(tree(&cx.scratch::<Cell>(8)?), name);
        assert_eq!(tree(&cx.scratch_like::<Cell, _, _>(&cells)?), name);
        // Their own rows, if these have the same points.
        let name = tree(&cx.scratch_over::<Cell, 2>(Rect::new([0, 0], [3, 4]))?);
        assert_eq!(tree(&cx.scratch_over::<Cell, 2>(Rect::new([0, 0], [3, 4]))?), name);
        assert_ne!(tree(&cx.scratch_over::<Cell, 2>(Rect::new([0, 0], [4, 3]))?), name);
        assert_ne!(tree(&cx.scratch::<Cell>(0)?), name);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn fields_known_only_at_run_time_may_be_freed_in_between() {
    let outcome = runtime().run(async |cx| {
        let (rows, fields) = known_late(cx, 4);
        let (_, second) =
            (fields.allocate("a", FieldType::of::<i64>())?, fields.allocate("b", FieldType::of::<i64>())?);
        let name = tree(&cx.scratch_region::<1>(&rows, &fields)?);
        assert_eq!(tree(&cx.scratch_region::<1>(&rows, &fields)?), name);
        cx.free_field(&fields, second)?;
        assert_ne!(tree(&cx.scratch_region::<1>(&rows, &fields)?), name);
        assert!(matches!(cx.scratch_region::<2>(&rows, &fields), Err(Error::Launch { .. })));
        cx.destroy_index_space(&rows)?;
        assert!(matches!(cx.scratch_region::<1>(&rows, &fields), Err(Error::Region(_))));
        Ok(())
    });
    outcome.unwrap();
}

/// The spaces that [`uses_a_freed_field`] works on, and whether its launcher has freed the field.
static SPACES: Mutex<Option<(IndexSpaceNode, Arc<FieldSpace>)>> = Mutex::new(None);
static FREED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// It was launched before its launcher frees the field, and so has it all the time.
#[task]
async fn uses_a_freed_field(cx: &Context, field: u32) -> Result<[i64; 2]> {
    let (rows, fields) = SPACES.lock().unwrap().clone().expect("it is set before");
    let field = Field::<(), i64>::new(FieldId(field));
    let first = cx.scratch_region::<1>(&rows, &fields)?;
    cx.fill(&first, field, 7)?;
    let before = cx.map_read(&first, field).await?.to_vec()[0];
    drop(FREED.1.wait_while(FREED.0.lock().unwrap(), |freed| !*freed).unwrap());
    drop(first);
    let second = cx.scratch_region::<1>(&rows, &fields)?;
    Ok([before, cx.map_read(&second, field).await?.to_vec()[0]])
}

#[test]
fn a_field_that_was_freed_after_a_task_is_given_up_with_its_scratch_regions_all_the_same() {
    let outcome = runtime().run(async |cx| {
        let (rows, fields) = known_late(cx, 4);
        let field = fields.allocate("a", FieldType::of::<i64>())?;
        *SPACES.lock().unwrap() = Some((rows, Arc::clone(&fields)));
        let seen = cx.launch(uses_a_freed_field(field.0));
        cx.free_field(&fields, field)?;
        *FREED.0.lock().unwrap() = true;
        FREED.1.notify_all();
        assert_eq!(seen.await?, [7, 0]);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn tasks_launched_before_a_scratch_region_is_dropped_are_not_disturbed() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.fill(&cells, Cell::value, 5)?;
        let mut seen = Vec::new();
        for _ in 0..100 {
            let scratch = cx.scratch_like::<Cell, _, _>(&cells)?;
            cx.launch(double(&scratch, &cells));
            seen.push(cx.launch(total_of_child(&scratch)));
        }
        for total in seen {
            assert_eq!(total.await?, 80);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Gives away what should end with it.
#[task]
async fn leak(cx: &Context) -> Result<Region<Cell>> {
    let scratch = cx.scratch::<Cell>(8)?;
    cx.fill(&scratch, Cell::value, 1)?;
    let region = Region::clone(&scratch);
    std::mem::forget(scratch);
    Ok(region)
}

#[test]
fn a_scratch_region_ends_with_its_task_whoever_has_it() {
    let outcome = runtime().run(async |cx| {
        let leaked = cx.launch(leak()).await?;
        let refused = cx.launch(total(&leaked)).await;
        assert!(matches!(refused, Err(Error::PrivilegeNotHeld { .. })), "{refused:?}");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_scratch_region_that_is_destroyed_or_mapped_when_it_is_dropped_is_not_used_again() {
    let outcome = runtime().run(async |cx| {
        let destroyed = cx.scratch::<Cell>(8)?;
        let name = tree(&destroyed);
        cx.destroy_region(&destroyed)?;
        drop(destroyed);
        assert_ne!(tree(&cx.scratch::<Cell>(8)?), name);
        let held = cx.scratch::<Cell>(8)?;
        let name = tree(&held);
        let mapping = cx.map_write(&held, Cell::value).await?;
        drop(held);
        assert_ne!(tree(&cx.scratch::<Cell>(8)?), name);
        assert_eq!(mapping.space().volume(), 8);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_scratch_region_that_outlives_its_program_is_dropped_in_peace() {
    let mut left = None;
    let runtime = runtime();
    runtime
        .run(async |cx| {
            left = Some(cx.scratch::<Cell>(8)?);
            Ok(())
        })
        .unwrap();
    drop(runtime);
    drop(left);
}

#[test]
fn memory_of_scratch_regions_that_were_dropped_goes_to_others() {
    let outcome = Runtime::builder().machine(small()).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(1000)?;
        cx.fill(&cells, Cell::value, 1)?;
        for step in 0..20 {
            // Of other rows each time.
            let scratch = cx.scratch_over::<Cell, 1>(Rect::from(0..1000 - step))?;
            let part = cells.part(Rect::from(0..1000 - step))?;
            cx.launch(double(&scratch, &part));
            assert_eq!(cx.launch(total(&scratch)).await?, 2 * (1000 - step));
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn scratch_regions_of_ever_other_sizes_are_destroyed() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        for rows in 1..2_000 {
            let scratch = cx.scratch::<Cell>(rows)?;
            cx.launch(total(&scratch));
            if rows.is_multiple_of(64) {
                cx.execution_fence().await?;
            }
        }
        cx.execution_fence().await?;
        Ok(runtime.memories().iter().map(|memory| memory.used).sum::<u64>())
    });
    // Those of the last few: all together would be 16 MB.
    let left = outcome.unwrap();
    assert!(left < 2 << 20, "{left} bytes are left");
}
