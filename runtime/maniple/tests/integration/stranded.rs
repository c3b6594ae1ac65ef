//! Tasks that wait for what never comes end as failures, wherever the runtime can know it: when no waker of theirs is
//! left.

use std::future::{pending, poll_fn};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    // The parent has every chance to be gone.
    (0..100).for_each(|_| std::thread::yield_now());
    cells.points().for_each(|point| cells.value[point] += amount);
}

#[task]
async fn add_and_hang(cx: &Context, #[writes(value)] cells: Region<Cell>) {
    cx.launch(add(&cells, 5));
    pending::<()>().await;
}

fn is_stranded<T: std::fmt::Debug>(outcome: &Result<T>, of: &str) -> bool {
    matches!(outcome, Err(Error::Stranded { task, .. }) if task == of)
}

#[test]
fn a_task_with_regions_that_nobody_can_wake_ends_after_what_it_has_launched() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(4)?;
            let outcome = cx.launch(add_and_hang(&cells)).await;
            assert!(is_stranded(&outcome, "add_and_hang"), "{outcome:?}");
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("add_and_hang") && text.contains("wake"), "{text}");
            // What it was to change is lost, and can be made anew.
            cx.fill(&cells, Cell::value, 1)?;
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
        });
        assert_eq!(outcome.unwrap(), [1; 4]);
    }
}

#[test]
fn a_program_that_nobody_can_wake_ends_with_an_error() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |_| {
        pending::<()>().await;
        Ok(())
    });
    assert!(is_stranded(&outcome, "top level"), "{outcome:?}");
    assert_eq!(runtime.run(async |_| Ok(5)).unwrap(), 5);
}

#[test]
fn a_program_that_a_thread_of_its_own_can_wake_waits_for_it() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    for gives_up in [false, true] {
        let (to, wakers) = mpsc::channel::<Waker>();
        let value = Arc::new(Mutex::new(None));
        let found = Arc::clone(&value);
        let thread = std::thread::spawn(move || {
            let waker = wakers.recv().unwrap();
            (0..1000).for_each(|_| std::thread::yield_now());
            if !gives_up {
                *value.lock().unwrap() = Some(7);
                waker.wake();
            }
        });
        let mut is_given = false;
        let outcome = runtime.run(async |_| {
            let wait = poll_fn(|context| {
                if !std::mem::replace(&mut is_given, true) {
                    to.send(context.waker().clone()).unwrap();
                }
                found.lock().unwrap().map_or(Poll::Pending, Poll::Ready)
            });
            Ok(wait.await)
        });
        thread.join().unwrap();
        match gives_up {
            false => assert_eq!(outcome.unwrap(), 7),
            true => assert!(is_stranded(&outcome, "top level"), "{outcome:?}"),
        }
    }
}
