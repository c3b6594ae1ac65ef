//! While graphs run, a thread that waits and has no core of its own does a worker's work; and nothing depends on its coming back.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use maniple_realm::graph::{Edge, Graph, GraphRuns, GraphSpec, GraphWork, NodeSpec, Place};
use maniple_realm::{Event, Fault, Realm, Spawn, Target, UserEvent, WorkerContext};
use parking_lot::Mutex;

const DEPTH: u64 = 4;

/// What a node does, besides saying where it runs.
type Body = Box<dyn Fn(&WorkerContext<'_>) + Send + Sync>;

/// A chain of nodes, one a run, and the event that the run in hand triggers.
struct Chain {
    realm: Realm,
    body: Body,
    ends: Mutex<Vec<Option<UserEvent>>>,
    threads: Mutex<HashSet<ThreadId>>,
    /// The processors that the nodes were told they run on.
    processors: Mutex<HashSet<u32>>,
}

impl GraphWork for Chain {
    fn run(&self, _: Place, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        self.threads.lock().insert(thread::current().id());
        self.processors.lock().insert(context.processor().0);
        (self.body)(context);
        Ok(())
    }

    fn poisoned(&self, _: Place, _: &Arc<Fault>) {}

    fn stage_ended(&self, run: u64, _: u32) {
        let end = self.ends.lock()[(run % DEPTH) as usize].take();
        end.into_iter().for_each(|end| self.realm.trigger(end));
    }

    fn run_ended(&self, _: u64) {}
}

/// A chain that runs, as long as this is there.
struct Running {
    realm: Realm,
    chain: Arc<Chain>,
    runs: GraphRuns,
    next: u64,
}

impl Running {
    fn start(realm: &Realm, body: impl Fn(&WorkerContext<'_>) + Send + Sync + 'static) -> Self {
        let home = realm.processors()[0];
        let before = vec![Edge { node: 0, needs: true }];
        let node = NodeSpec { stage: 0, home, pinned: false, takes: false, after: Vec::new(), after_previous: before };
        let graph = Arc::new(Graph::new(&GraphSpec { stages: 1, nodes: vec![node] }, realm.processors()));
        let chain = Arc::new(Chain {
            realm: realm.clone(),
            body: Box::new(body),
            ends: Mutex::new(vec![None; DEPTH as usize]),
            threads: Mutex::default(),
            processors: Mutex::default(),
        });
        let runs = realm.start_graph(&graph, Arc::clone(&chain) as Arc<dyn GraphWork>, DEPTH as usize);
        Self { realm: realm.clone(), chain, runs, next: 0 }
    }

    /// Has the next node run, and waits for it in the realm.
    fn step(&mut self) {
        let end = self.open();
        self.realm.wait(end).unwrap();
    }

    /// Has the next node run. Gives its end.
    fn open(&mut self) -> Event {
        while !self.runs.is_armed(self.next) {
            thread::yield_now();
        }
        let end = self.realm.user_event();
        self.chain.ends.lock()[(self.next % DEPTH) as usize] = Some(end);
        self.runs.open(self.next, 0);
        self.next += 1;
        end.event()
    }

    fn has_run_on(&self, thread: ThreadId) -> bool {
        self.chain.threads.lock().contains(&thread)
    }

    /// Goes on until this thread has run a node.
    fn step_until_guest(&mut self) {
        while !self.has_run_on(thread::current().id()) {
            self.step();
        }
    }
}

/// A realm with no core for a thread more than the workers.
fn full(workers: usize) -> Realm {
    Realm::builder().workers(workers).cores(workers).stack_size(1 << 20).build().unwrap()
}

#[test]
fn a_thread_that_waits_does_a_workers_work() {
    for workers in [1, 2] {
        let realm = full(workers);
        let mut running = Running::start(&realm, |_| ());
        running.step_until_guest();
        let known: HashSet<_> = realm.processors().iter().map(|processor| processor.0).collect();
        assert!(running.chain.processors.lock().is_subset(&known), "a guest is a worker to the bodies");
    }
}

#[test]
fn a_thread_with_a_core_of_its_own_is_no_guest() {
    let realm = Realm::builder().workers(1).cores(2).stack_size(1 << 20).build().unwrap();
    let mut running = Running::start(&realm, |_| ());
    (0..1000).for_each(|_| running.step());
    assert!(!running.has_run_on(thread::current().id()));
}

#[test]
fn nor_is_one_with_less_stack_than_bodies_may_want() {
    // No thread that has ended can have left one so large.
    let realm = Realm::builder().workers(1).cores(1).stack_size(256 << 20).build().unwrap();
    let mut running = Running::start(&realm, |_| ());
    (0..1000).for_each(|_| running.step());
    assert!(!running.has_run_on(thread::current().id()));
}

#[test]
fn nor_one_that_waits_while_no_graph_runs() {
    let realm = full(1);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    for _ in 0..1000 {
        let threads = Arc::clone(&threads);
        let event = realm.spawn(Spawn::ANYWHERE, move || _ = threads.lock().insert(thread::current().id()));
        realm.wait(event).unwrap();
    }
    assert!(!threads.lock().contains(&thread::current().id()));
}

#[test]
fn what_is_meant_for_the_worker_runs_though_the_guest_does_not_come_back() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    for _ in 0..3 {
        running.chain.threads.lock().clear();
        running.step_until_guest();
        let ran = Arc::new(AtomicUsize::new(0));
        let body = Arc::clone(&ran);
        let on = Spawn { target: Target::On(realm.processors()[0]), ..Spawn::ANYWHERE };
        realm.spawn(on, move || _ = body.fetch_add(1, Ordering::SeqCst));
        // Nobody waits in the realm: the worker's own thread takes its place again.
        while ran.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn what_a_guest_runs_may_spawn_and_wait() {
    let realm = full(1);
    let mut running = Running::start(&realm, |context| {
        let inner = context.realm().spawn(Spawn::ANYWHERE, || ());
        context.realm().wait(inner).unwrap();
    });
    running.step_until_guest();
}

#[test]
fn a_panic_of_what_a_guest_runs_is_the_bodys() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    let panics = realm.spawn(Spawn::ANYWHERE, || -> () { panic!("on purpose") });
    assert!(realm.wait(panics).unwrap_err().to_string().contains("on purpose"));
    running.step();
}

#[test]
fn several_threads_wait_at_a_time() {
    let realm = full(2);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut running = Running::start(&realm, |_| ());
            thread::spawn(move || {
                (0..2000).for_each(|_| running.step());
                running.chain.threads.lock().len()
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| assert!(thread.join().unwrap() > 0));
}

#[test]
fn a_realm_ends_while_a_guest_has_the_place() {
    for _ in 0..20 {
        let realm = full(2);
        let mut running = Running::start(&realm, |_| ());
        running.step_until_guest();
        drop(running);
        drop(realm);
    }
}

#[test]
fn a_guest_hears_of_a_breakdown() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    let never = realm.user_event();
    realm.when(&realm.spawn(Spawn::ANYWHERE, || ()), |_| panic!("nobody hears of it"));
    assert!(realm.wait(never.event()).unwrap_err().to_string().contains("nobody hears of it"));
}

#[test]
fn a_guest_of_one_realm_may_be_a_worker_of_another() {
    let outer = Realm::builder().workers(1).stack_size(8 << 20).build().unwrap();
    let body = || {
        let inner = full(1);
        let mut running = Running::start(&inner, |_| ());
        running.step_until_guest();
    };
    let event = outer.spawn(Spawn::ANYWHERE, body);
    outer.wait(event).unwrap();
}

#[test]
fn a_guest_with_nothing_to_do_goes_when_it_has_better_to_do() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    assert!(!realm.work_while(|| true, || true), "it has no place yet");
    running.step_until_guest();
    // The worker's own thread may have had enough of waiting, and want to be asked again.
    while !realm.work_while(|| true, || true) {
        running.step();
    }
}

#[test]
fn a_guest_works_while_it_has_to() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    running.chain.threads.lock().clear();
    while !running.has_run_on(thread::current().id()) {
        let end = running.open();
        if !realm.work_while(|| !realm.has_triggered(end), || false) {
            realm.wait(end).unwrap();
        }
    }
}
