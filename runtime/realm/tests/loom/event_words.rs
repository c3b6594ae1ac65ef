//! Events: each waiter of one is told once, whichever threads race.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::model;
use crate::sync::{AtomicU32, Ordering};
use crate::word::{EventWord, Phase, Preconditions};

/// An operation: its waiter nodes, and a body that must run once, after its inputs were written.
struct Operation {
    links: [AtomicU32; 2],
    preconditions: Preconditions,
    inputs: [UnsafeCell<u32>; 2],
    runs: UnsafeCell<u32>,
}

impl Operation {
    fn new() -> Self {
        Self {
            links: [AtomicU32::new(0), AtomicU32::new(0)],
            preconditions: Preconditions::new(),
            inputs: [UnsafeCell::new(0), UnsafeCell::new(0)],
            runs: UnsafeCell::new(0),
        }
    }

    fn write_input(&self, which: usize) {
        // SAFETY: loom checks it: the accesses race unless the protocol orders them.
        self.inputs[which].with_mut(|input| unsafe { *input = 1 });
    }

    fn run(&self) {
        for input in &self.inputs {
            // SAFETY: as in `write_input`.
            input.with(|input| unsafe { std::hint::black_box(*input) });
        }
        // SAFETY: as in `write_input`.
        self.runs.with_mut(|runs| unsafe { *runs += 1 });
    }

    fn arrive(&self, count: u32) {
        if self.preconditions.arrive(count).is_some() {
            self.run();
        }
    }

    fn runs(&self) -> u32 {
        // SAFETY: as in `write_input`.
        self.runs.with(|runs| unsafe { *runs })
    }
}

/// Triggers an event, and notifies its waiters: node `n` is link `n % 2` of operation `n / 2 - 1`.
fn trigger(word: &EventWord, generation: u32, operations: &[Arc<Operation>]) {
    let mut node = word.trigger(generation, false);
    while node != 0 {
        let operation = &operations[node as usize / 2 - 1];
        node = operation.links[node as usize % 2].load(Ordering::Relaxed);
        operation.arrive(1);
    }
}

#[test]
fn an_operation_runs_once_after_two_events_that_race_with_its_registration() {
    model(|| {
        let words = Arc::new([EventWord::new(), EventWord::new()]);
        let operation = Arc::new(Operation::new());
        let threads: Vec<_> = (0..2)
            .map(|which| {
                let (words, operation) = (words.clone(), operation.clone());
                thread::spawn(move || {
                    operation.write_input(which);
                    trigger(&words[which], 1, &[operation]);
                })
            })
            .collect();
        operation.preconditions.begin(2);
        let mut done = 1;
        for which in 0..2 {
            done += words[which].subscribe(1, 2 + which as u32, &operation.links[which]).map_or_else(|_| 1, |()| 0);
        }
        operation.arrive(done);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(operation.runs(), 1);
    });
}

#[test]
fn each_of_two_waiters_is_notified_or_refused() {
    model(|| {
        let word = Arc::new(EventWord::new());
        let operations = [Arc::new(Operation::new()), Arc::new(Operation::new())];
        let waiters: Vec<_> = (0..2)
            .map(|which| {
                let (word, operation) = (word.clone(), operations[which].clone());
                thread::spawn(move || {
                    operation.preconditions.begin(1);
                    let refused = word.subscribe(1, 2 + 2 * which as u32, &operation.links[0]);
                    operation.arrive(if refused.is_err() { 2 } else { 1 });
                })
            })
            .collect();
        trigger(&word, 1, &operations);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(operations.iter().all(|operation| operation.runs() == 1));
    });
}

#[test]
fn who_sees_an_event_triggered_sees_what_came_before() {
    model(|| {
        let word = Arc::new(EventWord::new());
        let data = Arc::new(UnsafeCell::new(0));
        let (their_word, their_data) = (word.clone(), data.clone());
        let thread = thread::spawn(move || {
            // SAFETY: loom checks that the read below comes after.
            their_data.with_mut(|data| unsafe { *data = 7 });
            their_word.trigger(1, false);
        });
        if word.phase(1) == Phase::Triggered {
            // SAFETY: the event has triggered.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_late_waiter_of_a_slot_in_its_next_use_is_refused() {
    model(|| {
        let word = Arc::new(EventWord::new());
        let operations = [Arc::new(Operation::new()), Arc::new(Operation::new())];
        let (their_word, their_operations) = (word.clone(), operations.clone());
        let thread = thread::spawn(move || {
            trigger(&their_word, 1, &their_operations);
            // The slot is free and used again, for event 2.
            let next = &their_operations[1];
            next.preconditions.begin(1);
            assert!(their_word.subscribe(2, 4, &next.links[0]).is_ok());
            next.arrive(1);
        });
        let late = &operations[0];
        late.preconditions.begin(1);
        let refused = word.subscribe(1, 2, &late.links[0]);
        late.arrive(if refused.is_err() { 2 } else { 1 });
        thread.join().unwrap();
        assert_eq!((late.runs(), operations[1].runs()), (1, 0));
        trigger(&word, 2, &operations);
        assert_eq!((late.runs(), operations[1].runs()), (1, 1));
    });
}

#[test]
fn one_of_two_may_trigger_and_takes_the_waiter() {
    model(|| {
        let word = Arc::new(EventWord::new());
        let link = AtomicU32::new(0);
        assert!(word.subscribe(1, 5, &link).is_ok());
        let their_word = word.clone();
        let thread = thread::spawn(move || their_word.claim_and_trigger(1, false));
        let mine = if word.claim(1) { Some(word.trigger(1, true)) } else { None };
        let theirs = thread.join().unwrap();
        assert!(matches!((mine, theirs), (Some(5), None) | (None, Some(5))));
        assert_eq!(word.phase(1), if mine.is_some() { Phase::Poisoned } else { Phase::Triggered });
    });
}

/// A poisoned generation is never seen as triggered without poison, though the slot is used again meanwhile.
#[test]
fn poison_outlives_the_next_use_of_its_slot() {
    model(|| {
        let word = Arc::new(EventWord::new());
        let their_word = word.clone();
        let thread = thread::spawn(move || {
            their_word.trigger(1, true);
            their_word.trigger(2, false);
        });
        let link = AtomicU32::new(0);
        match word.subscribe(1, 5, &link) {
            Ok(()) | Err(Phase::Poisoned | Phase::Past) => {}
            Err(other) => panic!("poison was seen as {other:?}"),
        }
        thread.join().unwrap();
        assert_eq!((word.phase(1), word.phase(2), word.phase(3)), (Phase::Past, Phase::Triggered, Phase::Pending));
    });
}
