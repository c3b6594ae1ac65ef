//! The promises of async bodies.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use maniple_realm::machine::ProcessorId;
use maniple_realm::operation::task::Stranded;
use maniple_realm::{Fault, Realm, Spawn};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

fn fail(message: &str) {
    panic!("{message}");
}

#[test]
fn an_async_body_that_waits_holds_no_worker() {
    let realm = realm(1);
    let gate = realm.user_event();
    let open = realm.event_future(gate.event());
    let waits = realm.spawn_async(Spawn::ANYWHERE, open);
    let plain = realm.spawn(Spawn::ANYWHERE, || ());
    realm.wait(plain).unwrap();
    assert!(!realm.has_triggered(waits));
    realm.trigger(gate);
    realm.wait(waits).unwrap();
}

#[test]
fn thousands_of_async_bodies_wait_for_one_another_on_one_worker() {
    for workers in 1..=2 {
        let realm = realm(workers);
        let first = realm.user_event();
        let mut last = first.event();
        for _ in 0..5000 {
            let before = realm.event_future(last);
            last = realm.spawn_async(Spawn::ANYWHERE, before);
        }
        realm.trigger(first);
        realm.wait(last).unwrap();
    }
}

#[test]
fn an_async_body_sees_the_fault_of_what_it_awaits() {
    let realm = realm(2);
    let bad = realm.spawn(Spawn::ANYWHERE, || Err::<(), _>(Fault::new("broken")));
    let (handled, passed_on) = (realm.event_future(bad), realm.event_future(bad));
    let fine = realm.spawn_async(Spawn::ANYWHERE, async move {
        assert_eq!(handled.await.unwrap_err().to_string(), "broken");
    });
    let failed = realm.spawn_async(Spawn::ANYWHERE, async move {
        passed_on.await?;
        Ok::<(), Arc<Fault>>(())
    });
    realm.wait(fine).unwrap();
    assert_eq!(realm.wait(failed).unwrap_err().to_string(), "broken");
}

#[test]
fn a_panic_in_an_async_body_is_a_fault_before_and_after_a_wait() {
    let realm = realm(2);
    let gate = realm.user_event();
    let open = realm.event_future(gate.event());
    let early = realm.spawn_async(Spawn::ANYWHERE, async { fail("early") });
    let late = realm.spawn_async(Spawn::ANYWHERE, async move {
        open.await.unwrap();
        fail("late");
    });
    assert!(realm.wait(early).unwrap_err().to_string().contains("early"));
    realm.trigger(gate);
    assert!(realm.wait(late).unwrap_err().to_string().contains("late"));
}

#[test]
fn a_poisoned_async_body_is_dropped_without_being_polled() {
    let realm = realm(1);
    let bad = realm.user_event();
    let (sender, polled) = mpsc::channel();
    let done = realm.spawn_async(&bad.event(), async move { sender.send(()).unwrap() });
    realm.poison(bad, Fault::new("broken"));
    assert_eq!(realm.wait(done).unwrap_err().to_string(), "broken");
    assert_eq!(polled.iter().count(), 0);
}

#[test]
fn a_body_that_wakes_itself_is_polled_again() {
    let realm = realm(2);
    let mut rounds = 0;
    let done = realm.spawn_async(
        Spawn::ANYWHERE,
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            rounds += 1;
            if rounds == 1000 { Poll::Ready(()) } else { Poll::Pending }
        }),
    );
    realm.wait(done).unwrap();
}

#[test]
fn many_wakes_while_pending_are_one_poll_and_none_is_lost() {
    let realm = realm(2);
    let polls = Arc::new(AtomicUsize::new(0));
    let (sender, wakers) = mpsc::channel::<Waker>();
    let count = Arc::clone(&polls);
    let done = realm.spawn_async(
        Spawn::ANYWHERE,
        poll_fn(move |context| {
            let polls = count.fetch_add(1, Ordering::Relaxed) + 1;
            if polls == 100 {
                return Poll::Ready(());
            }
            sender.send(context.waker().clone()).unwrap();
            Poll::Pending
        }),
    );
    for waker in wakers {
        let other = waker.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake_by_ref());
            scope.spawn(|| other.wake_by_ref());
        });
    }
    realm.wait(done).unwrap();
    assert_eq!(polls.load(Ordering::Relaxed), 100);
}

#[test]
fn wakers_outlive_their_body_and_their_realm() {
    let realm = realm(1);
    let (sender, wakers) = mpsc::channel::<Waker>();
    let done = realm.spawn_async(
        Spawn::ANYWHERE,
        poll_fn(move |context| {
            sender.send(context.waker().clone()).unwrap();
            Poll::Ready(())
        }),
    );
    realm.wait(done).unwrap();
    let waker = wakers.recv().unwrap();
    waker.wake_by_ref();
    drop(realm);
    waker.wake();
}

#[test]
fn a_pinned_async_body_is_polled_on_its_processor_alone() {
    let realm = realm(2);
    let handle = realm.clone();
    let steps: Vec<_> = (0..50).map(|_| realm.user_event()).collect();
    let futures: Vec<_> = steps.iter().map(|step| realm.event_future(step.event())).collect();
    let done = realm.spawn_async(Spawn::on(ProcessorId(1)), async move {
        for future in futures {
            future.await.unwrap();
            assert_eq!(handle.current_processor(), Some(ProcessorId(1)));
        }
    });
    for step in steps {
        let handle = realm.clone();
        realm.spawn(Spawn::ANYWHERE, move || handle.trigger(step));
    }
    realm.wait(done).unwrap();
}

/// Gives its waker away, once, and is ready when the test says so.
struct Given {
    to: mpsc::Sender<Waker>,
    is_given: bool,
    is_ready: Arc<AtomicBool>,
}

impl Future for Given {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.is_given, true) {
            self.to.send(context.waker().clone()).unwrap();
        }
        if self.is_ready.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn is_stranded(result: Result<(), Arc<Fault>>) -> bool {
    result.unwrap_err().downcast_ref::<Stranded>().is_some()
}

#[test]
fn a_body_that_waits_and_that_nobody_can_wake_fails() {
    for workers in 1..3 {
        let realm = Realm::builder().workers(workers).build().unwrap();
        assert!(is_stranded(realm.wait(realm.spawn_async(Spawn::ANYWHERE, std::future::pending::<()>()))));
        for round in 0..100 {
            let (sender, wakers) = mpsc::channel();
            let is_ready = Arc::new(AtomicBool::new(false));
            let given = Given { to: sender, is_given: false, is_ready: Arc::clone(&is_ready) };
            let done = realm.spawn_async(Spawn::ANYWHERE, given);
            let waker = wakers.recv().unwrap();
            let copy = waker.clone();
            drop(waker);
            match round % 4 {
                0 => drop(copy),
                1 => copy.wake(),
                2 => {
                    copy.wake_by_ref();
                    drop(copy);
                }
                _ => {
                    is_ready.store(true, Ordering::SeqCst);
                    copy.wake();
                }
            }
            if round % 4 == 3 {
                realm.wait(done).unwrap();
            } else {
                assert!(is_stranded(realm.wait(done)));
            }
        }
    }
}

#[test]
fn a_future_that_is_stranded_may_go_on_with_something_else() {
    let realm = Realm::builder().workers(1).build().unwrap();
    let start = realm.user_event();
    let mut then = realm.event_future(start.event());
    let mut has_given_up = false;
    let done = realm.spawn_async(
        Spawn::ANYWHERE,
        std::future::poll_fn(move |context| {
            has_given_up |= maniple_realm::operation::task::is_stranded();
            if has_given_up { Pin::new(&mut then).poll(context).map(|_| ()) } else { Poll::Pending }
        }),
    );
    realm.trigger(start);
    realm.wait(done).unwrap();
}
