//! Times in program order.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

/// The ends of a channel, for one task each.
type End<T> = Arc<Mutex<Option<T>>>;

fn end<T>(end: T) -> End<T> {
    Arc::new(Mutex::new(Some(end)))
}

#[task(leaf)]
fn wait(#[writes(value)] _cells: Piece<Cell>, gate: End<mpsc::Receiver<()>>) {
    gate.lock().unwrap().take().expect("it is for this task").recv().expect("the gate is opened");
}

#[task(leaf)]
fn open(gate: End<mpsc::Sender<()>>) {
    gate.lock().unwrap().take().expect("it is for this task").send(()).expect("the other waits");
}

#[task(leaf)]
fn fail() -> Result<()> {
    Err(Error::application("as always"))
}

#[test]
fn a_time_comes_after_what_was_launched_before_and_holds_up_nothing() {
    for (traced, recorded) in [(true, false), (false, false), (true, true)] {
        let runtime = Runtime::builder().workers(2).tracing(traced).record_operations(recorded).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(4)?;
            let mut times = Vec::new();
            for _ in 0..20 {
                let (sender, receiver) = mpsc::channel();
                times.push(cx.time());
                cx.launch(wait(&cells, end(receiver)));
                let after = cx.time();
                // What comes later need not wait for the time, or nothing would open the gate.
                assert!(!after.is_ready());
                let opened = cx.launch(open(end(sender)));
                times.extend([after, cx.time_after(&opened)]);
            }
            let mut all = Vec::new();
            for time in times {
                all.push(time.await?);
            }
            Ok(all)
        });
        let times: Vec<Duration> = outcome.unwrap();
        assert!(times.chunks(3).all(|turn| turn[0] <= turn[1]), "{times:?}");
        assert!(times.chunks(3).zip(times[3..].chunks(3)).all(|(one, next)| one[1] <= next[0]), "{times:?}");
        if recorded {
            maniple::record::check(&runtime.take_record()).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }
}

#[test]
fn a_time_is_there_whether_tasks_before_fail_and_that_after_a_result_is_not() {
    let outcome = Runtime::builder().workers(2).build().unwrap().run(async |cx| {
        assert!(cx.time().await? <= cx.time().await?);
        let failed = cx.launch(fail());
        cx.time().await?;
        assert!(cx.time_after(&failed).await.is_err());
        assert!(failed.await.is_err());
        Ok(())
    });
    outcome.unwrap();
}

#[task(leaf)]
fn triple(of: i64) -> i64 {
    3 * of
}

/// A task with a context of its own.
#[task]
async fn timed(cx: &Context) -> Result<bool> {
    let before = cx.time();
    let results = cx.index_launch(100, triple(7));
    let after = cx.time();
    Ok(results.reduce(Sum).await? == 2_100 && before.await? <= after.await?)
}

#[test]
fn tasks_time_themselves_too() {
    let outcome = Runtime::builder().workers(2).build().unwrap().run(async |cx| {
        let all = cx.index_launch(4, timed()).all().await?;
        Ok(all.into_iter().all(|right| right))
    });
    assert!(outcome.unwrap());
}
