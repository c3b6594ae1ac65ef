//! Destructors of the program's values are no affair of the runtime's: it goes on when they panic, and logs that.

use crate::log;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use maniple::prelude::*;
use tracing::Level;

/// Panics when it is dropped, and counts that.
struct Mine(Arc<AtomicUsize>);

impl Clone for Mine {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a mine went off");
    }
}

/// Runs a program with mines, of which this many go off: it ends well, and each is logged with these words.
fn run<T>(
    count: usize,
    words: &[&str],
    mut runtime: maniple::RuntimeBuilder,
    body: impl AsyncFnOnce(&Context, Mine) -> Result<T>,
) -> Result<T> {
    let log = log::keep(Level::ERROR);
    let went_off = Arc::new(AtomicUsize::new(0));
    runtime = runtime.workers(2);
    let runtime = runtime.build().unwrap();
    let outcome = runtime.run(async |cx| {
        let mine = Mine(Arc::clone(&went_off));
        body(cx, mine).await
    });
    // The runtime is as well as before.
    assert_eq!(runtime.run_task(number(6)).unwrap(), 6);
    drop(runtime);
    assert_eq!(went_off.load(Ordering::SeqCst), count);
    let logged = log.take();
    assert_eq!(logged.len(), count, "{logged:?}");
    assert!(logged.iter().all(|line| words.iter().all(|word| line.contains(word))), "{logged:?}");
    outcome
}

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn number(number: u32) -> u32 {
    number
}

/// Gives a mine away: its own argument goes with it.
#[task(leaf)]
fn lay(#[writes(value)] cells: Piece<Cell>, mine: Arc<Mine>) -> Mine {
    cells.points().for_each(|point| cells.value[point] += 1);
    Mine(Arc::clone(&mine.0))
}

#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>, _mine: Arc<Mutex<Option<Mine>>>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Loop {
    Untraced,
    Traced,
    Found,
}

const LOOPS: [Loop; 3] = [Loop::Untraced, Loop::Traced, Loop::Found];

fn builder(kind: Loop) -> maniple::RuntimeBuilder {
    Runtime::builder().tracing(kind != Loop::Untraced).automatic_tracing(kind == Loop::Found)
}

impl Loop {
    fn step(self, cx: &Context, step: impl FnOnce(&Context)) {
        match self {
            Self::Traced => cx.trace("step", step),
            Self::Untraced | Self::Found => step(cx),
        }
    }
}

const STEPS: usize = 100;

#[test]
fn results_whose_destructors_panic_do_no_harm() {
    for kind in LOOPS {
        let sum = run(2 * STEPS, &["a result", "lay", "a mine went off"], builder(kind), async |cx, mine| {
            // This one never goes off.
            let mine = Arc::new(mine);
            std::mem::forget(Arc::clone(&mine));
            let cells = cx.region::<Cell>(8)?;
            let halves = cells.partition(2).equal()?;
            for _ in 0..STEPS {
                kind.step(cx, |cx| {
                    cx.index_launch(2, lay(&halves, Arc::clone(&mine)));
                });
            }
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum::<i64>())
        });
        assert_eq!(sum.unwrap(), (8 * STEPS) as i64, "{kind:?}");
    }
}

#[test]
fn arguments_whose_destructors_panic_do_no_harm() {
    for kind in LOOPS {
        let sum = run(STEPS, &["an argument", "a mine went off"], builder(kind), async |cx, mine| {
            let cells = cx.region::<Cell>(8)?;
            let halves = cells.partition(2).equal()?;
            for _ in 0..STEPS {
                let own = Arc::new(Mutex::new(Some(mine.clone())));
                kind.step(cx, |cx| {
                    cx.index_launch(2, touch(&halves, own));
                });
            }
            std::mem::forget(mine);
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum::<i64>())
        });
        assert_eq!(sum.unwrap(), (8 * STEPS) as i64, "{kind:?}");
    }
}

#[test]
fn a_result_of_the_whole_program_that_gives_way_to_an_error_does_no_harm() {
    let outcome = run(1, &["a result", "top level"], Runtime::builder(), async |cx, mine| {
        cx.launch(fail());
        Ok(mine)
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })));
    let outcome = run(1, &["a result", "top level"], Runtime::builder(), async |cx, mine| {
        let cells = cx.region::<Cell>(8)?;
        Ok((mine, cx.map_read(&cells, Cell::value).await?))
    });
    assert!(matches!(outcome, Err(Error::StillMapped { .. })));
}

#[task(leaf)]
fn fail() -> Result<u32> {
    Err(Error::application("on purpose"))
}

/// Returns a mine, though a child has failed.
#[task]
async fn fail_late(cx: &Context, #[writes(value)] cells: Region<Cell>, mine: Arc<Mine>) -> Result<Mine> {
    cx.launch(spoil(&cells));
    Ok(Mine(Arc::clone(&mine.0)))
}

#[task(leaf)]
fn spoil(#[writes(value)] _cells: Piece<Cell>) -> Result<()> {
    Err(Error::application("on purpose"))
}

#[test]
fn a_result_of_a_task_whose_child_failed_does_no_harm() {
    let outcome = run(1, &["a result", "fail_late"], Runtime::builder(), async |cx, mine| {
        let mine = Arc::new(mine);
        std::mem::forget(Arc::clone(&mine));
        let cells = cx.region::<Cell>(8)?;
        cx.launch(fail_late(&cells, mine));
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
}

#[test]
fn a_function_of_a_future_that_is_never_called_does_no_harm() {
    for over_points in [false, true] {
        let name = "a function of";
        let outcome = run(1, &[name], Runtime::builder(), async |cx, mine| match over_points {
            false => cx.launch(fail()).map(move |number| if std::ptr::eq(&mine, &mine) { number } else { 0 }).await,
            true => {
                let all =
                    cx.index_launch(2, fail()).map(move |number| if std::ptr::eq(&mine, &mine) { number } else { 0 });
                all.await?;
                Ok(0)
            }
        });
        assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
    }
}

#[task]
async fn give(_cx: &Context, count: Arc<AtomicUsize>) -> Mine {
    Mine(count)
}

#[test]
fn the_future_of_a_forked_task_may_be_dropped_whatever_its_value_is() {
    let outcome = run(1, &["a result", "give"], Runtime::builder(), async |cx, mine| {
        let future = cx.launch(give(Arc::clone(&mine.0)));
        std::mem::forget(mine);
        cx.execution_fence().await?;
        drop(future);
        Ok(())
    });
    outcome.unwrap();
}

/// Cannot be copied twice.
struct Unique(Arc<AtomicBool>);

impl Clone for Unique {
    fn clone(&self) -> Self {
        assert!(!self.0.swap(true, Ordering::SeqCst), "there is but one");
        Self(Arc::clone(&self.0))
    }
}

#[task(leaf)]
fn unique() -> Unique {
    Unique(Arc::new(AtomicBool::new(true)))
}

#[test]
fn a_value_whose_clone_panics_makes_an_error_of_what_is_computed_from_it() {
    let _log = log::keep(Level::ERROR);
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let one = cx.launch(unique()).map(|_| ()).await;
        let all = cx.index_launch(3, unique()).map(|_| ()).await;
        let zipped = cx.launch(unique()).zip_with(&cx.launch(unique()), |_, _| ()).await;
        Ok([one, all, zipped])
    });
    for error in outcome.unwrap().map(Result::unwrap_err) {
        assert!(matches!(&error, Error::Panicked { message, .. } if &**message == "there is but one"), "{error}");
    }
}
