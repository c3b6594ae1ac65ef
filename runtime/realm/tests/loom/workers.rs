//! Workers that fall asleep and wake up, their places, and threads that help them.

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use crate::helpers::Helpers;
use crate::model;
use crate::seat::Seat;
use crate::sleep::Sleep;
use crate::sync::{AtomicU32, Ordering, Parker};

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

    /// Takes the next item, as a worker does between two operations, and sleeps while there is none.
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

    /// As a worker does that sees no other worker get on.
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

/// The belongings of a worker's thread: the thread that has the worker's place uses them.
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
        let (caller, has_happened) = (Arc::new(Parker::default()), Arc::new(AtomicU32::new(0)));
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
            let (caller, has_happened) = (Arc::clone(&caller), Arc::clone(&has_happened));
            thread::spawn(move || {
                has_happened.store(1, Ordering::Release);
                caller.unpark();
            })
        };
        assert!(seat.ask(&caller));
        loop {
            caller.park();
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
fn a_worker_that_falls_asleep_lets_a_caller_in() {
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
                assert!(seat.is_wanted(), "no other thread has woken it");
                seat.lend((), || false);
            })
        };
        let caller = Arc::new(Parker::default());
        assert!(seat.ask(&caller));
        sleep.wake(0);
        caller.park();
        while seat.take_free().is_none() {
            caller.park();
        }
        seat.leave((), true);
        seat.give_back();
        own_thread.join().unwrap();
    });
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
