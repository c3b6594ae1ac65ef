//! Data that a task looks at by itself.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

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
