//! While graphs run, a thread that waits and has no core of its own does a worker's work; and nothing depends on its
//! coming back.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, ThreadId};

use maniple_realm::graph::{Edge, Graph, GraphPlace, GraphRuns, GraphSpec, GraphWork, NodeSpec};
use maniple_realm::profile::{Profiler, Record, Recording};
use maniple_realm::{Event, Fault, Realm, Spawn, Target, UserEvent, WorkerContext};
use parking_lot::Mutex;

const DEPTH: u64 = 4;

/// The action of a node, besides noting where it runs.
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
    fn run(&self, _: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        self.threads.lock().insert(thread::current().id());
        self.processors.lock().insert(context.processor().0);
        (self.body)(context);
        Ok(())
    }

    fn poisoned(&self, _: GraphPlace, _: &Arc<Fault>) {}

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
        let node = NodeSpec {
            stage: 0,
            home,
            pinned: false,
            others: Vec::new(),
            takes: false,
            after: Vec::new(),
            after_previous: before,
        };
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
        // No thread waits in the realm: the worker's own thread takes its place again.
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

#[test]
fn a_task_may_wait_for_what_the_program_does_later() {
    let realm = full(2);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    for _ in 0..200 {
        let (send, receive) = mpsc::channel::<()>();
        let task = realm.spawn(Spawn::ANYWHERE, move || receive.recv().unwrap());
        running.step();
        send.send(()).unwrap();
        realm.wait(task).unwrap();
    }
}

#[test]
fn a_task_that_waits_while_there_are_guests_waits() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    for _ in 0..20 {
        running.chain.threads.lock().clear();
        running.step_until_guest();
        let (later, ender) = (realm.user_event(), realm.clone());
        let waits = realm.clone();
        let has_waited = Arc::new(AtomicBool::new(false));
        let (begun, told) = (mpsc::channel(), Arc::clone(&has_waited));
        let task = realm.spawn(Spawn::ANYWHERE, move || {
            begun.0.send(()).unwrap();
            told.store(waits.wait_if_safe(later.event()), Ordering::SeqCst);
        });
        let other = thread::spawn(move || {
            begun.1.recv().unwrap();
            ender.trigger(later);
        });
        realm.wait(task).unwrap();
        other.join().unwrap();
        assert!(has_waited.load(Ordering::SeqCst), "nothing is below it on its stack");
    }
}

#[test]
fn a_thread_that_never_has_to_wait_does_not_keep_the_place() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    let signal = realm.signal();
    let ran = Arc::new(AtomicBool::new(false));
    let body = Arc::clone(&ran);
    realm.spawn(Spawn::ANYWHERE, move || body.store(true, Ordering::SeqCst));
    while !ran.load(Ordering::SeqCst) {
        signal.give();
        realm.wait_for(&signal);
    }
}

#[test]
fn no_signal_is_lost() {
    let realm = full(1);
    let _running = Running::start(&realm, |_| ());
    let signal = Arc::new(realm.signal());
    let [goal, seen] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let giver = {
        let (signal, goal, seen) = (Arc::clone(&signal), Arc::clone(&goal), Arc::clone(&seen));
        thread::spawn(move || {
            for round in 1..=20_000 {
                // The second just as the first is taken.
                signal.give();
                goal.store(2 * round - 1, Ordering::Release);
                (0..round % 128).for_each(|_| std::hint::spin_loop());
                goal.store(2 * round, Ordering::Release);
                signal.give();
                while seen.load(Ordering::Acquire) < 2 * round {
                    thread::yield_now();
                }
            }
        })
    };
    for round in 1..=20_000 {
        while goal.load(Ordering::Acquire) < 2 * round - 1 {
            thread::yield_now();
        }
        while goal.load(Ordering::Acquire) < 2 * round {
            realm.wait_for(&signal);
        }
        seen.store(2 * round, Ordering::Release);
    }
    giver.join().unwrap();
}

#[test]
fn a_guest_that_panics_leaves_the_place() {
    let realm = full(1);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    let panics = || loop {
        let _ = realm.work_while(|| panic!("on purpose"), || true);
        running.step();
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(realm.current_processor(), None);
    running.step();
}

#[test]
fn a_worker_has_no_other_workers_place() {
    let realm = full(2);
    let mut running = Running::start(&realm, |_| ());
    running.step_until_guest();
    let (other, worker) = (realm.processors()[1], realm.clone());
    let on = Spawn { target: Target::On(other), ..Spawn::ANYWHERE };
    let body = realm.spawn(on, move || {
        assert!(!worker.work_while(|| true, || true));
    });
    realm.wait(body).unwrap();
}

#[test]
fn all_waiting_threads_hear_of_the_realms_end() {
    for workers in [1, 2] {
        for _ in 0..20 {
            let realm = full(workers);
            let mut running = Running::start(&realm, |_| ());
            running.step_until_guest();
            let waits = |realm: Realm| move || realm.wait(realm.user_event().event()).is_err();
            let threads: Vec<_> = (0..3).map(|_| thread::spawn(waits(realm.clone()))).collect();
            realm.give_up(Fault::new("enough"));
            realm.shut_down();
            threads.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
        }
    }
}

/// Bytes that are kept.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_profile_has_a_guests_waits_in_its_row_and_its_work_in_the_workers() {
    let kept = Kept::default();
    let profiler = Profiler::writing_to(kept.clone());
    let realm = Realm::builder().workers(1).cores(1).stack_size(1 << 20).profile(profiler.clone()).build().unwrap();
    let mut running = Running::start(&realm, |context| _ = context.realm().spawn(Spawn::ANYWHERE, || ()));
    running.step_until_guest();
    (0..10).for_each(|_| running.step());
    let steps = running.next as usize;
    drop(running);
    // Its handles of the realm go with it.
    realm.release_graphs();
    profiler.write_thread();
    drop(realm);
    let recording = Recording::read_from(&kept.0.lock()[..], std::path::Path::new("test")).unwrap();
    type Is = fn(&Record) -> bool;
    let count = |is: Is, of_worker: bool| {
        let threads = recording.threads.iter().filter(|thread| thread.thread.processor.is_some() == of_worker);
        threads.flat_map(|thread| &thread.records).filter(|record| is(record)).count()
    };
    let (awaited, launched): (Is, Is) =
        (|record| matches!(record, Record::Awaited { .. }), |record| matches!(record, Record::Launched { .. }));
    assert_eq!(count(awaited, true), 0);
    assert!((1..=steps).contains(&count(awaited, false)), "but for those that had nothing to wait for");
    assert_eq!(count(launched, true), steps, "what bodies spawned");
    assert_eq!(count(launched, false), 0);
}
