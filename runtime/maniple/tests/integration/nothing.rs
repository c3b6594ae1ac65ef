//! Regions without rows, pieces without points, launches without points: all operations take them.

use maniple::prelude::*;
use maniple::{IndexSpace, Rect};

#[derive(Fields)]
struct Cell {
    value: i64,
    color: i64,
    next: Ptr<Cell>,
}

#[task(leaf)]
fn change(#[writes(value)] cells: Piece<Cell>) -> u64 {
    cells.points().for_each(|point| cells.value[point] += 1);
    cells.volume()
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value.fold(point, 1));
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> T {
    Runtime::builder().workers(2).build().unwrap().run(program).unwrap()
}

/// The volumes of the pieces.
fn volumes<const D: usize>(partition: Result<Partition<Cell, D>>) -> Result<Vec<u64>> {
    Ok(partition?.pieces().map(IndexSpace::volume).collect())
}

#[test]
fn every_partition_of_a_region_without_rows_has_pieces_without_points() {
    run(async |cx| {
        let none = cx.region::<Cell>(0)?;
        assert_eq!(volumes(none.partition(2).equal())?, [0, 0]);
        assert_eq!(volumes(none.partition(2).weighted(&[1, 3]))?, [0, 0]);
        assert_eq!(volumes(none.partition(2).by(|_| Rect::from(0..9).into()))?, [0, 0]);
        assert_eq!(volumes(none.partition(2).by_coloring(&[]))?, [0, 0]);
        assert_eq!(volumes(none.blocks([4]))?, [0]);
        assert_eq!(volumes(none.tiles([4], [2]))?, [0]);
        let halves = none.partition(2).equal()?;
        assert_eq!(volumes(none.around(&halves, [3]))?, [0, 0]);
        assert_eq!(volumes(none.partition(2).within(&halves))?, [0, 0]);
        assert_eq!(none.part(IndexSpace::empty())?.volume(), 0);
        let plane = cx.region_over::<Cell, 2>(Rect::<2>::EMPTY)?;
        let blocks = plane.tiles([4, 5], [1, 0])?;
        assert_eq!((blocks.colors().volume(), blocks.piece([0, 0])?.volume()), (1, 0));
        Ok(())
    });
}

#[test]
fn partitions_by_the_data_of_a_region_without_rows_have_pieces_without_points() {
    run(async |cx| {
        let (none, some) = (cx.region::<Cell>(0)?, cx.region::<Cell>(6)?);
        assert_eq!(volumes(cx.partition_by_field(&none, Cell::color, 3).await)?, [0, 0, 0]);
        let (halves, thirds) = (none.partition(2).equal()?, some.partition(3).equal()?);
        assert_eq!(volumes(cx.image(&some, &halves, Cell::next).await)?, [0, 0]);
        assert_eq!(volumes(cx.preimage(&none, Cell::next, &thirds).await)?, [0, 0, 0]);
        Ok(())
    });
}

#[test]
fn parameters_without_a_meaning_are_refused_with_and_without_rows() {
    run(async |cx| {
        for rows in [0, 6] {
            let region = cx.region::<Cell>(rows)?;
            assert!(region.partition(0).equal().is_err());
            assert!(region.partition(0).weighted(&[]).is_err());
            assert!(region.partition(2).weighted(&[0, 0]).is_err());
            assert!(region.partition(0).by(|_| IndexSpace::empty()).is_err());
            assert!(region.partition(0).by_coloring(&[]).is_err());
            assert!(region.partition(2).by_coloring(&[(2, Rect::EMPTY)]).is_err());
            assert!(region.blocks([0]).is_err() && region.tiles([2], [-1]).is_err());
        }
        Ok(())
    });
}

#[test]
fn launches_fills_copies_and_mappings_take_regions_without_rows() {
    run(async |cx| {
        let (none, other) = (cx.region::<Cell>(0)?, cx.region::<Cell>(0)?);
        let blocks = none.blocks([4])?;
        cx.fill(&none, Cell::value, 3)?;
        for _ in 0..3 {
            assert_eq!(cx.launch(change(&none)).await?, 0);
            assert_eq!(cx.index_launch(blocks.colors(), change(&blocks)).all().await?, [0]);
            cx.index_launch(blocks.colors(), add(&blocks)).await?;
            cx.index_launch(0, change(&blocks)).await?;
            cx.index_launch(5, add(&none)).await?;
        }
        cx.copy(none.field(Cell::value), other.field(Cell::color)).await?;
        cx.gather(other.field(Cell::value), none.field(Cell::next), none.field(Cell::color)).await?;
        drop(cx.map_read(&none, Cell::value).await?);
        Ok(())
    });
}
