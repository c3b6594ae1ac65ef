//! Tasks that do nothing and wait for nothing, made by one thread or task.
//!
//! The size is how many. In a first round they count themselves, which is the answer; in the round that counts they do
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::prelude::*;
use maniple_realm::operation::with_context;
use maniple_realm::{Fault, Realm, Spawn};

use super::{Source, found, rayon_pool};
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::{Error as BenchError, Result as BenchResult};
use crate::toolbox::program::Outcome;
use crate::toolbox::{Rival, Toolbox};

/// Empty tasks.
pub const CONTEST: Contest = Contest {
    name: "empty",
    title: "Empty tasks, all made by one",
    contestants,
    answer: |size| size[0],
    small: &[&[1], &[3000]],
    measure: Measure::Unit { unit: "task", count: |size| size[0], size: &[200_000] },
};

const SOURCES: &[Source] = &[
    (Rival::Taskflow, "Taskflow, asyncs from outside", "empty_taskflow.cpp"),
    (Rival::OpenMp, "OpenMP, tasks", "empty_openmp.c"),
    (Rival::StarPu, "StarPU, tasks from outside", "empty_starpu.c"),
];

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = vec![
        Contestant::new("Maniple's realm, from a task", cores, move |size| from_inside(cores, size[0])),
        Contestant::new("Maniple's realm, from outside", cores, move |size| from_outside(cores, size[0])),
        Contestant::new("Maniple, launched by a task", cores, move |size| launches(cores, size[0])),
        Contestant::new("rayon, spawned in a scope", cores, move |size| with_rayon(cores, size[0])),
    ];
    contestants.extend(found(toolbox, SOURCES));
    contestants
}

/// How many events are merged at a time.
const BATCH: u64 = 1024;

/// Spawns tasks, a batch after the other, and waits for each.
fn spawn<F: FnOnce() + Send + 'static>(realm: &Realm, count: u64, task: impl Fn() -> F) -> Result<(), Arc<Fault>> {
    let mut open = Vec::with_capacity(BATCH as usize);
    for first in (0..count).step_by(BATCH as usize) {
        open.clear();
        open.extend((first..count.min(first + BATCH)).map(|_| realm.spawn(Spawn::ANYWHERE, task())));
        realm.wait(realm.merge(&open))?;
    }
    Ok(())
}

/// A task that counts itself.
fn counting(ran: &Arc<AtomicU64>) -> impl Fn() -> Box<dyn FnOnce() + Send> + Send + use<> {
    let ran = Arc::clone(ran);
    move || {
        let ran = Arc::clone(&ran);
        Box::new(move || _ = ran.fetch_add(1, Ordering::Relaxed))
    }
}

/// Spawned by a thread that is no worker.
pub(crate) fn from_outside(cores: usize, count: u64) -> BenchResult<Outcome> {
    let realm = Realm::builder().workers(cores).build()?;
    let ran = Arc::new(AtomicU64::new(0));
    spawn(&realm, count, counting(&ran))?;
    timed(|| {
        spawn(&realm, count, || || ())?;
        Ok(ran.load(Ordering::Relaxed))
    })
}

/// Spawned by a task.
pub(crate) fn from_inside(cores: usize, count: u64) -> BenchResult<Outcome> {
    let realm = Realm::builder().workers(cores).build()?;
    let ran = Arc::new(AtomicU64::new(0));
    let counting = counting(&ran);
    realm.wait(realm.spawn(Spawn::ANYWHERE, with_context(move |cx| spawn(cx.realm(), count, counting))))?;
    timed(|| {
        realm.wait(realm.spawn(Spawn::ANYWHERE, with_context(move |cx| spawn(cx.realm(), count, || || ()))))?;
        Ok(ran.load(Ordering::Relaxed))
    })
}

/// Counts itself where there is something to count with.
#[task(leaf)]
fn nothing(ran: Option<Arc<AtomicU64>>) {
    if let Some(ran) = ran {
        ran.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tasks of the programming model. It bounds by itself how many are in flight.
fn launches(cores: usize, count: u64) -> BenchResult<Outcome> {
    let runtime = Runtime::builder().workers(cores).build()?;
    let ran = Arc::new(AtomicU64::new(0));
    let all = |ran: Option<Arc<AtomicU64>>| -> BenchResult<()> {
        runtime.run(async |cx| {
            (0..count).for_each(|_| _ = cx.launch(nothing(ran.clone())));
            cx.execution_fence().await
        })?;
        Ok(())
    };
    all(Some(Arc::clone(&ran)))?;
    timed(|| {
        all(None)?;
        Ok(ran.load(Ordering::Relaxed))
    })
}

fn with_rayon(cores: usize, count: u64) -> BenchResult<Outcome> {
    let ran = AtomicU64::new(0);
    rayon_pool(cores)?.install(|| {
        rayon::scope(|scope| {
            (0..count).for_each(|_| scope.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed)));
        });
        timed(|| {
            rayon::scope(|scope| (0..count).for_each(|_| scope.spawn(|_| ())));
            Ok::<_, BenchError>(ran.load(Ordering::Relaxed))
        })
    })
}
