//! Phases of barriers.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use crate::model;
use crate::phases::{Change, Phases};
use crate::sync::Ordering;
use crate::word::Preconditions;

/// A thread that looks at a phase while the barrier is closed is refused, or the thread that closes it finds what was
/// put there.
#[test]
fn nobody_opens_a_phase_of_a_barrier_that_was_closed() {
    model(|| {
        let phases = Arc::new(Phases::<Option<u32>>::new(1));
        let theirs = phases.clone();
        let thread = thread::spawn(move || theirs.with_open(0, |data| *data = Some(1)));
        let closed = phases.close();
        let opened = thread.join().unwrap();
        assert_eq!(opened.is_ok(), closed == [Some(1)]);
    });
}

#[test]
fn poison_noted_before_the_last_arrival_is_seen_by_it() {
    model(|| {
        let preconditions = Arc::new(Preconditions::new());
        preconditions.begin(1);
        let theirs = preconditions.clone();
        let thread = thread::spawn(move || {
            theirs.poison();
            theirs.arrive(1)
        });
        let ready = preconditions.arrive(1).or(thread.join().unwrap());
        assert!(ready.unwrap().poisoned);
    });
}

#[test]
fn phases_are_announced_once_and_in_order_whoever_completes_them() {
    model(|| {
        let phases = Arc::new(Phases::<()>::new(1));
        let announced = Arc::new(AtomicUsize::new(0));
        let arrive = |phases: &Phases<()>, announced: &AtomicUsize, phase| {
            let announce = |phase, ()| {
                let before = announced.fetch_add(1, Ordering::Relaxed);
                assert_eq!(before, phase as usize);
            };
            phases.arrive(0, Change { phase, arrivals: -1 }, |_| (), announce).unwrap();
        };
        let (their_phases, their_announced) = (phases.clone(), announced.clone());
        let thread = thread::spawn(move || arrive(&their_phases, &their_announced, 1));
        arrive(&phases, &announced, 0);
        thread.join().unwrap();
        assert_eq!(announced.load(Ordering::Relaxed), 2);
    });
}
