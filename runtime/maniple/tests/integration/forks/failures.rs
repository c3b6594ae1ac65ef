//! Forked tasks that fail, and those that wait for what does not come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple::prelude::*;

use super::{fail_below, fib, runtime, same};

#[task(leaf)]
fn panics_at(number: u64) -> u64 {
    assert!(number != 3, "three is too many");
    number
}

#[task]
async fn launch_all(cx: &Context) -> Result<u64> {
    let all: Vec<_> = (0..6).map(|number| cx.launch(panics_at(number))).collect();
    let mut sum = 0;
    for future in all {
        sum += future.await?;
    }
    Ok(sum)
}

#[test]
fn a_failure_travels_and_tells_its_task() {
    for workers in [1, 2] {
        let error = runtime(workers).run_task(fail_below(20)).unwrap_err();
        assert!(matches!(&error, Error::TaskFailed { task, .. } if task == "fail_below"), "{error}");
        assert!(error.to_string().contains("at the bottom"), "{error}");
        let error = runtime(workers).run_task(launch_all()).unwrap_err();
        assert!(matches!(&error, Error::Panicked { task, point: None, .. } if task == "panics_at"), "{error}");
        assert!(
            error.to_string().contains("three is too many") && error.to_string().contains("failures.rs"),
            "{error}"
        );
    }
}

#[task(leaf)]
fn fail_as(name: String) -> Result<u64> {
    Err(Error::application(name))
}

#[task(leaf)]
fn fail_after(name: String, gate: Arc<AtomicBool>) -> Result<u64> {
    while !gate.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    Err(Error::application(name))
}

#[test]
fn of_failures_that_nobody_has_seen_the_first_in_the_program_is_told() {
    for _ in 0..20 {
        let outcome = runtime(2).run(async |cx| {
            let gate = Arc::new(AtomicBool::new(false));
            cx.launch(fail_after("first".to_owned(), Arc::clone(&gate)));
            assert!(cx.launch(fail_as("seen".to_owned())).await.is_err());
            cx.launch(fail_as("second".to_owned()));
            cx.index_launch(1, fail_as("third".to_owned()));
            gate.store(true, Ordering::Release);
            Ok(())
        });
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("first"), "{error}");
    }
}

#[test]
fn who_has_seen_a_failure_has_seen_it_at_all_who_were_given_it() {
    let outcome = runtime(2).run(async |cx| {
        let failed = cx.launch(fail_as("seen".to_owned()));
        let given = cx.launch(same(&failed));
        let mapped = failed.map(|number| number + 1);
        let given_again = cx.launch(same(given));
        assert!(given_again.await.is_err());
        drop(mapped);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_failure_of_what_a_task_was_given_is_the_tasks_and_its_body_does_not_run() {
    #[task(leaf)]
    fn note(number: u64, ran: Arc<AtomicBool>) -> u64 {
        ran.store(true, Ordering::Relaxed);
        number
    }
    let ran = Arc::new(AtomicBool::new(false));
    let outcome = runtime(2).run(async |cx| {
        let failed = cx.launch(fail_as("given".to_owned()));
        cx.launch(note(failed, Arc::clone(&ran))).await
    });
    assert!(matches!(&outcome, Err(Error::TaskFailed { task, .. }) if task == "fail_as"), "{outcome:?}");
    assert!(!ran.load(Ordering::Relaxed));
}

#[task]
async fn wait_for_child(cx: &Context) -> Result<String> {
    Ok(cx.launch(fib(5)).wait().map_or_else(|error| error.to_string(), |_| String::from("was ready")))
}

#[test]
fn a_task_cannot_block_its_worker_by_waiting() {
    assert!(runtime(1).run_task(wait_for_child()).unwrap().contains("use `.await`"));
}

#[test]
fn a_body_that_nobody_can_wake_has_failed_and_keeps_nobody_waiting() {
    #[task]
    async fn forget_me(_cx: &Context, dropped: Arc<()>) {
        std::future::pending::<()>().await;
        drop(dropped);
    }
    for workers in [1, 2] {
        let given = Arc::new(());
        let outcome = runtime(workers).run(async |cx| {
            cx.launch(forget_me(Arc::clone(&given)));
            Ok(())
        });
        assert!(matches!(&outcome, Err(Error::Stranded { task, .. }) if task == "forget_me"), "{outcome:?}");
        assert_eq!(Arc::strong_count(&given), 1);
    }
}
