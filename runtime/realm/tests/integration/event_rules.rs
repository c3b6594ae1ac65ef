//! The promises of events.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use maniple_realm::event::AlreadyTriggered;
use maniple_realm::event::future::EventFuture;
use maniple_realm::{After, Event, EventStatus, Fault, Realm, Spawn};
use proptest::prelude::*;
use proptest::sample::Index;

fn realm() -> Realm {
    Realm::builder().workers(2).build().unwrap()
}

fn fault(text: &str) -> Fault {
    Fault::new(text)
}

fn text_of(status: &EventStatus) -> String {
    status.fault().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn the_null_event_has_always_triggered() {
    let realm = realm();
    assert!(realm.has_triggered(Event::NONE));
    assert!(realm.wait(Event::NONE).is_ok());
    assert!(matches!(realm.status(Event::NONE), EventStatus::Triggered));
}

#[test]
fn a_user_event_is_pending_until_it_is_triggered() {
    let realm = realm();
    let user = realm.user_event();
    assert!(!realm.has_triggered(user.event()));
    realm.trigger(user);
    assert!(realm.has_triggered(user.event()));
}

#[test]
fn a_user_event_triggers_once() {
    let realm = realm();
    let (user, promised) = (realm.user_event(), realm.user_event());
    realm.trigger(user);
    assert_eq!(realm.try_trigger(user), Err(AlreadyTriggered { event: user.event() }));
    assert_eq!(realm.try_poison(user, fault("late")), Err(AlreadyTriggered { event: user.event() }));
    let before = realm.user_event();
    realm.trigger_after(promised, &before.event());
    assert!(realm.try_trigger(promised).is_err());
    assert!(!realm.has_triggered(promised.event()));
    realm.trigger(before);
    assert!(realm.has_triggered(promised.event()));
}

#[test]
#[should_panic(expected = "a user event triggers once")]
fn triggering_twice_panics_with_advice() {
    let realm = realm();
    let user = realm.user_event();
    realm.trigger(user);
    realm.trigger(user);
}

#[test]
fn old_generations_answer_triggered_for_ever() {
    let realm = realm();
    let events: Vec<Event> = (0..100_000)
        .map(|_| {
            let user = realm.user_event();
            realm.trigger(user);
            user.event()
        })
        .collect();
    let pending: Vec<_> = (0..200).map(|_| realm.user_event()).collect();
    assert!(events.iter().all(|&event| realm.has_triggered(event)));
    assert!(pending.iter().all(|user| !realm.has_triggered(user.event())));
}

#[test]
fn a_slot_is_retired_when_its_generations_run_out() {
    let realm = realm();
    let (first, never) = (realm.user_event(), realm.user_event());
    realm.trigger(first);
    let mut last = first.event();
    for _ in 0..1 << 24 {
        let user = realm.user_event();
        last = user.event();
        realm.trigger(user);
    }
    let slot = |event: Event| event.to_bits() >> 24;
    assert_ne!(slot(last), slot(first.event()));
    assert!(realm.has_triggered(first.event()) && realm.has_triggered(last));
    assert!(!realm.has_triggered(never.event()));
}

#[test]
fn a_merge_of_nothing_is_nothing() {
    let realm = realm();
    let done = realm.user_event();
    realm.trigger(done);
    assert_eq!(realm.merge(After::NOTHING), Event::NONE);
    assert_eq!(realm.merge(&[done.event(), Event::NONE]), Event::NONE);
}

#[test]
fn a_merge_with_one_event_left_is_that_event() {
    let realm = realm();
    let (done, left) = (realm.user_event(), realm.user_event());
    realm.trigger(done);
    assert_eq!(realm.merge(&[done.event(), left.event()]), left.event());
}

#[test]
fn a_merge_triggers_after_the_last_of_its_events() {
    let realm = realm();
    for count in [2, 3, 4, 5, 6, 16, 17, 100, 1000] {
        let users: Vec<_> = (0..count).map(|_| realm.user_event()).collect();
        let events: Vec<_> = users.iter().map(|user| user.event()).collect();
        let merged = realm.merge(&events);
        for &user in &users {
            assert!(!realm.has_triggered(merged), "{count} events");
            realm.trigger(user);
        }
        assert!(realm.has_triggered(merged), "{count} events");
    }
}

#[test]
fn poison_waits_for_the_other_events_of_a_merge() {
    let realm = realm();
    let (bad, other) = (realm.user_event(), realm.user_event());
    let merged = realm.merge(&[bad.event(), other.event()]);
    realm.poison(bad, fault("broken"));
    assert!(matches!(realm.status(merged), EventStatus::Pending));
    realm.trigger(other);
    assert_eq!(text_of(&realm.status(merged)), "broken");
}

#[test]
fn poison_spreads_along_needs_and_not_along_follows() {
    let realm = realm();
    let (bad, good) = (realm.user_event(), realm.user_event());
    let needing = realm.merge(After { needs: &[bad.event(), good.event()], follows: &[] });
    let following = realm.merge(After { needs: &[good.event()], follows: &[bad.event()] });
    let only_following = realm.merge(After { needs: &[], follows: &[bad.event()] });
    realm.poison(bad, fault("broken"));
    realm.trigger(good);
    assert_eq!(text_of(&realm.status(needing)), "broken");
    assert!(matches!(realm.status(following), EventStatus::Triggered));
    assert!(matches!(realm.status(only_following), EventStatus::Triggered));
}

#[test]
fn follows_among_many_preconditions_stay_follows() {
    let realm = realm();
    let bad = realm.user_event();
    let good: Vec<_> = (0..20).map(|_| realm.user_event()).collect();
    let needs: Vec<_> = good.iter().map(|user| user.event()).collect();
    for follower in 0..9 {
        let follows: Vec<_> = needs[..follower].iter().copied().chain([bad.event()]).collect();
        let merged = realm.merge(After { needs: &needs, follows: &follows });
        let all = realm.merge(After { needs: &follows, follows: &needs });
        realm.when(After::follows(&[merged]), |result| assert!(result.is_ok()));
        realm.when(&all, |result| assert!(result.is_err()));
    }
    realm.poison(bad, fault("broken"));
    good.into_iter().for_each(|user| realm.trigger(user));
}

#[test]
fn poison_can_be_inspected_for_ever() {
    let realm = realm();
    let bad = realm.user_event();
    realm.poison(bad, fault("broken"));
    for _ in 0..10_000 {
        let user = realm.user_event();
        realm.trigger(user);
    }
    assert_eq!(text_of(&realm.status(bad.event())), "broken");
    assert_eq!(realm.wait(bad.event()).unwrap_err().to_string(), "broken");
    assert_eq!(text_of(&realm.status(realm.merge(&bad.event()))), "broken");
}

#[test]
fn a_chain_of_a_million_events_triggers_in_constant_stack() {
    let realm = realm();
    let body = move || {
        let first = realm.user_event();
        let mut last = first.event();
        for _ in 0..1_000_000 {
            let next = realm.user_event();
            realm.trigger_after(next, &last);
            last = next.event();
        }
        realm.trigger(first);
        assert!(realm.has_triggered(last));
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap().join().unwrap();
}

#[test]
fn a_chain_of_a_million_callbacks_triggers_in_constant_stack() {
    const LINKS: usize = 1_000_000;
    let realm = realm();
    let body = move || {
        let calls = Arc::new(AtomicUsize::new(0));
        let first = realm.user_event();
        let mut last = first;
        for _ in 0..LINKS {
            let next = realm.user_event();
            let (handle, calls) = (realm.clone(), Arc::clone(&calls));
            realm.when(&last.event(), move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                handle.trigger(next);
            });
            last = next;
        }
        realm.trigger(first);
        assert!(realm.has_triggered(last.event()));
        assert_eq!(calls.load(Ordering::Relaxed), LINKS);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap().join().unwrap();
}

#[test]
fn a_callback_gets_the_fault_of_what_it_needs() {
    let realm = realm();
    let bad = realm.user_event();
    let seen = realm.user_event();
    let handle = realm.clone();
    realm.when(&bad.event(), move |result| {
        assert_eq!(result.unwrap_err().to_string(), "broken");
        handle.trigger(seen);
    });
    realm.poison(bad, fault("broken"));
    assert!(realm.has_triggered(seen.event()));
}

#[test]
fn a_callback_that_panics_poisons_its_event_and_nothing_else() {
    let realm = realm();
    let user = realm.user_event();
    let failed = realm.when_event(&user.event(), |_| panic!("no good"));
    let fine = realm.when_event(&user.event(), |_| ());
    realm.trigger(user);
    assert!(text_of(&realm.status(failed)).contains("no good"));
    assert!(matches!(realm.status(fine), EventStatus::Triggered));
}

#[test]
fn waiting_in_a_callback_is_refused() {
    let realm = realm();
    let (user, never) = (realm.user_event(), realm.user_event());
    let handle = realm.clone();
    let refused = realm.when_event(&user.event(), move |_| drop(handle.wait(never.event())));
    realm.trigger(user);
    assert!(text_of(&realm.status(refused)).contains("must not wait"));
}

#[test]
fn threads_that_wait_see_what_was_done_before_the_trigger() {
    let realm = realm();
    let user = realm.user_event();
    let mut value = 0;
    let cell = std::sync::Mutex::new(&mut value);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                realm.wait(user.event()).unwrap();
                assert_eq!(**cell.lock().unwrap(), 7);
            });
        }
        **cell.lock().unwrap() = 7;
        realm.trigger(user);
    });
}

#[test]
fn handles_print_their_parts() {
    let realm = realm();
    let text = format!("{:?} {:?}", Event::NONE, realm.user_event().event());
    assert!(text.starts_with("Event(none) Event(node 0, slot "), "{text}");
}

#[test]
fn realms_live_side_by_side() {
    let (one, other) = (realm(), realm());
    let (first, second) = (one.user_event(), other.user_event());
    let relay = other.clone();
    one.when(&first.event(), move |_| relay.trigger(second));
    let ran = other.spawn(Spawn::after(&second.event()), || ());
    one.trigger(first);
    other.wait(ran).unwrap();
}

#[test]
#[should_panic(expected = "belongs to another realm")]
fn a_user_event_of_another_realm_is_refused() {
    let (one, other) = (realm(), realm());
    other.trigger(one.user_event());
}

#[test]
fn many_threads_may_race_to_trigger_one_event() {
    let realm = realm();
    for _ in 0..200 {
        let user = realm.user_event();
        let won: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| usize::from(realm.try_trigger(user).is_ok()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn futures_that_are_polled_and_dropped_leave_nothing_behind() {
    let realm = realm();
    let user = realm.user_event();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        assert!(pin!(realm.event_future(user.event())).poll(&mut context).is_pending());
    }
    assert!(realm.most_pending() < 1000, "{} operations were pending for one event", realm.most_pending());
    let (wakes, mut last) = (Arc::new(Wakes::default()), pin!(realm.event_future(user.event())));
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(last.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    realm.trigger(user);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert!(last.as_mut().poll(&mut context).is_ready());
}

#[derive(Clone, Debug)]
enum Step {
    Await(usize),
    Poll(Index),
    Drop(Index),
    Trigger(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize).prop_map(Step::Await),
        4 => any::<Index>().prop_map(Step::Poll),
        3 => any::<Index>().prop_map(Step::Drop),
        1 => (0..3_usize).prop_map(Step::Trigger),
    ];
    prop::collection::vec(step, 0..60)
}

/// A future of an event, its wakes, and whether it was polled last while the event was pending.
type Waiting = (usize, Pin<Box<EventFuture>>, Arc<Wakes>, bool);

proptest! {
    /// Futures of three events are polled and dropped in any order, before and after the events trigger: each that was
    /// polled last before its event triggered is woken by that, and is then ready.
    #[test]
    fn futures_may_be_polled_and_dropped_in_any_order(steps in steps()) {
        let realm = Realm::builder().workers(1).build().unwrap();
        let events = [(); 3].map(|()| realm.user_event());
        let mut triggered = [false; 3];
        let mut futures: Vec<Waiting> = Vec::new();
        for step in steps {
            match step {
                Step::Await(event) => {
                    futures.push((event, Box::pin(realm.event_future(events[event].event())), Arc::default(), false));
                }
                Step::Poll(which) if !futures.is_empty() => {
                    let place = which.index(futures.len());
                    let (event, future, wakes, awaits) = &mut futures[place];
                    let waker = Waker::from(Arc::clone(wakes));
                    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                    prop_assert_eq!(matches!(polled, Poll::Ready(Ok(()))), triggered[*event]);
                    *awaits |= polled.is_pending();
                    if polled.is_ready() {
                        futures.swap_remove(place);
                    }
                }
                Step::Drop(which) if !futures.is_empty() => {
                    futures.swap_remove(which.index(futures.len()));
                }
                Step::Trigger(event) if !triggered[event] => {
                    triggered[event] = true;
                    realm.trigger(events[event]);
                }
                _ => {}
            }
            for (event, _, wakes, awaits) in &futures {
                let expected = usize::from(*awaits && triggered[*event]);
                prop_assert_eq!(wakes.0.load(Ordering::SeqCst), expected);
            }
        }
    }
}

#[test]
fn failures_one_after_another_use_the_same_memory_as_successes() {
    let realm = realm();
    let mut events = Vec::new();
    for number in 0..10_000 {
        let work = move || if number % 3 == 0 { Ok(()) } else { Err(fault(&format!("number {number}"))) };
        let event = realm.spawn(Spawn::ANYWHERE, work);
        assert_eq!(realm.wait(event).is_ok(), number % 3 == 0);
        events.push(event);
    }
    assert!(realm.most_pending() < 1000, "{} operations were pending one at a time", realm.most_pending());
    // What has come of each is known for ever, also to a thread that comes to wait for it.
    for (number, &event) in events.iter().enumerate() {
        let expected = if number % 3 == 0 { String::new() } else { format!("number {number}") };
        assert_eq!(text_of(&realm.status(event)), expected);
        let after = realm.spawn(&event, || ());
        let waited = realm.wait(after).map_or_else(|fault| fault.to_string(), |()| String::new());
        assert_eq!(waited, expected);
        assert!(realm.wait(realm.spawn(After::follows(&[event]), || ())).is_ok());
    }
}
