//! A chain: each link comes after the one before, so that nothing runs side by side and only the way from one to the
//! next counts.
//!
//! The size is how many links. The answer is how many found that it was their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use maniple::prelude::*;
use maniple_realm::{After, Realm, Spawn};

use super::{Source, found};
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::Result as BenchResult;
use crate::toolbox::program::Outcome;
use crate::toolbox::{Rival, Toolbox};

/// A chain.
pub const CONTEST: Contest = Contest {
    name: "chain",
    title: "A chain: time from one link to the next, with making them unless they were made before",
    contestants,
    answer: |size| size[0],
    small: &[&[1], &[2000]],
    measure: Measure::Unit { unit: "link", count: |size| size[0], size: &[100_000] },
};

const SOURCES: &[Source] = &[
    (Rival::Taskflow, "Taskflow, tasks, a graph built before", "chain_taskflow_graph.cpp"),
    (Rival::Taskflow, "Taskflow, tasks, dependent asyncs", "chain_taskflow_async.cpp"),
    (Rival::OpenMp, "OpenMP, tasks that change a number", "chain_openmp.c"),
    (Rival::StarPu, "StarPU, tasks that change a number", "chain_starpu.c"),
];

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = vec![
        Contestant::new("Maniple's realm, tasks after events", cores, move |size| tasks(cores, size[0])),
        Contestant::new("Maniple's realm, events only", cores, move |size| events(cores, size[0])),
        Contestant::new("Maniple, tasks that pass a future on", cores, move |size| futures(cores, size[0])),
    ];
    contestants.extend(found(toolbox, SOURCES));
    contestants
}

/// Events each of which triggers the next. Answers how many have triggered.
fn events(cores: usize, links: u64) -> BenchResult<Outcome> {
    let Triggered { making, triggering, count } = chain_of_events(cores, links)?;
    Ok(Outcome { seconds: making + triggering, answer: count })
}

/// A chain of events that has triggered.
pub(crate) struct Triggered {
    /// Seconds that it took to make it.
    pub(crate) making: f64,
    /// Seconds from the first event to the last.
    pub(crate) triggering: f64,
    /// How many have triggered.
    count: u64,
}

/// Makes a chain of events and triggers the first, twice; the second time counts.
pub(crate) fn chain_of_events(cores: usize, links: u64) -> BenchResult<Triggered> {
    let realm = Realm::builder().workers(cores).build()?;
    let all = || -> BenchResult<_> {
        let started = Instant::now();
        let first = realm.user_event();
        let mut last = first.event();
        let mut events = Vec::with_capacity(links as usize);
        for _ in 0..links {
            let next = realm.user_event();
            realm.trigger_after(next, After::needs(&[last]));
            last = next.event();
            events.push(last);
        }
        let made = Instant::now();
        realm.trigger(first);
        realm.wait(last)?;
        Ok((events, (made - started).as_secs_f64(), made.elapsed().as_secs_f64()))
    };
    let (events, ..) = all()?;
    let count = events.into_iter().filter(|&event| realm.has_triggered(event)).count() as u64;
    let (_, making, triggering) = all()?;
    Ok(Triggered { making, triggering, count })
}

/// Tasks each of which waits for the event of the one before, and counts itself if it is its turn.
fn tasks(cores: usize, links: u64) -> BenchResult<Outcome> {
    let realm = Realm::builder().workers(cores).build()?;
    let number = Arc::new(AtomicU64::new(0));
    let all = || {
        number.store(0, Ordering::Relaxed);
        let mut last = realm.spawn(Spawn::ANYWHERE, || ());
        for link in 0..links {
            let number = Arc::clone(&number);
            let add = move || {
                let count = number.load(Ordering::Relaxed);
                number.store(count + u64::from(count == link), Ordering::Relaxed);
            };
            last = realm.spawn(Spawn::after(After::needs(&[last])), add);
        }
        realm.wait(last)?;
        Ok(number.load(Ordering::Relaxed))
    };
    all()?;
    timed(all)
}

#[task(leaf)]
fn add_one(number: u64) -> u64 {
    number + 1
}

/// Tasks each of which adds one to what the one before returned.
fn futures(cores: usize, links: u64) -> BenchResult<Outcome> {
    let runtime = Runtime::builder().workers(cores).build()?;
    let all = || {
        let last = runtime.run(async |cx| {
            let mut number = cx.launch(add_one(0));
            for _ in 1..links {
                number = cx.launch(add_one(&number));
            }
            number.await
        });
        Ok(last?)
    };
    all()?;
    timed(all)
}
