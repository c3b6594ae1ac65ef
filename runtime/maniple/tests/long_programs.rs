//! Programs that go on for long: no recursion along chains of futures.

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
