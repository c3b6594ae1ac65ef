//! Guests: a thread of the program's that has to wait while graphs run does a worker's work meanwhile, in that worker's place.
//!
//! Whoever launches what graphs run ahead of would be one thread more than there are cores: it would take the core of a worker each time that it goes on, and
//! the others would wait for that.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};

use super::{Local, exchange_current};
use crate::event::{After, Event};
use crate::fault::Fault;
use crate::profile::{Profiler, Records};
use crate::realm::{Core, Realm, Whom};
use crate::sync::Parker;
use crate::worker::help::{Unpark, WakeWorker};

/// The worker whose place a guest may have.
pub(crate) const LENT: usize = 0;

/// What belongs to a worker's thread alone, for the moment that of whoever has this.
pub(crate) struct Place {
    local: NonNull<Local>,
    /// What the worker does is in its own row of a profile, whoever does it.
    records: Records,
}

// SAFETY: a `Local` may be used by any thread, though only by one at a time: by the one that has the place. It lives on the stack of the worker's own
// thread, which does not go on before it has the place again.
unsafe impl Send for Place {}

impl Local {
    /// Whether a guest waits for this worker's place.
    #[inline]
    pub(super) fn is_place_wanted(&self) -> bool {
        self.index == LENT && self.core().seat.is_wanted()
    }

    /// Runs operations while `holds`; without any, searches until there is something better to do. False if it has found neither.
    fn work_while(&self, holds: &dyn Fn() -> bool, has_better_to_do: &dyn Fn() -> bool) -> bool {
        let core = self.core();
        self.depth.set(self.depth.get() + 1);
        let is_met = loop {
            if !holds() || core.is_waiting_over() {
                break true;
            }
            let found = self.find().or_else(|| {
                if has_better_to_do() {
                    return None;
                }
                core.sleep.begin_search();
                core.begin_polling();
                let found = self.search_while(&mut || holds() && !has_better_to_do());
                self.end_search();
                found
            });
            match found {
                Some(found) => {
                    self.run(found);
                    core.take_turn();
                }
                None => break !holds() || has_better_to_do(),
            }
        };
        self.depth.set(self.depth.get() - 1);
        self.release_next();
        is_met
    }

    /// Lets a guest have the place. Nothing runs on this worker's stack.
    #[cold]
    pub(super) fn lend_place(&self) {
        let core = self.core();
        self.release_next();
        core.rest();
        let base = self.stack.0.get();
        let before = exchange_current(std::ptr::null());
        let place = Place { local: NonNull::from(self), records: Profiler::exchange(Records::default()) };
        let place = core.seat.lend(place, || core.is_stopping());
        Profiler::exchange(place.records);
        exchange_current(before);
        self.stack.0.set(base);
    }
}

impl Core {
    /// Whether a thread that is no worker, which is about to wait, may have a worker's place meanwhile: while graphs run. Bodies that run there want a stack.
    #[inline]
    fn takes_guests(&self) -> bool {
        let has_stack = || stacker::remaining_stack().is_some_and(|left| left >= self.stack_of_guests);
        !self.graphs.is_empty() && self.lends_place && (self.is_simulated || has_stack())
    }

    /// Waits for an event in a worker's place, on a thread that is none. Gives whether it has: else it is still to be waited for.
    pub(super) fn wait_as_guest(&self, event: Event) -> Result<bool, Arc<Fault>> {
        if !self.takes_guests() {
            self.seat.give_back();
            return Ok(false);
        }
        let place = match self.seat.take_free() {
            Some(place) => Some(place),
            None => {
                let parker = Arc::default();
                if !self.seat.ask(&parker) {
                    return Ok(false);
                }
                let watch = self.breakdowns.watch(Whom::Thread(Arc::clone(&parker)));
                let _watch = watch.inspect_err(|_| self.seat.withdraw())?;
                self.spawn_inline(After::follows(&[event]), Unpark(Arc::clone(&parker)));
                self.await_place(&parker, || self.result(event).is_some() || self.is_waiting_over())
            }
        };
        if let Some(place) = place {
            self.spawn_inline(After::follows(&[event]), WakeWorker(LENT));
            self.waiting_for(event, || {
                self.visit(place, |local| local.help_while(&mut || self.result(event).is_none(), false))
            });
        }
        Ok(true)
    }

    /// Waits for a signal, on a thread that is no worker, in a worker's place if there is one to be had.
    fn wait_for(&self, signal: &Signal) {
        if self.takes_guests() {
            let asks = || self.seat.ask(&signal.parker);
            let place = self.seat.take_free().or_else(|| {
                let place = asks().then(|| self.await_place(&signal.parker, || signal.is_given()));
                place.flatten()
            });
            if let Some(place) = place {
                self.visit(place, |local| local.help_while(&mut || !signal.is_given(), false));
            }
        } else {
            self.seat.give_back();
        }
        while !signal.is_given() {
            signal.parker.park();
        }
        signal.is_given.store(false, Ordering::Relaxed);
    }

    /// Does a worker's work on a thread that is none, as long as there is any and `holds`; while there is none, only until the thread `has_better_to_do`. False if it has
    /// to wait for anything of that otherwise.
    fn work_while(&self, holds: &dyn Fn() -> bool, has_better_to_do: &dyn Fn() -> bool) -> bool {
        let place = if self.takes_guests() { self.seat.take_free() } else { None };
        place.is_some_and(|place| self.visit(place, |local| local.work_while(holds, has_better_to_do)))
    }

    /// Has the worker's own thread let this one in, and waits for that: until it need not wait any more.
    fn await_place(&self, parker: &Parker, is_over: impl Fn() -> bool) -> Option<Place> {
        self.sleep.wake(LENT);
        loop {
            parker.park();
            if is_over() {
                self.seat.withdraw();
                return None;
            }
            let place = self.seat.take_free();
            if place.is_some() {
                return place;
            }
        }
    }

    /// Is the worker.
    fn visit<R>(&self, mut place: Place, work: impl FnOnce(&Local) -> R) -> R {
        // SAFETY: the place is this thread's until it leaves it, and the reference is not used beyond that.
        let local = unsafe { place.local.as_ref() };
        let own_records = Profiler::exchange(std::mem::take(&mut place.records));
        let here = 0_u8;
        local.stack.0.set(&raw const here as usize);
        let before = exchange_current(local);
        let result = work(local);
        local.forget_graphs();
        self.rest();
        exchange_current(before);
        place.records = Profiler::exchange(own_records);
        self.seat.leave(place);
        result
    }
}

/// What a thread that is no worker waits for in [`Realm::wait_for`], and anybody may give.
pub struct Signal {
    core: Weak<Core>,
    is_given: AtomicBool,
    parker: Arc<Parker>,
}

impl Signal {
    /// Gives the signal. Given several times before it is waited for, it counts as given once.
    pub fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        self.parker.unpark();
        // Against the fence of a worker that falls asleep: either the guest sees the signal then, or we see that there is one.
        fence(Ordering::SeqCst);
        if let Some(core) = self.core.upgrade().filter(|core| core.seat.has_guest()) {
            core.sleep.wake(LENT);
        }
    }

    fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }
}

impl Realm {
    /// A signal that has not been given.
    #[must_use]
    pub fn signal(&self) -> Signal {
        Signal { core: self.core().weak(), is_given: AtomicBool::new(false), parker: Arc::default() }
    }

    /// While graphs run, a thread that is no worker and would have to wait as long as `holds` may do a worker's work, as in [`wait`](Self::wait); and when there is
    /// none, only until it has better to do. Gives whether it may go on: else neither has come, and nothing was left to be done. Never sleeps.
    pub fn work_while(&self, holds: impl Fn() -> bool, has_better_to_do: impl Fn() -> bool) -> bool {
        self.core().work_while(&holds, &has_better_to_do)
    }

    /// Waits until a signal of this realm is given, and takes it: one thread at a time, which is no worker. As in [`wait`](Self::wait), it may do a worker's work
    /// meanwhile. It ends by nothing else: see [`watch_for_breakdown`](Self::watch_for_breakdown).
    pub fn wait_for(&self, signal: &Signal) {
        self.core().wait_for(signal);
    }
}
