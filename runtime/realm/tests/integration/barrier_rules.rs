//! The promises of phase barriers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use maniple_realm::{After, Barrier, BarrierError, EventStatus, Fault, Realm, Spawn};
use proptest::prelude::*;

fn realm() -> Realm {
    Realm::builder().workers(2).build().unwrap()
}

fn error_of(realm: &Realm, event: maniple_realm::Event) -> BarrierError {
    *realm.status(event).fault().unwrap().downcast_ref().unwrap()
}

#[test]
fn a_phase_triggers_when_all_have_arrived() {
    let realm = realm();
    let barrier = realm.barrier(3);
    let event = realm.phase_event(barrier);
    realm.arrive(barrier, 2, After::NOTHING);
    assert!(!realm.has_triggered(event));
    realm.arrive(barrier, 1, After::NOTHING);
    assert!(realm.has_triggered(event) && realm.has_triggered(realm.phase_event(barrier)));
    assert!(!realm.has_triggered(realm.phase_event(barrier.advance())));
}

#[test]
fn an_arrival_waits_for_its_preconditions() {
    let realm = realm();
    let barrier = realm.barrier(1);
    let before = realm.user_event();
    let counted = realm.arrive(barrier, 1, &before.event());
    assert!(!realm.has_triggered(realm.phase_event(barrier)) && !realm.has_triggered(counted));
    realm.trigger(before);
    assert!(realm.has_triggered(realm.phase_event(barrier)) && realm.has_triggered(counted));
}

#[test]
fn a_poisoned_arrival_counts_and_poisons_its_phase_alone() {
    let realm = realm();
    let barrier = realm.barrier(2);
    let bad = realm.user_event();
    let early = realm.phase_event(barrier);
    realm.arrive(barrier, 1, &bad.event());
    realm.poison(bad, Fault::new("broken"));
    assert!(matches!(realm.status(early), EventStatus::Pending));
    realm.arrive(barrier, 1, After::NOTHING);
    let late = realm.phase_event(barrier);
    assert_eq!(early, late);
    assert_eq!(realm.status(late).fault().unwrap().to_string(), "broken");
    realm.arrive(barrier.advance(), 2, After::NOTHING);
    assert!(matches!(realm.status(realm.phase_event(barrier.advance())), EventStatus::Triggered));
}

#[test]
fn the_poison_of_a_phase_is_there_for_those_who_ask_later() {
    let realm = realm();
    let barrier = realm.barrier(1);
    let bad = realm.user_event();
    realm.poison(bad, Fault::new("broken"));
    realm.arrive(barrier, 1, &bad.event());
    assert_eq!(realm.status(realm.phase_event(barrier)).fault().unwrap().to_string(), "broken");
}

#[test]
fn an_alteration_changes_its_phase_alone() {
    let realm = realm();
    let barrier = realm.barrier(1);
    let more = realm.alter_arrival_count(barrier, 2).unwrap();
    let fewer = realm.alter_arrival_count(more, -1).unwrap();
    realm.arrive(fewer, 1, After::NOTHING);
    assert!(!realm.has_triggered(realm.phase_event(barrier)));
    realm.arrive(fewer, 1, After::NOTHING);
    assert!(realm.has_triggered(realm.phase_event(barrier)));
    realm.arrive(fewer.advance(), 1, After::NOTHING);
    assert!(realm.has_triggered(realm.phase_event(barrier.advance())));
}

#[test]
fn one_arrival_too_many_is_an_error_and_is_not_counted() {
    let realm = realm();
    let barrier = realm.barrier(2);
    let excessive = realm.arrive(barrier, 3, After::NOTHING);
    assert_eq!(error_of(&realm, excessive), BarrierError::TooManyArrivals { barrier, missing: 2, excess: 1 });
    realm.arrive(barrier, 2, After::NOTHING);
    let late = realm.arrive(barrier, 1, After::NOTHING);
    assert_eq!(error_of(&realm, late), BarrierError::PhaseOver(barrier));
    assert_eq!(realm.alter_arrival_count(barrier, 1), Err(BarrierError::PhaseOver(barrier)));
}

#[test]
fn a_destroyed_barrier_leaves_nobody_waiting() {
    let realm = realm();
    let barrier = realm.barrier(1);
    let event = realm.phase_event(barrier.advance());
    realm.destroy_barrier(barrier);
    assert_eq!(error_of(&realm, event), BarrierError::Unknown(barrier));
    assert_eq!(error_of(&realm, realm.phase_event(barrier)), BarrierError::Unknown(barrier));
    assert_eq!(error_of(&realm, realm.arrive(barrier, 1, After::NOTHING)), BarrierError::Unknown(barrier));
}

#[test]
fn a_barrier_of_another_realm_is_unknown() {
    let (ours, theirs) = (realm(), realm());
    let (own, foreign) = (ours.barrier(1), theirs.barrier(1));
    let unknown = BarrierError::Unknown(foreign);
    assert_ne!(own, foreign);
    assert_eq!(error_of(&ours, ours.arrive(foreign, 1, After::NOTHING)), unknown);
    assert_eq!(error_of(&ours, ours.phase_event(foreign)), unknown);
    assert_eq!(ours.alter_arrival_count(foreign, 1), Err(unknown));
    ours.destroy_barrier(foreign);
    let event = ours.phase_event(own);
    assert!(!ours.has_triggered(event), "the arrival was counted at a barrier of our own");
    ours.arrive(own, 1, After::NOTHING);
    assert!(matches!(ours.status(event), EventStatus::Triggered));
}

#[test]
fn a_callback_of_a_phase_may_arrive_at_the_next() {
    let realm = realm();
    let first = realm.barrier(1);
    let mut barrier = first;
    for _ in 0..1000 {
        let (handle, next) = (realm.clone(), barrier.advance());
        realm.when(&realm.phase_event(barrier), move |_| {
            handle.arrive(next, 1, After::NOTHING);
        });
        barrier = next;
    }
    realm.arrive(first, 1, After::NOTHING);
    assert!(realm.has_triggered(realm.phase_event(barrier)));
    assert!(!realm.has_triggered(realm.phase_event(barrier.advance())));
}

#[test]
fn workers_meet_at_each_of_many_phases() {
    const PHASES: u32 = 200;
    const PARTS: u32 = 4;
    let realm = realm();
    let mut barrier = realm.barrier(PARTS);
    let reached = Arc::new((0..PHASES).map(|_| AtomicU32::new(0)).collect::<Vec<_>>());
    let mut last = Vec::new();
    for phase in 0..PHASES {
        let before = if phase == 0 { maniple_realm::Event::NONE } else { realm.phase_event(barrier) };
        if phase > 0 {
            barrier = barrier.advance();
        }
        for _ in 0..PARTS {
            let reached = Arc::clone(&reached);
            let done = realm.spawn(Spawn::after(&before), move || {
                if phase > 0 {
                    assert_eq!(reached[phase as usize - 1].load(Ordering::Relaxed), PARTS);
                }
                reached[phase as usize].fetch_add(1, Ordering::Relaxed);
            });
            realm.arrive(barrier, 1, &done);
            last.push(done);
        }
    }
    realm.wait(realm.phase_event(barrier)).unwrap();
    realm.wait(realm.merge(&last)).unwrap();
}

proptest! {
    /// Arrivals in any order, at once or behind events triggered in any order: phases trigger in order, each after its
    /// last arrival.
    #[test]
    fn phases_trigger_in_order(
        arrivals in 1_u32..4,
        order in proptest::sample::subsequence((0..12_u32).collect::<Vec<_>>(), 12).prop_shuffle(),
        deferred in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let realm = Realm::builder().workers(1).build().unwrap();
        let first = realm.barrier(arrivals);
        let phases: Vec<Barrier> = std::iter::successors(Some(first), |phase| Some(phase.advance())).take(6).collect();
        let events: Vec<_> = phases.iter().map(|&phase| realm.phase_event(phase)).collect();
        let mut missing = [arrivals; 6];
        for (&which, deferred) in order.iter().zip(deferred) {
            let phase = (which % 6) as usize;
            if missing[phase] == 0 {
                continue;
            }
            missing[phase] -= 1;
            if deferred {
                let user = realm.user_event();
                realm.arrive(phases[phase], 1, &user.event());
                realm.trigger(user);
            } else {
                realm.arrive(phases[phase], 1, After::NOTHING);
            }
            let complete = missing.iter().take_while(|&&missing| missing == 0).count();
            for (phase, &event) in events.iter().enumerate() {
                prop_assert_eq!(realm.has_triggered(event), phase < complete);
            }
        }
    }
}

proptest! {
    /// Barriers of several realms are arrived at, asked for and destroyed, by their own realm and by the other: only
    /// their own has anything to do with them, and no thread is left waiting.
    #[test]
    fn barriers_of_several_realms_have_nothing_to_do_with_each_other(
        steps in proptest::collection::vec((0..2_usize, 0..2_usize, 0..2_usize, 0..8_u32), 0..60),
    ) {
        let realms = [(); 2].map(|()| Realm::builder().workers(1).build().unwrap());
        let made = realms.each_ref().map(|realm| [(); 2].map(|()| realm.barrier(2)));
        // What is missing at each barrier's current phase, until it is destroyed.
        let mut barriers = made.map(|pair| pair.map(|barrier| (barrier, 2_u32, true)));
        let mut asked = Vec::new();
        for (by, of, which, step) in steps {
            let (realm, (barrier, missing, exists)) = (&realms[by], &mut barriers[of][which]);
            let is_known = by == of && *exists;
            match step {
                0 => {
                    realm.destroy_barrier(*barrier);
                    *exists &= by != of;
                }
                1..5 => {
                    let counted = realm.arrive(*barrier, 1, After::NOTHING);
                    prop_assert_eq!(matches!(realm.status(counted), EventStatus::Triggered), is_known);
                    if is_known {
                        *missing -= 1;
                    }
                    if *missing == 0 {
                        (*barrier, *missing) = (barrier.advance(), 2);
                    }
                }
                _ => {
                    let event = realm.phase_event(*barrier);
                    prop_assert_eq!(matches!(realm.status(event), EventStatus::Pending), is_known);
                    if is_known {
                        asked.push((by, event));
                    }
                }
            }
        }
        for (realm, barriers) in std::iter::zip(&realms, barriers) {
            barriers.iter().for_each(|&(barrier, ..)| realm.destroy_barrier(barrier));
        }
        prop_assert!(asked.iter().all(|&(of, event)| realms[of].has_triggered(event)), "nobody triggers a phase that was asked for");
    }
}
