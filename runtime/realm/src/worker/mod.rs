//! Workers: one thread a processor, running operations, stealing them, sleeping when there are none.
//!
//! Read on in `queue` (what waits where), `sleep` (when workers sleep), `watch` (when there are more of them than cores), `help` (waiting on a worker), `jobs` and
//! `nodes` (what else they run), `sharing` (loops that several run).

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::event::Event;
use crate::event::slot::{Header, Slot, SlotCache};
use crate::graph::active::{Active, Claimed};
use crate::graph::registry::Known;
use crate::machine::ProcessorId;
use crate::operation::Class;
use crate::operation::body::Finish;
use crate::operation::job::Job;
use crate::profile::{Activity, Profiler, Tag, common};
use crate::realm::{Core, Realm};
use crate::scheduler::Rank;
use crate::scheduler::destination::Destination;
use crate::scheduler::presence::LENT;
use crate::scheduler::queue::{OwnDeques, Queued, Taker};
use crate::threads;
use crate::worker::watch::Watch;

mod chunks;
pub(crate) mod guest;
mod help;
pub(crate) mod helpers;
mod jobs;
mod nodes;
mod sharing;
mod watch;

pub use guest::Signal;
pub use help::HelpTooDeep;

/// What a body may know of the worker that runs it.
pub struct WorkerContext<'a> {
    local: &'a Local,
    event: Event,
}

impl WorkerContext<'_> {
    /// The processor that runs the body.
    pub fn processor(&self) -> ProcessorId {
        self.local.processor
    }

    /// The realm. The reference does not keep it from shutting down; a clone does.
    pub fn realm(&self) -> &Realm {
        &self.local.realm
    }

    /// The event of the operation whose body this is.
    pub fn event(&self) -> Event {
        self.event
    }

    /// The number of the worker, from 0.
    pub fn worker(&self) -> usize {
        self.local.index
    }

    /// Calls `settle`, by which a [`Job`] ends: what that makes ready first is kept aside, and run next, without a queue.
    pub fn settle<R>(&self, settle: impl FnOnce() -> R) -> R {
        let nested = self.local.completing.replace(true);
        let result = settle();
        self.local.completing.set(nested);
        result
    }
}

/// What belongs to one worker's thread alone.
pub(crate) struct Local {
    pub(crate) realm: Realm,
    pub(crate) index: usize,
    pub(crate) processor: ProcessorId,
    deques: OwnDeques<Job>,
    slots: RefCell<SlotCache>,
    /// An operation that the end of the last one made ready, to be run next without going through a queue; 0 for none.
    next: Cell<u32>,
    /// The same of a job.
    next_job: Cell<Option<Job>>,
    /// Whether the end of an operation is being settled, so that what becomes ready may go to `next`.
    completing: Cell<bool>,
    /// Nested helps on the stack.
    depth: Cell<u32>,
    /// Jobs that were begun on top of a body that awaits.
    nested: Cell<u32>,
    /// What the worker has run since it last looked at what others handed to it first.
    tick: Cell<u32>,
    random: Cell<u32>,
    /// While it last waited for a node of others, it ran that itself: their worker may not have a core.
    has_stolen: Cell<bool>,
    /// The graphs to look at.
    known: RefCell<Known>,
    /// Nodes of graphs were run last: it is the operations' turn.
    served: Cell<bool>,
    /// What it sees on watch.
    watch: Watch,
    /// On watch it has seen a node that is ready and that nobody comes to: it runs one, wherever it had better run.
    rescues: Cell<bool>,
    /// Where the thread's stack begins, or nearly, and how many bytes of it helping may use.
    stack: (Cell<usize>, usize),
}

/// What a worker has found to do.
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
    /// The slots kept by a thread that is no worker.
    static OUTSIDE: RefCell<OutsideSlots> = const { RefCell::new(OutsideSlots { core: None, slots: None }) };
}

/// Makes this thread another worker, or none; gives what it was. For a system thread that is several of [a simulation's](crate::simulation) in turn.
pub(crate) fn exchange_current(worker: *const Local) -> *const Local {
    CURRENT.replace(worker)
}

/// A cache of slots of the realm that an outside thread used last.
struct OutsideSlots {
    /// Weak, yet its address cannot come to mean another realm: the allocation stays.
    core: Option<std::sync::Weak<Core>>,
    slots: Option<SlotCache>,
}

impl OutsideSlots {
    #[inline]
    fn of(&mut self, core: &Core) -> &mut SlotCache {
        if !self.core.as_ref().is_some_and(|kept| ptr::eq(kept.as_ptr(), core)) {
            self.give_back();
            self.core = Some(core.weak());
        }
        self.slots.get_or_insert_default()
    }

    fn give_back(&mut self) {
        if let (Some(core), Some(slots)) = (self.core.take().and_then(|core| core.upgrade()), &mut self.slots) {
            slots.give_back(&core.table);
        }
        self.slots = None;
    }
}

impl Drop for OutsideSlots {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Core {
    /// The worker that this thread is, if it is one of this realm's.
    #[inline]
    pub(crate) fn local(&self) -> Option<&Local> {
        // SAFETY: a worker sets `CURRENT` to its `Local` and resets it before that goes away; the reference given out
        // is bound to `self`, which the `Local` keeps alive, and does not leave the thread as `Local` is not `Sync`.
        let local = unsafe { CURRENT.get().as_ref() }?;
        ptr::eq(local.realm.core(), self).then_some(local)
    }

    /// A slot for a new operation.
    #[inline]
    pub(crate) fn take_slot(&self) -> u32 {
        match self.local() {
            Some(local) => local.slots.borrow_mut().take(&self.table),
            None => self.with_outside_slots(|slots| slots.take(&self.table)),
        }
    }

    /// Frees a slot whose event has triggered.
    #[inline]
    pub(crate) fn put_slot(&self, index: u32) {
        match self.local() {
            Some(local) => local.slots.borrow_mut().put(&self.table, index),
            None => self.with_outside_slots(|slots| slots.put(&self.table, index)),
        }
    }

    /// Uses this thread's cache of slots; or one for the moment, when the thread is ending, or is just letting go of
    /// another realm.
    #[inline]
    fn with_outside_slots<R>(&self, mut using: impl FnMut(&mut SlotCache) -> R) -> R {
        let used = OUTSIDE.try_with(|outside| Some(using(outside.try_borrow_mut().ok()?.of(self))));
        used.ok().flatten().unwrap_or_else(|| {
            let mut slots = SlotCache::default();
            let result = using(&mut slots);
            slots.give_back(&self.table);
            result
        })
    }

    /// Queues a ready operation where its target wants it, and wakes a worker for it.
    #[inline]
    pub(crate) fn enqueue(&self, index: u32, slot: &Slot) {
        // SAFETY: the caller has made the slot ready, and owns it until it is queued.
        let &Header { class, priority, .. } = unsafe { slot.header() };
        let rank = Rank::new(class, priority);
        match Destination::decode(slot.target.load(Ordering::Relaxed)) {
            Destination::Any if priority == 0 => match self.local() {
                Some(local) if local.keep_next(class, index) => {}
                Some(local) => {
                    local.deques.push(class, index);
                    self.announce_pushed();
                }
                None => {
                    self.queues.push_shared(class, index);
                    self.announce_pushed();
                }
            },
            Destination::Near(worker) if priority == 0 => match self.local() {
                Some(local) if local.index == worker && local.keep_next(class, index) => {}
                Some(local) if local.index == worker => {
                    local.deques.push(class, index);
                    self.announce_pushed();
                }
                _ => {
                    self.queues.push_inbox(worker, class, index);
                    if !self.presence.sleep.wake(worker) {
                        self.announce_pushed();
                    }
                }
            },
            Destination::Any | Destination::Near(_) => {
                self.queues.push_by_rank(rank, index);
                self.announce_queued();
            }
            Destination::On(worker) => {
                self.queues.push_pinned(worker, class, priority, index);
                if !self.presence.sleep.wake(worker) && worker == LENT && self.presence.seat.is_unattended() {
                    self.presence.seat.give_back();
                }
            }
            Destination::Group(group) => {
                let group = self.queues.push_group(group, rank, index);
                let _woken = group.members().iter().any(|&worker| self.presence.sleep.wake(worker));
            }
        }
    }
}

impl Local {
    pub(crate) fn new(
        realm: Realm,
        (index, processor): (usize, ProcessorId),
        deques: OwnDeques<Job>,
        stack_size: usize,
    ) -> Self {
        let watch = Watch::new(realm.core().presence.processors().len());
        Self {
            realm,
            index,
            processor,
            deques,
            slots: RefCell::default(),
            next: Cell::new(0),
            next_job: Cell::new(None),
            completing: Cell::new(false),
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

    fn core(&self) -> &Core {
        self.realm.core()
    }

    /// The thread's whole life: runs operations until the realm stops.
    pub(crate) fn work(self) {
        self.stack.0.set(&raw const self as usize);
        CURRENT.set(&self);
        if let Some(profiler) = &self.core().profiler {
            profiler.introduce_worker(self.processor);
        }
        while let Some(found) = self.next_found() {
            self.run(found);
            self.core().take_turn();
        }
        self.release_next();
        self.drop_jobs();
        self.core().rest();
        CURRENT.set(ptr::null());
        self.slots.borrow_mut().give_back(&self.core().table);
        if let Some(profiler) = &self.core().profiler {
            profiler.write_thread();
        }
        self.core().worker_ended();
    }

    /// Keeps the operation to run it next, when it may overtake whatever is queued.
    #[inline]
    fn keep_next(&self, class: Class, index: u32) -> bool {
        let keep = self.completing.get()
            && self.next.get() == 0
            && (class == Class::Runtime || !self.deques.has_runtime_work());
        if keep {
            self.next.set(index);
        }
        keep
    }

    /// Queues what was kept to run next, because something else comes first.
    #[inline]
    fn release_next(&self) {
        while let Some(next) = self.take_next() {
            self.release(next);
        }
    }

    fn release(&self, kept: Found) {
        match kept {
            Found::Operation(index) => {
                // SAFETY: the kept operation is ready and this worker's.
                let class = unsafe { self.core().table.slot(index).header() }.class;
                self.deques.push(class, index);
            }
            Found::Job(job) => self.deques.push_job(job),
            Found::Node(..) => unreachable!("nodes are not kept"),
        }
        self.core().presence.sleep.announce();
    }

    /// Finds something to do without waiting.
    #[inline]
    fn find(&self) -> Option<Found> {
        self.core().poll_in_passing();
        if self.core().graphs.is_empty() {
            return self.find_queued();
        }
        self.find_among_graphs(|| self.find_queued())
    }

    /// Finds an operation or a job without waiting.
    #[inline]
    fn find_queued(&self) -> Option<Found> {
        let others_turn = self.tick.get() >= OTHERS_EVERY;
        self.tick.set(if others_turn { 0 } else { self.tick.get() + 1 });
        let queues = &self.core().queues;
        let taker = self.taker();
        let Some(next) = self.take_next() else {
            return queues.find(&taker, others_turn, self.random()).map(Found::from);
        };
        if others_turn && let Some(found) = queues.find_here(&taker, true) {
            self.release(next);
            return Some(found.into());
        }
        Some(next)
    }

    /// As whom this worker takes something from the queues.
    #[inline]
    fn taker(&self) -> Taker<'_, Job, impl Fn(u32)> {
        let table = &self.core().table;
        Taker { worker: self.index, own: &self.deques, prefetch: |index| table.prefetch(index) }
    }

    /// What was kept to be run next. If that is an operation and a job, they take turns with the queues.
    #[inline]
    fn take_next(&self) -> Option<Found> {
        match self.next.replace(0) {
            0 => self.next_job.take().map(Found::Job),
            index => Some(Found::Operation(index)),
        }
    }

    /// Finds something to do, sleeping while there is nothing; `None` once the realm stops.
    fn next_found(&self) -> Option<Found> {
        let core = self.core();
        loop {
            if core.is_stopping() {
                return None;
            }
            if self.is_place_wanted() {
                self.lend_place();
            } else if let Some(found) = self.find().or_else(|| self.search()) {
                return Some(found);
            }
        }
    }

    /// Looks for something to do, sleeping while there is nothing; `None` if the realm stops, or somebody wants this worker's place.
    fn search(&self) -> Option<Found> {
        let core = self.core();
        core.presence.sleep.begin_search();
        let found = loop {
            if core.is_stopping() || self.is_place_wanted() {
                break None;
            }
            core.begin_polling();
            if let Some(found) = self.search_while(&mut || !self.is_place_wanted(), || self.find()) {
                break Some(found);
            }
            core.rest();
            core.presence.sleep.fall_asleep(self.index);
            let may_go_on = self.has_work() || core.is_stopping() || self.is_place_wanted();
            if may_go_on || core.idle_found_message() || core.idle_found_work() {
                core.presence.sleep.cancel(self.index);
            } else {
                self.forget_graphs();
                self.park();
            }
        };
        self.end_search();
        found
    }

    /// Looks for work for a few microseconds, while `condition` holds: what comes soon is cheaper to spin for than to sleep for.
    fn search_while(&self, condition: &mut dyn FnMut() -> bool, find: impl Fn() -> Option<Found>) -> Option<Found> {
        let is_polling = self.core().is_polling();
        let rounds = match self.core().is_simulated {
            true => SIMULATED_ROUNDS,
            false if is_polling && self.core().polls_cheaply() => POLLING_ROUNDS,
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
            if self.core().presence.is_crowded() {
                break;
            }
            self.core().take_turn();
            if is_polling && !self.core().is_simulated {
                // What others send is what is mostly waited for, and to look for that alone is done soonest.
                let polls = if self.core().polls_cheaply() { POLLS_A_ROUND } else { 1 };
                (0..polls).any(|_| self.core().poll());
            } else {
                (0..round.min(SEARCH_ROUNDS)).for_each(|_| std::hint::spin_loop());
            }
            if is_polling && round % YIELD_EVERY == YIELD_EVERY - 1 {
                // Whoever shares the core may be the one that we wait for.
                threads::yield_now();
            }
        }
        None
    }

    /// Stops searching, and passes the search on if there is more to be found.
    fn end_search(&self) {
        let core = self.core();
        if core.presence.sleep.end_search() && core.queues.has_work_for_anyone() {
            core.presence.sleep.announce();
        }
        // It may have been woken to go on watch, and found something to do.
        if !core.graphs.is_empty() && !core.is_simulated && core.presence.sleep.is_anybody_asleep() {
            core.presence.sleep.see_to_watch();
        }
    }

    /// Whether there is anything that this worker could do.
    fn has_work(&self) -> bool {
        self.core().queues.has_work_for(self.index) || self.has_ready_node()
    }

    /// Does what was found. Bodies are caught by themselves: what panics here is the realm itself, or a job or graph that must not.
    #[inline]
    fn run(&self, found: Found) {
        let is_elsewhere = self.goes_elsewhere(&found);
        let (kind, depths) = (found.kind(), (self.depth.get(), self.nested.get(), self.completing.get()));
        let run = || match found {
            Found::Operation(index) => self.run_operation(index),
            Found::Job(job) => self.run_jobs(job),
            Found::Node(graph, claimed) => self.serve(&graph, claimed),
        };
        if self.core().unheard(|| format!("{kind}, as worker {} ran it,", self.index), run).is_none() {
            self.depth.set(depths.0);
            self.nested.set(depths.1);
            self.completing.set(depths.2);
        }
        if is_elsewhere {
            self.core().presence.elsewhere[self.index].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Runs a ready operation and settles what follows from its end.
    #[inline]
    fn run_operation(&self, index: u32) {
        let core = self.core();
        let slot = core.table.slot(index);
        let context = WorkerContext { local: self, event: slot.pending_event(index) };
        // What follows from the operation's end, until this goes, is its doing too.
        let activity = core.profiler.as_ref().map(|profiler| begin_activity(profiler, slot, context.event));
        let finish = core.call(index, slot, Some(&context));
        if let Some(activity) = &activity {
            activity.end();
        }
        if let Finish::Done(result) = finish {
            let nested = self.completing.replace(true);
            core.complete(index, slot, result);
            self.completing.set(nested);
            core.after_run(self.index);
        }
    }

    /// Sleeps until woken, or until it wakes up by itself as it was on watch.
    fn park(&self) {
        let core = self.core();
        match &core.profiler {
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
    let &Header { tag, class, .. } = unsafe { slot.header() };
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

/// While what other nodes send is received by whoever looks: some 200 microseconds, since it takes that long to send, be told, and wake up.
const POLLING_ROUNDS: u32 = 2048;

/// The same, where each look is a call of the system, or some.
const CALLING_ROUNDS: u32 = 512;

/// So often the network is looked at before whatever else there may be.
const POLLS_A_ROUND: usize = 4;

/// After so many of these rounds, a few microseconds, whoever shares the core has its turn.
const YIELD_EVERY: u32 = 128;
