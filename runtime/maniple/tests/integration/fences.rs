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

/// How many operations fences look at, each of so many that are launched one after the other.
fn visits_per_fence(fences: u64, is_recorded: bool, fence: impl Fn(&Context)) -> f64 {
    let runtime = Runtime::builder().workers(1).record_operations(is_recorded).build().unwrap();
    let outcome = runtime.run(async |cx| {
        (0..fences).for_each(|_| fence(cx));
        cx.execution_fence().await
    });
    outcome.unwrap();
    runtime.statistics().logical_visits as f64 / fences as f64
}

#[test]
fn what_a_fence_costs_does_not_grow_with_the_number_of_fences_before() {
    for is_recorded in [false, true] {
        let time = visits_per_fence(2_000, is_recorded, |cx| drop(cx.time()));
        let mapping = visits_per_fence(2_000, is_recorded, |cx| drop(cx.mapping_fence()));
        assert!(time < 8.0 && mapping < 8.0, "{time} and {mapping} visits, recorded: {is_recorded}");
    }
}

#[test]
fn an_execution_fence_waits_for_what_was_launched_before_other_fences() {
    let (counter, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let outcome = run(async |cx| {
        cx.launch(wait_for(Arc::clone(&gate)));
        cx.index_launch(100, count_up(Arc::clone(&counter)));
        (0..100).for_each(|_| drop(cx.mapping_fence()));
        let time = cx.time();
        (0..100).for_each(|_| drop(cx.mapping_fence()));
        cx.launch(count_up(Arc::clone(&counter)));
        let fence = cx.execution_fence();
        gate.store(true, Ordering::Release);
        time.await?;
        assert!(counter.load(Ordering::Relaxed) >= 100);
        fence.await?;
        Ok(counter.load(Ordering::Relaxed))
    });
    assert_eq!(outcome.unwrap(), 101);
}
