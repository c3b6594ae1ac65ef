//! Names that do not fit: regions of another runtime, spaces of another tree, fields of another type.

use maniple::prelude::*;
use maniple::{FieldId, RegionError};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[derive(Fields)]
struct Flag {
    flag: bool,
    byte: u8,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.value[point] += 1;
    }
}

fn runtime() -> Runtime {
    Runtime::builder().workers(1).build().unwrap()
}

fn is_of_another_runtime<T>(outcome: Result<T>) -> bool {
    matches!(outcome.err(), Some(Error::Region(RegionError::OtherRuntime { .. })))
}

fn is_not_in_the_tree<T>(outcome: Result<T>) -> bool {
    matches!(outcome.err(), Some(Error::Region(RegionError::NotInTree { .. })))
}

#[test]
fn a_region_of_another_runtime_is_refused_everywhere() {
    let (here, there) = (runtime(), runtime());
    let made = there.run(async |cx| {
        let foreign = cx.region::<Cell>(1000)?;
        let pieces = foreign.partition(4).equal()?;
        Ok((foreign, pieces))
    });
    let (foreign, pieces) = made.unwrap();
    let outcome = here.run(async |cx| {
        // The same numbers in both runtimes.
        let own = cx.region::<Cell>(10)?;
        assert!(is_of_another_runtime(cx.launch(add(&foreign)).await));
        assert!(is_of_another_runtime(cx.index_launch(4, add(&pieces)).await));
        assert!(is_of_another_runtime(cx.map_write(&foreign, Cell::value).await));
        assert!(is_of_another_runtime(cx.fill(&foreign, Cell::value, 1)));
        assert!(is_of_another_runtime(cx.region_like::<Cell, _, 1>(&foreign)));
        assert!(is_of_another_runtime(cx.destroy_region(&foreign)));
        let space = foreign.logical().space();
        assert!(is_of_another_runtime(cx.index_partition(space, 1, &[space.space().clone()])));
        cx.launch(add(&own)).await
    });
    outcome.unwrap();
}

#[test]
fn a_region_over_a_space_of_another_tree_is_refused() {
    let outcome = runtime().run(async |cx| {
        let (small, large) = (cx.region::<Cell>(10)?, cx.region::<Cell>(1000)?);
        let mixed = small.logical().with_space(large.logical().space().clone());
        let mixed: Region<Cell> = Region::try_from_logical(mixed)?;
        let pieces = mixed.partition(2).equal()?;
        assert!(is_not_in_the_tree(cx.launch(add(&mixed)).await));
        assert!(is_not_in_the_tree(cx.index_launch(2, add(&pieces)).await));
        assert!(is_not_in_the_tree(cx.map_write(&mixed, Cell::value).await));
        assert!(is_not_in_the_tree(cx.fill(&mixed, Cell::value, 1)));
        Ok(())
    });
    // The refused launches were looked at.
    outcome.unwrap();
}

#[test]
fn a_field_is_filled_and_copied_as_the_type_that_it_holds() {
    let outcome = runtime().run(async |cx| {
        let flags = cx.region::<Flag>(8)?;
        let as_byte = Field::<Flag, u8>::new(FieldId(0));
        assert!(matches!(cx.fill_field(&flags, FieldId(0), 7_u8), Err(Error::Launch { .. })));
        assert!(matches!(cx.fill(&flags, as_byte, 7), Err(Error::Launch { .. })));
        cx.fill(&flags, Flag::byte, 7)?;
        assert!(matches!(cx.copy(flags.field(Flag::byte), flags.field(as_byte)).await, Err(Error::Launch { .. })));
        let mapping = cx.map_read(&flags, Flag::flag).await?;
        let any = (0..8).any(|point| mapping.values()[point]);
        drop(mapping);
        Ok(any)
    });
    assert!(!outcome.unwrap());
}

#[test]
fn messages_call_a_region_by_its_name_or_by_what_its_rows_are() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        let number = cells.logical().tree().id().0;
        let halves = cells.partition(2).equal()?;
        let partition = halves.logical().partitioning().id().0;
        assert_eq!(format!("{cells:?}"), format!("Cell region {number}"));
        assert_eq!(format!("{halves:?}"), format!("partition {partition} of Cell region {number}"));
        let piece = format!("piece (1) of partition {partition} of Cell region {number}");
        assert_eq!(format!("{:?}", halves.piece(1)?), piece);
        let error = halves.piece(2).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{halves:?} has no color (2)")), "{error}");
        let error = cells.partition_into(1.into(), vec![Rect::from(0..11).into()]).unwrap_err().to_string();
        assert!(error.contains(&format!("outside Cell region {number}")), "{error}");

        let thirds = cells.partition(3).equal()?.named("thirds");
        assert_eq!(
            format!("{:?}", thirds.piece(1)?),
            format!("piece (1) of partition `thirds` of Cell region {number}")
        );

        let flags = cx.region::<Flag>(1)?.named("flags");
        assert_eq!(format!("{flags:?}"), "region `flags`");
        cx.destroy_region(&flags)?;
        let error = cx.fill(&flags, Flag::byte, 1).unwrap_err().to_string();
        assert!(error.starts_with("region `flags` has been destroyed"), "{error}");

        let untyped = cx.logical_region(&cx.index_space(&Rect::from(0..1).into()), &cx.field_space(1))?;
        assert_eq!(untyped.to_string(), format!("region {}", untyped.tree().id().0));
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn regions_and_partitions_are_destroyed_by_any_of_their_names() {
    let outcome = runtime().run(async |cx| {
        let (cells, others) = (cx.region::<Cell>(10)?, cx.region::<Cell>(10)?);
        let (halves, thirds) = (cells.partition(2).equal()?, cells.partition(3).equal()?);
        cx.destroy_partition(&halves)?;
        cx.destroy_partition(thirds.logical().partitioning())?;
        cx.destroy_region(&cells)?;
        cx.destroy_region(others.logical())?;
        let is_destroyed = |outcome: Result<()>| matches!(outcome, Err(Error::Region(RegionError::Destroyed { .. })));
        assert!(is_destroyed(cx.destroy_partition(&thirds)) && is_destroyed(cx.destroy_partition(halves.logical())));
        assert!(is_destroyed(cx.fill(&cells, Cell::value, 1)) && is_destroyed(cx.fill(&others, Cell::value, 1)));
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_partition_has_no_more_pieces_than_anybody_could_mean() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        let too_many = |outcome: Result<Partition<Cell>>| matches!(outcome, Err(Error::Partition(_)));
        assert!(too_many(cells.partition(usize::MAX).equal()) && too_many(cells.partition(1 << 27).equal()));
        assert!(too_many(cells.partition(usize::MAX).by(|_| Rect::<1>::from(0..1).into())));
        assert!(too_many(cells.partition(usize::MAX).by_coloring(&[(1, (0..1).into())])));
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn destroyed_index_spaces_and_field_spaces_make_nothing_new_and_disturb_nothing_launched_before() {
    let outcome = runtime().run(async |cx| {
        let is_destroyed = |error: Error| matches!(error, Error::Region(RegionError::Destroyed { .. }));
        let cells = cx.region::<Cell>(10)?;
        let halves = cells.partition(2).equal()?;
        let earlier = cx.index_launch(2, add(&halves));
        let piece = halves.piece(1)?;
        assert!(cx.destroy_index_space(piece.logical().space()).is_err(), "a piece goes with its partition");
        let fields = cells.logical().fields().clone();
        cx.destroy_field_space(&fields)?;
        cx.launch(add(&cells)).await?;
        assert!(is_destroyed(cx.destroy_field_space(&fields).unwrap_err()));
        assert!(is_destroyed(cx.logical_region(cells.logical().space(), &fields).unwrap_err()));
        // A task that was launched before may want one.
        fields.allocate("more", maniple::FieldType::of::<i64>())?;
        assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), [2; 10]);

        cx.destroy_index_space(cells.logical().space())?;
        earlier.all().await?;
        assert!(is_destroyed(cx.destroy_index_space(cells.logical().space()).unwrap_err()));
        assert!(is_destroyed(cx.launch(add(&cells)).await.unwrap_err()));
        assert!(is_destroyed(cx.index_launch(2, add(&halves)).all().await.unwrap_err()));
        let thirds = cells.partition(3).equal()?;
        assert!(is_destroyed(cx.index_launch(3, add(&thirds)).all().await.unwrap_err()));
        Ok(())
    });
    outcome.unwrap();
    let alone = runtime().run_task(alone());
    assert_eq!(alone.unwrap(), 7);
}

#[task(leaf)]
fn alone() -> i64 {
    7
}
