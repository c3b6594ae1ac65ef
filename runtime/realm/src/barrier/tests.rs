//! The rules of counting, apart from events.

use std::cell::RefCell;

use proptest::strategy::Strategy;

use super::phases::{Change, Phases, Refused};
use super::{MOST_POISONED, Poisoned};
use crate::events::Event;

fn change(phase: u32, arrivals: i64) -> Change {
    Change { phase, arrivals }
}

/// Applies arrivals `(phase, count)` and gives the phases in the order of their completion.
fn completed(phases: &Phases<()>, arrivals: &[(u32, i64)]) -> Vec<u32> {
    let order = RefCell::new(Vec::new());
    for &(phase, count) in arrivals {
        phases.arrive(0, change(phase, -count), |_| (), |phase, ()| order.borrow_mut().push(phase)).unwrap();
    }
    order.into_inner()
}

#[test]
fn a_phase_is_complete_when_all_have_arrived() {
    let phases = Phases::new(3);
    assert_eq!(completed(&phases, &[(0, 1), (0, 1)]), []);
    assert_eq!(completed(&phases, &[(0, 1)]), [0]);
}

#[test]
fn phases_complete_in_order_and_several_at_once() {
    let phases = Phases::new(2);
    assert_eq!(completed(&phases, &[(2, 2), (1, 1), (1, 1), (0, 1)]), []);
    assert_eq!(completed(&phases, &[(0, 1)]), [0, 1, 2]);
}

#[test]
fn arrivals_wait_for_the_alteration_that_they_rest_on() {
    let phases = Phases::<()>::new(1);
    let order = RefCell::new(Vec::new());
    let announce = |phase, ()| order.borrow_mut().push(phase);
    let (first, second) = (phases.stamp(), phases.stamp());
    phases.arrive(first, change(0, -1), |_| (), announce).unwrap();
    phases.alter(second, change(0, 1), announce).unwrap();
    assert_eq!(*order.borrow(), []);
    phases.alter(first, change(0, 1), announce).unwrap();
    phases.arrive(second, change(0, -1), |_| (), announce).unwrap();
    assert_eq!(*order.borrow(), []);
    phases.arrive(second, change(0, -1), |_| (), announce).unwrap();
    assert_eq!(*order.borrow(), [0]);
}

#[test]
fn more_arrivals_than_expected_are_refused() {
    let phases = Phases::<()>::new(2);
    let announce = |_, ()| ();
    assert_eq!(phases.arrive(0, change(0, -3), |_| (), announce), Err(Refused::TooMany { missing: 2 }));
    phases.arrive(0, change(0, -2), |_| (), announce).unwrap();
    assert_eq!(phases.arrive(0, change(0, -1), |_| (), announce), Err(Refused::Over));
}

#[test]
fn who_comes_to_a_closed_barrier_is_refused() {
    let phases = Phases::<Option<u32>>::new(2);
    let announce = |_, _| ();
    let stamp = phases.stamp();
    phases.arrive(0, change(0, -2), |_| (), announce).unwrap();
    assert_eq!(phases.with_open(1, |data| *data = Some(7)), Ok(Some(())));
    assert_eq!(phases.close(), [Some(7)]);
    // What would be opened or counted now, would never be announced.
    assert_eq!(phases.with_open(1, |data| *data = Some(8)), Err(Refused::Closed));
    assert_eq!(phases.with_open(2, |_| ()), Err(Refused::Closed));
    assert_eq!(phases.arrive(0, change(1, -1), |_| (), announce), Err(Refused::Closed));
    assert_eq!(phases.alter(stamp, change(1, 1), announce), Err(Refused::Closed));
    // The phase that was complete is so for ever.
    assert_eq!(phases.with_open(0, |_| ()), Ok(None));
    assert_eq!(phases.close(), []);
}

proptest::proptest! {
    /// Deltas of one phase, delivered in any order by any interleaving of timestamps, complete it exactly once, after
    /// the last.
    #[test]
    fn any_order_of_delivery_completes_the_phase_once(
        order in proptest::sample::subsequence((0..8_usize).collect::<Vec<_>>(), 8)
            .prop_shuffle()
    ) {
        // Four alterations of one arrival each, and the four arrivals that bear their timestamps; one arrival more was
        // expected.
        let phases = Phases::<()>::new(1);
        let count = RefCell::new(0);
        let announce = |_, ()| *count.borrow_mut() += 1;
        let stamps: Vec<u32> = (0..4).map(|_| phases.stamp()).collect();
        for message in order {
            let stamp = stamps[message / 2];
            if message % 2 == 0 {
                phases.alter(stamp, change(0, 1), announce).unwrap();
            } else {
                phases.arrive(stamp, change(0, -1), |_| (), announce).unwrap();
            }
        }
        proptest::prop_assert_eq!(*count.borrow(), 0);
        phases.arrive(0, change(0, -1), |_| (), announce).unwrap();
        proptest::prop_assert_eq!(*count.borrow(), 1);
    }
}

#[test]
fn of_many_poisoned_phases_the_earliest_are_forgotten_and_none_counts_as_good_before_the_last_of_those() {
    let mut poisoned = Poisoned::default();
    for phase in (0..10 * MOST_POISONED as u32).step_by(2) {
        poisoned.insert(phase, Event::NONE);
        assert!(poisoned.latest.len() <= MOST_POISONED);
    }
    let last = 10 * MOST_POISONED as u32 - 2;
    assert!(poisoned.of(last).is_some() && poisoned.of(last - 1).is_none() && poisoned.of(last + 2).is_none());
    assert!(poisoned.of(0).is_some() && poisoned.of(1).is_some(), "nobody knows any more");
}
