//! Forked tasks that do not end as they should: bodies that are never woken, destructors that panic, wakes that come at
//! any time.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

use maniple::prelude::*;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[task(leaf)]
fn end_late(ended: Arc<AtomicUsize>) {
    // The parent has every chance to be gone.
    (0..100).for_each(|_| std::thread::yield_now());
    ended.fetch_add(1, Ordering::Relaxed);
}

#[task]
async fn launch_and_hang(cx: &Context, ended: Arc<AtomicUsize>) {
    for _ in 0..3 {
        cx.launch(end_late(Arc::clone(&ended)));
    }
    pending::<()>().await;
}

#[test]
fn a_body_that_nobody_can_wake_ends_after_what_it_has_launched() {
    for workers in [1, 2, 4] {
        for _ in 0..20 {
            let ended = Arc::new(AtomicUsize::new(0));
            let outcome = runtime(workers).run(async |cx| {
                cx.launch(launch_and_hang(Arc::clone(&ended)));
                cx.execution_fence().await?;
                assert_eq!(ended.load(Ordering::Relaxed), 3);
                Ok(())
            });
            let is_expected = matches!(&outcome, Err(Error::Stranded { task, .. }) if task == "launch_and_hang");
            assert!(is_expected, "{outcome:?}");
        }
    }
}

/// Gives away a waker, once, and waits.
#[task]
async fn wait_in_vain(_cx: &Context, given: Arc<Mutex<Option<Waker>>>) {
    let mut is_given = false;
    poll_fn(|context| {
        if !is_given {
            is_given = true;
            *given.lock().unwrap() = Some(context.waker().clone());
        }
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn a_body_that_nobody_can_wake_fails_though_somebody_awaits_it() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let outcome = runtime.run(async |cx| cx.launch(launch_and_hang(Arc::default())).await);
        assert!(matches!(&outcome, Err(Error::Stranded { task, .. }) if task == "launch_and_hang"), "{outcome:?}");
        let outcome = runtime.run(async |cx| {
            let given = Arc::new(Mutex::new(None));
            let future = cx.launch(wait_in_vain(Arc::clone(&given)));
            let waker = loop {
                if let Some(waker) = given.lock().unwrap().take() {
                    break waker;
                }
                std::thread::yield_now();
            };
            drop(waker);
            future.await
        });
        let is_expected = matches!(&outcome, Err(Error::Stranded { task, .. }) if task == "wait_in_vain");
        assert!(is_expected, "{outcome:?}");
    }
}

#[task]
async fn launch_failing_and_hang(cx: &Context) {
    cx.launch(fail());
    pending::<()>().await;
}

#[task(leaf)]
fn fail() -> std::result::Result<(), String> {
    Err("on purpose".to_owned())
}

#[test]
fn a_body_that_nobody_can_wake_fails_for_that_whatever_became_of_its_children() {
    let outcome = runtime(1).run(async |cx| {
        cx.launch(launch_failing_and_hang());
        Ok(())
    });
    let is_expected = matches!(&outcome, Err(Error::Stranded { task, .. }) if task == "launch_failing_and_hang");
    assert!(is_expected, "{outcome:?}");
}

/// Panics when it is dropped, if it is armed.
#[derive(Clone)]
struct Mine(bool);

impl Drop for Mine {
    fn drop(&mut self) {
        assert!(!self.0, "a mine went off");
    }
}

#[task(leaf)]
fn lay_mine() -> Mine {
    Mine(true)
}

/// Awaits a child, and ends it with a mine in its hand.
#[task]
async fn hold_mine(cx: &Context, mine: Arc<Mutex<Mine>>) -> Result<()> {
    cx.launch(nothing()).await?;
    mine.lock().unwrap().0 = true;
    Ok(())
}

#[task(leaf)]
fn nothing() {}

fn is_mine(outcome: &Result<()>, of: &str) -> bool {
    matches!(outcome, Err(Error::Panicked { task, .. }) if task == of)
}

/// Leaves a child that has not begun.
#[task]
async fn leave_mine(cx: &Context) {
    cx.launch(lay_mine());
}

#[test]
fn a_value_that_nobody_wants_and_that_cannot_be_dropped_is_a_failure_of_its_task() {
    // With a second worker, the child might end before its launcher has left it.
    let runtime = runtime(1);
    let outcome = runtime.run_task(leave_mine());
    assert!(is_mine(&outcome, "lay_mine"), "{outcome:?}");
    // The worker is as well as before.
    assert_eq!(runtime.run_task(number(5)).unwrap(), 5);
}

#[test]
fn an_argument_that_cannot_be_dropped_is_a_failure_of_its_task() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let outcome = runtime.run(async |cx| cx.launch(hold_mine(Arc::new(Mutex::new(Mine(false))))).await);
        assert!(is_mine(&outcome, "hold_mine"), "{outcome:?}");
        assert_eq!(runtime.run_task(number(6)).unwrap(), 6);
    }
}

#[task(leaf)]
fn number(number: u32) -> u32 {
    number
}

/// A flag, and the waker of the task that waits for it: the task is told of it without a lock or an exchange.
#[derive(Default)]
struct Flag {
    is_up: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

#[task]
async fn await_flags(_cx: &Context, flags: Arc<[Flag; 2]>) {
    for flag in &*flags {
        let mut is_known = false;
        poll_fn(|context| {
            if !is_known {
                is_known = true;
                *flag.waker.lock().unwrap() = Some(context.waker().clone());
            }
            if flag.is_up.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[test]
fn no_wake_is_lost_however_many_come_together() {
    for _ in 0..200 {
        let outcome = runtime(2).run(async |cx| {
            let flags: Arc<[Flag; 2]> = Arc::default();
            let future = cx.launch(await_flags(Arc::clone(&flags)));
            let threads = [0, 1].map(|which| {
                let flags = Arc::clone(&flags);
                std::thread::spawn(move || {
                    let waker = loop {
                        if let Some(waker) = flags[which].waker.lock().unwrap().clone() {
                            break waker;
                        }
                        std::thread::yield_now();
                    };
                    (0..50).for_each(|_| waker.wake_by_ref());
                    flags[which].is_up.store(true, Ordering::Relaxed);
                    waker.wake();
                })
            });
            let outcome = future.await;
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            outcome
        });
        outcome.unwrap();
    }
}

/// A waker that panics when it is used, so that no task hears of the panic.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn fill(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] = 1);
}

/// Ends when it may, and fails, which its parent is told.
#[task(leaf)]
fn fail_late(may_end: Arc<AtomicBool>, ended: Arc<AtomicUsize>) {
    while !may_end.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    ended.fetch_add(1, Ordering::Relaxed);
    panic!("on purpose");
}

#[test]
fn a_task_that_ends_with_the_machine_is_kept_for_what_it_has_forked() {
    for _ in 0..10 {
        let (runtime, may_end, ended) = (runtime(3), Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let outcome = runtime.run(async |cx| {
            let late = [(); 2].map(|()| cx.launch(fail_late(Arc::clone(&may_end), Arc::clone(&ended))));
            let cells = cx.region::<Cell>(4)?;
            let (waker, mut filled) = (Waker::from(Arc::new(Bomb)), Box::pin(cx.launch(fill(&cells)).into_future()));
            // If it has ended already, another one has not.
            while filled.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_ready() {
                filled = Box::pin(cx.launch(fill(&cells)).into_future());
            }
            for fork in late {
                fork.await?;
            }
            Ok(())
        });
        assert!(matches!(outcome, Err(Error::BrokenDown { .. })), "{outcome:?}");
        // Only now: the task that forked them has ended.
        may_end.store(true, Ordering::Release);
        drop(runtime);
        assert_eq!(ended.load(Ordering::Relaxed), 2);
    }
}
