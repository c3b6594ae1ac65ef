//! The cost of events and operations in nanoseconds, beside the costs that the design promises.
//!
//! ```console
//! $ cargo run --release -p maniple-realm --example event_cost
//! $ cargo run --release -p maniple-realm --example event_cost chain 1   # what has "chain" in its name, with 1 worker
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use maniple_realm::operation::with_context;
use maniple_realm::{After, Event, Fault, Realm, Spawn, UserEvent};

const LINKS: usize = 1_000_000;
const TASKS: usize = 2_000_000;
const BATCH: usize = 1024;

type Measure = fn(&Realm) -> f64;

/// Measurements: their names, units, and the nanoseconds that each may take.
const MEASURES: [(&str, &str, f64, Measure); 11] = [
    ("trigger a chain of user events", "ns/link", 300.0, chain),
    ("trigger one event with many waiters", "ns/waiter", 30.0, fan_out),
    ("merge 16 events, trigger them", "ns/input", 100.0, merges),
    ("spawn empty tasks from outside", "ns/task", 333.0, spawn_outside),
    ("spawn empty tasks from a task", "ns/task", 333.0, spawn_inside),
    ("spawn empty tasks from a task a worker", "ns/task", 333.0, spawn_everywhere),
    ("spawn and run 1024 at a time, from a task", "ns/task", 333.0, batches),
    ("spawn and run 1024 at a time, from outside", "ns/task", 333.0, batches_outside),
    ("spawn pinned tasks from outside", "ns/task", 333.0, spawn_pinned),
    ("run a chain of tasks", "ns/task", 333.0, task_chain),
    ("spawn a task from outside and wait", "ns/task", 20_000.0, round_trips),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let workers: usize = match std::env::args().nth(2) {
        Some(workers) => workers.parse()?,
        None => std::thread::available_parallelism()?.get(),
    };
    println!("{workers} workers; best of {ROUNDS} rounds");
    for (what, unit, budget, measure) in MEASURES.into_iter().filter(|(what, ..)| what.contains(&only)) {
        // Each in a realm of its own: millions of slots freed in another measure's order would miss the cache.
        let realm = Realm::builder().workers(workers).build()?;
        let cost = (0..ROUNDS).map(|_| measure(&realm)).fold(f64::INFINITY, f64::min);
        let (rate, share) = (1e3 / cost, cost / budget);
        println!("{what:42} {cost:8.1} {unit:9} {rate:8.2} M/s   {share:5.2} of the {budget} ns allowed");
    }
    Ok(())
}

const ROUNDS: usize = 5;

fn per(start: Instant, count: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

fn chain(realm: &Realm) -> f64 {
    let events: Vec<UserEvent> = (0..=LINKS).map(|_| realm.user_event()).collect();
    for pair in events.windows(2) {
        realm.trigger_after(pair[1], &pair[0].event());
    }
    let start = Instant::now();
    realm.trigger(events[0]);
    let cost = per(start, LINKS);
    assert!(realm.has_triggered(events[LINKS].event()));
    cost
}

fn fan_out(realm: &Realm) -> f64 {
    let first = realm.user_event();
    let waiters: Vec<UserEvent> = (0..LINKS).map(|_| realm.user_event()).collect();
    for &waiter in &waiters {
        realm.trigger_after(waiter, &first.event());
    }
    let start = Instant::now();
    realm.trigger(first);
    per(start, LINKS)
}

fn merges(realm: &Realm) -> f64 {
    let inputs: Vec<UserEvent> = (0..LINKS).map(|_| realm.user_event()).collect();
    let events: Vec<Event> = inputs.iter().map(|input| input.event()).collect();
    let start = Instant::now();
    let merged: Vec<Event> = events.chunks(16).map(|sixteen| realm.merge(sixteen)).collect();
    for &input in &inputs {
        realm.trigger(input);
    }
    let cost = per(start, LINKS);
    assert!(merged.iter().all(|&event| realm.has_triggered(event)));
    cost
}

/// Counts the tasks in batches; the last one triggers.
struct Countdown {
    left: AtomicU64,
    done: UserEvent,
}

impl Countdown {
    fn new(realm: &Realm, count: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(count as u64), done: realm.user_event() })
    }

    fn arrive(&self, realm: &Realm) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            realm.trigger(self.done);
        }
    }
}

/// Spawns empty tasks, and gives an event for the end of all.
fn spawn_tasks(realm: &Realm, count: usize) -> Event {
    spawn_each(realm, count, |_| Spawn::ANYWHERE)
}

fn spawn_each(realm: &Realm, count: usize, spawn: impl Fn(usize) -> Spawn<'static>) -> Event {
    let mut recent = Vec::with_capacity(1024);
    let mut all = Event::NONE;
    for task in 0..count {
        recent.push(realm.spawn(spawn(task), || ()));
        if recent.len() == 1024 {
            recent.push(all);
            all = realm.merge(&recent[..]);
            recent.clear();
        }
    }
    recent.push(all);
    realm.merge(&recent[..])
}

fn spawn_outside(realm: &Realm) -> f64 {
    let start = Instant::now();
    let all = spawn_tasks(realm, TASKS);
    realm.wait(all).expect("empty tasks do not fail");
    per(start, TASKS)
}

fn spawn_pinned(realm: &Realm) -> f64 {
    let processors = realm.processors();
    let start = Instant::now();
    let all = spawn_each(realm, TASKS, |task| Spawn::on(processors[task % processors.len()]));
    realm.wait(all).expect("empty tasks do not fail");
    per(start, TASKS)
}

fn spawn_inside(realm: &Realm) -> f64 {
    spawn_by(realm, 1)
}

fn spawn_everywhere(realm: &Realm) -> f64 {
    spawn_by(realm, realm.processors().len())
}

fn spawn_by(realm: &Realm, spawners: usize) -> f64 {
    let countdown = Countdown::new(realm, spawners);
    let start = Instant::now();
    for _ in 0..spawners {
        let (spawner, countdown) = (realm.clone(), Arc::clone(&countdown));
        realm.spawn(Spawn::ANYWHERE, move || {
            let all = spawn_tasks(&spawner, TASKS / spawners);
            let handle = spawner.clone();
            spawner.when(&all, move |_| countdown.arrive(&handle));
        });
    }
    realm.wait(countdown.done.event()).expect("empty tasks do not fail");
    per(start, TASKS)
}

/// [`batches`], spawned by a thread that is no worker.
fn batches_outside(realm: &Realm) -> f64 {
    let start = Instant::now();
    for _ in 0..TASKS / BATCH {
        realm.wait(spawn_tasks(realm, BATCH)).expect("empty tasks do not fail");
    }
    per(start, TASKS)
}

/// As a runtime does that bounds what is in flight: slots and queues stay in the cache.
fn batches(realm: &Realm) -> f64 {
    let start = Instant::now();
    let done = realm.spawn(
        Spawn::ANYWHERE,
        with_context(|cx| {
            for _ in 0..TASKS / BATCH {
                cx.realm().wait(spawn_tasks(cx.realm(), BATCH))?;
            }
            Ok::<(), Arc<Fault>>(())
        }),
    );
    realm.wait(done).expect("empty tasks do not fail");
    per(start, TASKS)
}

fn task_chain(realm: &Realm) -> f64 {
    let first = realm.user_event();
    let mut last = first.event();
    for _ in 0..LINKS {
        last = realm.spawn(Spawn::after(After::needs(&[last])), || ());
    }
    let start = Instant::now();
    realm.trigger(first);
    realm.wait(last).expect("empty tasks do not fail");
    per(start, LINKS)
}

fn round_trips(realm: &Realm) -> f64 {
    const TRIPS: usize = 10_000;
    let start = Instant::now();
    for _ in 0..TRIPS {
        let done = realm.spawn(Spawn::ANYWHERE, || ());
        realm.wait(done).expect("empty tasks do not fail");
    }
    per(start, TRIPS)
}
