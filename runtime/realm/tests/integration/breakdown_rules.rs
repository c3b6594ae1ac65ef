//! Panics that would be reported to no thread end every wait, with the reason.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};

use maniple_realm::graph::{Graph, GraphPlace, GraphSpec, GraphWork, NodeSpec};
use maniple_realm::{Breakdown, Fault, Job, Realm, Spawn, WorkerContext};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

/// That the fault is a breakdown during something whose name has `during` in it, by a panic that said `message` here.
fn check(fault: &Fault, during: &str, message: &str) {
    let breakdown = fault.downcast_ref::<Breakdown>().unwrap_or_else(|| panic!("{fault}"));
    assert!(breakdown.during.contains(during), "{breakdown}");
    assert_eq!(breakdown.panic.message, message);
    assert!(breakdown.panic.location.as_ref().unwrap().contains("breakdown_rules.rs"), "{breakdown}");
}

#[test]
fn a_callback_that_panics_ends_every_wait() {
    let realm = realm(2);
    let (start, never) = (realm.user_event(), realm.user_event());
    let (sender, waits) = mpsc::channel();
    realm.when(&start.event(), |_| panic!("no luck"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (realm, sender) = (&realm, sender.clone());
            scope.spawn(move || sender.send(realm.wait(never.event())).unwrap());
        }
        let body = sender.clone();
        realm.spawn(
            Spawn::ANYWHERE,
            maniple_realm::operation::with_context(move |context: &WorkerContext<'_>| {
                body.send(context.realm().wait(never.event())).unwrap();
            }),
        );
        realm.trigger(start);
        for fault in waits.iter().take(4) {
            check(&fault.unwrap_err(), "a_callback_that_panics_ends_every_wait", "no luck");
        }
    });
    // And those to come.
    check(&realm.wait(never.event()).unwrap_err(), "a callback of `when`", "no luck");
    assert!(!realm.help_while(|| true));
    assert!(!realm.wait_if_safe(never.event()));
}

#[test]
fn who_knows_the_event_of_a_callback_hears_of_its_panic_by_that_alone() {
    let realm = realm(1);
    let called = realm.when_event(&maniple_realm::Event::NONE, |_| panic!("no luck"));
    assert_eq!(realm.wait(called).unwrap_err().panic().unwrap().message, "no luck");
    assert!(realm.breakdown().is_none());
}

#[test]
fn what_has_happened_is_known_after_a_breakdown_and_what_is_queued_is_run() {
    let realm = realm(1);
    realm.queue_job(Job::new(|_| panic!("no luck")));
    let never = realm.user_event();
    check(&realm.wait(never.event()).unwrap_err(), "a job", "no luck");
    let (sender, ran) = mpsc::channel();
    let done = realm.spawn(Spawn::ANYWHERE, move || sender.send(()).unwrap());
    assert_eq!(ran.recv(), Ok(()));
    while !realm.has_triggered(done) {
        std::thread::yield_now();
    }
    realm.wait(done).unwrap();
    realm.wait_until_idle();
}

#[test]
fn a_job_that_panics_on_top_of_a_body_is_not_the_bodys_panic() {
    let realm = realm(1);
    let done = realm.spawn(
        Spawn::ANYWHERE,
        maniple_realm::operation::with_context(|context: &WorkerContext<'_>| {
            context.realm().queue_job(Job::new(|_| panic!("no luck")));
            context.realm().help_with_own_jobs(|| false);
        }),
    );
    while !realm.has_triggered(done) {
        std::thread::yield_now();
    }
    realm.wait(done).unwrap();
    check(realm.breakdown().unwrap(), "a job", "no luck");
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("no luck");
    }
}

#[test]
fn a_waker_that_panics_ends_every_wait() {
    let realm = realm(1);
    let (start, never) = (realm.user_event(), realm.user_event());
    let mut future = realm.event_future(start.event());
    let waker = Waker::from(Arc::new(Bomb));
    assert!(std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
    realm.trigger(start);
    check(&realm.wait(never.event()).unwrap_err(), "waker", "no luck");
}

struct EndPanics;

impl GraphWork for EndPanics {
    fn run(&self, _: GraphPlace, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        Ok(())
    }

    fn poisoned(&self, _: GraphPlace, _: &Arc<Fault>) {}

    fn stage_ended(&self, _: u64, _: u32) {}

    fn run_ended(&self, _: u64) {
        panic!("no luck");
    }
}

#[test]
fn a_graph_that_panics_between_two_nodes_ends_every_wait() {
    let realm = realm(2);
    let home = realm.processors()[0];
    let node = NodeSpec {
        stage: 0,
        home,
        pinned: false,
        others: Vec::new(),
        takes: false,
        after: Vec::new(),
        after_previous: Vec::new(),
    };
    let graph = Graph::new(&GraphSpec { stages: 1, nodes: vec![node] }, realm.processors());
    let runs = realm.start_graph(&Arc::new(graph), Arc::new(EndPanics), 2);
    runs.open(0, 0);
    let never = realm.user_event();
    check(&realm.wait(never.event()).unwrap_err(), "a node of a graph", "no luck");
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_watch_is_woken_by_a_breakdown_as_long_as_it_is_there() {
    let realm = realm(1);
    let flags = [(); 2].map(|()| Arc::new(Flag(AtomicBool::new(false))));
    let watches = flags.clone().map(|flag| realm.watch_for_breakdown(&Waker::from(flag)).ok().unwrap());
    let [watch, given_up] = watches;
    drop(given_up);
    assert_eq!(realm.unheard(|| "this test".to_owned(), || 5), Some(5));
    assert_eq!(realm.unheard(|| "this test".to_owned(), || -> () { panic!("no luck") }), None);
    assert_eq!(flags.map(|flag| flag.0.load(Ordering::SeqCst)), [true, false]);
    drop(watch);
    check(&realm.watch_for_breakdown(Waker::noop()).err().unwrap(), "this test", "no luck");
}

#[test]
fn the_first_breakdown_is_the_one_that_is_told() {
    let realm = realm(1);
    for message in ["first", "second"] {
        realm.unheard(|| "this test".to_owned(), || -> () { panic!("{message}") });
    }
    check(realm.breakdown().unwrap(), "this test", "first");
}

#[test]
fn what_triggers_after_a_breakdown_ends_no_wait_in_another_realm() {
    let other = &realm(1);
    for _ in 0..200 {
        let broken = realm(1);
        let (late, start) = (broken.user_event(), broken.user_event());
        broken.when(&start.event(), |_| panic!("no luck"));
        std::thread::scope(|scope| {
            scope.spawn(|| broken.trigger(start));
            // Most likely this begins before the breakdown, and is ended by it.
            check(&broken.wait(late.event()).unwrap_err(), "a callback", "no luck");
            broken.trigger(late);
            let awaited = other.user_event();
            scope.spawn(move || other.trigger(awaited));
            other.wait(awaited.event()).unwrap();
        });
    }
}
