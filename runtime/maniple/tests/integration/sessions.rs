//! Sessions: programs that are not inside of a function.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{Error, Interrupt, RegionError, Session};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

#[task]
fn double(number: i64) -> i64 {
    2 * number
}

#[task(leaf)]
fn fail(#[reads(value)] _cells: Piece<Cell>) -> Result<i64> {
    Err(Error::application("as planned"))
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

/// A task that ends when something is sent, and gives that.
fn gate() -> (Sender<i64>, TaskLauncher) {
    let (sender, receiver): (_, Receiver<i64>) = channel();
    let receiver = Mutex::new(receiver);
    let body = move |_: &maniple::task::LeafCall<'_>| Ok(Value::new(receiver.lock().unwrap().recv().unwrap_or(-1)));
    let task = TaskDefinition::new("gate").leaf(TaskOptions::default(), body);
    (sender, TaskLauncher::new(&Arc::new(task)))
}

#[test]
fn what_another_thread_does_is_no_part_of_a_strict_trace() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let (cells, other) = (session.region::<Cell>(100).unwrap(), session.region::<Cell>(100).unwrap());
    let pieces = cells.partition(4).equal().unwrap();
    session.fill(&cells, Cell::value, 0).unwrap();
    for step in 0..40 {
        let run = session.strict_trace("step", |cx| {
            cx.index_launch(4, add(&pieces, 1));
            if step % 10 == 5 {
                // In the middle of a run, and surely before it ends.
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        session.fill(&other, Cell::value, step).unwrap();
                        session.launch(add(&other, 1));
                    });
                });
            }
            cx.index_launch(4, add(&pieces, 2));
        });
        run.unwrap();
    }
    let (total, last) = (session.launch(sum(&cells)), session.launch(sum(&other)));
    assert_eq!(session.wait(total).unwrap(), 100 * 40 * 3);
    assert_eq!(session.wait(last).unwrap(), 100 * 36);
    session.finish().unwrap();
    assert!(runtime.statistics().replays >= 20, "{:?}", runtime.statistics());
}

#[test]
fn calls_one_by_one_do_what_a_function_does() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let cells = session.region::<Cell>(100).unwrap();
    let pieces = cells.partition(4).equal().unwrap();
    session.fill(&cells, Cell::value, 1).unwrap();
    for amount in 0..50 {
        session.index_launch(4, add(&pieces, amount));
    }
    let total = session.index_launch(4, sum(&pieces)).reduce(Sum);
    assert_eq!(session.wait(total).unwrap(), 100 * (1 + 50 * 49 / 2));
    {
        let values = session.wait(session.map_read(&cells, Cell::value)).unwrap();
        assert_eq!(values.to_vec()[7], 1 + 50 * 49 / 2);
    }
    assert_eq!(session.wait(async { Ok(session.launch(double(4)).await? + 1) }).unwrap(), 9);
    session.finish().unwrap();
    assert_eq!(runtime.run(async |cx| cx.launch(double(3)).await).unwrap(), 6, "and the next one begins");
}

#[test]
fn a_session_can_be_used_by_several_threads() {
    fn is_for_threads<T: Send + Sync>(_: &T) {}
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    is_for_threads(&session);
    std::thread::scope(|scope| {
        for thread in 0..3_i64 {
            let session = &session;
            scope.spawn(move || {
                let cells = session.region::<Cell>(8).unwrap();
                session.fill(&cells, Cell::value, 0).unwrap();
                for round in 0..40 {
                    session.launch(add(&cells, thread));
                    assert_eq!(session.wait(session.launch(double(round))).unwrap(), 2 * round);
                    assert_eq!(session.wait(session.launch(sum(&cells))).unwrap(), 8 * (round + 1) * thread);
                }
                session.destroy_region(&cells).unwrap();
            });
        }
    });
    session.finish().unwrap();
    // The last worker may still be letting go of the last instance.
    let memory = runtime.machine().memories()[0].id;
    while runtime.bytes_used(memory) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_session_that_is_moved_to_another_thread_goes_on_there() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let cells = session.region::<Cell>(8).unwrap();
    session.fill(&cells, Cell::value, 2).unwrap();
    let session = std::thread::spawn(move || {
        let total = session.launch(sum(&cells));
        assert_eq!(session.wait(total).unwrap(), 16);
        session
    })
    .join()
    .unwrap();
    session.finish().unwrap();
}

#[test]
fn a_failure_that_was_seen_is_over_and_another_one_is_the_sessions() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let cells = session.region::<Cell>(8).unwrap();
    session.fill(&cells, Cell::value, 0).unwrap();
    let error = session.wait(session.launch(fail(&cells))).unwrap_err();
    assert!(error.to_string().contains("as planned"), "{error}");
    session.finish().unwrap();

    let session = runtime.begin().unwrap();
    let cells = session.region::<Cell>(8).unwrap();
    session.fill(&cells, Cell::value, 0).unwrap();
    session.launch(fail(&cells));
    let error = session.finish().unwrap_err();
    assert!(matches!(&error, Error::TaskFailed { task, .. } if task == "fail"), "{error}");
}

#[test]
fn a_session_that_is_dropped_waits_for_what_it_has_launched() {
    let runtime = runtime();
    let done = Arc::new(AtomicU64::new(0));
    let session = runtime.begin().unwrap();
    let counted = Arc::clone(&done);
    let body = move |_: &maniple::task::LeafCall<'_>| {
        std::thread::yield_now();
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(Value::new(()))
    };
    let task = Arc::new(TaskDefinition::new("count").leaf(TaskOptions::default(), body));
    for _ in 0..100 {
        session.launch(TaskLauncher::new(&task).typed::<()>());
    }
    drop(session);
    assert_eq!(done.load(Ordering::SeqCst), 100);
}

#[test]
fn after_its_end_nothing_is_launched_and_results_stay() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let (context, cells) = (Context::clone(&session), session.region::<Cell>(8).unwrap());
    let (seen, unseen) = (session.launch(double(1)), session.launch(double(2)));
    assert_eq!(session.wait(seen.clone()).unwrap(), 2);
    session.finish().unwrap();
    assert_eq!((seen.wait().unwrap(), unseen.wait().unwrap()), (2, 4));
    let error = context.launch(double(3)).wait().unwrap_err();
    assert!(matches!(&error, Error::Ended { task } if task == "top level"), "{error}");
    let error = runtime.run(async |cx| cx.launch(sum(&cells)).await).unwrap_err();
    assert!(matches!(error, Error::Region(RegionError::Ended { .. })), "{error}");
}

#[test]
fn data_that_is_still_mapped_at_the_end_is_an_error() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let cells = session.region::<Cell>(8).unwrap();
    session.fill(&cells, Cell::value, 0).unwrap();
    let kept = session.wait(session.map_read(&cells, Cell::value)).unwrap();
    let error = session.finish().unwrap_err();
    assert!(matches!(error, Error::StillMapped { .. }), "{error}");
    drop(kept);
}

#[test]
fn a_wait_that_is_interrupted_leaves_everything_as_it_was() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let (open, launcher) = gate();
    let (future, interrupt) = (session.launch(launcher.typed::<i64>()), Interrupt::new());
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| session.wait_until(future.clone(), &interrupt));
            let other = interrupt.clone();
            scope.spawn(move || other.set());
            assert!(waits.join().unwrap().unwrap().is_none());
        });
        assert!(interrupt.is_set());
        // Set before: at once.
        assert!(session.wait_until(future.clone(), &interrupt).unwrap().is_none());
        interrupt.clear();
    }
    assert_eq!(session.wait(session.launch(double(4))).unwrap(), 8);
    open.send(17).unwrap();
    assert_eq!(session.wait_until(future.clone(), &interrupt).unwrap(), Some(17));
    // What is there needs no wait that could be interrupted.
    interrupt.set();
    assert_eq!(session.wait_until(future, &interrupt).unwrap(), Some(17));
    session.finish().unwrap();
}

#[test]
fn one_interrupt_ends_the_waits_of_all_threads() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let (open, launcher) = gate();
    let (future, interrupt) = (session.launch(launcher.typed::<i64>()), Interrupt::new());
    std::thread::scope(|scope| {
        let waits: Vec<_> =
            (0..4).map(|_| scope.spawn(|| session.wait_until(future.clone(), &interrupt).unwrap())).collect();
        interrupt.set();
        waits.into_iter().for_each(|wait| assert_eq!(wait.join().unwrap(), None));
    });
    open.send(1).unwrap();
    assert_eq!(session.wait(future).unwrap(), 1);
    session.finish().unwrap();
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    let (open, launcher) = gate();
    let future = session.launch(launcher.typed::<i64>());
    for time in [Duration::ZERO, Duration::from_millis(5)] {
        assert_eq!(session.wait_for(future.clone(), time).unwrap(), None);
    }
    open.send(3).unwrap();
    assert_eq!(session.wait_for(future.clone(), Duration::MAX).unwrap(), Some(3));
    assert_eq!(session.wait_for(future, Duration::ZERO).unwrap(), Some(3));
    session.finish().unwrap();
}

/// The session that a task of its own runtime is to use.
static HELD: Mutex<Option<Session>> = Mutex::new(None);

#[task]
fn misuse() -> String {
    let session = HELD.lock().unwrap().take().unwrap();
    let waited = session.wait(session.launch(double(1))).unwrap_err();
    let finished = session.finish().unwrap_err();
    format!("{waited}; {finished}")
}

#[test]
fn a_task_can_neither_wait_for_a_session_of_its_runtime_nor_finish_it() {
    let runtime = runtime();
    *HELD.lock().unwrap() = Some(runtime.begin().unwrap());
    let told = runtime.run(async |cx| cx.launch(misuse()).await).unwrap();
    assert_eq!(told.matches("wait on a thread of the program's own").count(), 2, "{told}");
}

#[test]
fn a_session_keeps_its_runtime() {
    let runtime = runtime();
    let session = runtime.begin().unwrap();
    drop(runtime);
    assert_eq!(session.wait(session.launch(double(21))).unwrap(), 42);
    session.finish().unwrap();
}

#[test]
fn sessions_one_after_the_other_leave_nothing_behind() {
    let runtime = runtime();
    for _ in 0..20 {
        let session = runtime.begin().unwrap();
        let cells = session.region::<Cell>(1000).unwrap();
        session.fill(&cells, Cell::value, 1).unwrap();
        session.launch(add(&cells, 1));
        assert_eq!(session.wait(session.launch(sum(&cells))).unwrap(), 2000);
        drop(cells);
        session.finish().unwrap();
    }
    let memory = runtime.machine().memories()[0].id;
    while runtime.bytes_used(memory) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_panic_while_a_session_is_open_ends_it() {
    let runtime = runtime();
    let ran = AtomicBool::new(false);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let session = runtime.begin().unwrap();
        let future = session.launch(double(2));
        ran.store(true, Ordering::SeqCst);
        session.wait(async {
            future.await?;
            if ran.load(Ordering::SeqCst) {
                panic!("as planned");
            }
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(runtime.run(async |cx| cx.launch(double(3)).await).unwrap(), 6);
}
