//! The promises of reservations.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use maniple_realm::reservation::{NeverReleased, NotReserved};
use maniple_realm::{After, Event, Fault, Mode, Realm, Spawn};
use proptest::prelude::*;

fn realm() -> Realm {
    Realm::builder().workers(2).build().unwrap()
}

fn shared(number: u32) -> Mode {
    Mode::Shared(NonZeroU32::new(number).unwrap())
}

#[test]
fn a_free_reservation_is_had_at_once_and_makes_no_event() {
    let realm = realm();
    let reservation = realm.reservation();
    for mode in [Mode::Exclusive, Mode::READ, shared(7)] {
        assert_eq!(realm.acquire(&reservation, mode, After::NOTHING), Event::NONE);
        assert_eq!(realm.release(&reservation, After::NOTHING), Event::NONE);
    }
}

#[test]
fn equal_shared_modes_share_and_others_do_not() {
    let realm = realm();
    let reservation = realm.reservation();
    assert_eq!(realm.acquire(&reservation, shared(2), After::NOTHING), Event::NONE);
    assert_eq!(realm.acquire(&reservation, shared(2), After::NOTHING), Event::NONE);
    let other = realm.acquire(&reservation, shared(3), After::NOTHING);
    assert!(!realm.has_triggered(other));
    realm.release(&reservation, After::NOTHING);
    assert!(!realm.has_triggered(other));
    realm.release(&reservation, After::NOTHING);
    assert!(realm.has_triggered(other));
}

#[test]
fn nobody_overtakes_the_queue() {
    let realm = realm();
    let reservation = realm.reservation();
    assert_eq!(realm.acquire(&reservation, Mode::READ, After::NOTHING), Event::NONE);
    let writer = realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
    let readers = [(); 2].map(|()| realm.acquire(&reservation, Mode::READ, After::NOTHING));
    assert!(!realm.has_triggered(writer) && !realm.has_triggered(readers[0]));
    realm.release(&reservation, After::NOTHING);
    assert!(realm.has_triggered(writer) && !realm.has_triggered(readers[0]));
    realm.release(&reservation, After::NOTHING);
    assert!(readers.iter().all(|&reader| realm.has_triggered(reader)));
}

#[test]
fn an_acquisition_takes_its_turn_after_its_preconditions() {
    let realm = realm();
    let reservation = realm.reservation();
    let before = realm.user_event();
    let late = realm.acquire(&reservation, Mode::Exclusive, &before.event());
    assert_eq!(realm.acquire(&reservation, Mode::Exclusive, After::NOTHING), Event::NONE);
    realm.trigger(before);
    assert!(!realm.has_triggered(late));
    realm.release(&reservation, After::NOTHING);
    assert!(realm.has_triggered(late));
}

#[test]
fn a_poisoned_acquisition_acquires_nothing() {
    let realm = realm();
    let reservation = realm.reservation();
    let bad = realm.user_event();
    let refused = realm.acquire(&reservation, Mode::Exclusive, &bad.event());
    realm.poison(bad, Fault::new("broken"));
    assert_eq!(realm.status(refused).fault().unwrap().to_string(), "broken");
    assert_eq!(realm.acquire(&reservation, Mode::Exclusive, After::NOTHING), Event::NONE);
}

#[test]
fn a_holder_that_fails_still_releases() {
    let realm = realm();
    let reservation = realm.reservation();
    realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
    let next = realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
    let failed = realm.spawn(Spawn::ANYWHERE, || Err::<(), _>(Fault::new("broken")));
    realm.release(&reservation, &failed);
    realm.wait(next).unwrap();
}

#[test]
fn releasing_what_nobody_holds_is_an_error() {
    let realm = realm();
    let reservation = realm.reservation();
    let wrong = realm.release(&reservation, After::NOTHING);
    assert_eq!(realm.status(wrong).fault().unwrap().downcast_ref(), Some(&NotReserved));
}

#[test]
fn who_waits_for_a_reservation_that_nobody_can_release_is_told_so() {
    let realm = realm();
    let reservation = realm.reservation();
    realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
    let queued = realm.acquire(&reservation, Mode::READ, After::NOTHING);
    let start = realm.user_event();
    let later = realm.acquire(&reservation, Mode::READ, &start.event());
    drop(reservation);
    assert!(!realm.has_triggered(queued), "an acquisition to come has a handle, and might release");
    realm.trigger(start);
    for event in [queued, later] {
        assert_eq!(realm.wait(event).unwrap_err().downcast_ref(), Some(&NeverReleased));
    }
}

#[test]
#[should_panic(expected = "belongs to another realm")]
fn a_reservation_of_another_realm_is_refused() {
    let (one, other) = (realm(), realm());
    other.release(&one.reservation(), After::NOTHING);
}

#[test]
fn tasks_under_a_reservation_exclude_one_another() {
    let realm = Realm::builder().workers(4).build().unwrap();
    let reservation = realm.reservation();
    let inside = Arc::new(AtomicU32::new(0));
    let released: Vec<_> = (0..2000)
        .map(|_| {
            let inside = Arc::clone(&inside);
            let granted = realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
            let done = realm.spawn(&granted, move || {
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                inside.fetch_sub(1, Ordering::Relaxed);
            });
            realm.release(&reservation, &done)
        })
        .collect();
    realm.wait(realm.merge(&released)).unwrap();
}

proptest! {
    /// Against the plainest model: a queue of requests, of which a compatible prefix holds.
    #[test]
    fn grants_are_those_of_a_fair_queue(steps in proptest::collection::vec((any::<bool>(), 0_u32..3), 1..60)) {
        let realm = Realm::builder().workers(1).build().unwrap();
        let reservation = realm.reservation();
        let mut holders: Vec<u32> = Vec::new();
        let mut queue: Vec<(u32, Event)> = Vec::new();
        for (acquires, mode) in steps {
            if acquires {
                let asked = if mode == 0 { Mode::Exclusive } else { shared(mode) };
                let event = realm.acquire(&reservation, asked, After::NOTHING);
                let shares = mode != 0 && holders.first() == Some(&mode);
                if queue.is_empty() && (holders.is_empty() || shares) {
                    prop_assert_eq!(event, Event::NONE);
                    holders.push(mode);
                } else {
                    queue.push((mode, event));
                }
            } else if holders.pop().is_some() {
                realm.release(&reservation, After::NOTHING);
                if holders.is_empty() && !queue.is_empty() {
                    let mode = queue[0].0;
                    let sharing = queue.iter().take_while(|request| request.0 == mode).count();
                    for (mode, event) in queue.drain(..if mode == 0 { 1 } else { sharing }) {
                        prop_assert!(realm.has_triggered(event));
                        holders.push(mode);
                    }
                }
            }
            prop_assert!(queue.iter().all(|&(_, event)| !realm.has_triggered(event)));
        }
    }
}
