//! The state that the workers of a realm share.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::Local;
use super::helpers::Helpers;
use crate::fault::Fault;
use crate::graph::registry::Registry;
use crate::net::Polled;
use crate::operation::operations::Operations;
use crate::scheduler::presence::Presence;

/// The state that the workers of a realm share, besides operations.
pub(crate) struct Workers {
    pub(crate) operations: Arc<Operations>,
    pub(crate) graphs: Arc<Registry>,
    pub(crate) helpers: Helpers,
    /// The worker whose [place](crate::scheduler::presence::Presence::seat) goes from hand to hand, once it has been
    /// lent.
    pub(super) lent: AtomicPtr<Local>,
    /// How they wait, and let others wait.
    pub(super) waiting: Waiting,
    /// Asked for work when no worker has any: see [`Realm::on_idle`](crate::Realm::on_idle).
    pub(crate) idle: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Called by a worker before it sleeps: see [`Realm::on_rest`](crate::Realm::on_rest).
    pub(crate) rest: OnceLock<fn()>,
    /// The transport that workers look at besides queues: see [`Realm::poll`](crate::Realm::poll).
    pub(crate) polled: OnceLock<Arc<dyn Polled>>,
    /// Workers whose threads have not ended.
    live: AtomicUsize,
}

/// How workers wait, and let others wait.
pub(crate) struct Waiting {
    /// How many helps may nest on one stack.
    pub(crate) help_depth: u32,
    /// Whether a thread of the program's may do a worker's work while it waits: where one more than the workers would
    /// take the core of one.
    pub(crate) lends_place: bool,
    /// The stack that such a thread must have left, in bytes.
    pub(crate) stack_of_guests: usize,
}

impl Workers {
    /// The workers that run these operations; none of them has ended.
    pub(crate) fn new(operations: Arc<Operations>, waiting: Waiting) -> Arc<Self> {
        let workers = operations.presence.processors().len();
        Arc::new(Self {
            operations,
            graphs: Arc::default(),
            helpers: Helpers::new(workers),
            lent: AtomicPtr::new(ptr::null_mut()),
            waiting,
            idle: OnceLock::new(),
            rest: OnceLock::new(),
            polled: OnceLock::new(),
            live: AtomicUsize::new(workers),
        })
    }

    #[inline]
    pub(super) fn presence(&self) -> &Presence {
        &self.operations.presence
    }

    /// A worker that is about to park asks for work in the name of all, if all sleep.
    pub(crate) fn idle_found_work(&self) -> bool {
        let asks = |ask: &(dyn Fn() -> bool + Send + Sync)| {
            self.operations.unheard(|| "looking for work that waits for room".to_owned(), ask).unwrap_or(false)
        };
        self.idle.get().is_some_and(|ask| self.presence().sleep.all_asleep() && asks(ask))
    }

    /// A worker begins to search: it looks at the network meanwhile.
    #[inline]
    pub(crate) fn begin_polling(&self) {
        if let Some(polled) = self.polled.get() {
            polled.begin();
        }
    }

    /// Whether workers look at the network.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.polled.get().is_some()
    }

    /// Receives what the network has at hand; whether that was anything.
    #[inline]
    pub(crate) fn poll(&self) -> bool {
        let poll = |polled: &Arc<dyn Polled>| {
            self.operations.unheard(|| "receiving what other nodes sent".to_owned(), || polled.poll()).unwrap_or(false)
        };
        self.polled.get().is_some_and(poll)
    }

    /// The same, between two other things: if that costs next to nothing.
    #[inline]
    pub(crate) fn poll_in_passing(&self) -> bool {
        self.polls_cheaply() && self.poll()
    }

    /// Whether to look costs next to nothing.
    #[inline]
    pub(crate) fn polls_cheaply(&self) -> bool {
        self.polled.get().is_some_and(|polled| polled.is_cheap())
    }

    /// A worker that is about to park leaves the network to others, if all sleep; whether something has come just then.
    pub(crate) fn idle_found_message(&self) -> bool {
        let end = |polled: &Arc<dyn Polled>| {
            self.presence().sleep.all_asleep()
                && self
                    .operations
                    .unheard(|| "receiving what other nodes sent".to_owned(), || polled.end())
                    .unwrap_or(false)
        };
        self.polled.get().is_some_and(end)
    }

    /// A worker, which is this thread, has run out of work.
    pub(crate) fn rest(&self) {
        if let Some(rest) = self.rest.get() {
            rest();
        }
    }

    /// So many workers' threads could not be started: they count as ended.
    pub(crate) fn never_started(&self, workers: usize) {
        self.live.fetch_sub(workers, Ordering::AcqRel);
    }

    /// Poisons, on a thread that is no worker, all that is pending, and tells bodies so instead of running them.
    pub(crate) fn discard_pending(&self, why: &Arc<Fault>) {
        self.operations.discard(why);
        // A waiter that is told may have begun something else.
        while self.operations.break_promises(why) {
            self.wait_until_all_sleep();
        }
    }

    /// A worker's thread is about to end; the last one abandons what is pending.
    pub(crate) fn worker_ended(&self) {
        if self.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            // What was discarded is not pending, and handles may be left.
            if self.operations.discarding().is_none() {
                drop(self.operations.gate.write());
                self.operations.abandon_pending();
            }
            if let Some(profiler) = &self.operations.profiler {
                profiler.end();
            }
        }
    }
}
