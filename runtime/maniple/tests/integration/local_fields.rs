//! Local fields: temporary values beside those of a region, whose ids are used again, and which end with their task.

use maniple::prelude::*;
use maniple::{AnySpace, Error, Field, FieldId, FieldType, IndexSpace, LocalField, Rect, RegionError};

#[derive(Fields)]
struct Cell {
    value: i64,
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

const STEPS: usize = 60;

/// Doubles all values by way of two temporary fields.
fn step(cx: &Context, cells: &Region<Cell>, number: usize) -> Result<[FieldId; 2]> {
    let one: LocalField<Cell, i64> = cx.local_field(cells, "temporary")?;
    let other: LocalField<Cell, i64> = cx.local_field(cells, "temporary")?;
    cx.copy(cells.field(Cell::value), cells.field(*one));
    cx.copy(cells.field(*one), cells.field(*other));
    cx.contribute(Sum, cells.field(*other), cells.field(Cell::value));
    let ids = [one.id(), other.id()];
    // In one order or the other.
    if number.is_multiple_of(2) {
        drop(one);
        drop(other);
    }
    Ok(ids)
}

#[test]
fn a_loop_with_local_fields_is_replayed() {
    for (marked, traced) in [(true, true), (false, true), (true, false)] {
        let runtime = Runtime::builder().workers(2).tracing(traced).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            cx.fill(&cells, Cell::value, 1)?;
            let mut ids = Vec::new();
            for number in 0..STEPS {
                ids.push(match marked {
                    true => cx.trace("step", |cx| step(cx, &cells, number))?,
                    false => step(cx, &cells, number)?,
                });
            }
            ids.dedup();
            assert_eq!(ids.len(), 1);
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
        });
        assert_eq!(outcome.unwrap(), [1 << STEPS; 8]);
        let statistics = runtime.statistics();
        assert!(!traced || statistics.replays > 20, "marked {marked}: {statistics:?}");
    }
}

#[test]
fn a_local_field_is_zero_whatever_an_earlier_one_held() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let mut first = None;
        for turn in 0..5 {
            let field: LocalField<Cell, i64> = cx.local_field(&cells, "temporary")?;
            assert_eq!(*first.get_or_insert(field.id()), field.id());
            assert_eq!(cx.map_read(&cells, *field).await?.to_vec(), [0; 4]);
            cx.fill(&cells, *field, turn)?;
            // Of another type or name it is another one.
            let other: LocalField<Cell, f64> = cx.local_field(&cells, "temporary")?;
            let named: LocalField<Cell, i64> = cx.local_field(&cells, "other")?;
            assert!(other.id() != field.id() && named.id() != field.id() && other.id() != named.id());
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn regions_that_share_fields_have_no_old_values_in_a_new_one() {
    let outcome = runtime().run(async |cx| {
        let rows = cx.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..4))));
        let fields = cx.field_space(2);
        let [one, other] = [cx.logical_region(&rows, &fields)?, cx.logical_region(&rows, &fields)?]
            .map(Region::<()>::try_from_logical);
        let (one, other) = (one?, other?);
        for _ in 0..4 {
            let field: LocalField<(), i64> = cx.local_field(&one, "temporary")?;
            assert_eq!(field.id(), FieldId(0));
            assert_eq!(cx.map_read(&other, *field).await?.to_vec(), [0; 4]);
            cx.fill(&other, *field, 7)?;
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Returns a region with a local field, and the field.
#[task]
async fn leak(cx: &Context) -> Result<(Region<Cell>, u32)> {
    let cells = cx.region::<Cell>(4)?;
    let field: LocalField<Cell, i64> = cx.local_field(&cells, "temporary")?;
    cx.fill(&cells, *field, 7)?;
    let id = field.id();
    std::mem::forget(field);
    Ok((cells, id.0))
}

#[test]
fn a_local_field_ends_with_its_task() {
    let outcome = runtime().run(async |cx| {
        let (cells, id) = cx.launch(leak()).await?;
        assert_eq!(cells.logical().fields().get(FieldId(id)), None);
        let field = Field::<Cell, i64>::new(FieldId(id));
        let refused = cx.fill(&cells, field, 1);
        assert!(matches!(refused, Err(Error::Region(RegionError::NoSuchField { .. }))), "{refused:?}");
        // The id is free for another one.
        assert_eq!(cells.logical().fields().allocate("new", FieldType::of::<i64>())?, FieldId(id));
        assert_eq!(cx.map_read(&cells, field).await?.to_vec(), [0; 4]);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_becomes_of_a_local_field_before_it_is_dropped_is_no_matter() {
    let mut left = None;
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let freed: LocalField<Cell, i64> = cx.local_field(&cells, "freed")?;
        cx.free_field(cells.logical().fields(), freed.id())?;
        // It has another's id by now, which stays.
        let own = cells.logical().fields().allocate("own", FieldType::of::<i64>())?;
        assert_eq!(own, freed.id());
        let own = Field::<Cell, i64>::new(own);
        cx.fill(&cells, own, 3)?;
        drop(freed);
        assert_eq!(cx.map_read(&cells, own).await?.to_vec(), [3; 4]);
        let held: LocalField<Cell, i64> = cx.local_field(&cells, "held")?;
        let (id, mapping) = (held.id(), cx.map_write(&cells, *held).await?);
        drop(held);
        assert_ne!(cx.local_field::<i64, _, _>(&cells, "held")?.id(), id);
        drop(mapping);
        let gone = cx.region::<Cell>(4)?;
        let lost: LocalField<Cell, i64> = cx.local_field(&gone, "lost")?;
        cx.destroy_region(&gone)?;
        assert!(cx.local_field::<i64, _, _>(&gone, "none").is_err());
        drop(lost);
        left = Some(cx.local_field::<i64, _, _>(&cells, "left")?);
        Ok(())
    });
    outcome.unwrap();
    drop(left);
}

/// Wants a field beside a region that another task has made.
#[task]
async fn beside(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<bool> {
    Ok(matches!(cx.local_field::<i64, _, _>(&cells, "temporary"), Err(Error::NotTheMaker { .. })))
}

#[test]
fn only_the_maker_of_a_region_gets_local_fields_of_it() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(beside(&cells)).await
    });
    assert!(outcome.unwrap());
}

#[test]
fn a_region_has_room_for_so_many_fields_and_no_more() {
    let outcome = runtime().run(async |cx| {
        let rows = cx.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..4))));
        let cells = Region::<()>::try_from_logical(cx.logical_region(&rows, &cx.field_space(1))?)?;
        for _ in 0..3 {
            let _one: LocalField<(), i64> = cx.local_field(&cells, "one")?;
            let full = cx.local_field::<i64, _, _>(&cells, "two");
            assert!(matches!(full, Err(Error::Region(RegionError::TooManyFields { .. }))), "{full:?}");
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn local_fields_of_ever_other_names_are_freed() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        for number in 0..2_000_i64 {
            let field: LocalField<Cell, i64> = cx.local_field(&cells, &format!("temporary {number}"))?;
            cx.contribute(Sum, cells.field(*field), cells.field(Cell::value));
            cx.fill(&cells, *field, 1_000_000)?;
        }
        assert!(cells.logical().fields().fields().len() < 100);
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
    });
    assert_eq!(outcome.unwrap(), [0; 4], "each is zero at first");
}

#[test]
fn a_local_field_that_outlives_its_region_gives_its_id_back() {
    let outcome = runtime().run(async |cx| {
        let fields = cx.field_space(3);
        fields.allocate("value", FieldType::of::<i64>())?;
        let rows = cx.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..4))));
        for _ in 0..10 {
            let region = Region::<(), 1>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
            let field: LocalField<(), i64> = cx.local_field(&region, "temporary")?;
            cx.destroy_region(&region)?;
            drop(field);
        }
        Ok(fields.fields().len())
    });
    assert_eq!(outcome.unwrap(), 1);
}
