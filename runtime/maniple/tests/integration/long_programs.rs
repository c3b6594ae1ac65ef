//! Programs that go on for long: no recursion along chains of futures, and no circles of tasks that wait for room in
//! their windows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple::prelude::*;

#[task(leaf)]
fn next(number: i64) -> i64 {
    number + 1
}

#[task(leaf)]
fn fail() -> Result<i64> {
    Err(Error::application("the first"))
}

const LENGTH: i64 = 100_000;

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

#[test]
fn a_long_chain_of_tasks_each_of_which_takes_the_last_ones_result() {
    let outcome = runtime().run(async |cx| {
        let first = cx.launch(next(0));
        (1..LENGTH).fold(first, |last, _| cx.launch(next(last))).await
    });
    assert_eq!(outcome.unwrap(), LENGTH);
}

#[test]
fn a_long_chain_of_tasks_fails_from_its_first() {
    let outcome = runtime().run(async |cx| {
        let first = cx.launch(fail());
        (1..LENGTH).fold(first, |last, _| cx.launch(next(last))).await
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
}

#[test]
fn a_long_chain_of_functions_of_a_future() {
    let outcome = runtime().run(async |cx| {
        let first = cx.launch(next(0));
        (1..LENGTH).fold(first, |last, _| last.map(|number| number + 1)).await
    });
    assert_eq!(outcome.unwrap(), LENGTH);
}

#[task(leaf)]
fn one_after(may_begin: Arc<AtomicBool>) -> i64 {
    while !may_begin.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    1
}

#[test]
fn a_task_takes_the_end_of_a_long_chain_of_functions_of_a_future_that_is_still_to_come() {
    let outcome = runtime().run(async |cx| {
        let may_begin = Arc::<AtomicBool>::default();
        let first = cx.launch(one_after(may_begin.clone()));
        let last = (1..LENGTH).fold(first, |last, _| last.map(|number| number + 1));
        let outcome = cx.launch(next(last));
        may_begin.store(true, Ordering::SeqCst);
        outcome.await
    });
    assert_eq!(outcome.unwrap(), LENGTH + 1);
}

#[test]
fn functions_of_futures_that_meet_again_and_again_are_looked_at_once() {
    let outcome = runtime().run(async |cx| {
        let may_begin = Arc::<AtomicBool>::default();
        let first = cx.launch(one_after(may_begin.clone()));
        let last = (0..60).fold(first, |last, _| last.zip_with(&last, |a, b| a + b));
        let outcome = cx.launch(next(last));
        may_begin.store(true, Ordering::SeqCst);
        outcome.await
    });
    assert_eq!(outcome.unwrap(), (1 << 60) + 1);
}

#[derive(Fields)]
struct Cell {
    count: i64,
}

#[task(leaf)]
fn count_up(#[writes(count)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.count[point] += 1;
    }
}

#[task(leaf)]
fn count(#[reads(count)] cells: Piece<Cell>) -> i64 {
    cells.count[0]
}

#[task(leaf)]
fn count_up_after(#[writes(count)] cells: Piece<Cell>, may_begin: Arc<AtomicBool>) {
    while !may_begin.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    for point in cells.points() {
        cells.count[point] += 1;
    }
}

#[task]
async fn count_up_often(cx: &Context, #[writes(count)] cells: Region<Cell>, other: Arc<AtomicBool>) -> Result<()> {
    for _ in 0..100 {
        cx.launch(count_up_after(&cells, Arc::clone(&other)));
    }
    Ok(())
}

#[task(inner)]
async fn count_up_later(cx: &Context, #[writes(count)] cells: Region<Cell>, begun: Arc<AtomicBool>) -> Result<()> {
    begun.store(true, Ordering::Release);
    for _ in 0..100 {
        cx.launch(count_up(&cells));
    }
    Ok(())
}

/// The first task fills its window and helps meanwhile, with the second one, which fills its own: with operations that
/// wait for the first.
#[test]
fn a_task_that_waits_for_room_in_its_window_does_not_keep_one_below_it_from_going_on() {
    for _ in 0..20 {
        let runtime = Runtime::builder().workers(2).window(4).build().unwrap();
        let counted = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(3)?;
            let begun = Arc::new(AtomicBool::new(false));
            cx.launch(count_up_often(&cells, Arc::clone(&begun)));
            cx.launch(count_up_later(&cells, begun));
            cx.launch(count(&cells)).await
        });
        assert_eq!(counted.unwrap(), 200);
    }
}

#[task]
async fn wait_for_own_child(cx: &Context, #[writes(count)] cells: Region<Cell>) -> Result<String> {
    cx.launch(count_up(&cells));
    let future = cx.launch(count(&cells));
    Ok(future.wait().map_or_else(|error| error.to_string(), |_| String::from("was ready")))
}

#[test]
fn a_task_cannot_block_its_worker_by_waiting() {
    let said = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(3)?;
        cx.launch(wait_for_own_child(&cells)).await
    });
    assert!(said.unwrap().contains("use `.await`"));
}
