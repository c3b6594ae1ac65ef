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
            self.waiting_for(event, || self.visit(place, &mut || self.result(event).is_none()));
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
            place.into_iter().for_each(|place| self.visit(place, &mut || !signal.is_given()));
        } else {
            self.seat.give_back();
        }
        while !signal.is_given() {
            signal.parker.park();
        }
        signal.is_given.store(false, Ordering::Relaxed);
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

    /// Is the worker while a condition holds. Somebody wakes the worker when it holds no longer.
    fn visit(&self, mut place: Place, condition: &mut dyn FnMut() -> bool) {
        // SAFETY: the place is this thread's until it leaves it, and the reference is not used beyond that.
        let local = unsafe { place.local.as_ref() };
        let own_records = Profiler::exchange(std::mem::take(&mut place.records));
        let here = 0_u8;
        local.stack.0.set(&raw const here as usize);
        let before = exchange_current(local);
        local.help_while(condition, false);
        local.forget_graphs();
        self.rest();
        exchange_current(before);
        place.records = Profiler::exchange(own_records);
        self.seat.leave(place);
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

    /// Waits until a signal of this realm is given, and takes it: one thread at a time, which is no worker. As in [`wait`](Self::wait), it may do a worker's work
    /// meanwhile. It ends by nothing else: see [`watch_for_breakdown`](Self::watch_for_breakdown).
    pub fn wait_for(&self, signal: &Signal) {
        self.core().wait_for(signal);
    }
}
