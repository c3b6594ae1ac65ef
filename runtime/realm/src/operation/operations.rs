//! The state shared by all that makes and runs operations: the slots, the queues, and how it all ends.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};

use super::breakdown::{Breakdown, Breakdowns};
use super::context::WorkerContext;
use super::job::Job;
use crate::events::faults::Faults;
use crate::events::idle::IdleWaiters;
use crate::events::slot::{self, BodyBytes};
use crate::fault::{self, Fault, Panic};
use crate::locks::RwLock;
use crate::profile::Profiler;
use crate::scheduler::presence::Presence;
use crate::scheduler::queue::{OwnDeques, Queues};

/// One operation and its event.
pub(crate) type Slot = slot::Slot<BodyTable>;

/// How a body is called.
pub(crate) struct Call<'a> {
    pub(crate) operations: &'a Operations,
    /// The worker that calls; none when a triggering thread runs an inline body, or when the realm goes down.
    pub(crate) worker: Option<&'a WorkerContext<'a>>,
    /// The fault of a poisoned precondition: the body's work is off.
    pub(crate) fault: Option<&'a Arc<Fault>>,
}

/// How a call ended.
pub(crate) enum Finish {
    /// The body is gone and the operation is over.
    Done(Result<(), Arc<Fault>>),
    /// The body stays in its slot and will have itself queued again.
    Suspended,
}

/// The virtual table of a body of some type: the functions that can be called on it.
pub(crate) struct BodyTable {
    /// Calls the body; unless the call ends `Suspended`, the storage is empty afterwards.
    pub(crate) call: unsafe fn(*mut BodyBytes, Call<'_>) -> Finish,
    /// Abandons the body, leaving the storage empty.
    pub(crate) abandon: unsafe fn(*mut BodyBytes, &Arc<Fault>),
}

/// The events and operations of a realm, with the queues that ready ones wait in.
pub(crate) struct Operations {
    this: Weak<Operations>,
    /// Unlike that of any other realm of this process.
    pub(crate) id: u32,
    pub(crate) table: slot::SlotTable<BodyTable>,
    /// The faults of poisoned events, and those that have reached pending operations.
    pub(crate) faults: Faults,
    /// Operations that waited for events to wake futures that are gone.
    pub(crate) idle_waiters: IdleWaiters,
    pub(crate) queues: Queues<Job>,
    pub(crate) presence: Presence,
    pub(crate) profiler: Option<Profiler>,
    pub(crate) breakdowns: Breakdowns,
    /// Why what is pending is discarded, if it is: see [`Realm::shut_down`](crate::Realm::shut_down).
    discarding: OnceLock<Arc<Fault>>,
    stopping: AtomicBool,
    /// Held for reading by threads that touch slots without a handle that keeps the realm up; for writing while the
    /// last worker begins to abandon what is pending.
    pub(crate) gate: RwLock<()>,
}

impl Operations {
    /// None so far, for workers that own these deques.
    pub(crate) fn new(presence: Presence, own: &[OwnDeques<Job>], profiler: Option<Profiler>) -> Arc<Self> {
        /// Tells the realms of a process apart, so that a handle to the one is not used on the other.
        static REALMS: AtomicU32 = AtomicU32::new(0);
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            id: REALMS.fetch_add(1, Ordering::Relaxed),
            table: slot::SlotTable::new(),
            faults: Faults::default(),
            idle_waiters: IdleWaiters::default(),
            queues: Queues::new(own),
            presence,
            profiler,
            breakdowns: Breakdowns::default(),
            discarding: OnceLock::new(),
            stopping: AtomicBool::new(false),
            gate: RwLock::new(()),
        })
    }

    pub(crate) fn weak(&self) -> Weak<Operations> {
        self.this.clone()
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether all waits have ended.
    #[inline]
    pub(crate) fn is_waiting_over(&self) -> bool {
        self.is_stopping() || self.breakdowns.first().is_some()
    }

    /// The workers are to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Why bodies that become ready are not run any more, if they are not.
    #[inline]
    pub(crate) fn discarding(&self) -> Option<&Arc<Fault>> {
        self.discarding.get()
    }

    /// From now on bodies that become ready are not run.
    pub(crate) fn discard(&self, why: &Arc<Fault>) {
        let _ = self.discarding.set(Arc::clone(why));
    }

    /// Does something whose panic would be reported to no thread: then the realm breaks down.
    #[inline]
    pub(crate) fn unheard<R>(&self, during: impl FnOnce() -> String, body: impl FnOnce() -> R) -> Option<R> {
        fault::catch(body).map_err(|fault| self.break_down(during(), &fault)).ok()
    }

    /// All waits end, for a reason that is to be every wait's fault.
    #[cold]
    pub(crate) fn give_up(&self, fault: Fault) {
        tracing::error!(%fault, "the realm has given up: all waits end");
        self.breakdowns.begin(fault);
        // A worker that is about to sleep looks after its own fence: it sees this, or is seen asleep.
        fence(Ordering::SeqCst);
        self.presence.sleep.wake_all();
    }

    #[cold]
    pub(crate) fn break_down(&self, during: String, fault: &Fault) {
        let unknown = || Panic { message: fault.to_string(), location: None, backtrace: None };
        let breakdown = Breakdown { during, panic: fault.panic().cloned().unwrap_or_else(unknown) };
        self.give_up(Fault::new(breakdown));
    }
}
