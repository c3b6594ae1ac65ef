//! A runtime that has nothing to do.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use maniple::prelude::*;
use maniple_apps::circuit::pieces::CircuitPieces;
use rustix::time::ClockId;

use super::findings::{Bound, Findings, Row};
use super::points::{shape, step};
use super::{Effort, Target, seconds_of};
use crate::error::Result as BenchResult;

/// Target for the time that an idle runtime takes.
pub const TARGET: Target = Target {
    name: "idle",
    about: "a runtime while the program waits for something outside: the time of all cores that the process takes, before there was work, and after \
            a circuit that was replayed",
    measure,
};

/// After work, workers look for more for a while before they sleep.
const SETTLING: Duration = Duration::from_millis(200);

const STEPS: usize = 2000;

fn measure(effort: Effort) -> BenchResult<Findings> {
    let mut rows = Vec::new();
    for workers in [effort.cores, 2 * effort.cores] {
        let runtime = Runtime::builder().workers(workers).build()?;
        let before = runtime.run(async |_| Ok(watch(effort.idle).await))?;
        let after = runtime.run(async |cx| {
            let pieces = CircuitPieces::make(cx, shape()).await?;
            (0..STEPS).for_each(|_| step(cx, &pieces, 0));
            // The replay waits for more of the same.
            Ok(watch(effort.idle).await)
        })?;
        for (when, share) in [("before any work", before), ("after replays", after)] {
            let what = format!("idle runtime, {workers} workers, {when}: share of a core");
            rows.push(Row::new(what, 100.0 * share, "%").must(Bound::AtMost(1.0)));
        }
    }
    Ok(Findings { rows, details: Vec::new() })
}

/// The share that the watching thread has found, and the waker of the future that waits for it.
#[derive(Default)]
struct Watched {
    share: Option<f64>,
    waker: Option<Waker>,
}

/// The share of a core that this process takes while it waits for the answer.
async fn watch(seconds: f64) -> f64 {
    let watched = Arc::new(Mutex::new(Watched::default()));
    let watcher = {
        let watched = Arc::clone(&watched);
        move || {
            thread::sleep(SETTLING);
            let (started, used) = (Instant::now(), seconds_of(ClockId::ProcessCPUTime));
            thread::sleep(Duration::from_secs_f64(seconds));
            let share = (seconds_of(ClockId::ProcessCPUTime) - used) / started.elapsed().as_secs_f64();
            let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.share = Some(share);
            watched.waker.take().into_iter().for_each(Waker::wake);
        }
    };
    thread::spawn(watcher);
    poll_fn(|cx| {
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        match watched.share {
            Some(share) => Poll::Ready(share),
            None => {
                watched.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
