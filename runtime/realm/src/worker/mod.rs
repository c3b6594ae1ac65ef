//! Workers: one thread a processor, running operations, stealing them, sleeping when there are none.
//!
//! Read on in `workers` (what they share), `watch` (when there are more of them than cores), `help` (waiting on a
//! worker), `jobs` and `nodes` (what else they run), `sharing` (loops that several run).

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::events::Event;
use crate::events::slot::SlotHeader;
use crate::graph::active::{Active, Claimed};
use crate::graph::registry::{KnownGraphs, Registry};
use crate::machine::ProcessorId;
pub use crate::operation::WorkerContext;
use crate::operation::job::Job;
use crate::operation::local::{LocalQueue, set_current};
use crate::operation::operations::{Finish, Operations, Slot};
use crate::operation::{Class, Worker};
use crate::profile::{Activity, Profiler, Tag, common};
use crate::scheduler::presence::Presence;
use crate::scheduler::queue::{OwnDeques, Queued};
use crate::threads;
use crate::worker::watch::Watch;

mod chunks;
mod guest;
mod help;
mod helpers;
mod jobs;
mod nodes;
mod sharing;
mod watch;
mod workers;

pub use guest::Signal;
pub use help::HelpTooDeep;
pub(crate) use workers::{Waiting, Workers};

/// The state that belongs to one worker's thread alone.
pub(crate) struct Local {
    queue: LocalQueue,
    workers: Arc<Workers>,
    graphs: Arc<Registry>,
    /// Nested helps on the stack.
    depth: Cell<u32>,
    /// Jobs that were begun on top of a body that awaits.
    nested: Cell<u32>,
    /// The number of looks for work since it last looked first at what others handed to it.
    tick: Cell<u32>,
    random: Cell<u32>,
    /// While it last waited for a node of others, it ran that itself: their worker may not have a core.
    has_stolen: Cell<bool>,
    /// The graphs to look at.
    known: RefCell<KnownGraphs>,
    /// Nodes of graphs were run last: it is the operations' turn.
    served: Cell<bool>,
    /// The observations that it makes on watch.
    watch: Watch,
    /// On watch it has seen a node that is ready and that no worker comes to: it runs one, wherever it had better run.
    rescues: Cell<bool>,
    /// The beginning of the thread's stack, or nearly, and how many bytes of it helping may use.
    stack: (Cell<usize>, usize),
}

/// The work that a worker has found to do.
pub(crate) enum Found {
    Operation(u32),
    Job(Job),
    Node(Arc<Active>, Claimed),
}

impl From<Queued<Job>> for Found {
    #[inline]
    fn from(queued: Queued<Job>) -> Self {
        match queued {
            Queued::Operation(index) => Self::Operation(index),
            Queued::Job(job) => Self::Job(job),
        }
    }
}

impl Found {
    fn kind(&self) -> &'static str {
        match self {
            Self::Operation(_) => "the end of an operation",
            Self::Job(_) => "a job",
            Self::Node(..) => "a node of a graph",
        }
    }
}

thread_local! {
    /// The worker that this thread is.
    static CURRENT: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

/// Makes this thread another worker, or none; gives what it was. For a system thread that is several of [a
/// simulation's](crate::simulation) in turn.
pub(crate) fn exchange_current(worker: *const Local) -> *const Local {
    // SAFETY: null, or the worker that this thread is from now on, which is there as long as it is.
    let queue = unsafe { worker.as_ref() }.map_or(ptr::null(), |local| ptr::from_ref(&local.queue));
    set_current(queue);
    CURRENT.replace(worker)
}

/// Calls `body`, on a worker's thread, with that worker.
fn with_current<R>(body: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: as in `Workers::local`; here the worker is there as long as its thread does nothing else.
    body(unsafe { CURRENT.get().as_ref() }.expect("the thread is a worker's"))
}

impl Workers {
    /// The worker that this thread is, if it is one of this realm's.
    #[inline]
    pub(crate) fn local(&self) -> Option<&Local> {
        // SAFETY: a worker sets `CURRENT` to its `Local` and resets it before that goes away; the reference given out
        // is bound to `self`, which the `Local` keeps alive, and does not leave the thread as `Local` is not `Sync`.
        let local = unsafe { CURRENT.get().as_ref() }?;
        ptr::eq(Arc::as_ptr(&local.workers), self).then_some(local)
    }
}

impl Local {
    /// A worker of those.
    ///
    /// # Safety
    /// `realm` points to a `Realm`, which stays there for as long as the worker.
    pub(crate) unsafe fn new(
        workers: &Arc<Workers>,
        index: usize,
        processor: ProcessorId,
        deques: OwnDeques<Job>,
        stack_size: usize,
        realm: NonNull<()>,
    ) -> Self {
        let operations = Arc::clone(&workers.operations);
        let watch = Watch::new(operations.presence.processors().len());
        let worker = Worker { index, processor, completing: Cell::new(false), realm };
        Self {
            queue: LocalQueue::new(operations, worker, deques),
            workers: Arc::clone(workers),
            graphs: Arc::clone(&workers.graphs),
            depth: Cell::new(0),
            nested: Cell::new(0),
            tick: Cell::new(0),
            random: Cell::new(index as u32 + 1),
            has_stolen: Cell::new(false),
            known: RefCell::default(),
            served: Cell::new(false),
            watch,
            rescues: Cell::new(false),
            stack: (Cell::new(0), stack_size / 4),
        }
    }

    #[inline]
    fn operations(&self) -> &Operations {
        &self.queue.operations
    }

    #[inline]
    fn presence(&self) -> &Presence {
        &self.queue.operations.presence
    }

    #[inline]
    fn index(&self) -> usize {
        self.queue.worker.index
    }

    /// The thread's whole life: runs operations until the realm stops.
    pub(crate) fn work(self) {
        self.stack.0.set(&raw const self as usize);
        exchange_current(&self);
        if let Some(profiler) = &self.operations().profiler {
            profiler.introduce_worker(self.queue.worker.processor);
        }
        while let Some(found) = self.next_found() {
            self.run(found);
            self.operations().take_turn();
        }
        self.queue.release_next();
        self.drop_jobs();
        self.workers.rest();
        exchange_current(ptr::null());
        self.queue.slots.borrow_mut().give_back(&self.operations().table);
        if let Some(profiler) = &self.operations().profiler {
            profiler.write_thread();
        }
        self.workers.worker_ended();
    }

    /// Finds something to do without waiting.
    #[inline]
    fn find(&self) -> Option<Found> {
        self.workers.poll_in_passing();
        if self.graphs.is_empty() {
            return self.find_queued();
        }
        self.find_among_graphs(|| self.find_queued())
    }

    /// Finds an operation or a job without waiting.
    #[inline]
    fn find_queued(&self) -> Option<Found> {
        let others_turn = self.tick.get() >= OTHERS_EVERY;
        self.tick.set(if others_turn { 0 } else { self.tick.get() + 1 });
        let queues = &self.operations().queues;
        let taker = self.queue.taker();
        let Some(next) = self.queue.take_next() else {
            return queues.find(&taker, others_turn, self.random()).map(Found::from);
        };
        if others_turn && let Some(found) = queues.find_here(&taker, true) {
            self.queue.release(next);
            return Some(found.into());
        }
        Some(next.into())
    }

    /// Finds something to do, sleeping while there is nothing; `None` once the realm stops.
    fn next_found(&self) -> Option<Found> {
        loop {
            if self.operations().is_stopping() {
                return None;
            }
            if self.is_place_wanted() {
                self.lend_place();
            } else if let Some(found) = self.find().or_else(|| self.search()) {
                return Some(found);
            }
        }
    }

    /// Looks for something to do, sleeping while there is nothing; `None` if the realm stops, or a guest wants this
    /// worker's place.
    fn search(&self) -> Option<Found> {
        self.presence().sleep.begin_search();
        let found = loop {
            if self.operations().is_stopping() || self.is_place_wanted() {
                break None;
            }
            self.workers.begin_polling();
            if let Some(found) = self.search_while(&mut || !self.is_place_wanted(), || self.find()) {
                break Some(found);
            }
            self.workers.rest();
            self.presence().sleep.fall_asleep(self.index());
            let may_go_on = self.has_work() || self.operations().is_stopping() || self.is_place_wanted();
            if may_go_on || self.workers.idle_found_message() || self.workers.idle_found_work() {
                self.presence().sleep.cancel(self.index());
            } else {
                self.forget_graphs();
                self.park();
            }
        };
        self.end_search();
        found
    }

    /// Looks for work for a few microseconds, while `condition` holds: what comes soon is cheaper to spin for than to
    /// sleep for.
    fn search_while(&self, condition: &mut dyn FnMut() -> bool, find: impl Fn() -> Option<Found>) -> Option<Found> {
        let is_polling = self.workers.is_polling();
        let rounds = match self.presence().is_simulated {
            true => SIMULATED_ROUNDS,
            false if is_polling && self.workers.polls_cheaply() => POLLING_ROUNDS,
            false if is_polling => CALLING_ROUNDS,
            false => SEARCH_ROUNDS,
        };
        for round in 0..rounds {
            if !condition() {
                break;
            }
            if let Some(found) = find() {
                return Some(found);
            }
            if self.presence().is_crowded() {
                break;
            }
            self.operations().take_turn();
            if is_polling && !self.presence().is_simulated {
                // What others send is what is mostly waited for, and to look for that alone is done soonest.
                let polls = if self.workers.polls_cheaply() { POLLS_A_ROUND } else { 1 };
                (0..polls).any(|_| self.workers.poll());
            } else {
                (0..round.min(SEARCH_ROUNDS)).for_each(|_| std::hint::spin_loop());
            }
            if is_polling && round % YIELD_EVERY == YIELD_EVERY - 1 {
                // A thread that shares the core may be the one that we wait for.
                threads::yield_now();
            }
        }
        None
    }

    /// Stops searching, and passes the search on if there is more to be found.
    fn end_search(&self) {
        if self.presence().sleep.end_search() && self.operations().queues.has_work_for_anyone() {
            self.presence().sleep.announce();
        }
        // It may have been woken to go on watch, and found something to do.
        if !self.graphs.is_empty() && !self.presence().is_simulated && self.presence().sleep.is_anybody_asleep() {
            self.presence().sleep.see_to_watch();
        }
    }

    /// Whether there is anything that this worker could do.
    fn has_work(&self) -> bool {
        self.operations().queues.has_work_for(self.index()) || self.has_ready_node()
    }

    /// Does what was found. Bodies are caught by themselves: what panics here is the realm itself, or a job or graph
    /// that must not.
    #[inline]
    fn run(&self, found: Found) {
        let is_elsewhere = self.goes_elsewhere(&found);
        let (kind, depths) = (found.kind(), (self.depth.get(), self.nested.get(), self.queue.worker.completing.get()));
        let run = || match found {
            Found::Operation(index) => self.run_operation(index),
            Found::Job(job) => self.run_jobs(job),
            Found::Node(graph, claimed) => self.serve(&graph, claimed),
        };
        if self.operations().unheard(|| format!("{kind}, as worker {} ran it,", self.index()), run).is_none() {
            self.depth.set(depths.0);
            self.nested.set(depths.1);
            self.queue.worker.completing.set(depths.2);
        }
        if is_elsewhere {
            self.presence().elsewhere[self.index()].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Runs a ready operation and settles what follows from its end.
    #[inline]
    fn run_operation(&self, index: u32) {
        let operations = self.operations();
        let slot = operations.table.slot(index);
        let context = WorkerContext { worker: &self.queue.worker, event: slot.pending_event(index) };
        // What follows from the operation's end, until this goes, is its doing too.
        let activity = operations.profiler.as_ref().map(|profiler| begin_activity(profiler, slot, context.event));
        let finish = operations.call(index, slot, Some(&context));
        if let Some(activity) = &activity {
            activity.end();
        }
        if let Finish::Done(result) = finish {
            let nested = self.queue.worker.completing.replace(true);
            operations.complete(index, slot, result);
            self.queue.worker.completing.set(nested);
            self.workers.after_run(self.index());
        }
    }

    /// Sleeps until woken, or until it wakes up by itself as it was on watch.
    fn park(&self) {
        match &self.operations().profiler {
            None => self.park_or_watch(),
            Some(profiler) => profiler.while_asleep(|| self.park_or_watch()),
        }
    }

    /// A pseudo-random number (xorshift, Marsaglia 2003).
    #[inline]
    fn random(&self) -> u32 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        self.random.set(state);
        state
    }
}

#[cold]
fn begin_activity<'a>(profiler: &'a Profiler, slot: &Slot, event: Event) -> Activity<'a> {
    // SAFETY: the operation is ready and this worker's.
    let &SlotHeader { tag, class, .. } = unsafe { slot.header() };
    let tag = match class {
        _ if tag != Tag::NONE => tag,
        Class::Task => Tag::of(common::TASK),
        Class::Runtime => Tag::of(common::RUNTIME),
    };
    profiler.activity(event.into(), tag)
}

/// Every so many looks, a worker looks at what others handed to it before what it has itself, lest a worker that never
/// runs out of work of its own let them wait for ever.
const OTHERS_EVERY: u32 = 61;

const SEARCH_ROUNDS: u32 = 32;

/// In a simulation nothing comes soon, or everything does.
const SIMULATED_ROUNDS: u32 = 2;

/// While what other nodes send is received by the worker that looks: some 200 microseconds, since it takes that long to
/// send, be told, and wake up.
const POLLING_ROUNDS: u32 = 2048;

/// The same, where each look is a call of the system, or some.
const CALLING_ROUNDS: u32 = 512;

/// So often the network is looked at before whatever else there may be.
const POLLS_A_ROUND: usize = 4;

/// After so many of these rounds, a few microseconds, a thread that shares the core has its turn.
const YIELD_EVERY: u32 = 128;
