//! When no worker has work, the function given to `on_idle` is asked for some.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use maniple_realm::operation::with_context;
use maniple_realm::{Realm, Spawn};

fn realm(workers: usize) -> Arc<Realm> {
    Arc::new(Realm::builder().workers(workers).build().unwrap())
}

/// Hands out a number of events to be triggered, one each time that the realm is idle.
fn trigger_when_idle(realm: &Arc<Realm>, events: Vec<maniple_realm::UserEvent>) {
    let (weak, events) = (Arc::downgrade(realm), Mutex::new(events));
    realm.on_idle(move || {
        let Some(realm) = weak.upgrade() else { return false };
        let next = events.lock().unwrap().pop();
        next.map(|event| realm.trigger(event)).is_some()
    });
}

#[test]
fn what_only_an_idle_realm_brings_comes_once_all_workers_are_out_of_work() {
    for workers in [1, 2, 4] {
        let realm = realm(workers);
        let ran = Arc::new(AtomicUsize::new(0));
        let events: Vec<_> = (0..100).map(|_| realm.user_event()).collect();
        let tasks: Vec<_> = (events.iter())
            .map(|event| {
                let ran = Arc::clone(&ran);
                realm.spawn(Spawn::after(&event.event()), move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        trigger_when_idle(&realm, events);
        // Wakes a worker, which then finds that there is nothing to do.
        realm.spawn(Spawn::ANYWHERE, || ());
        realm.wait(realm.merge(&tasks)).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 100);
    }
}

#[test]
fn a_realm_with_a_running_body_is_not_idle() {
    let realm = realm(2);
    let (started, has_started) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let asked = Arc::new(AtomicUsize::new(0));
    let body = realm.spawn(Spawn::ANYWHERE, move || {
        started.send(()).unwrap();
        may_go.recv().unwrap();
    });
    has_started.recv().unwrap();
    let counting = Arc::clone(&asked);
    realm.on_idle(move || {
        counting.fetch_add(1, Ordering::Relaxed);
        false
    });
    // The other worker runs these and sleeps in between, but the realm as a whole is never idle.
    for _ in 0..100 {
        realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    go.send(()).unwrap();
    realm.wait(body).unwrap();
}

#[test]
fn a_worker_that_waits_for_what_an_idle_realm_brings_goes_on() {
    let realm = realm(1);
    let event = realm.user_event();
    trigger_when_idle(&realm, vec![event]);
    let waiting = realm.spawn(Spawn::ANYWHERE, with_context(move |cx| cx.realm().wait(event.event())));
    realm.wait(waiting).unwrap();
}

#[test]
fn who_waits_until_a_realm_is_idle_waits_for_what_its_bodies_hold() {
    for _ in 0..200 {
        let realm = realm(2);
        let held = Arc::new(());
        for _ in 0..3 {
            let mine = Arc::clone(&held);
            realm.spawn(Spawn::ANYWHERE, move || drop(mine));
        }
        realm.wait_until_idle();
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
