//! Guests: a thread of the program's that has to wait while graphs run does a worker's work meanwhile, in that worker's
//! place.
//!
//! The thread that launches the runs of graphs would be one thread more than there are cores: it would take the core of
//! a worker each time that it goes on, and the other workers would wait for that.
//!
//! A guest runs nodes of graphs and what the runtime does, no more: a task might wait for what the program does
//! afterwards. As soon as there are tasks for its worker, the worker's own thread has its place again.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Found, Local, Workers, exchange_current};
use crate::clock::Clock;
use crate::events::{After, Event};
use crate::fault::Fault;
use crate::operation::breakdown::Whom;
use crate::operation::settle::settling;
use crate::profile::{Profiler, Records};
use crate::scheduler::presence::LENT;
use crate::sync::Parker;
use crate::worker::help::{Unpark, WakeWorker};

/// How long a guest stays.
struct Stay<'a> {
    /// Whether the guest has to wait still.
    holds: &'a dyn Fn() -> bool,
    /// It need not stay if there is no work.
    has_better_to_do: &'a dyn Fn() -> bool,
    /// When there is no work it sleeps, until the worker is woken; else it goes.
    may_sleep: bool,
}

/// Why a guest goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// It has nothing more to wait for, or something better to do.
    Done,
    /// There is no work.
    Idle,
    /// There is something to do that is not for guests.
    ForOwnThread,
}

impl Local {
    /// Whether a guest waits for this worker's place, and may have it.
    #[inline]
    pub(super) fn is_place_wanted(&self) -> bool {
        self.index() == LENT && self.presence().seat.is_wanted() && !self.has_tasks()
    }

    /// Lets a guest have the place. Nothing runs on this worker's stack.
    #[cold]
    pub(super) fn lend_place(&self) {
        self.queue.release_next();
        self.workers.rest();
        let base = self.stack.0.get();
        let before = exchange_current(ptr::null());
        // The guest that is lent the place sees this: the seat is locked in between.
        self.workers.lent.store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
        let records = Profiler::exchange(Records::default());
        // Asked while no other thread has the place.
        let records = self.presence().seat.lend(records, || self.operations().is_stopping() || self.has_tasks());
        Profiler::exchange(records);
        exchange_current(before);
        self.stack.0.set(base);
    }

    /// Whether there are tasks for this worker, that is anything that a guest leaves alone.
    fn has_tasks(&self) -> bool {
        self.operations().queues.has_work_of_others(self.index(), &self.queue.deques) || self.queue.deques.has_jobs()
    }

    /// Does the work of this worker that guests do.
    fn work_as_guest(&self, stay: &Stay<'_>) -> (Leaves, bool) {
        let operations = self.operations();
        let goes_on = || (stay.holds)() && !operations.is_waiting_over();
        let mut has_worked = false;
        loop {
            if !goes_on() {
                return (Leaves::Done, has_worked);
            }
            if self.has_tasks() {
                return (Leaves::ForOwnThread, has_worked);
            }
            let found = match self.find_as_guest() {
                Some(found) => Some(found),
                None if (stay.has_better_to_do)() => return (Leaves::Done, has_worked),
                None if operations.queues.has_work_for(self.index()) => return (Leaves::ForOwnThread, has_worked),
                None => {
                    let _searching = Searching::begin(self);
                    self.workers.begin_polling();
                    let mut goes_on = || goes_on() && !(stay.has_better_to_do)() && !self.has_tasks();
                    let found = self.search_while(&mut goes_on, || self.find_as_guest());
                    if found.is_none() && goes_on() {
                        if !stay.may_sleep {
                            return (Leaves::Idle, has_worked);
                        }
                        self.sleep_as_guest(&goes_on);
                    }
                    found
                }
            };
            if let Some(found) = found {
                self.run(found);
                // What follows from it may be a task.
                self.queue.release_next();
                has_worked = true;
                operations.take_turn();
            }
        }
    }

    fn sleep_as_guest(&self, goes_on: &dyn Fn() -> bool) {
        self.workers.rest();
        self.presence().sleep.fall_asleep(self.index());
        if self.has_work() || !goes_on() || self.workers.idle_found_message() || self.workers.idle_found_work() {
            self.presence().sleep.cancel(self.index());
        } else {
            self.forget_graphs();
            self.park();
        }
    }

    /// Finds a node of a graph, or something that the runtime does.
    #[inline]
    fn find_as_guest(&self) -> Option<Found> {
        self.workers.poll_in_passing();
        let taker = self.queue.taker();
        self.find_among_graphs(|| {
            self.operations().queues.find_runtime_work(&taker, self.random()).map(Found::Operation)
        })
    }
}

/// A worker searches as long as this is there.
struct Searching<'a>(&'a Local);

impl<'a> Searching<'a> {
    fn begin(local: &'a Local) -> Self {
        local.presence().sleep.begin_search();
        Self(local)
    }
}

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        self.0.end_search();
    }
}

/// A guest's time in a place. Whatever happens in it, it ends with the place left.
struct Visit<'a> {
    workers: &'a Workers,
    local: &'a Local,
    before: *const Local,
    own_records: Records,
    has_worked: bool,
}

impl<'a> Visit<'a> {
    /// Begins with what was taken from the seat.
    fn begin(workers: &'a Workers, records: Records) -> Self {
        // SAFETY: a `Local` may be used by any thread, though only by one at a time: by the one that has the place,
        // which is this until the visit ends. It lives on the stack of the worker's own thread, which does not go on
        // before it has the place again.
        let local = unsafe { &*workers.lent.load(Ordering::Relaxed) };
        let here = 0_u8;
        local.stack.0.set(&raw const here as usize);
        let own_records = Profiler::exchange(records);
        let before = exchange_current(local);
        Self { workers, local, before, own_records, has_worked: true }
    }

    fn stay(mut self, stay: &Stay<'_>) -> Leaves {
        let (leaves, has_worked) = self.local.work_as_guest(stay);
        self.has_worked = has_worked;
        leaves
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // What goes with a graph may be the program's.
        self.workers.operations.unheard(|| "letting go of graphs".to_owned(), || self.local.forget_graphs());
        self.workers.rest();
        exchange_current(self.before);
        let records = Profiler::exchange(std::mem::take(&mut self.own_records));
        self.workers.operations.presence.seat.leave(records, self.has_worked);
    }
}

impl Workers {
    /// Whether this thread, which is about to wait, may have a worker's place meanwhile: if it is no worker, while
    /// graphs run. Bodies that run there want a stack.
    #[inline]
    fn takes_guests(&self) -> bool {
        let has_stack = || stacker::remaining_stack().is_some_and(|left| left >= self.waiting.stack_of_guests);
        self.waiting.lends_place
            && !self.graphs.is_empty()
            && self.local().is_none()
            && (self.presence().is_simulated || has_stack())
    }

    fn visit(&self, place: Records, stay: &Stay<'_>) -> Leaves {
        let leaves = Visit::begin(self, place).stay(stay);
        if leaves == Leaves::ForOwnThread {
            self.presence().seat.give_back();
        }
        leaves
    }

    fn give_back_place(&self) {
        if self.waiting.lends_place && self.local().is_none() {
            self.presence().seat.give_back();
        }
    }

    /// Waits for an event in a worker's place, on a thread that is none. Gives whether it has: else it is still to be
    /// waited for.
    pub(super) fn wait_as_guest(&self, event: Event) -> Result<bool, Arc<Fault>> {
        if !self.takes_guests() {
            self.give_back_place();
            return Ok(false);
        }
        let has_ended = || self.operations.result(event).is_some() || self.operations.is_waiting_over();
        let place = match self.presence().seat.take_free() {
            Some(place) => place,
            None => {
                let parker = Arc::default();
                if !self.presence().seat.ask(&parker) {
                    return Ok(false);
                }
                let watch = self.operations.breakdowns.watch(Whom::Thread(Arc::clone(&parker)));
                let _watch = watch.inspect_err(|_| self.presence().seat.withdraw())?;
                self.operations.spawn_inline(After::follows(&[event]), Unpark(Arc::clone(&parker)));
                let Some(place) = self.await_place(&parker, has_ended) else { return Ok(true) };
                place
            }
        };
        self.operations.spawn_inline(After::follows(&[event]), WakeWorker(LENT));
        self.visit(place, &Stay { holds: &|| !has_ended(), has_better_to_do: &|| false, may_sleep: true });
        Ok(has_ended())
    }

    /// Has the worker's own thread let this one in, and waits for that: until it need not wait any more.
    fn await_place(&self, parker: &Parker, is_over: impl Fn() -> bool) -> Option<Records> {
        self.presence().sleep.wake(LENT);
        loop {
            parker.park();
            if is_over() {
                self.presence().seat.withdraw();
                return None;
            }
            let place = self.presence().seat.take_free();
            if place.is_some() {
                return place;
            }
        }
    }

    pub(crate) fn wait_for(&self, signal: &Signal) {
        debug_assert!(std::ptr::eq(signal.workers.as_ptr(), self), "a signal is waited for in its own realm");
        assert!(!settling(), "a callback of `when` must not wait: it runs on the thread that triggers events");
        if signal.take() {
            return;
        }
        if self.takes_guests() {
            let asks = || self.presence().seat.ask(&signal.parker);
            let waits = || asks().then(|| self.await_place(&signal.parker, || signal.is_given())).flatten();
            if let Some(place) = self.presence().seat.take_free().or_else(waits) {
                let holds = || !signal.is_given();
                self.visit(place, &Stay { holds: &holds, has_better_to_do: &|| false, may_sleep: true });
            }
        } else {
            self.give_back_place();
        }
        while !signal.take() {
            signal.parker.park();
        }
    }

    pub(crate) fn wait_for_at_most(&self, signal: &Signal, time: Duration) -> bool {
        assert!(!settling(), "a callback of `when` must not wait: it runs on the thread that triggers events");
        self.give_back_place();
        let clock = Clock::start();
        while !signal.take() {
            // A thread is sometimes woken for nothing.
            let left = time.saturating_sub(Duration::from_nanos(clock.now_ns()));
            if left.is_zero() || (!signal.parker.park_for(left) && self.presence().is_simulated) {
                return signal.take();
            }
        }
        true
    }

    pub(crate) fn work_while(&self, holds: &dyn Fn() -> bool, has_better_to_do: &dyn Fn() -> bool) -> bool {
        let place = if self.takes_guests() && !settling() { self.presence().seat.take_free() } else { None };
        let stay = Stay { holds, has_better_to_do, may_sleep: false };
        place.is_some_and(|place| self.waiting(|| self.visit(place, &stay)) == Leaves::Done)
    }
}

/// A signal, which a thread that is no worker waits for in [`Realm::wait_for`](crate::Realm::wait_for), and which any
/// thread may give.
pub struct Signal {
    workers: Weak<Workers>,
    is_given: AtomicBool,
    parker: Arc<Parker>,
}

impl Signal {
    pub(crate) fn new(workers: &Arc<Workers>) -> Self {
        Self { workers: Arc::downgrade(workers), is_given: AtomicBool::new(false), parker: Arc::default() }
    }

    /// Gives the signal. Given several times before it is waited for, it counts as given once.
    pub fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        self.parker.unpark();
        // Against the fence of a worker that falls asleep: either the guest sees the signal then, or we see that there
        // is one.
        fence(Ordering::SeqCst);
        if let Some(workers) = self.workers.upgrade().filter(|workers| workers.operations.presence.seat.has_guest()) {
            workers.operations.presence.sleep.wake(LENT);
        }
    }

    fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    /// In one step: what came before a signal that is given now is seen by the thread that looks afterwards, or the
    /// signal is there the next time.
    fn take(&self) -> bool {
        self.is_given.swap(false, Ordering::SeqCst)
    }
}
