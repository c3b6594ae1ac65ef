//! The lock-free protocols, each file as it ships, under the loom model checker: every interleaving, up to the bound on
//! preemptions, that the C11 memory model allows. A worker that sleeps through its work shows as a deadlock, a missing
//! ordering as a data race.
//!
//! ```console
//! $ cargo test -p maniple-realm --release --test loom
//! ```

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

// Each model uses a part of what the files offer.
#![allow(dead_code)]

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use chunks::Chunks;
use deque::Deque;
use helpers::Helpers;
use lock::{EXCLUSIVE, Lock};
use phases::{Change, Phases};
use seat::Seat;
use sleep::Sleep;
use sync::{AtomicU32, Ordering, Parker};
use word::{EventWord, Phase, Preconditions};

#[path = "../../src/worker/chunks.rs"]
mod chunks;
#[path = "../../src/scheduler/deque.rs"]
mod deque;
#[path = "../../src/worker/helpers.rs"]
mod helpers;
#[path = "../../src/reservation/lock.rs"]
mod lock;
#[path = "../../src/barrier/phases.rs"]
mod phases;
#[path = "../../src/scheduler/seat.rs"]
mod seat;
#[path = "../../src/scheduler/sleep.rs"]
mod sleep;
#[path = "../../src/net/tcp/turn.rs"]
mod turn;
#[path = "../../src/events/word.rs"]
mod word;
#[path = "../../src/graph/words.rs"]
mod words;

mod graphs;
mod sync;
mod turns;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unoptimised, three preemptions take minutes.
    builder.preemption_bound = Some(if cfg!(debug_assertions) { 2 } else { 3 });
    builder.check(check);
}

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

/// What was poisoned is never seen as well, though the slot is used again meanwhile.
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

/// Who looks at a phase while the barrier is closed is refused, or the one who closes finds what was put there.
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

/// Workers and a queue that is only a number: each takes `share` items and ends.
struct Workplace {
    sleep: Sleep,
    queued: AtomicU32,
    pinned: [AtomicU32; 2],
}

impl Workplace {
    fn new(workers: usize) -> Arc<Self> {
        Self::with_cores(workers, workers)
    }

    fn with_cores(workers: usize, cores: usize) -> Arc<Self> {
        Arc::new(Self {
            sleep: Sleep::new(workers, cores),
            queued: AtomicU32::new(0),
            pinned: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    fn take_from(queue: &AtomicU32) -> bool {
        // A queue's look: relaxed, as only the protocol's fences are to be relied on.
        let queued = queue.load(Ordering::Relaxed);
        queued > 0 && queue.compare_exchange(queued, queued - 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn take(&self, worker: usize) -> bool {
        Self::take_from(&self.pinned[worker]) || Self::take_from(&self.queued)
    }

    fn has_work(&self, worker: usize) -> bool {
        self.pinned[worker].load(Ordering::Relaxed) > 0 || self.queued.load(Ordering::Relaxed) > 0
    }

    /// What a worker does between two operations.
    fn next(&self, worker: usize) {
        if self.take(worker) {
            return;
        }
        self.sleep.begin_search();
        while !self.take(worker) {
            self.sleep.fall_asleep(worker);
            if self.has_work(worker) {
                self.sleep.cancel(worker);
            } else {
                self.park_or_watch(worker);
            }
        }
        if self.sleep.end_search() && self.queued.load(Ordering::Relaxed) > 0 {
            self.sleep.announce();
        }
    }

    /// As a worker does that sees nobody get on.
    fn park_or_watch(&self, worker: usize) {
        if !self.sleep.begin_watch(worker, false) {
            return self.sleep.park(worker);
        }
        if self.sleep.park_for(worker, Duration::ZERO) {
            return self.sleep.end_watch();
        }
        self.sleep.end_watch();
        if self.has_work(worker) {
            self.sleep.cancel(worker);
        } else {
            self.sleep.park(worker);
        }
    }

    fn push(&self) {
        self.queued.fetch_add(1, Ordering::Release);
        self.sleep.announce();
    }

    fn push_pinned(&self, worker: usize) {
        self.pinned[worker].fetch_add(1, Ordering::Release);
        self.sleep.wake(worker);
    }
}

#[test]
fn a_worker_does_not_sleep_through_work_for_anybody() {
    model(|| {
        let place = Workplace::new(1);
        let worker_place = place.clone();
        let worker = thread::spawn(move || (0..2).for_each(|_| worker_place.next(0)));
        place.push();
        place.push();
        worker.join().unwrap();
    });
}

#[test]
fn a_worker_does_not_sleep_through_work_for_itself() {
    model(|| {
        let place = Workplace::new(1);
        let worker_place = place.clone();
        let worker = thread::spawn(move || (0..2).for_each(|_| worker_place.next(0)));
        place.push_pinned(0);
        place.push();
        worker.join().unwrap();
    });
}

#[test]
fn two_workers_share_two_items() {
    model(|| {
        let place = Workplace::new(2);
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let place = place.clone();
                thread::spawn(move || place.next(worker))
            })
            .collect();
        place.push();
        place.push();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn with_fewer_cores_work_that_those_awake_do_not_come_to_is_run() {
    model(|| {
        let place = Workplace::with_cores(2, 1);
        let (begun, has_run) = (Arc::new(AtomicUsize::new(0)), Arc::new(Parker::default()));
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let (place, begun, has_run) = (place.clone(), begun.clone(), has_run.clone());
                thread::spawn(move || {
                    place.next(worker);
                    // The body that begins first waits for the other.
                    match begun.fetch_add(1, Ordering::Relaxed) {
                        0 => has_run.park(),
                        _ => has_run.unpark(),
                    }
                })
            })
            .collect();
        place.push();
        place.push();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

/// What belongs to a worker's thread: whoever has its place uses it.
#[derive(Default)]
struct Belongings(Arc<UnsafeCell<u32>>);

impl Belongings {
    fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn use_them(&self) {
        // SAFETY: loom checks it: the accesses race unless the protocol orders them.
        self.0.with_mut(|uses| unsafe { *uses += 1 });
    }
}

#[test]
fn a_place_is_one_thread_s_at_a_time() {
    model(|| {
        let (seat, belongings) = (Arc::new(Seat::new()), Belongings::default());
        let (guest, has_happened) = (Arc::new(Parker::default()), Arc::new(AtomicU32::new(0)));
        let own_thread = {
            let (seat, belongings) = (Arc::clone(&seat), belongings.again());
            thread::spawn(move || {
                for _ in 0..2 {
                    belongings.use_them();
                    if seat.is_wanted() {
                        seat.lend((), || false);
                    }
                }
                belongings.use_them();
            })
        };
        let event = {
            let (guest, has_happened) = (Arc::clone(&guest), Arc::clone(&has_happened));
            thread::spawn(move || {
                has_happened.store(1, Ordering::Release);
                guest.unpark();
            })
        };
        assert!(seat.ask(&guest));
        loop {
            guest.park();
            if has_happened.load(Ordering::Acquire) != 0 {
                seat.withdraw();
                break;
            }
            if let Some(place) = seat.take_free() {
                belongings.use_them();
                seat.leave(place, true);
                break;
            }
        }
        // It may be free, for as long as its own thread has not looked twice.
        if let Some(place) = seat.take_free() {
            belongings.use_them();
            seat.leave(place, true);
        }
        seat.give_back();
        own_thread.join().unwrap();
        event.join().unwrap();
        belongings.use_them();
    });
}

#[test]
fn a_worker_that_falls_asleep_lets_a_guest_in() {
    model(|| {
        let (seat, sleep) = (Arc::new(Seat::new()), Arc::new(Sleep::new(1, 1)));
        let own_thread = {
            let (seat, sleep) = (Arc::clone(&seat), Arc::clone(&sleep));
            thread::spawn(move || {
                sleep.begin_search();
                sleep.fall_asleep(0);
                if seat.is_wanted() {
                    sleep.cancel(0);
                } else {
                    sleep.park(0);
                }
                let _was_last = sleep.end_search();
                assert!(seat.is_wanted(), "nobody else has woken it");
                seat.lend((), || false);
            })
        };
        let guest = Arc::new(Parker::default());
        assert!(seat.ask(&guest));
        sleep.wake(0);
        guest.park();
        while seat.take_free().is_none() {
            guest.park();
        }
        seat.leave((), true);
        seat.give_back();
        own_thread.join().unwrap();
    });
}

/// A worker puts items in and takes some out, while somebody steals; in the end it takes out the rest. Each item comes out once.
fn each_item_of_a_deque_comes_out_once<const MOST: usize>(steps: &'static [Step], steals: usize) {
    model(move || {
        let deque = Deque::<MOST>::new();
        let stealer = deque.stealer();
        let thief = thread::spawn(move || {
            let stolen = (0..steals).filter_map(|_| stealer.steal());
            stolen.flat_map(|stolen| stolen.items().to_vec()).collect::<Vec<_>>()
        });
        let (mut pushed, mut out) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Push => {
                    deque.push(pushed);
                    pushed += 1;
                }
                Step::Pop => out.extend(deque.pop()),
            }
        }
        let stolen = thief.join().unwrap();
        assert!(stolen.is_sorted(), "{stolen:?}");
        out.extend(stolen);
        out.extend(std::iter::from_fn(|| deque.pop()));
        out.sort_unstable();
        assert_eq!(out, (0..pushed).collect::<Vec<_>>());
    });
}

enum Step {
    Push,
    Pop,
}

use Step::{Pop, Push};

#[test]
fn the_last_items_of_a_deque_come_out_once() {
    each_item_of_a_deque_comes_out_once::<2>(&[Push, Push, Pop, Pop], 2);
    each_item_of_a_deque_comes_out_once::<2>(&[Push, Push, Pop, Push, Pop], 1);
}

#[test]
fn items_of_a_deque_that_are_out_of_the_reach_of_others_come_out_once() {
    each_item_of_a_deque_comes_out_once::<1>(&[Push, Push, Push, Pop, Pop, Push], 2);
}

#[test]
fn items_of_a_deque_that_grows_come_out_once() {
    each_item_of_a_deque_comes_out_once::<1>(&[Push, Push, Push, Pop, Pop], 1);
}

#[test]
fn a_helper_does_not_sleep_through_the_change_of_its_condition() {
    model(|| {
        let shared = Arc::new((Sleep::new(2, 2), Helpers::new(2), AtomicU32::new(1)));
        let theirs = shared.clone();
        let helper = thread::spawn(move || {
            let (sleep, helpers, holds) = &*theirs;
            // Relaxed: the condition is the user's, and need not synchronise.
            while holds.load(Ordering::Relaxed) == 1 {
                sleep.begin_search();
                helpers.begin_rest(0);
                sleep.fall_asleep(0);
                if holds.load(Ordering::Relaxed) == 1 {
                    sleep.park(0);
                } else {
                    sleep.cancel(0);
                }
                helpers.end_rest(0);
                let _ = sleep.end_search();
            }
        });
        let (sleep, helpers, holds) = &*shared;
        holds.store(0, Ordering::Relaxed);
        if helpers.changed_by(1) {
            for worker in helpers.resting() {
                sleep.wake(worker);
            }
        }
        helper.join().unwrap();
    });
}

/// What a reservation guards, and the acquisitions that are still to come.
struct Guarded {
    lock: Lock,
    inside: UnsafeCell<u32>,
}

impl Guarded {
    /// Acquires; whoever gets the reservation, now or by another's release, does its work at once and releases.
    fn visit(&self, mode: u32, ticket: u64) {
        if self.lock.acquire(mode, || ticket).is_none() {
            self.hold(mode);
        }
    }

    fn hold(&self, mode: u32) {
        if mode == EXCLUSIVE {
            // SAFETY: loom checks that nobody else is here.
            self.inside.with_mut(|inside| unsafe { *inside += 1 });
        } else {
            // SAFETY: as above; readers may be many.
            self.inside.with(|inside| unsafe { std::hint::black_box(*inside) });
        }
        for ticket in self.lock.release().unwrap() {
            self.hold(ticket as u32);
        }
    }
}

fn reservation_with(modes: [u32; 3]) {
    model(move || {
        let guarded = Arc::new(Guarded { lock: Lock::new(), inside: UnsafeCell::new(0) });
        let threads: Vec<_> = modes[1..]
            .iter()
            .map(|&mode| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.visit(mode, u64::from(mode)))
            })
            .collect();
        guarded.visit(modes[0], u64::from(modes[0]));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let writers = modes.iter().filter(|&&mode| mode == EXCLUSIVE).count() as u32;
        // SAFETY: the threads have ended.
        assert_eq!(guarded.inside.with(|inside| unsafe { *inside }), writers);
        assert!(guarded.lock.release().is_err());
    });
}

#[test]
fn exclusive_holders_exclude_one_another_and_all_have_their_turn() {
    reservation_with([EXCLUSIVE, EXCLUSIVE, EXCLUSIVE]);
}

#[test]
fn readers_and_a_writer_exclude_one_another_and_all_have_their_turn() {
    reservation_with([1, EXCLUSIVE, 1]);
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

/// A loop: what its owner lends to chunks, and what each chunk does.
struct Loop {
    chunks: Chunks,
    lent: UnsafeCell<u32>,
    done: [UnsafeCell<u32>; 3],
}

impl Loop {
    fn new(count: usize) -> Arc<Self> {
        let done = [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { chunks: Chunks::new(count), lent: UnsafeCell::new(1), done })
    }

    /// Runs chunks while there are any. The one of the number `panicking` has nobody go on.
    fn take_part(&self, panicking: Option<usize>) {
        while let Some(chunk) = self.chunks.take() {
            // SAFETY: loom checks it: nobody changes what is lent before all chunks have ended, and each chunk is run by one thread.
            let lent = self.lent.with(|lent| unsafe { *lent });
            // SAFETY: as above.
            self.done[chunk].with_mut(|done| unsafe { *done += lent });
            if Some(chunk) == panicking {
                self.chunks.give_up();
            }
            self.chunks.end();
        }
    }

    /// What the owner does, and how often each chunk was run.
    fn own(&self, panicking: Option<usize>) -> [u32; 3] {
        self.take_part(panicking);
        if !self.chunks.have_ended() {
            self.chunks.wait();
        }
        // SAFETY: loom checks that no chunk uses it any more.
        self.lent.with_mut(|lent| unsafe { *lent = 0 });
        // SAFETY: and that all have ended.
        [0, 1, 2].map(|chunk| self.done[chunk].with(|done| unsafe { *done }))
    }
}

/// Owner and helpers of a loop, who come at any time.
fn share(helpers: usize, count: usize, panicking: Option<usize>) -> [u32; 3] {
    let shared = Loop::new(count);
    let helpers: Vec<_> = (0..helpers)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || shared.take_part(panicking))
        })
        .collect();
    let done = shared.own(panicking);
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
    done
}

#[test]
fn each_chunk_is_run_once_before_the_owner_goes_on() {
    model(|| assert_eq!(share(1, 3, None), [1, 1, 1]));
}

#[test]
fn several_may_take_part_or_come_too_late() {
    model(|| assert_eq!(share(2, 2, None), [1, 1, 0]));
}

#[test]
fn what_is_given_up_is_not_waited_for() {
    model(|| {
        let done = share(2, 3, Some(0));
        assert_eq!(done[0], 1);
        assert!(done.iter().all(|&runs| runs <= 1));
    });
    model(|| assert_eq!(share(1, 3, Some(1))[..2], [1, 1]));
}
