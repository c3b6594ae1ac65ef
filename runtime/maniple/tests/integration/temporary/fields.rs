//! Fields that a loop allocates and frees in each iteration: those of the next take over their ids and begin as zero,
//! so that the loop is replayed.

use maniple::prelude::*;
use maniple::{AnySpace, Error, Field, FieldId, FieldSpace, FieldType, IndexSpace, Rect, RegionError};

use super::{Cell, STEPS, everywhere, runtime, values};

fn allocate<F>(fields: &FieldSpace, name: &str) -> Result<Field<F, i64>> {
    Ok(Field::new(fields.allocate(name, FieldType::of::<i64>())?))
}

#[test]
fn a_loop_that_allocates_and_frees_fields_is_replayed() {
    let outcome = everywhere(async |cx, step| {
        let cells = cx.region::<Cell>(24)?;
        let fields = cells.logical().fields();
        cx.fill(&cells, Cell::value, 1)?;
        for number in 0..STEPS {
            step(cx, &mut |cx| {
                let (one, other) = (allocate(fields, "one")?, allocate(fields, "other")?);
                // What fields with these ids held in an earlier step is gone.
                cx.contribute(Sum, cells.field(one), cells.field(Cell::value));
                cx.contribute(Sum, cells.field(other), cells.field(Cell::value));
                cx.copy(cells.field(Cell::value), cells.field(one));
                cx.copy(cells.field(one), cells.field(other));
                cx.contribute(Sum, cells.field(other), cells.field(Cell::value));
                // In one order or the other.
                let ids = if number.is_multiple_of(2) { [one, other] } else { [other, one] };
                ids.into_iter().try_for_each(|field| cx.free_field(fields, field.id()))
            })?;
        }
        values(cx, &cells).await
    });
    assert_eq!(outcome, [1 << STEPS; 24]);
}

#[test]
fn a_new_field_begins_as_zero_in_all_regions_with_the_same_fields() {
    let outcome = everywhere(async |cx, step| {
        let rows = cx.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..6))));
        let fields = cx.field_space(2);
        let sum: Field<(), i64> = allocate(&fields, "sum")?;
        let mut regions = Vec::new();
        for _ in 0..3 {
            regions.push(Region::<()>::try_from_logical(cx.logical_region(&rows, &fields)?)?);
        }
        for _ in 0..STEPS {
            step(cx, &mut |cx| {
                let temporary = allocate(&fields, "temporary")?;
                for (number, region) in (1..).zip(&regions) {
                    cx.contribute(Sum, region.field(temporary), region.field(sum));
                    cx.fill(region, temporary, number)?;
                    cx.contribute(Sum, region.field(temporary), region.field(sum));
                }
                cx.free_field(&fields, temporary.id())
            })?;
        }
        let mut seen = Vec::new();
        for region in &regions {
            seen.extend(cx.map_read(region, sum).await?.to_vec());
        }
        Ok(seen)
    });
    let steps = STEPS as i64;
    assert_eq!(outcome, [[steps; 6], [2 * steps; 6], [3 * steps; 6]].concat());
}

#[test]
fn a_strict_trace_may_allocate_and_free_fields() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let fields = cells.logical().fields();
        cx.fill(&cells, Cell::value, 1)?;
        for _ in 0..STEPS {
            cx.strict_trace("step", |cx| {
                let one = allocate(fields, "one")?;
                cx.copy(cells.field(Cell::value), cells.field(one));
                cx.contribute(Sum, cells.field(one), cells.field(Cell::value));
                cx.free_field(fields, one.id())
            })??;
        }
        values(cx, &cells).await
    });
    assert_eq!(outcome.unwrap(), [1 << STEPS; 8]);
    assert!(runtime.statistics().replays > 20, "{:?}", runtime.statistics());
}

#[test]
fn a_launch_on_a_freed_field_is_refused_where_a_replay_expects_its_successor() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let fields = cells.logical().fields();
        for turn in 0..40 {
            let seen = cx.trace("turn", |cx| -> Result<_> {
                let new: Field<Cell, i64> = match turn {
                    35 => Field::new(FieldId(1)),
                    _ => allocate(fields, "new")?,
                };
                assert_eq!(new.id(), FieldId(1));
                let seen = cx.copy(cells.field(Cell::value), cells.field(new));
                if turn != 35 {
                    cx.free_field(fields, new.id())?;
                }
                Ok(seen)
            })?;
            match seen.await {
                Err(Error::Region(RegionError::NoSuchField { .. })) if turn == 35 => {}
                other => assert!(turn != 35 && other.is_ok(), "turn {turn}: {other:?}"),
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
