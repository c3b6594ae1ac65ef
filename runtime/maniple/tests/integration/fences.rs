//! Fences that are awaited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use maniple::prelude::*;

#[task(leaf)]
fn count_up(counter: Arc<AtomicUsize>) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[task(leaf)]
fn fail(counter: Arc<AtomicUsize>) -> Result<()> {
    counter.fetch_add(1, Ordering::Relaxed);
    Err(Error::application("as always"))
}

#[task(leaf)]
fn wait_for(gate: Arc<AtomicBool>) {
    while !gate.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn an_execution_fence_is_there_when_everything_before_has_ended() {
    let counter = Arc::new(AtomicUsize::new(0));
    let outcome = run(async |cx| {
        cx.index_launch(100, count_up(Arc::clone(&counter)));
        cx.launch(count_up(Arc::clone(&counter)));
        cx.execution_fence().await?;
        Ok(counter.load(Ordering::Relaxed))
    });
    assert_eq!(outcome.unwrap(), 101);
}

#[test]
fn a_failure_does_not_fail_the_fence_and_is_not_seen_by_it() {
    let counter = Arc::new(AtomicUsize::new(0));
    let outcome = run(async |cx| {
        cx.index_launch(10, fail(Arc::clone(&counter)));
        cx.execution_fence().await.expect("the fence only says that they have ended");
        assert_eq!(counter.load(Ordering::Relaxed), 10);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
}

#[test]
fn a_mapping_fence_is_there_although_tasks_before_still_run() {
    let gate = Arc::new(AtomicBool::new(false));
    let outcome = run(async |cx| {
        let waiting = cx.launch(wait_for(Arc::clone(&gate)));
        cx.mapping_fence().await?;
        gate.store(true, Ordering::Release);
        waiting.await
    });
    outcome.unwrap();
}

#[test]
fn a_fence_can_be_mapped_and_passed_on_like_any_future() {
    let counter = Arc::new(AtomicUsize::new(0));
    let outcome = run(async |cx| {
        cx.index_launch(10, count_up(Arc::clone(&counter)));
        let counter = Arc::clone(&counter);
        cx.execution_fence().map(move |()| counter.load(Ordering::Relaxed)).await
    });
    assert_eq!(outcome.unwrap(), 10);
}
