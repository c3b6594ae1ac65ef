//! Tasks without regions, which are forked: their results, failures and ends, whatever runs them and wherever.

mod failures;
mod mappers;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use maniple::mapper::Mapper;
use maniple::prelude::*;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[task]
async fn fib(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let (a, b) = (cx.launch(fib(n - 1)), cx.launch(fib(n - 2)));
    Ok(a.await? + b.await?)
}

#[task]
async fn fail_below(cx: &Context, depth: u32) -> Result<u64> {
    match depth {
        0 => Err(Error::application("at the bottom")),
        _ => cx.launch(fail_below(depth - 1)).await,
    }
}

/// Queens on the first rows of a board, by column.
type Queens = Vec<u8>;

fn attacked(queens: &[u8], column: u8) -> bool {
    let below = queens.iter().rev().zip(1..);
    below.into_iter().any(|(&other, distance)| other == column || other.abs_diff(column) == distance)
}

fn count_solutions(queens: &mut Queens, size: u8) -> u64 {
    if queens.len() == usize::from(size) {
        return 1;
    }
    let mut solutions = 0;
    for column in 0..size {
        if !attacked(queens, column) {
            queens.push(column);
            solutions += count_solutions(queens, size);
            queens.pop();
        }
    }
    solutions
}

#[task(leaf)]
fn finish(queens: Queens, size: u8) -> u64 {
    count_solutions(&mut queens.clone(), size)
}

#[task]
async fn place(cx: &Context, queens: Queens, size: u8) -> Result<u64> {
    if queens.len() == 3 {
        return cx.launch(finish(queens, size)).await;
    }
    let free = (0..size).filter(|&column| !attacked(&queens, column));
    let next = free.map(|column| cx.launch(place([&queens[..], &[column]].concat(), size))).collect::<Vec<_>>();
    let mut solutions = 0;
    for future in next {
        solutions += future.await?;
    }
    Ok(solutions)
}

#[test]
fn recursion_gives_the_same_with_any_number_of_workers() {
    for workers in [1, 2, 8] {
        let runtime = runtime(workers);
        assert_eq!(runtime.run_task(fib(18)).unwrap(), 2584);
        assert_eq!(runtime.run_task(place(Queens::new(), 8)).unwrap(), 92);
    }
}

#[task(leaf)]
fn same(number: u64) -> u64 {
    number
}

#[task(leaf)]
fn count_up(ended: Arc<AtomicUsize>) {
    ended.fetch_add(1, Ordering::Relaxed);
}

#[task]
async fn leave_children(cx: &Context, depth: u32, ended: Arc<AtomicUsize>) -> Result<()> {
    for _ in 0..10 {
        match depth {
            0 => drop(cx.launch(count_up(Arc::clone(&ended)))),
            _ => drop(cx.launch(leave_children(depth - 1, Arc::clone(&ended)))),
        }
    }
    Ok(())
}

#[test]
fn a_task_ends_after_all_that_it_launched_though_nobody_waits_for_that() {
    for workers in [1, 2, 8] {
        let ended = Arc::new(AtomicUsize::new(0));
        let outcome = runtime(workers).run(async |cx| {
            cx.launch(leave_children(3, Arc::clone(&ended))).await?;
            Ok(ended.load(Ordering::Relaxed))
        });
        assert_eq!(outcome.unwrap(), 10_000);
        // Nor does the task hold on to what it was given.
        assert_eq!(Arc::strong_count(&ended), 1);
    }
}

#[task]
async fn launch_many(cx: &Context, count: usize, ended: Arc<AtomicUsize>) -> Result<usize> {
    let mut most = 0;
    for launched in 0..count {
        most = most.max(launched - ended.load(Ordering::Relaxed));
        cx.launch(count_up(Arc::clone(&ended)));
    }
    Ok(most)
}

#[test]
fn a_million_children_are_in_flight_a_window_at_a_time() {
    let runtime = Runtime::builder().workers(2).window(100).build().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let most = runtime.run_task(launch_many(1_000_000, Arc::clone(&ended))).unwrap();
    assert!(most <= 100, "{most}");
    let from_outside = runtime.run(async |cx| {
        for _ in 0..100_000 {
            cx.launch(count_up(Arc::clone(&ended)));
        }
        Ok(())
    });
    from_outside.unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 1_100_000);
}

#[task]
async fn chain(cx: &Context, links: u64) -> Result<u64> {
    if links == 0 { Ok(0) } else { Ok(1 + cx.launch(chain(links - 1)).await?) }
}

#[test]
fn a_chain_of_tasks_each_of_which_awaits_the_next_needs_no_stack() {
    for workers in [1, 2] {
        assert_eq!(runtime(workers).run_task(chain(100_000)).unwrap(), 100_000);
        let error = runtime(workers).run_task(fail_below(100_000)).unwrap_err();
        assert!(matches!(error, Error::TaskFailed { .. }), "{error}");
    }
}

#[derive(Fields)]
struct Cell {
    value: u64,
}

#[task(leaf)]
fn set(#[discards(value)] cells: Piece<Cell>, value: u64) {
    cells.value.fill(value);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> u64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task]
async fn sum_of_fresh(cx: &Context, value: u64) -> Result<u64> {
    let cells = cx.region::<Cell>(10)?;
    cx.launch(set(&cells, cx.launch(same(value))));
    cx.launch(same(cx.launch(sum(&cells)))).await
}

#[test]
fn tasks_with_and_without_regions_take_each_others_results_and_launch_each_other() {
    #[task]
    async fn with_region(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<u64> {
        cx.launch(set(&cells, cx.launch(fib(10))));
        Ok(cx.launch(sum(&cells)).await? + cx.launch(sum_of_fresh(1)).await?)
    }
    for workers in [1, 2] {
        let outcome = runtime(workers).run(async |cx| {
            let cells = cx.region::<Cell>(2)?;
            Ok((cx.launch(with_region(&cells)).await?, cx.launch(sum_of_fresh(3)).await?))
        });
        assert_eq!(outcome.unwrap(), (2 * 55 + 10, 30));
    }
}

#[task]
async fn make_region(cx: &Context) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(5)?;
    cx.launch(set(&cells, 4));
    Ok(cells)
}

#[test]
fn a_region_that_a_task_has_made_passes_to_its_parent() {
    let outcome = runtime(2).run(async |cx| {
        let cells = cx.launch(make_region()).await?;
        cx.launch(sum(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 20);
}

#[test]
fn nothing_is_launched_from_the_context_of_a_task_that_has_ended() {
    #[task]
    async fn leak(cx: &Context) -> Result<Leaked> {
        Ok(Leaked(cx.clone()))
    }
    #[derive(Clone)]
    struct Leaked(Context);
    let outcome = runtime(2).run(async |cx| {
        let Leaked(ended) = cx.launch(leak()).await?;
        let refused = ended.launch(same(1)).await;
        assert!(matches!(&refused, Err(Error::Ended { task }) if task == "leak"), "{refused:?}");
        assert_eq!(ended.task(), "leak");
        Ok(())
    });
    outcome.unwrap();
}

#[task(leaf)]
fn open(gate: Arc<AtomicBool>) {
    // The fence has every chance to pass too early.
    (0..100).for_each(|_| std::thread::yield_now());
    gate.store(true, Ordering::Release);
}

#[task(leaf)]
fn is_open(gate: Arc<AtomicBool>) -> bool {
    gate.load(Ordering::Acquire)
}

#[test]
fn an_execution_fence_stands_between_the_tasks_before_and_those_after() {
    for _ in 0..50 {
        let outcome = runtime(2).run(async |cx| {
            let gate = Arc::new(AtomicBool::new(false));
            cx.launch(open(Arc::clone(&gate)));
            cx.execution_fence();
            cx.launch(is_open(gate)).await
        });
        assert!(outcome.unwrap());
        let outcome = runtime(2).run(async |cx| {
            let gate = Arc::new(AtomicBool::new(false));
            cx.launch(open(Arc::clone(&gate)));
            cx.execution_fence().await?;
            Ok(gate.load(Ordering::Acquire))
        });
        assert!(outcome.unwrap());
    }
}

#[test]
fn after_a_fence_has_passed_tasks_are_forked_again() {
    let runtime = runtime(1);
    let outcome = runtime.run(async |cx| {
        cx.launch(same(1)).await?;
        cx.execution_fence().await?;
        let calls = 3;
        for number in 0..calls {
            cx.launch(same(number)).await?;
        }
        Ok(())
    });
    outcome.unwrap();
    // One about the task, one about when to map the fence.
    assert_eq!(runtime.statistics().mapper_calls, 2);
}

#[test]
fn a_future_may_be_awaited_often_and_in_any_order() {
    let outcome = runtime(2).run(async |cx| {
        let (first, second) = (cx.launch(fib(10)), cx.launch(fib(11)));
        let again = first.clone();
        let sum = second.zip_with(&first, |a, b| a + b).map(|sum| 2 * sum);
        assert_eq!(second.await?, 89);
        assert_eq!((first.await?, again.clone().await?, again.wait()?), (55, 55, 55));
        assert!(again.is_ready() && !format!("{again:?}").is_empty());
        // Functions of a result that is there.
        Ok((sum.await?, again.map(|value| value + 1).await?))
    });
    assert_eq!(outcome.unwrap(), (288, 56));
}

#[test]
fn a_thread_outside_waits_for_a_future() {
    let runtime = runtime(2);
    let outcome = runtime.run(async |cx| {
        let future = cx.launch(fib(15));
        let inner = future.clone();
        let thread = std::thread::spawn(move || inner.wait());
        assert_eq!(thread.join().unwrap()?, 610);
        future.wait()
    });
    assert_eq!(outcome.unwrap(), 610);
}

#[test]
fn a_result_outlives_its_runtime() {
    let runtime = runtime(2);
    let future = runtime.run(async |cx| Ok(cx.launch(fib(10)))).unwrap();
    drop(runtime);
    assert_eq!(future.wait().unwrap(), 55);
    assert_eq!(future.map(|value| value + 1).wait().unwrap(), 56);
}

#[test]
fn a_launch_may_be_cloned_and_launched_in_different_ways() {
    let outcome = runtime(2).run(async |cx| {
        let launch = same(cx.launch(same(4)));
        let (once, tagged, index) = (launch.clone(), launch.clone().tag(3), launch);
        let points = cx.index_launch(3, index).all().await?;
        Ok((cx.launch(once).await?, cx.launch(tagged).await?, points))
    });
    assert_eq!(outcome.unwrap(), (4, 4, vec![4; 3]));
}

#[test]
fn a_value_that_cannot_be_cloned_may_be_returned_and_left() {
    struct Unique(Arc<AtomicUsize>);
    impl Drop for Unique {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    #[task(leaf)]
    fn make(dropped: Arc<AtomicUsize>) -> Unique {
        Unique(dropped)
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(2);
    let outcome = runtime.run(async |cx| {
        let made = cx.launch(make(Arc::clone(&dropped)));
        while !made.is_ready() {
            std::thread::yield_now();
        }
        Ok(dropped.load(Ordering::Relaxed))
    });
    assert_eq!(outcome.unwrap(), 0);
    drop(runtime);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_body_may_await_what_other_threads_bring() {
    use std::task::{Poll, Waker};
    type Shared = Arc<Mutex<(bool, Option<Waker>)>>;

    #[task]
    async fn await_thread(_cx: &Context, shared: Shared) -> u64 {
        std::future::poll_fn(|context| {
            let mut shared = shared.lock().unwrap();
            shared.1 = Some(context.waker().clone());
            if shared.0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        5
    }
    for workers in [1, 2] {
        let outcome = runtime(workers).run(async |cx| {
            let shared = Shared::default();
            let future = cx.launch(await_thread(Arc::clone(&shared)));
            let thread = std::thread::spawn(move || {
                // Also before the task waits, and more than once.
                for last in [false, false, true] {
                    let waker = {
                        let mut shared = shared.lock().unwrap();
                        shared.0 = last;
                        shared.1.clone()
                    };
                    waker.inspect(Waker::wake_by_ref);
                }
            });
            let value = future.await;
            thread.join().unwrap();
            value
        });
        assert_eq!(outcome.unwrap(), 5);
    }
}

#[test]
fn an_await_that_is_given_up_leaves_the_task_running() {
    let outcome = runtime(2).run(async |cx| {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut given_up = Box::pin(cx.launch(leave_children(1, Arc::clone(&ended))).into_future());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = given_up.as_mut().poll(&mut context);
        drop(given_up);
        cx.execution_fence().await?;
        Ok(ended.load(Ordering::Relaxed))
    });
    assert_eq!(outcome.unwrap(), 100);
}

#[test]
fn within_a_trace_tasks_without_regions_give_their_results() {
    let runtime = runtime(2);
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let mut total = 0;
        for step in 0..20 {
            let future = cx.trace("step", |cx| {
                cx.launch(set(&cells, cx.launch(same(step))));
                cx.launch(sum(&cells))
            });
            // Between the runs too.
            total += future.await? + cx.launch(same(step)).await?;
        }
        Ok(total)
    });
    assert_eq!(outcome.unwrap(), 3 * (0..20).sum::<u64>());
    assert!(runtime.statistics().replays > 0);
}

#[test]
fn a_record_shows_every_task() {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    assert_eq!(runtime.run_task(fib(8)).unwrap(), 21);
    let record = runtime.take_record();
    assert_eq!(record.launches.iter().filter(|launch| launch.name == "fib").count(), 67);
    maniple::record::check(&record).unwrap();
}

/// Tells when its runtime is gone.
#[derive(Clone)]
struct Held(#[allow(dead_code)] Arc<()>);

impl Mapper for Held {}

#[test]
fn when_a_runtime_has_been_dropped_no_worker_holds_it() {
    for _ in 0..300 {
        let held = Arc::new(());
        let runtime = Runtime::builder().workers(2).mapper(Held(Arc::clone(&held))).build().unwrap();
        runtime.run_task(fib(8)).unwrap();
        drop(runtime);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[test]
fn a_profile_shows_every_task_and_what_it_awaited() {
    use maniple::profile::{Kind, Record, Recording};
    let file = std::env::temp_dir().join(format!("forks-{}.mprof", std::process::id()));
    let runtime = Runtime::builder().workers(2).profile(&file).build().unwrap();
    assert_eq!(runtime.run_task(fib(8)).unwrap(), 21);
    drop(runtime);
    let recording = Recording::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let records = || recording.threads.iter().flat_map(|thread| &thread.records);
    let is_task = |record: &&Record| match record {
        Record::Span { tag, .. } => {
            recording.label(tag.label).is_some_and(|label| label.kind == Kind::Task && label.name == "fib")
        }
        _ => false,
    };
    let mut ran: Vec<_> = records().filter(is_task).filter_map(operation).collect();
    ran.sort();
    ran.dedup();
    let mut launched: Vec<_> =
        records().filter(|record| matches!(record, Record::Launched { .. })).filter_map(operation).collect();
    launched.sort();
    assert_eq!((ran.len(), &ran), (67, &launched));
    // Each awaits children of its own.
    let parent_of = |child| {
        records().find_map(|record| match record {
            Record::Launched { operation, by, .. } if *operation == child => Some(*by),
            _ => None,
        })
    };
    let mut awaited = 0;
    for record in records() {
        if let Record::Awaited { operation, event, .. } = record
            && let Some(parent) = parent_of(*event)
        {
            assert_eq!(parent, *operation);
            awaited += 1;
        }
    }
    assert!(awaited > 0);
}

fn operation(record: &maniple::profile::Record) -> Option<maniple::profile::OperationId> {
    use maniple::profile::Record::{Launched, Span};
    match record {
        Span { operation, .. } | Launched { operation, .. } => Some(*operation),
        _ => None,
    }
}
