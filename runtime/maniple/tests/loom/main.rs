//! The protocols of forks, each file as it ships, under the loom model checker: every interleaving, up to the bound on
//! preemptions, that the C11 memory model allows.
//!
//! ```console
//! $ cargo test -p maniple --release --test loom
//! ```

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

// Each model uses a part of what the files offer.
#![allow(dead_code)]

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

use in_flight::InFlight;
use schedule::Schedule;
use support::sync::{AtomicUsize, Ordering};
use word::{ForkOutcome, Last, Word};

#[path = "../../src/context/in_flight.rs"]
mod in_flight;
#[path = "../../src/fork/schedule.rs"]
mod schedule;
#[path = "../../src/fork/waking.rs"]
mod waking;
#[path = "../../src/fork/word.rs"]
mod word;

mod support;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unoptimised, three preemptions take minutes.
    builder.preemption_bound = Some(if cfg!(debug_assertions) { 2 } else { 3 });
    builder.check(check);
}

/// A task that waits for flags, which are raised without any order of their own: all order is the schedule's.
struct Waiting {
    schedule: Schedule,
    /// Tasks in the queue.
    queued: AtomicUsize,
    flags: [AtomicUsize; 2],
    /// The state that the task changes while it runs.
    inside: UnsafeCell<usize>,
}

impl Waiting {
    /// A task that has been run, is suspended, and was then woken if it is to be queued.
    fn suspended(is_queued: bool) -> Arc<Self> {
        let schedule = Schedule::queued();
        schedule.run();
        assert!(schedule.suspend());
        assert!(!is_queued || schedule.wake());
        Arc::new(Self {
            schedule,
            queued: AtomicUsize::new(usize::from(is_queued)),
            flags: [AtomicUsize::new(0), AtomicUsize::new(0)],
            inside: UnsafeCell::new(0),
        })
    }

    /// Runs the task as often as it is in the queue. Whether it has seen all flags.
    fn run_queued(&self, flags: usize) -> bool {
        let mut has_seen_all = false;
        while self.queued.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.schedule.run();
            // SAFETY: loom checks it: the accesses race unless the protocol orders them.
            self.inside.with_mut(|inside| unsafe { *inside += 1 });
            has_seen_all = self.flags[..flags].iter().all(|flag| flag.load(Ordering::Relaxed) == 1);
            if !self.schedule.suspend() {
                self.queue();
            }
        }
        has_seen_all
    }

    fn queue(&self) {
        assert_eq!(self.queued.swap(1, Ordering::AcqRel), 0, "a task is queued once at a time");
    }

    fn raise(&self, flag: usize) {
        self.flags[flag].store(1, Ordering::Relaxed);
        if self.schedule.wake() {
            self.queue();
        }
    }
}

#[test]
fn a_task_that_is_queued_already_sees_what_came_before_a_wake() {
    model(|| {
        let task = Waiting::suspended(true);
        let theirs = Arc::clone(&task);
        let waking = thread::spawn(move || theirs.raise(0));
        let has_seen = task.run_queued(1);
        waking.join().unwrap();
        // Either it has, or the wake has it run again.
        assert!(has_seen || task.run_queued(1));
    });
}

/// A suspended task that waits for one flag, with one waker.
struct Stranding {
    task: Arc<Waiting>,
    word: Word,
    abandoned: AtomicUsize,
}

impl Stranding {
    fn new(is_queued: bool) -> Arc<Self> {
        let word = Word::new();
        word.add_waker();
        Arc::new(Self { task: Waiting::suspended(is_queued), word, abandoned: AtomicUsize::new(0) })
    }

    /// As [`Waiting::run_queued`]; the task is abandoned if it waits and nothing can wake it.
    fn run_queued(&self) {
        let Waiting { schedule, queued, flags, inside } = &*self.task;
        while queued.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            schedule.run();
            // SAFETY: loom checks it.
            inside.with_mut(|inside| unsafe { *inside += 1 });
            if flags[0].load(Ordering::Relaxed) == 1 {
                schedule.end();
            } else if waking::cannot_go_on(schedule, &self.word) {
                schedule.end();
                self.abandoned.fetch_add(1, Ordering::Relaxed);
            } else if !schedule.suspend() {
                self.task.queue();
            }
        }
    }

    /// Has the task run while a waker does this, and gives whether it was abandoned.
    fn run_while(is_queued: bool, waker: impl FnOnce(&Self) -> bool + Send + 'static) -> bool {
        let stranding = Self::new(is_queued);
        let theirs = Arc::clone(&stranding);
        let going = thread::spawn(move || {
            if waker(&theirs) {
                theirs.task.queue();
            }
        });
        stranding.run_queued();
        going.join().unwrap();
        stranding.run_queued();
        assert!(!stranding.task.schedule.wake(), "the task has ended");
        stranding.abandoned.load(Ordering::Relaxed) == 1
    }
}

#[test]
fn a_task_whose_last_waker_goes_while_it_waits_is_abandoned() {
    for is_queued in [false, true] {
        model(move || {
            assert!(Stranding::run_while(is_queued, |it| waking::drop_waker(&it.task.schedule, &it.word)));
        });
    }
}

#[test]
fn a_task_that_its_last_waker_wakes_is_not_abandoned() {
    for is_queued in [false, true] {
        model(move || {
            let wakes = |it: &Stranding| {
                it.task.flags[0].store(1, Ordering::Relaxed);
                waking::wake_and_drop(&it.task.schedule, &it.word)
            };
            assert!(!Stranding::run_while(is_queued, wakes));
        });
    }
}

#[test]
fn a_task_whose_last_waker_wakes_it_in_vain_is_abandoned() {
    for is_queued in [false, true] {
        model(move || {
            assert!(Stranding::run_while(is_queued, |it| waking::wake_and_drop(&it.task.schedule, &it.word)));
        });
    }
}

fn two_wake(is_queued: bool) {
    model(move || {
        let task = Waiting::suspended(is_queued);
        let waking = [0, 1].map(|flag| {
            let theirs = Arc::clone(&task);
            thread::spawn(move || theirs.raise(flag))
        });
        let has_seen = task.run_queued(2);
        waking.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(has_seen || task.run_queued(2));
    });
}

#[test]
fn a_task_that_two_wake_sees_what_came_before_both() {
    two_wake(false);
}

#[test]
fn a_task_that_two_wake_while_it_runs_sees_what_came_before_both() {
    two_wake(true);
}

/// A task with the value that it leaves, and a list of watchers.
struct Cell {
    word: Word,
    value: UnsafeCell<usize>,
    notified: AtomicUsize,
    watchers: Mutex<bool>,
    freed: AtomicUsize,
}

impl Cell {
    fn launched() -> Arc<Self> {
        let mut word = Word::new();
        word.add_first();
        Arc::new(Self {
            word,
            value: UnsafeCell::new(0),
            notified: AtomicUsize::new(0),
            watchers: Mutex::new(false),
            freed: AtomicUsize::new(0),
        })
    }

    /// The runner's part.
    fn end(&self) {
        // SAFETY: loom checks it, here and below.
        self.value.with_mut(|value| unsafe { *value = 7 });
        match self.word.end(ForkOutcome::Good) {
            Last::Nothing => {}
            Last::Free => self.free(),
            Last::Tell => {
                if std::mem::take(&mut *self.watchers.lock().unwrap()) {
                    self.notified.fetch_add(1, Ordering::Relaxed);
                }
                self.release();
            }
        }
    }

    fn release(&self) {
        if self.word.remove() {
            self.free();
        }
    }

    fn free(&self) {
        assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "a task is freed once");
        // SAFETY: as above.
        self.value.with_mut(|value| unsafe { *value = 0 });
    }

    fn look(&self) -> bool {
        let has_ended = self.word.outcome() == Some(ForkOutcome::Good);
        if has_ended {
            // SAFETY: as above.
            assert_eq!(self.value.with(|value| unsafe { *value }), 7);
        }
        has_ended
    }

    /// Looks whether the task has ended, and is notified when it does otherwise.
    fn watch(&self) -> bool {
        let mut watchers = self.watchers.lock().unwrap();
        *watchers = true;
        self.word.watch();
        let has_ended = self.look();
        if has_ended {
            *watchers = false;
        }
        has_ended
    }
}

#[test]
fn whoever_lets_go_last_frees_a_task_after_all_have_looked() {
    model(|| {
        let cell = Cell::launched();
        cell.word.add();
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let cell = Arc::clone(&cell);
                thread::spawn(move || {
                    if number == 0 {
                        return cell.end();
                    }
                    cell.look();
                    cell.release();
                })
            })
            .collect();
        cell.look();
        cell.release();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(cell.freed.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn whoever_watches_sees_the_end_or_is_notified() {
    model(|| {
        let cell = Cell::launched();
        let theirs = Arc::clone(&cell);
        let ending = thread::spawn(move || theirs.end());
        let has_seen = cell.watch();
        ending.join().unwrap();
        assert!(cell.look());
        assert_eq!(cell.notified.load(Ordering::Relaxed), usize::from(!has_seen));
        cell.release();
        assert_eq!(cell.freed.load(Ordering::Relaxed), 1);
    });
}

/// A parent whose context goes when it has nothing in flight.
struct Parent {
    in_flight: InFlight,
    context: UnsafeCell<usize>,
    woken: AtomicUsize,
    /// References that forks took to be able to wake.
    held: AtomicUsize,
}

impl Parent {
    fn with_forks(forks: usize) -> Arc<Self> {
        let parent = Self {
            in_flight: InFlight::default(),
            context: UnsafeCell::new(1),
            woken: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
        };
        (0..forks).for_each(|_| assert!(parent.in_flight.begin_fork()));
        Arc::new(parent)
    }

    /// A fork ends.
    fn count_off(&self) {
        // SAFETY: loom checks it, here and below.
        self.context.with(|context| assert_eq!(unsafe { *context }, 1));
        if self.in_flight.end_fork_unless_waited() {
            return;
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        if self.in_flight.end_fork() && self.in_flight.count() == 0 {
            self.woken.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The context goes.
    fn forget(&self) {
        // SAFETY: as above.
        self.context.with_mut(|context| unsafe { *context = 0 });
    }
}

#[test]
fn a_parent_outlives_its_forks_and_is_woken_by_the_last_if_it_waits() {
    model(|| {
        let parent = Parent::with_forks(2);
        let forks: Vec<_> = (0..2)
            .map(|_| {
                let parent = Arc::clone(&parent);
                thread::spawn(move || parent.count_off())
            })
            .collect();
        parent.in_flight.close();
        if parent.in_flight.count() == 0 || parent.in_flight.wait() == 0 {
            assert_eq!(parent.held.load(Ordering::Relaxed), 0, "who looks at the context holds it, and wakes");
            parent.forget();
            forks.into_iter().for_each(|fork| fork.join().unwrap());
            return;
        }
        forks.into_iter().for_each(|fork| fork.join().unwrap());
        assert!(parent.woken.load(Ordering::Acquire) > 0, "the parent waits for ever");
        parent.forget();
    });
}

#[test]
fn a_launch_that_comes_after_the_end_withdraws_and_one_before_is_waited_for() {
    model(|| {
        let parent = Parent::with_forks(0);
        let theirs = Arc::clone(&parent);
        let launching = thread::spawn(move || theirs.in_flight.begin_fork());
        parent.in_flight.close();
        let waited_for = parent.in_flight.count();
        let launched = launching.join().unwrap();
        assert!(parent.in_flight.is_closed());
        assert!(!launched || waited_for == 1);
    });
}

#[test]
fn operations_and_forks_are_counted_apart_and_together() {
    model(|| {
        let flight = InFlight::default();
        flight.begin_operation();
        flight.begin_operation();
        assert!(flight.begin_fork());
        assert_eq!((flight.count(), flight.forks()), (3, 1));
        flight.close();
        assert!(flight.is_closed() && !flight.begin_fork());
        assert!(flight.end_fork_unless_waited());
        assert_eq!(flight.wait(), 3);
        assert!(!flight.end_fork_unless_waited());
        assert!(flight.end_fork() && flight.end_operations(2));
        flight.wait_no_more();
        assert_eq!((flight.count(), flight.forks(), flight.is_closed()), (0, 0, true));
    });
}
