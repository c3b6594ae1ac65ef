//! Simulations: one seed is one run, hangs are reported, and what takes part in a simulation is what takes part
//! without.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maniple_realm::simulation::{Report, Simulation};
use maniple_realm::threads::{Parker, nap};
use maniple_realm::{Realm, Spawn};
use parking_lot::Mutex;

/// Thirty operations in three chains on three workers; the order in which they ran.
fn chains(seed: u64) -> (Report, Vec<(u64, u64)>) {
    let mut simulation = Simulation::new(seed);
    let order = simulation.thread("main", || {
        let order = Arc::new(Mutex::new(Vec::new()));
        let realm = Realm::builder().workers(3).build().unwrap();
        let ends: Vec<_> = (0..3)
            .map(|chain| {
                (0..10).fold(maniple_realm::Event::NONE, |before, link| {
                    let order = Arc::clone(&order);
                    realm.spawn(&before, move || order.lock().push((chain, link)))
                })
            })
            .collect();
        ends.into_iter().for_each(|end| realm.wait(end).unwrap());
        drop(realm);
        Arc::into_inner(order).unwrap().into_inner()
    });
    let report = simulation.run().unwrap();
    (report, order.take().unwrap())
}

#[test]
fn a_seed_is_one_run() {
    for seed in 0..20 {
        assert_eq!(chains(seed), chains(seed));
    }
}

#[test]
fn seeds_run_things_in_many_orders_all_of_which_are_allowed() {
    let runs: Vec<_> = (0..50).map(chains).collect();
    let orders: HashSet<_> = runs.iter().map(|(_, order)| order.clone()).collect();
    assert!(orders.len() > 40, "50 seeds gave {} orders", orders.len());
    for (_, order) in runs {
        for chain in 0..3 {
            let links: Vec<_> = order.iter().filter(|(of, _)| *of == chain).map(|(_, link)| *link).collect();
            assert_eq!(links, (0..10).collect::<Vec<_>>());
        }
    }
}

#[test]
fn who_waits_for_what_never_happens_is_reported_as_a_hang() {
    let mut simulation = Simulation::new(1);
    let answer = simulation.thread("the one", || {
        let realm = Realm::builder().workers(2).build().unwrap();
        let never = realm.user_event();
        realm.wait(never.event())
    });
    let hang = simulation.run().unwrap_err();
    assert!(answer.take().is_none());
    assert_eq!(hang.waiting.len(), 3, "{hang}");
    assert!(hang.to_string().contains("the one waits for another thread to wake it; realm-0 waits for"), "{hang}");
}

#[test]
fn who_looks_again_and_again_in_vain_is_reported_as_a_hang() {
    let mut simulation = Simulation::new(1);
    let _ = simulation.thread("the patient", || {
        loop {
            nap(Duration::from_secs(3600));
        }
    });
    let hang = simulation.run().unwrap_err();
    assert_eq!(hang.waiting, ["the patient waits for time to pass"]);
}

#[test]
fn time_passes_when_nobody_has_anything_to_do() {
    let mut simulation = Simulation::new(3);
    let (done, seen) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (worker, watcher) = (Rc::clone(&done), (Rc::clone(&done), Rc::clone(&seen)));
    let _ = simulation.thread("worker", move || {
        let realm = Realm::builder().workers(1).build().unwrap();
        for _ in 0..10 {
            realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
            worker.set(worker.get() + 1);
        }
    });
    let _ = simulation.thread("watcher", move || {
        nap(Duration::from_millis(1));
        watcher.1.set(watcher.0.get());
    });
    simulation.run().unwrap();
    assert_eq!(seen.get(), 10, "the nap was over before the work");
}

#[test]
fn bodies_that_wait_on_a_worker_do_so_on_its_own_stack() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed);
        let sum = simulation.thread("main", || {
            let realm = Realm::builder().workers(2).build().unwrap();
            let sum = Arc::new(AtomicU64::new(0));
            // Each waits for the event that the next one triggers, on top of one another or on another worker.
            let events: Vec<_> = (0..8).map(|_| realm.user_event()).collect();
            let ends: Vec<_> = (0..7)
                .map(|each| {
                    let (inner, sum) = (realm.clone(), Arc::clone(&sum));
                    let (next, mine) = (events[each + 1].event(), events[each]);
                    realm.spawn(Spawn::ANYWHERE, move || {
                        let before = inner.current_processor();
                        inner.wait(next).unwrap();
                        assert_eq!(
                            before,
                            inner.current_processor(),
                            "a body is on one worker from its beginning to its end"
                        );
                        sum.fetch_add(1, Ordering::Relaxed);
                        inner.trigger(mine);
                    })
                })
                .collect();
            realm.trigger(events[7]);
            ends.into_iter().for_each(|end| realm.wait(end).unwrap());
            sum.load(Ordering::Relaxed)
        });
        simulation.run().unwrap();
        assert_eq!(sum.take(), Some(7));
    }
}

#[test]
fn each_worker_runs_what_is_meant_for_it() {
    for seed in 0..10 {
        let mut simulation = Simulation::new(seed);
        let wrong = simulation.thread("main", || {
            let realm = Realm::builder().workers(4).build().unwrap();
            let wrong = Arc::new(AtomicU64::new(0));
            let processors = realm.processors().to_vec();
            let ends: Vec<_> = (0..40)
                .map(|each| {
                    let (processor, inner, wrong) = (processors[each % 4], realm.clone(), Arc::clone(&wrong));
                    realm.spawn(Spawn::on(processor), move || {
                        wrong.fetch_add(u64::from(inner.current_processor() != Some(processor)), Ordering::Relaxed);
                    })
                })
                .collect();
            ends.into_iter().for_each(|end| realm.wait(end).unwrap());
            wrong.load(Ordering::Relaxed)
        });
        simulation.run().unwrap();
        assert_eq!(wrong.take(), Some(0));
    }
}

#[test]
fn a_panic_of_the_program_is_the_simulations() {
    let mut simulation = Simulation::new(1);
    let _ = simulation.thread("main", || {
        let _realm = Realm::builder().workers(2).build().unwrap();
        panic!("as the program says");
    });
    let panic = catch_unwind(AssertUnwindSafe(|| simulation.run())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as the program says"));
    // The next one is not disturbed.
    assert_eq!(chains(5), chains(5));
}

#[test]
fn a_panic_of_a_body_is_its_waiters_as_ever() {
    let mut simulation = Simulation::new(1);
    let fault = simulation.thread("main", || {
        let realm = Realm::builder().workers(2).build().unwrap();
        realm.wait(realm.spawn(Spawn::ANYWHERE, || -> () { panic!("no luck") })).unwrap_err().to_string()
    });
    simulation.run().unwrap();
    assert!(fault.take().unwrap().contains("no luck"));
}

#[test]
fn events_come_at_their_turn() {
    let mut simulation = Simulation::new(1);
    let parker = Arc::new(Parker::default());
    let waiting = Arc::clone(&parker);
    let _ = simulation.thread("idle", || {
        for _ in 0..100 {
            maniple_realm::threads::nap(Duration::ZERO);
        }
    });
    let woken = simulation.thread("waiting", move || waiting.park());
    simulation.at(50, move || parker.unpark());
    simulation.run().unwrap();
    assert_eq!(woken.take(), Some(()));
}

#[test]
fn a_process_that_is_killed_does_nothing_more_and_nobody_waits_for_it() {
    let mut simulation = Simulation::new(1);
    let victim = simulation.thread("victim", || {
        let realm = Realm::builder().workers(2).build().unwrap();
        let never = realm.user_event();
        realm.wait(never.event())
    });
    let survivor = simulation.thread("survivor", || {
        let realm = Realm::builder().workers(2).build().unwrap();
        realm.wait(realm.spawn(Spawn::ANYWHERE, || ()))
    });
    simulation.kill_at(1_000_000, &victim);
    let report = simulation.run().unwrap();
    assert_eq!(report.turns, 1_000_000, "time passes to what happens next");
    assert!(victim.take().is_none());
    assert!(survivor.take().unwrap().is_ok());
}

#[test]
fn a_simulation_within_another_one_is_refused_and_the_other_one_goes_on() {
    let mut simulation = Simulation::new(1);
    let answer = simulation.thread("main", || {
        let inner = catch_unwind(|| Simulation::new(2).run());
        let realm = Realm::builder().workers(2).build().unwrap();
        (inner.is_err(), realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).is_ok())
    });
    simulation.run().unwrap();
    assert_eq!(answer.take(), Some((true, true)));
}

#[test]
fn a_panic_between_two_turns_ends_the_simulation_and_not_the_next_one() {
    let mut simulation = Simulation::new(1);
    let _ = simulation.thread("main", || {
        let realm = Realm::builder().workers(2).build().unwrap();
        let never = realm.user_event();
        realm.wait(never.event())
    });
    simulation.at(10, || panic!("an event that panics"));
    assert!(catch_unwind(AssertUnwindSafe(|| simulation.run())).is_err());
    assert_eq!(chains(5), chains(5));
}

#[test]
fn a_simulation_that_is_never_run_lets_go_of_its_threads() {
    let mut simulation = Simulation::new(1);
    let owned = Rc::new(());
    let moved = Rc::clone(&owned);
    let _ = simulation.thread("main", move || drop(moved));
    drop(simulation);
    assert_eq!(Rc::strong_count(&owned), 1);
}
