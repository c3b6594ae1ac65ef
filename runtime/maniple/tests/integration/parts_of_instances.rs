//! Instances for more points than are used count in their memory with the parts that tasks have been given.

use maniple::prelude::*;
use maniple::{Machine, MemoryStatistics};

const ROWS: i64 = 200_000;
/// Of one field of all rows.
const BYTES: u64 = 8 * ROWS as u64;
/// Of a page, at most one of which a part shares with each of its neighbours.
const PAGE: u64 = 4096;

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0]);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

#[task(leaf)]
fn number_both(#[discards(value)] these: Piece<Cell>, #[discards(value)] those: Piece<Cell>) {
    these.points().for_each(|cell| these.value[cell] = cell[0]);
    those.points().for_each(|cell| those.value[cell] = cell[0]);
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value.fold(cell, 1));
}

fn runtime(memory: u64) -> Runtime {
    Runtime::builder().machine(Machine::uniform(1, memory)).workers(1).tracing(false).build().unwrap()
}

fn memory(runtime: &Runtime) -> MemoryStatistics {
    runtime.memories()[0]
}

/// The sum of the rows of a piece of ten.
fn expected(piece: i64) -> i64 {
    (piece * ROWS / 10..(piece + 1) * ROWS / 10).sum()
}

#[test]
fn an_instance_of_the_whole_region_counts_what_tasks_have_used() {
    let runtime = runtime(1 << 24);
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(ROWS as usize)?;
            let pieces = cells.partition(10).equal()?;
            let mut used = 0;
            // One after the other, some of them again.
            for (piece, more) in [(3, 1), (3, 0), (4, 1), (9, 1), (4, 0), (0, 1)] {
                cx.launch(number(&pieces.piece(piece)?)).await?;
                used += more;
                let counted = memory(&runtime).used;
                assert!((used * BYTES / 10..=used * (BYTES / 10 + 2 * PAGE)).contains(&counted), "{counted} of {used}");
                assert_eq!(cx.launch(sum(&pieces.piece(piece)?)).await?, expected(piece));
            }
            // Contributions in place, too.
            cx.launch(add(&pieces.piece(7)?)).await?;
            assert!(memory(&runtime).used >= 5 * BYTES / 10);
            assert!(memory(&runtime).used < 5 * BYTES / 10 + 10 * PAGE);
            cx.index_launch(10, number(&pieces));
            cx.execution_fence().await?;
            assert_eq!((memory(&runtime).used, memory(&runtime).peak), (BYTES, BYTES));
            Ok(())
        })
        .unwrap();
    let statistics = runtime.statistics();
    assert_eq!((statistics.instances, statistics.bytes_copied), (1, 0), "all pieces share one");
}

#[test]
fn what_is_given_back_is_what_was_counted() {
    let runtime = runtime(1 << 24);
    runtime
        .run(async |cx| {
            for pieces_used in [1, 4, 10] {
                let cells = cx.region::<Cell>(ROWS as usize)?;
                let pieces = cells.partition(10).equal()?;
                for piece in 0..pieces_used {
                    cx.launch(number(&pieces.piece(piece)?));
                }
                cx.destroy_region(&cells)?;
                cx.execution_fence().await?;
            }
            Ok(())
        })
        .unwrap();
    while memory(&runtime).used > 0 {
        // The last instance goes with its last user.
        std::thread::yield_now();
    }
    assert_eq!(memory(&runtime).peak, BYTES);
}

#[test]
fn parts_that_find_no_room_fail_and_find_it_when_others_have_gone() {
    // Room for one region, and a bit more than a piece of the other.
    let runtime = runtime(BYTES + BYTES / 10 + 2 * PAGE);
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(ROWS as usize)?;
            let pieces = cells.partition(10).equal()?;
            cx.launch(number(&pieces.piece(0)?)).await?;
            let others = cx.region::<Cell>(ROWS as usize)?;
            cx.launch(number(&others)).await?;
            let before = memory(&runtime).used;
            let failed = cx.launch(number(&pieces.piece(1)?)).await;
            assert!(matches!(failed, Err(Error::OutOfMemory { .. })), "{failed:?}");
            assert_eq!(memory(&runtime).used, before);
            cx.destroy_region(&others)?;
            for piece in 1..10 {
                cx.launch(number(&pieces.piece(piece)?));
            }
            for piece in 0..10 {
                assert_eq!(cx.launch(sum(&pieces.piece(piece)?)).await?, expected(piece));
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_a_task_that_found_no_room_had_been_given_counts_no_longer() {
    let runtime = runtime(BYTES + BYTES / 4);
    runtime
        .run(async |cx| {
            let [cells, others] = [cx.region::<Cell>(ROWS as usize)?, cx.region::<Cell>(ROWS as usize)?];
            let [pieces, larger] = [cells.partition(10).equal()?, others.partition(5).equal()?];
            for piece in 0..9 {
                cx.launch(number(&pieces.piece(piece)?));
            }
            cx.launch(number(&larger.piece(0)?));
            cx.execution_fence().await?;
            let before = memory(&runtime).used;
            // The first has room, and the second not.
            let failed = cx.launch(number_both(&pieces.piece(9)?, &larger.piece(1)?)).await;
            assert!(matches!(failed, Err(Error::OutOfMemory { .. })), "{failed:?}");
            assert_eq!(memory(&runtime).used, before);
            cx.launch(number(&pieces.piece(9)?)).await?;
            assert!(memory(&runtime).used > before);
            Ok(())
        })
        .unwrap();
}

#[test]
fn columns_of_a_matrix_count_with_the_pages_that_they_are_in() {
    let runtime = runtime(1 << 24);
    runtime
        .run(async |cx| {
            // A row has 16 pages.
            let matrix = cx.region_over::<Cell, 2>(Rect::from_shape([60, 8192]))?;
            let mut used = 0;
            for (columns, pages) in [(0..512, 1), (512..513, 1), (5000..6000, 3), (100..700, 0), (0..8192, 11)] {
                let part = matrix.part(Rect::new([0, columns.start], [59, columns.end - 1]))?;
                cx.launch(fill(&part)).await?;
                used += 60 * pages * PAGE;
                assert_eq!(memory(&runtime).used, used, "{columns:?}");
            }
            Ok(())
        })
        .unwrap();
}

#[task(leaf)]
fn fill(#[discards(other)] cells: Piece<Cell, 2>) {
    cells.points().for_each(|cell| cells.other[cell] = cell[0] - cell[1]);
}
