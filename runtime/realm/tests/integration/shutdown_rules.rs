//! How a realm ends.

use std::sync::{Arc, mpsc};

use maniple_realm::fault::Abandoned;
use maniple_realm::operation::with_context;
use maniple_realm::reservation::Mode;
use maniple_realm::{After, Fault, Realm, Spawn};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

/// Tells when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn is_abandoned(result: Result<(), Arc<Fault>>) -> bool {
    result.is_err_and(|fault| fault.downcast_ref() == Some(&Abandoned))
}

#[test]
fn an_idle_realm_stops_when_its_last_handle_goes() {
    for workers in 1..5 {
        let realm = realm(workers);
        let clone = realm.clone();
        drop(realm);
        clone.wait(clone.spawn(Spawn::ANYWHERE, || ())).unwrap();
    }
}

#[test]
fn bodies_that_never_ran_are_dropped() {
    let realm = realm(2);
    let (sender, dropped) = mpsc::channel();
    let never = realm.user_event();
    for _ in 0..10 {
        let body = Dropped(sender.clone());
        realm.spawn(&never.event(), move || drop(body));
        let future = Dropped(sender.clone());
        realm.spawn_async(&never.event(), async move { drop(future) });
    }
    drop((realm, sender));
    assert_eq!(dropped.iter().count(), 20);
}

#[test]
fn futures_that_are_pending_are_dropped() {
    let realm = realm(2);
    let (sender, dropped) = mpsc::channel();
    let (started, running) = mpsc::channel();
    let pending = Dropped(sender);
    realm.spawn_async(Spawn::ANYWHERE, async move {
        started.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(pending);
    });
    running.recv().unwrap();
    drop(realm);
    assert_eq!(dropped.iter().count(), 1);
}

#[test]
fn callbacks_are_told_that_the_realm_went_down() {
    let realm = realm(1);
    let (sender, told) = mpsc::channel();
    let never = realm.user_event();
    realm.when(&never.event(), move |result| sender.send(is_abandoned(result.map_err(Arc::clone))).unwrap());
    drop(realm);
    assert!(told.recv().unwrap());
}

#[test]
fn a_body_that_waits_is_told_that_the_realm_goes_down() {
    let realm = realm(1);
    let never = realm.user_event();
    let (sender, told) = mpsc::channel();
    let (started, running) = mpsc::channel();
    realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |cx| {
            started.send(()).unwrap();
            sender.send(is_abandoned(cx.realm().wait(never.event()))).unwrap();
            assert!(is_abandoned(cx.realm().wait(cx.realm().spawn(Spawn::ANYWHERE, || ()))));
        }),
    );
    running.recv().unwrap();
    drop(realm);
    assert!(told.recv().unwrap());
}

#[test]
fn a_body_may_drop_the_last_handle() {
    let realm = realm(2);
    let (sender, ended) = mpsc::channel::<()>();
    let go = realm.user_event();
    let (handle, spawner) = (realm.clone(), realm.clone());
    spawner.spawn(&go.event(), move || {
        drop(handle);
        drop(sender);
    });
    drop(spawner);
    realm.trigger(go);
    drop(realm);
    assert!(ended.recv().is_err());
}

#[test]
fn a_future_of_an_event_ends_with_the_realm() {
    let realm = realm(1);
    let never = realm.user_event();
    let future = realm.event_future(never.event());
    let waiting = std::thread::spawn(move || block_on(future));
    drop(realm);
    assert!(is_abandoned(waiting.join().unwrap()));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_realm_that_has_broken_down_is_ended_by_its_owner_whoever_has_handles() {
    let realm = realm(2);
    let (sender, dropped) = mpsc::channel();
    let (never, other) = (realm.user_event(), realm.user_event());
    let kept = || (realm.clone(), Dropped(sender.clone()));
    for event in [never, other] {
        let (body, late, future, callback) = (kept(), kept(), kept(), kept());
        realm.spawn(&event.event(), move || drop(body));
        // What merely comes after it is not run either.
        realm.spawn(After::follows(&[event.event()]), move || -> () { unreachable!("{:?}", late.0) });
        realm.spawn_async(Spawn::ANYWHERE, async move { drop((future.0.event_future(event.event()).await, future)) });
        realm.when(&event.event(), move |outcome| {
            assert!(outcome.is_err());
            drop(callback);
        });
    }
    let last = realm.merge(&[never.event(), other.event()]);
    realm.give_up(Fault::new("the others are gone"));
    realm.shut_down();
    drop(sender);
    assert_eq!(dropped.iter().count(), 8);
    assert_eq!(realm.wait(last).unwrap_err().to_string(), "the others are gone");
    // A trigger that comes too late is not blamed for it; nothing is run any more.
    realm.trigger(never);
    assert!(is_abandoned(realm.wait(realm.spawn(Spawn::ANYWHERE, || ()))));
}

#[test]
fn a_realm_that_is_well_is_ended_by_its_last_handle_alone() {
    let realm = realm(1);
    realm.shut_down();
    realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
}

#[test]
fn what_the_realm_would_trigger_itself_may_be_asked_for_after_its_end() {
    let realm = realm(2);
    let (reservation, barrier) = (realm.reservation(), realm.barrier(1));
    realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
    let (queued, phase) = (realm.acquire(&reservation, Mode::Exclusive, After::NOTHING), realm.phase_event(barrier));
    realm.give_up(Fault::new("no more"));
    realm.shut_down();
    for event in [queued, phase] {
        assert_eq!(realm.status(event).fault().unwrap().to_string(), "no more");
    }
    realm.release(&reservation, After::NOTHING);
    realm.arrive(barrier, 1, After::NOTHING);
    drop(reservation);
}
