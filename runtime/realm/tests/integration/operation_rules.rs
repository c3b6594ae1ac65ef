//! The promises of operations: where they run, in which order, and how they fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use maniple_realm::fault::Panic;
use maniple_realm::machine::ProcessorId;
use maniple_realm::operation::with_context;
use maniple_realm::worker::HelpTooDeep;
use maniple_realm::{After, Class, Event, EventStatus, Fault, Realm, RealmError, Spawn, Target, Work, WorkerContext};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

#[test]
fn a_body_runs_once_after_its_preconditions() {
    let realm = realm(2);
    let before: Vec<_> = (0..6).map(|_| realm.user_event()).collect();
    let events: Vec<_> = before.iter().map(|user| user.event()).collect();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let done = realm.spawn(&events, move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    for user in before {
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        realm.trigger(user);
    }
    realm.wait(done).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn large_bodies_and_odd_alignments_are_kept_whole() {
    #[repr(align(256))]
    #[derive(Clone, Copy)]
    struct Wide([u8; 256]);
    let realm = realm(1);
    let (wide, large, small) = (Wide([3; 256]), [5_u64; 100], [7_u64; 8]);
    let first = realm.spawn(Spawn::ANYWHERE, move || {
        let wide = wide;
        assert_eq!(&raw const wide as usize % 256, 0);
        assert_eq!(wide.0, [3; 256]);
    });
    let second = realm.spawn(Spawn::ANYWHERE, move || assert_eq!(large, [5; 100]));
    let third = realm.spawn(Spawn::ANYWHERE, move || assert_eq!(small, [7; 8]));
    realm.wait(realm.merge(&[first, second, third])).unwrap();
}

#[test]
fn an_error_poisons_the_event_and_what_needs_it() {
    let realm = realm(2);
    let failed = realm.spawn(Spawn::ANYWHERE, || Err::<(), _>(Fault::new("out of luck")));
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let needing = realm.spawn(&failed, move || flag.store(true, Ordering::Relaxed));
    let following = realm.spawn(After::follows(&[failed]), || ());
    assert_eq!(realm.wait(needing).unwrap_err().to_string(), "out of luck");
    realm.wait(following).unwrap();
    assert!(!ran.load(Ordering::Relaxed));
}

#[test]
fn a_panic_becomes_a_fault_with_message_and_place() {
    let realm = realm(1);
    for round in 0..3 {
        let failed = realm.spawn(Spawn::ANYWHERE, move || {
            assert!(round > 5, "round {round}");
        });
        let fault = realm.wait(failed).unwrap_err();
        let panic = fault.panic().unwrap();
        assert_eq!(panic.message, format!("round {round}"));
        assert!(panic.location.as_ref().unwrap().contains("operation_rules.rs"));
    }
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("and again");
        }
    }
    let failed = realm.spawn(Spawn::ANYWHERE, || -> () { std::panic::panic_any(PanicsWhenDropped) });
    assert!(realm.wait(failed).unwrap_err().downcast_ref::<Panic>().is_some());
    realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
}

#[test]
fn poisoned_work_is_told_instead_of_run() {
    struct Told(mpsc::Sender<String>);
    impl Work for Told {
        fn run(self, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
            self.0.send("ran".to_owned()).unwrap();
            Ok(())
        }
        fn poisoned(self, context: &WorkerContext<'_>, fault: &Arc<Fault>) {
            assert!(context.realm().current_processor().is_some());
            assert!(!context.realm().has_triggered(context.event()));
            self.0.send(fault.to_string()).unwrap();
        }
    }
    let realm = realm(1);
    let (sender, receiver) = mpsc::channel();
    let bad = realm.user_event();
    let done = realm.spawn(&bad.event(), Told(sender.clone()));
    let well = realm.spawn(Spawn::ANYWHERE, Told(sender));
    realm.wait(well).unwrap();
    realm.poison(bad, Fault::new("broken"));
    assert!(realm.wait(done).is_err());
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["ran", "broken"]);
}

#[test]
fn a_pinned_operation_runs_on_its_processor() {
    let realm = realm(3);
    let places: Vec<_> = (0..300)
        .map(|task| {
            let processor = ProcessorId(task % 3);
            realm.spawn(Spawn::on(processor), with_context(move |cx| assert_eq!(cx.processor(), processor)))
        })
        .collect();
    realm.wait(realm.merge(&places)).unwrap();
}

#[test]
fn a_group_runs_its_operations_on_its_members() {
    let realm = realm(4);
    let members = [ProcessorId(1), ProcessorId(3)];
    let group = realm.processor_group(&members).unwrap();
    let tasks: Vec<_> = (0..300)
        .map(|_| {
            let spawn = Spawn { target: Target::Group(group), ..Spawn::ANYWHERE };
            realm.spawn(spawn, with_context(move |cx| assert!(members.contains(&cx.processor()))))
        })
        .collect();
    realm.wait(realm.merge(&tasks)).unwrap();
}

#[test]
fn an_operation_near_a_busy_processor_is_stolen() {
    let realm = realm(2);
    let (release, held) = mpsc::channel::<()>();
    let busy = realm.spawn(Spawn::on(ProcessorId(0)), move || held.recv().unwrap());
    let near = realm.spawn(Spawn { target: Target::Near(ProcessorId(0)), ..Spawn::ANYWHERE }, || ());
    realm.wait(near).unwrap();
    release.send(()).unwrap();
    realm.wait(busy).unwrap();
}

#[test]
fn unknown_targets_poison_the_event() {
    let (realm, other) = (realm(1), realm(1));
    let nowhere = realm.spawn(Spawn::on(ProcessorId(9)), || ());
    let fault = realm.wait(nowhere).unwrap_err();
    assert!(matches!(fault.downcast_ref(), Some(RealmError::UnknownProcessor(ProcessorId(9)))));
    let group = other.processor_group(&[ProcessorId(0)]).unwrap();
    // Another realm's group is unknown also where we have as many.
    realm.processor_group(&[ProcessorId(0)]).unwrap();
    let foreign = realm.spawn(Spawn { target: Target::Group(group), ..Spawn::ANYWHERE }, || ());
    assert!(matches!(realm.wait(foreign).unwrap_err().downcast_ref(), Some(RealmError::UnknownGroup(_))));
    assert!(matches!(realm.processor_group(&[]), Err(RealmError::EmptyGroup)));
    assert!(matches!(realm.processor_group(&[ProcessorId(4)]), Err(RealmError::UnknownProcessor(_))));
}

/// Queues operations while the only worker is held, and gives the order in which they then run.
fn order_of(spawns: &[(&'static str, Spawn<'static>)]) -> Vec<&'static str> {
    let realm = realm(1);
    let (release, held) = mpsc::channel::<()>();
    let (started, running) = mpsc::channel::<()>();
    realm.spawn(Spawn::ANYWHERE, move || {
        started.send(()).unwrap();
        held.recv().unwrap();
    });
    running.recv().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<Event> = spawns
        .iter()
        .map(|&(name, spawn)| {
            let order = Arc::clone(&order);
            realm.spawn(spawn, move || order.lock().unwrap().push(name))
        })
        .collect();
    release.send(()).unwrap();
    realm.wait(realm.merge(&tasks)).unwrap();
    Arc::try_unwrap(order).unwrap().into_inner().unwrap()
}

#[test]
fn higher_priorities_run_first() {
    let with = |priority| Spawn { priority, ..Spawn::ANYWHERE };
    let order = order_of(&[("low", with(-3)), ("usual", with(0)), ("high", with(5)), ("highest", with(6))]);
    assert_eq!(order, ["highest", "high", "usual", "low"]);
}

#[test]
fn runtime_work_runs_before_tasks_of_any_priority() {
    let runtime = |priority| Spawn { class: Class::Runtime, priority, ..Spawn::ANYWHERE };
    let task = |priority| Spawn { priority, ..Spawn::ANYWHERE };
    let order =
        order_of(&[("task", task(0)), ("urgent task", task(9)), ("runtime", runtime(0)), ("late", runtime(-1))]);
    assert_eq!(order, ["runtime", "late", "urgent task", "task"]);
}

#[test]
fn equal_priorities_run_in_order_of_arrival() {
    let pinned = Spawn { priority: 1, ..Spawn::on(ProcessorId(0)) };
    assert_eq!(order_of(&[("a", pinned), ("b", pinned), ("c", pinned)]), ["a", "b", "c"]);
}

#[test]
fn an_endless_chain_lets_others_have_their_turn() {
    // Each link waits for the end of the one that spawns it, so it is what its worker would run next.
    fn link(cx: &WorkerContext<'_>, go_on: Arc<AtomicBool>) {
        if go_on.load(Ordering::Relaxed) {
            cx.realm().spawn(&cx.event(), with_context(move |cx| link(cx, go_on)));
        }
    }
    let realm = realm(1);
    let go_on = Arc::new(AtomicBool::new(true));
    let first = Arc::clone(&go_on);
    realm.spawn(Spawn::ANYWHERE, with_context(move |cx| link(cx, first)));
    realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
    realm.wait(realm.spawn(Spawn::on(ProcessorId(0)), || ())).unwrap();
    go_on.store(false, Ordering::Relaxed);
}

#[test]
fn a_worker_that_waits_runs_other_operations() {
    let realm = realm(1);
    let outer = realm.spawn(
        Spawn::ANYWHERE,
        with_context(|cx| {
            let inner = cx.realm().spawn(Spawn::ANYWHERE, || ());
            cx.realm().wait(inner)
        }),
    );
    realm.wait(outer).unwrap();
}

#[test]
fn a_waiting_worker_is_woken_by_a_trigger_from_outside() {
    let realm = realm(1);
    let user = realm.user_event();
    let (started, running) = mpsc::channel::<()>();
    let waits = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |cx| {
            started.send(()).unwrap();
            cx.realm().wait(user.event())
        }),
    );
    running.recv().unwrap();
    realm.trigger(user);
    realm.wait(waits).unwrap();
}

#[test]
fn nesting_waits_too_deeply_is_an_error_and_not_a_hang() {
    let realm = Realm::builder().workers(1).help_depth(3).build().unwrap();
    let never = realm.user_event();
    let waits: Vec<_> =
        (0..4).map(|_| realm.spawn(Spawn::ANYWHERE, with_context(move |cx| cx.realm().wait(never.event())))).collect();
    let too_deep = loop {
        let failed = waits.iter().find_map(|&wait| realm.status(wait).fault().cloned());
        if let Some(fault) = failed {
            break fault;
        }
        std::thread::yield_now();
    };
    assert_eq!(too_deep.downcast_ref(), Some(&HelpTooDeep { depth: 3 }));
    realm.trigger(never);
}

#[test]
fn helping_while_a_condition_holds_runs_operations_and_ends_when_it_does_not() {
    for workers in 1..=3 {
        let realm = realm(workers);
        let left = Arc::new(AtomicUsize::new(1000));
        let helped = realm.spawn(
            Spawn::ANYWHERE,
            with_context(move |cx| {
                for _ in 0..1000 {
                    let left = Arc::clone(&left);
                    cx.realm().spawn(Spawn::ANYWHERE, move || {
                        left.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                assert!(cx.realm().help_while(|| left.load(Ordering::Relaxed) > 0));
            }),
        );
        realm.wait(helped).unwrap();
    }
}

#[test]
fn a_nudge_makes_helpers_look_again() {
    let realm = realm(2);
    let closed = Arc::new(AtomicBool::new(true));
    let (started, running) = mpsc::channel::<()>();
    let gate = Arc::clone(&closed);
    let helped = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |cx| {
            started.send(()).unwrap();
            assert!(cx.realm().help_while(|| gate.load(Ordering::Relaxed)));
        }),
    );
    running.recv().unwrap();
    closed.store(false, Ordering::Relaxed);
    realm.nudge();
    realm.wait(helped).unwrap();
}

#[test]
fn a_thread_outside_can_wait_for_a_condition() {
    let realm = realm(1);
    let left = Arc::new(AtomicUsize::new(100));
    for _ in 0..100 {
        let left = Arc::clone(&left);
        realm.spawn(Spawn::ANYWHERE, move || {
            left.fetch_sub(1, Ordering::Relaxed);
        });
    }
    assert!(realm.help_while(|| left.load(Ordering::Relaxed) > 0));
}

#[test]
fn all_workers_take_part() {
    let realm = realm(4);
    let meet = Arc::new(Barrier::new(4));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let meet = Arc::clone(&meet);
            realm.spawn(Spawn::ANYWHERE, move || {
                meet.wait();
            })
        })
        .collect();
    realm.wait(realm.merge(&tasks)).unwrap();
}

#[test]
fn a_realm_without_workers_is_refused() {
    assert!(matches!(Realm::builder().workers(0).build(), Err(RealmError::NoWorkers)));
    assert!(matches!(
        Realm::builder().workers(1_000_000).build(),
        Err(RealmError::TooManyWorkers { found: 1_000_000 })
    ));
}

#[test]
fn the_spawner_may_be_anywhere() {
    let realm = realm(2);
    let outside = realm.clone();
    let events = std::thread::spawn(move || {
        assert_eq!(outside.current_processor(), None);
        (0..100).map(|_| outside.spawn(Spawn::ANYWHERE, || ())).collect::<Vec<_>>()
    });
    realm.wait(realm.merge(&events.join().unwrap())).unwrap();
    assert!(matches!(realm.status(Event::NONE), EventStatus::Triggered));
}
