//! Leaves that share loops with idle workers: which workers take part, what panics, and that launches and replays are
//! alike in it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use maniple::prelude::*;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};

fn leaf<T: Send + Sync + 'static>(
    name: &str,
    body: impl Fn(&LeafCall<'_>) -> T + Send + Sync + 'static,
) -> Arc<TaskDefinition> {
    Arc::new(TaskDefinition::new(name).leaf(TaskOptions::default(), move |call| Ok(Value::new(body(call)))))
}

/// Lets others run until the flag is set, or it is clear that it won't be.
fn expect(flag: &AtomicBool) -> bool {
    (0..10_000_000).any(|_| {
        thread::yield_now();
        flag.load(Ordering::SeqCst)
    })
}

/// A leaf of two calls, each of which waits for the other to begin: the threads that make them.
fn meeting() -> Arc<TaskDefinition> {
    leaf("meeting", |call| {
        let (begun, threads) = ([const { AtomicBool::new(false) }; 2], Mutex::new(Vec::new()));
        call.workers().for_each(2, |part| {
            begun[part].store(true, Ordering::SeqCst);
            threads.lock().unwrap().push(thread::current().id());
            assert!(expect(&begun[1 - part]), "nobody else came");
        });
        threads.into_inner().unwrap()
    })
}

#[test]
fn an_idle_worker_helps_a_leaf() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let meeting = meeting();
    let threads =
        runtime.run(async |cx| cx.launch(TaskLauncher::new(&meeting).typed::<Vec<ThreadId>>()).await).unwrap();
    assert_ne!(threads[0], threads[1]);
}

#[test]
fn an_idle_worker_helps_a_leaf_that_is_replayed() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let meeting = meeting();
    runtime
        .run(async |cx| {
            for _ in 0..20 {
                let done = cx.trace("step", |cx| cx.launch(TaskLauncher::new(&meeting).typed::<Vec<ThreadId>>()));
                let threads = done.await?;
                assert_ne!(threads[0], threads[1]);
            }
            Ok(())
        })
        .unwrap();
    assert!(runtime.statistics().replays > 0);
}

#[test]
fn all_points_of_a_launch_share_their_loops() {
    for workers in 1..4 {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let sum = leaf("sum", move |call| {
            assert_eq!(call.workers().count(), workers);
            let sum = AtomicU64::new(0);
            call.workers().for_each(50, |part| _ = sum.fetch_add(part as u64, Ordering::Relaxed));
            sum.into_inner()
        });
        let launch = || TaskLauncher::new(&sum).typed::<u64>();
        let total = runtime.run(async |cx| cx.index_launch(cx.colors(100), launch()).reduce(Sum).await);
        assert_eq!(total.unwrap(), 100 * (49 * 50 / 2));
    }
}

#[test]
fn one_worker_makes_all_calls_in_order() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let order = leaf("order", |call| {
        let order = Mutex::new(Vec::new());
        call.workers().for_each(20, |part| order.lock().unwrap().push((part, thread::current().id())));
        order.into_inner().unwrap()
    });
    let order = runtime.run(async |cx| cx.launch(TaskLauncher::new(&order).typed::<Vec<(usize, ThreadId)>>()).await);
    let (parts, threads): (Vec<_>, HashSet<_>) = order.unwrap().into_iter().unzip();
    assert_eq!(parts, (0..20).collect::<Vec<_>>());
    assert_eq!(threads.len(), 1);
}

#[test]
fn a_panic_of_a_helper_is_the_failure_of_the_task() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let spoilt = leaf("spoilt", |call| {
        let (owner, begun) = (thread::current().id(), AtomicBool::new(false));
        call.workers().for_each(2, |_| {
            if thread::current().id() == owner {
                assert!(expect(&begun));
            } else {
                begun.store(true, Ordering::SeqCst);
                panic!("by the helper");
            }
        });
    });
    let outcome = runtime.run(async |cx| {
        let error = cx.launch(TaskLauncher::new(&spoilt).typed::<()>()).await.unwrap_err();
        // Nothing else has come to harm.
        let fine = leaf("fine", |call| call.workers().count());
        assert_eq!(cx.launch(TaskLauncher::new(&fine).typed::<usize>()).await?, 2);
        Ok(error.to_string())
    });
    let message = outcome.unwrap();
    assert!(
        message.contains("spoilt") && message.contains("by the helper") && message.contains("sharing.rs"),
        "{message}"
    );
}
