//! Rows that tasks have made, as many as they found.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple::prelude::*;
use maniple::record::check;
use maniple::{AttachmentError, Machine};

#[derive(Fields)]
struct Found {
    at: i64,
    what: f32,
}

#[derive(Fields)]
struct Cell {
    value: i64,
}

/// As many rows as the point's number says.
#[task(leaf)]
fn find(#[point] point: Point<1>, sizes: Arc<Vec<usize>>) -> Output<Found> {
    let number = point[0] as usize;
    (0..sizes[number]).map(|row| Found { at: (1000 * number + row) as i64, what: row as f32 }).collect()
}

#[task(leaf)]
fn sum(#[reads(at)] found: Piece<Found>) -> i64 {
    found.points().map(|point| found.at[point]).sum()
}

/// The values of the rows of all points, in order.
fn model(sizes: &[usize]) -> Vec<i64> {
    let rows = sizes.iter().enumerate();
    rows.flat_map(|(number, &size)| (0..size).map(move |row| (1000 * number + row) as i64)).collect()
}

#[test]
fn the_pieces_of_the_region_are_the_rows_of_the_points_in_their_order_without_a_copy() {
    for sizes in [vec![0], vec![1], vec![3, 0, 5, 1], vec![0, 0, 0], vec![0, 7], vec![100; 20], vec![1_000_000, 2]] {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let sizes = Arc::new(sizes.clone());
            let (found, pieces) = cx.collect(cx.index_launch(sizes.len(), find(Arc::clone(&sizes)))).await?;
            assert_eq!(pieces.pieces().map(|piece| piece.volume() as usize).collect::<Vec<_>>(), *sizes);
            assert!(pieces.is_disjoint() && pieces.is_complete());
            let sums = cx.index_launch(sizes.len(), sum(&pieces)).all().await?;
            let expected = sizes.iter().enumerate().map(|(number, &size)| {
                let (number, size) = (number as i64, size as i64);
                1000 * number * size + size * (size - 1).max(0) / 2
            });
            assert_eq!(sums, expected.collect::<Vec<_>>());
            let copied = runtime.statistics().bytes_copied;
            Ok((copied, cx.map_read(&found, Found::at).await?.to_vec()))
        });
        let (copied, rows) = outcome.unwrap();
        assert_eq!((copied, rows), (0, model(&sizes)));
    }
}

#[test]
fn points_may_be_of_several_dimensions() {
    #[task(leaf)]
    fn find_in_plane(#[point] point: Point<2>) -> Output<Found> {
        (0..point[0] + point[1]).map(|_| Found { at: 10 * point[0] + point[1], what: 0.0 }).collect()
    }
    Runtime::builder()
        .workers(2)
        .build()
        .unwrap()
        .run(async |cx| {
            let points = Rect::<2>::new([0, 1], [1, 2]);
            let (found, pieces) = cx.collect(cx.index_launch(points, find_in_plane())).await?;
            assert_eq!(pieces.piece([1, 1])?.bounds(), Rect::from(3..5));
            let rows = cx.map_read(&found, Found::at).await?.to_vec();
            assert_eq!(rows, [1, 2, 2, 11, 11, 12, 12, 12]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn whole_columns_are_adopted_as_they_are_and_the_others_are_zero() {
    static ADDRESS: AtomicUsize = AtomicUsize::new(0);
    #[task(leaf)]
    fn adopt(size: usize) -> Result<Output<Found>> {
        let mut output = Output::new();
        let column: Vec<i64> = (0..size as i64).collect();
        ADDRESS.store(column.as_ptr().addr(), Ordering::SeqCst);
        output.adopt(Found::at, column)?;
        assert!(output.adopt(Field::<Found, u8>::new(Found::what.id()), vec![1]).is_err());
        Ok(output)
    }
    #[task(leaf)]
    fn where_it_is(#[reads(at, what)] found: Piece<Found>) -> (usize, f32) {
        (std::ptr::from_ref(&found.at[0]).addr(), found.what[0])
    }
    Runtime::builder()
        .workers(1)
        .build()
        .unwrap()
        .run(async |cx| {
            let (found, pieces) = cx.collect(cx.index_launch(1, adopt(50))).await?;
            assert_eq!(cx.launch(where_it_is(&pieces.piece(0)?)).await?, (ADDRESS.load(Ordering::SeqCst), 0.0));
            assert_eq!(cx.map_read(&found, Found::at).await?.to_vec(), (0..50).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
}

#[test]
fn columns_of_different_lengths_are_refused_by_name() {
    #[task(leaf)]
    fn ragged(#[point] point: Point<1>) -> Result<Output<Found>> {
        let mut output = Output::new();
        output.adopt(Found::at, vec![1, 2, 3])?;
        output.adopt(Found::what, vec![1.0; 2 + point[0] as usize])?;
        Ok(output)
    }
    let outcome =
        Runtime::builder().workers(1).build().unwrap().run(async |cx| cx.collect(cx.index_launch(2, ragged())).await);
    let Err(Error::Attachment(problem @ AttachmentError::Ragged { rows: 3, found: 2, .. })) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        problem.to_string(),
        "the output of 3 rows has 2 values of field `what`: push whole rows, or adopt columns of one length"
    );
}

#[test]
fn a_point_that_fails_fails_all_and_nothing_is_left() {
    #[task(leaf)]
    fn fail_at(#[point] point: Point<1>, bad: i64) -> Result<Output<Found>> {
        match point[0] == bad {
            true => Err(Error::application("no")),
            false => Ok((0..10).map(|row| Found { at: row, what: 0.0 }).collect()),
        }
    }
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        for bad in 0..4 {
            let refused = cx.collect(cx.index_launch(4, fail_at(bad))).await;
            let Err(Error::TaskFailed { point: Some(point), .. }) = &refused else { panic!("{refused:?}") };
            assert_eq!(point.coords()[0], bad);
        }
        cx.collect(cx.index_launch(4, fail_at(4))).await.map(|(found, _)| found.volume())
    });
    assert_eq!(outcome.unwrap(), 40);
}

#[test]
fn the_outputs_of_a_launch_are_collected_once() {
    let outcome = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
        let outputs = cx.index_launch(2, find(Arc::new(vec![1, 2])));
        cx.collect(outputs.clone()).await?;
        cx.collect(outputs).await
    });
    assert!(matches!(outcome, Err(Error::Attachment(AttachmentError::Collected))), "{outcome:?}");
}

#[task(leaf)]
fn only_even(#[reads(value)] cells: Piece<Cell>) -> Output<Cell> {
    let even = cells.points().map(|point| cells.value[point]).filter(|value| value % 2 == 0);
    even.map(|value| Cell { value }).collect()
}

#[task(leaf)]
fn halve(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] /= 2);
}

#[test]
fn a_program_filters_what_it_has_filtered_and_its_record_is_right() {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1000)?;
        let attached = cx.attach_vec(&cells, Cell::value, (0..1000).collect())?;
        let mut pieces = cells.partition(8).equal()?;
        let mut model: Vec<i64> = (0..1000).collect();
        for _ in 0..5 {
            let cells;
            (cells, pieces) = cx.collect(cx.index_launch(8, only_even(&pieces))).await?;
            cx.index_launch(8, halve(&pieces));
            model = model.into_iter().filter(|value| value % 2 == 0).map(|value| value / 2).collect();
            assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), model);
        }
        assert_eq!(cx.detach(attached)?.await?, (0..1000).collect::<Vec<_>>());
        Ok(model.len())
    });
    assert_eq!(outcome.unwrap(), 32);
    check(&runtime.take_record()).unwrap();
}

#[test]
fn rows_that_are_collected_count_in_memory_and_those_that_do_not_fit_are_refused_by_name() {
    let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 16)).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let sizes = Arc::new(vec![1000; 2]);
        let mut kept = Vec::new();
        // Each has 24,000 bytes.
        let refused = loop {
            match cx.collect(cx.index_launch(2, find(Arc::clone(&sizes)))).await {
                Ok((rows, _)) => kept.push(rows),
                Err(error) => break error,
            }
        };
        assert_eq!(kept.len(), 2);
        assert!(runtime.memories()[0].peak >= 48_000);
        assert!(matches!(&refused, Error::OutOfMemory { operation, .. } if operation == "find"), "{refused}");
        // Rows that are not needed any more make room.
        cx.destroy_region(kept.pop().unwrap())?;
        cx.execution_fence().await?;
        cx.collect(cx.index_launch(2, find(sizes))).await?;
        Ok(())
    });
    outcome.unwrap();
}
