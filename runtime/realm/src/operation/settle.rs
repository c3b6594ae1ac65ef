//! The consequences of a trigger: waiters are counted down, operations become ready, merges trigger in turn.
//!
//! A chain of a million merges must not need a stack of a million frames, so triggering pushes the waiters that it took
//! onto the worklist of the thread's outermost trigger. The event itself has triggered by then: only what follows from
//! it is put off.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::context::WorkerContext;
use super::operations::{Call, Finish, Operations, Slot};
use crate::events::Event;
use crate::events::slot::{LINKS, SlotKind, reusable};
use crate::fault::{self, Fault};
use crate::profile::Profiler;
use crate::threads::simulated;

/// Waiters taken by a trigger: the first node, and the event whose poison they get (the null event for none).
type Waiters = (u32, Event);

struct Worklist {
    operations: *const Operations,
    waiters: RefCell<SmallVec<[Waiters; 16]>>,
    /// Operations queued since this settling began.
    queued: Cell<u32>,
}

/// While settling, a worker is woken for the first operation queued and for every so many more.
const ANNOUNCE_EVERY: u32 = 64;

thread_local! {
    static ACTIVE: Cell<*const Worklist> = const { Cell::new(ptr::null()) };
}

/// Whether this thread is inside an inline callback, where waiting would deadlock.
pub(crate) fn settling() -> bool {
    !ACTIVE.get().is_null()
}

/// Makes the worklist that was active before active again.
struct Reactivate(*const Worklist);

impl Drop for Reactivate {
    fn drop(&mut self) {
        ACTIVE.set(self.0);
    }
}

impl Operations {
    /// In a simulation, lets others have a turn. The caller holds no lock.
    #[inline]
    pub(crate) fn take_turn(&self) {
        if self.presence.is_simulated && !settling() {
            simulated::turn();
        }
    }

    /// Triggers the slot's pending event, which the caller alone has the right to. The slot is no longer the caller's.
    #[inline]
    pub(crate) fn trigger_slot(&self, index: u32, slot: &Slot, poisoned: bool) {
        let generation = slot.word.last_triggered() + 1;
        let head = slot.word.trigger(generation, poisoned);
        self.after_trigger(index, generation, poisoned, head);
    }

    /// Frees a slot that has triggered and settles its waiters.
    #[inline]
    pub(crate) fn after_trigger(&self, index: u32, generation: u32, poisoned: bool, head: u32) {
        let source = if poisoned { Event::new(index, generation) } else { Event::NONE };
        if poisoned {
            self.faults.triggered(source);
        }
        if reusable(generation) {
            self.put_slot(index);
        }
        if head != 0 {
            self.settle((head, source));
        }
    }

    /// Ends an operation whose body is gone.
    #[inline]
    pub(crate) fn complete(&self, index: u32, slot: &Slot, result: Result<(), Arc<Fault>>) {
        let poisoned = match result {
            Ok(()) => false,
            Err(fault) => {
                self.faults.file(slot.pending_event(index), fault);
                true
            }
        };
        self.trigger_slot(index, slot, poisoned);
    }

    fn settle(&self, waiters: Waiters) {
        let outer = ACTIVE.get();
        // SAFETY: `ACTIVE` is null or points into a frame further down this very stack.
        if let Some(outer) = unsafe { outer.as_ref() }
            && ptr::eq(outer.operations, self)
        {
            outer.waiters.borrow_mut().push(waiters);
            return;
        }
        let worklist = Worklist { operations: self, waiters: RefCell::new(SmallVec::new()), queued: Cell::new(0) };
        let _reactivate = Reactivate(ACTIVE.replace(&worklist));
        let mut next = Some(waiters);
        while let Some((head, source)) = next {
            self.notify(head, source);
            next = worklist.waiters.borrow_mut().pop();
        }
        if worklist.queued.get() > 1 {
            self.presence.sleep.announce();
        }
    }

    /// Wakes a worker for an operation that any may run. While settling, only for the first and now and then: a worker
    /// that wakes up wakes the next if there is more to do.
    #[inline]
    pub(crate) fn announce_queued(&self) {
        if self.is_to_be_announced() {
            self.presence.sleep.announce();
        }
    }

    /// [`announce_queued`](Self::announce_queued) of what was pushed to a deque.
    #[inline]
    pub(crate) fn announce_pushed(&self) {
        if self.is_to_be_announced() {
            self.presence.sleep.announce_pushed();
        }
    }

    #[inline]
    fn is_to_be_announced(&self) -> bool {
        // SAFETY: `ACTIVE` is null or points into a frame further down this very stack.
        match unsafe { ACTIVE.get().as_ref() } {
            Some(worklist) if ptr::eq(worklist.operations, self) => {
                let queued = worklist.queued.get();
                worklist.queued.set(queued + 1);
                queued.is_multiple_of(ANNOUNCE_EVERY)
            }
            _ => true,
        }
    }

    /// Counts one precondition of each waiter in the list off.
    #[inline]
    fn notify(&self, head: u32, source: Event) {
        let mut node = head;
        while node != 0 {
            let (index, link) = (node / LINKS as u32, node as usize % LINKS);
            let slot = self.table.slot(index);
            // Before the count, which may hand the slot to another operation.
            node = slot.links[link].load(Ordering::Relaxed);
            // SAFETY: this waiter's precondition is not counted off, so the slot is neither ready nor being filled in.
            if !source.is_none() && unsafe { slot.header() }.spreads & (1 << link) != 0 {
                self.inherit(index, slot, source);
            }
            if let Some(ready) = slot.preconditions.arrive(1) {
                if let Some(profiler) = &self.profiler {
                    note_ready(profiler, index, slot);
                }
                self.dispatch(index, slot, ready.poisoned);
            }
        }
    }

    /// Sends a slot whose preconditions have triggered on its way. The caller owns it.
    #[inline]
    pub(crate) fn dispatch(&self, index: u32, slot: &Slot, poisoned: bool) {
        // SAFETY: the caller owns the slot.
        match unsafe { slot.header() }.kind {
            SlotKind::Event => self.trigger_slot(index, slot, poisoned),
            SlotKind::Queued => self.enqueue(index, slot),
            SlotKind::Inline => {
                if let Finish::Done(result) = self.call(index, slot, None) {
                    self.complete(index, slot, result);
                }
            }
            SlotKind::Vacant => unreachable!("slot {index} became ready without being armed"),
        }
    }

    /// Calls the body of a ready slot, which the caller owns and, unless the body suspends, still does afterwards.
    #[inline]
    pub(crate) fn call(&self, index: u32, slot: &Slot, worker: Option<&WorkerContext<'_>>) -> Finish {
        let fault = match slot.preconditions.poisoned() {
            true => Some(self.fault_of(slot.pending_event(index))),
            false => self.discarding().cloned(),
        };
        // SAFETY: the caller owns the slot.
        let table = unsafe { slot.header() }.body.expect("operations with a body have its table");
        let body = slot.body();
        let call = Call { operations: self, worker, fault: fault.as_ref() };
        // SAFETY: the body was stored together with its table, and a ready slot is called once.
        let finish =
            fault::catch(|| unsafe { (table.call)(body, call) }).unwrap_or_else(|panic| Finish::Done(Err(panic)));
        let Finish::Done(result) = finish else {
            return Finish::Suspended;
        };
        // SAFETY: the body did not suspend, so the slot is still the caller's.
        unsafe { slot.header_mut() }.kind = SlotKind::Vacant;
        // What led here matters more than what went wrong in cleaning up.
        Finish::Done(fault.map_or(result, Err))
    }
}

/// Records that an operation for the workers is ready. The slot is the caller's.
#[cold]
fn note_ready(profiler: &Profiler, index: u32, slot: &Slot) {
    // SAFETY: the caller owns the slot.
    if unsafe { slot.header() }.kind == SlotKind::Queued {
        profiler.ready(slot.pending_event(index).into());
    }
}
