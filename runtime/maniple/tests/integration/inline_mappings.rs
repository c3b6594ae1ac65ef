//! Data that a task looks at by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell, 2>) {
    for point in cells.points() {
        cells.value[point] = 10 * point[0] + point[1];
    }
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> T {
    Runtime::builder().workers(1).build().unwrap().run(program).unwrap()
}

/// Two rows of two, with a gap between them.
fn sparse() -> IndexSpace<2> {
    IndexSpace::from_rects([Rect::new([0, 1], [0, 2]), Rect::new([4, 0], [4, 1])])
}

#[test]
fn values_come_in_row_major_order_without_the_points_that_the_region_lacks() {
    run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(sparse())?;
        cx.launch(number(&cells));
        let mut written = cx.map_write(&cells, Cell::value).await?;
        written[[4, 0]] += 100;
        assert_eq!((written.to_vec(), written.iter().sum()), (vec![1, 2, 140, 41], 184));
        drop(written);
        let read = cx.map_read(&cells, Cell::value).await?;
        assert_eq!((read.to_vec(), read.iter().max()), (vec![1, 2, 140, 41], Some(140)));
        assert_eq!((read[[0, 1]], read[[4, 0]], read.space()), (1, 140, &sparse()));
        Ok(())
    });
}

#[test]
fn a_point_that_the_region_lacks_has_no_value() {
    run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(sparse())?;
        let mut mapping = cx.map_write(&cells, Cell::value).await?;
        assert!(catch_unwind(AssertUnwindSafe(|| mapping[[1, 1]])).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| mapping[[1, 1]] = 7)).is_err());
        assert_eq!(mapping.to_vec(), [0; 4]);
        Ok(())
    });
}

#[test]
fn a_mapping_says_what_it_is() {
    run(async |cx| {
        let cells = cx.region::<Cell>(3)?.named("cells");
        let mapping = cx.map_write(&cells, Cell::value).await?;
        assert_eq!(format!("{mapping:?}"), "WriteMapping(value of region `cells`)");
        drop(mapping);
        let mapping = cx.map_read(&cells, Cell::value).await?;
        assert_eq!(format!("{mapping:?}"), "ReadMapping(value of region `cells`)");
        Ok(())
    });
}

#[derive(Fields)]
struct Count {
    value: i64,
    color: i64,
}

#[task(leaf)]
fn add(#[writes(value, color)] counts: Piece<Count>, what: i64) {
    for point in counts.points() {
        counts.value[point] += what;
        counts.color[point] += what;
    }
}

#[test]
fn a_mapping_takes_its_place_in_the_program_when_it_is_called() {
    let two = Runtime::builder().workers(2).build().unwrap();
    let outcome = two.run(async |cx| {
        let counts = cx.region::<Count>(4)?;
        cx.launch(add(&counts, 1));
        let mapping = cx.map_read(&counts, Count::value);
        // As long as it is not dropped, the data is held.
        let refused = cx.launch(add(&counts, 10)).await;
        assert!(matches!(refused, Err(maniple::Error::MappedByParent { .. })), "{refused:?}");
        assert!(matches!(cx.fill(&counts, Count::value, 5), Err(maniple::Error::MappedByParent { .. })));
        let mapping = mapping.await?;
        assert_eq!(mapping.to_vec(), [1; 4]);
        drop(mapping);
        // The mapping is not awaited: dropped, it lets go of the data.
        drop(cx.map_write(&counts, Count::value));
        cx.launch(add(&counts, 10)).await?;
        Ok(cx.map_read(&counts, Count::value).await?.to_vec())
    });
    assert_eq!(outcome.unwrap(), [11; 4]);
}

#[test]
fn a_mapping_that_is_awaited_late_does_not_see_what_was_launched_after_the_call_elsewhere() {
    let outcome = Runtime::builder().workers(2).build().unwrap().run(async |cx| {
        let counts = cx.region::<Count>(4)?;
        let halves = counts.partition(2).equal()?;
        let mapping = cx.map_read(&halves.piece(0)?, Count::value);
        cx.launch(add(&halves.piece(1)?, 10)).await?;
        let seen = mapping.await?.to_vec();
        Ok((seen, cx.map_read(&counts, Count::value).await?.to_vec()))
    });
    assert_eq!(outcome.unwrap(), (vec![0, 0], vec![0, 0, 10, 10]));
}

#[test]
fn a_partition_that_follows_from_data_takes_its_place_in_the_program_when_it_is_called() {
    let outcome = Runtime::builder().workers(2).build().unwrap().run(async |cx| {
        let counts = cx.region::<Count>(4)?;
        cx.launch(add(&counts, 1));
        let split = cx.partition_by_field(&counts, Count::color, 3);
        cx.launch(add(&counts, 1)).await?;
        let split = split.await?;
        Ok(split.pieces().map(|piece| piece.volume()).collect::<Vec<_>>())
    });
    assert_eq!(outcome.unwrap(), [0, 4, 0]);
}
