//! The realm as its users see it. `builder` makes one, `shared` is what its handles share, and the other files are what
//! users do with barriers, graphs, instances, reservations and transfers.

use std::fmt;
use std::future::Future;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::events::{After, AlreadyTriggered, Event, EventStatus, UserEvent};
use crate::fault::Fault;
use crate::machine::{Machine, MemoryId, ProcessorId};
use crate::memory::MemoryPool;
use crate::net::Polled;
use crate::operation::breakdown::Whom;
use crate::operation::job::{Job, JobHead, JobTable};
use crate::operation::operations::Operations;
use crate::operation::{BreakdownWatch, EventFuture, GroupId, Outcome, RealmError, Spawn, Work, WorkerContext};
use crate::profile::Profiler;
use crate::worker::{Signal, Workers};
use shared::{Keeper, SharedRealm};

mod barriers;
mod builder;
mod graphs;
mod instances;
mod reservations;
mod shared;
mod transfers;

pub use builder::RealmBuilder;

/// A machine at work: its events, operations and workers. Clones are handles to the same realm.
///
/// When the last handle goes away the realm stops: bodies that are running finish, the workers' threads are joined
/// (unless a worker itself drops the last handle), bodies that have not begun are dropped, and callbacks, futures and
/// waits that depend on them are given the fault [`Abandoned`](crate::fault::Abandoned). Handles that a pending body
/// owns count, so a body should rather use its [`WorkerContext::realm`](crate::WorkerContext::realm); and one that has
/// broken down is ended by its owner: see [`shut_down`](Self::shut_down).
pub struct Realm {
    /// The operations of `shared`, one step nearer.
    operations: Arc<Operations>,
    shared: Arc<SharedRealm>,
    keeper: Weak<Keeper>,
    /// There in handles that keep the realm up.
    kept: Option<Arc<Keeper>>,
}

impl Clone for Realm {
    /// A handle that keeps the realm up, unless it is going down already.
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), Weak::clone(&self.keeper), self.keeper.upgrade())
    }
}

/// A handle that does not keep the realm up, nor its tables in memory.
pub(crate) struct WeakRealm {
    shared: Weak<SharedRealm>,
    keeper: Weak<Keeper>,
}

impl WeakRealm {
    /// A handle that may be used, if the realm is up, or going down with this thread among its workers.
    pub(crate) fn upgrade(&self) -> Option<Realm> {
        let (shared, kept) = (self.shared.upgrade()?, self.keeper.upgrade());
        let usable = kept.is_some() || shared.operations.local().is_some();
        usable.then(|| Realm::new(shared, Weak::clone(&self.keeper), kept))
    }
}

impl fmt::Debug for Realm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Realm")
            .field("workers", &self.operations().presence.processors().len())
            .field("keeps_it_up", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

impl Realm {
    fn new(shared: Arc<SharedRealm>, keeper: Weak<Keeper>, kept: Option<Arc<Keeper>>) -> Self {
        Self { operations: Arc::clone(&shared.operations), shared, keeper, kept }
    }

    /// Describes a realm to be built: by default, this machine.
    ///
    /// ```
    /// use maniple_realm::Realm;
    ///
    /// let realm = Realm::builder().workers(2).build()?;
    /// assert_eq!(realm.processors().len(), 2);
    /// # Ok::<(), maniple_realm::RealmError>(())
    /// ```
    pub fn builder() -> RealmBuilder {
        RealmBuilder::new()
    }

    #[inline]
    fn operations(&self) -> &Operations {
        &self.operations
    }

    #[inline]
    fn workers(&self) -> &Workers {
        &self.shared.workers
    }

    /// A handle that does not keep the realm up, for a holder that may be the last to let go of it in a thread of the
    /// realm's own. Clones of it do.
    #[must_use]
    pub fn visitor(&self) -> Self {
        Self::new(Arc::clone(&self.shared), Weak::clone(&self.keeper), None)
    }

    /// For what the realm itself holds on to: a handle there would keep it up for ever.
    pub(crate) fn downgrade(&self) -> WeakRealm {
        WeakRealm { shared: Arc::downgrade(&self.shared), keeper: Weak::clone(&self.keeper) }
    }

    /// The machine that the realm runs.
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    /// The pool that accounts for the bytes of a memory of the [machine](Self::machine).
    ///
    /// # Panics
    /// If the machine has no such memory.
    pub fn memory_pool(&self, memory: MemoryId) -> &Arc<MemoryPool> {
        &self.shared.pools[memory.0 as usize]
    }

    /// In a [simulation](crate::simulation), lets others have a turn: for places where a program begins something, so
    /// that others may do so before it. Nothing otherwise, and in a callback. The caller must hold no lock that others
    /// take.
    #[inline]
    pub fn take_turn(&self) {
        self.operations().take_turn();
    }

    /// The processors that have workers.
    pub fn processors(&self) -> &[ProcessorId] {
        self.operations().presence.processors()
    }

    /// The processor whose worker had better run what is meant for another one and may run anywhere, as nodes of a
    /// [graph](crate::graph) may. With more workers than the system has cores for, some stand for their neighbours:
    /// else every worker would wait in turn for one that has no core.
    pub fn stand_in(&self, processor: ProcessorId) -> ProcessorId {
        self.operations().presence.stand_in(processor)
    }

    /// The processor whose worker this thread is, if it is one of this realm's.
    pub fn current_processor(&self) -> Option<ProcessorId> {
        self.operations().local().map(|local| local.worker.processor)
    }

    /// A group of processors, for [`Target::Group`](crate::Target::Group). Groups live as long as the realm, and
    /// workers go through all of them whenever they look for work that has a rank: make each once.
    ///
    /// # Errors
    /// [`RealmError::UnknownProcessor`] and [`RealmError::EmptyGroup`].
    pub fn processor_group(&self, members: &[ProcessorId]) -> Result<GroupId, RealmError> {
        let workers: Result<Box<[_]>, _> = members
            .iter()
            .map(|&member| self.operations().presence.worker_of(member).ok_or(RealmError::UnknownProcessor(member)))
            .collect();
        let workers = workers?;
        if workers.is_empty() {
            Err(RealmError::EmptyGroup)
        } else {
            Ok(self.operations().queues.add_group(self.operations().id, workers))
        }
    }

    /// An event that the caller will trigger.
    pub fn user_event(&self) -> UserEvent {
        self.operations().user_event()
    }

    /// Triggers a user event.
    ///
    /// # Panics
    /// If it was triggered or handed to [`trigger_after`](Self::trigger_after) before: see
    /// [`try_trigger`](Self::try_trigger).
    #[track_caller]
    pub fn trigger(&self, user: UserEvent) {
        self.must_be_first(self.operations().trigger(user));
    }

    /// A user event is triggered once, unless the realm has done it when it was [shut down](Self::shut_down).
    #[track_caller]
    fn must_be_first(&self, triggered: Result<(), AlreadyTriggered>) {
        if let Err(error) = triggered
            && self.operations().discarding().is_none()
        {
            panic!("{error}");
        }
    }

    /// Triggers a user event that others may have triggered before.
    ///
    /// # Errors
    /// [`AlreadyTriggered`].
    pub fn try_trigger(&self, user: UserEvent) -> Result<(), AlreadyTriggered> {
        self.operations().trigger(user)
    }

    /// Has a user event trigger once `after` has; poison of what it needs spreads to it.
    ///
    /// # Panics
    /// As [`trigger`](Self::trigger).
    #[track_caller]
    pub fn trigger_after<'a>(&self, user: UserEvent, after: impl Into<After<'a>>) {
        self.must_be_first(self.operations().trigger_after(user, after.into()));
    }

    /// Triggers a user event as poisoned.
    ///
    /// # Panics
    /// As [`trigger`](Self::trigger).
    #[track_caller]
    pub fn poison(&self, user: UserEvent, fault: impl Into<Arc<Fault>>) {
        self.must_be_first(self.operations().poison(user, fault.into()));
    }

    /// Poisons a user event that others may have triggered before.
    ///
    /// # Errors
    /// [`AlreadyTriggered`].
    pub fn try_poison(&self, user: UserEvent, fault: impl Into<Arc<Fault>>) -> Result<(), AlreadyTriggered> {
        self.operations().poison(user, fault.into())
    }

    /// Whether both are handles to the same realm. Events of one mean nothing to another.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// One event for many: it triggers when all have, poisoned if a needed one is. Makes nothing when nothing, or only
    /// one needed event, is left to wait for.
    pub fn merge<'a>(&self, after: impl Into<After<'a>>) -> Event {
        let after = after.into();
        let event = self.operations().merge_remaining(self.operations().remaining(after));
        if let Some(profiler) = &self.operations().profiler
            && !after.needs.contains(&event)
        {
            profiler.came_after(event.into(), after.names());
        }
        event
    }

    /// Whether the event has triggered, poisoned or not. One load.
    #[inline]
    pub fn has_triggered(&self, event: Event) -> bool {
        !self.operations().is_pending(event)
    }

    /// How the event stands. Of an event that was poisoned before the last 131,072 others, it is known for ever that it
    /// was, but not why: its fault is [`Forgotten`](crate::fault::Forgotten).
    pub fn status(&self, event: Event) -> EventStatus {
        self.operations().status(event)
    }

    /// Waits until the event triggers. A thread of the caller's own sleeps; a worker runs other operations meanwhile,
    /// so what it waits for must not depend on a body further down its own stack. While graphs run, and there are not
    /// more [cores](RealmBuilder::cores) than workers, a thread of the caller's own runs nodes of graphs and the
    /// runtime's work meanwhile, as a worker, if it has a stack as large as a worker's, or nearly: such nodes must not
    /// wait for what it would do after the wait.
    ///
    /// # Errors
    /// The event's fault if it is poisoned; [`HelpTooDeep`](crate::worker::HelpTooDeep) on a worker that waits within
    /// waits within waits: such a body should be async; [`Abandoned`](crate::fault::Abandoned) if the realm stops
    /// first; a [`Breakdown`](crate::Breakdown) if the realm has broken down and the event has not triggered.
    ///
    /// # Panics
    /// Inside a callback of [`when`](Self::when), which must not wait.
    pub fn wait(&self, event: Event) -> Result<(), Arc<Fault>> {
        self.workers().wait(event)
    }

    /// Whether this thread may wait for something: it is in no callback of [`when`](Self::when).
    #[must_use]
    pub fn may_wait() -> bool {
        !crate::operation::settle::settling()
    }

    /// As [`wait`](Self::wait), for a caller that would rather wait but need not. A worker that has begun this body
    /// while another one below it waits runs operations that are ready, but does not sleep: what it waits for may
    /// depend on the body below. Returns whether the event has triggered.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_if_safe(&self, event: Event) -> bool {
        self.workers().wait_if_safe(event)
    }

    /// Runs other operations as long as `condition` holds, if this thread is a worker; otherwise sleeps. Gives false at
    /// once, with the condition still true, when helps are nested too deeply to help again (or in a callback of
    /// [`when`](Self::when)), and when the realm stops or [breaks down](crate::Breakdown).
    ///
    /// The condition is evaluated after each operation that ends; when something else changes it, that must call
    /// [`nudge`](Self::nudge).
    pub fn help_while(&self, condition: impl FnMut() -> bool) -> bool {
        self.workers().help_while(condition)
    }

    /// Sets the function that a worker asks when every worker is out of work and about to sleep. True means that work
    /// was found (spawned, or an event triggered), and the workers look again. Called on a worker's thread, by several
    /// at a time now and then; must not wait. What the function owns must not include a handle that keeps the realm up.
    ///
    /// A thread that waits for what only running operations can bring, such as room in a memory, learns here that none
    /// will.
    ///
    /// # Panics
    /// If it was set before.
    pub fn on_idle(&self, ask: impl Fn() -> bool + Send + Sync + 'static) {
        assert!(self.workers().idle.set(Box::new(ask)).is_ok(), "`on_idle` is set once");
    }

    /// Sets what every worker calls before it sleeps, and when it ends: to let go of what its thread keeps for later
    /// work, some of which may keep the realm up.
    ///
    /// # Panics
    /// If it was set before.
    pub fn on_rest(&self, rest: fn()) {
        assert!(self.workers().rest.set(rest).is_ok(), "`on_rest` is set once");
    }

    /// Has the workers look at what other nodes send whenever they look for work, so that handlers run on their threads
    /// too. When all of them are about to sleep, they leave that to the transport's own thread.
    ///
    /// # Panics
    /// If it was set before.
    pub fn poll(&self, polled: Arc<dyn Polled>) {
        assert!(self.workers().polled.set(polled).is_ok(), "`poll` is set once");
    }

    /// The object of the oldest job of some worker's queue, or of those for any, if it is of this kind. The caller runs
    /// it, or queues it again, as does the function [`JobTable::run`] with the object that it is given.
    #[must_use]
    pub fn steal_job(&self, table: &'static JobTable) -> Option<NonNull<JobHead>> {
        self.operations().steal_job(table)
    }

    /// How many jobs wait in queues at this moment, more or less.
    #[must_use]
    pub fn queued_jobs(&self) -> usize {
        self.operations().queues.jobs()
    }

    /// Whether anything is queued at this moment, more or less, that any worker may run.
    #[must_use]
    pub fn has_queued_work(&self) -> bool {
        self.operations().queues.has_work_for_anyone()
    }

    /// Runs jobs of this worker's own, on top of the caller, until `is_done`: gives whether it is. Stops when there are
    /// none left, when there is other work that should come first, or with more than a quarter of the stack in use. On
    /// a thread that is no worker it does nothing.
    #[inline]
    pub fn help_with_own_jobs(&self, is_done: impl Fn() -> bool) -> bool {
        self.workers().help_with_own_jobs(is_done)
    }

    /// Calls `body` with 0, 1, ..., `count` - 1, each once, and returns when all calls have. On a worker, others that
    /// have nothing else to do take part: calls may be at the same time, and on other threads; they begin in this
    /// order. Else, and with one worker, they are made one after the other, on this thread.
    ///
    /// The caller makes all calls that no other thread has begun, and only then waits for those, without running
    /// anything else: whatever the others do, that ends. While they are busy, it costs an allocation and two atomic
    /// additions a call. `body` may itself do this.
    ///
    /// # Panics
    /// If a call does. Calls that have not begun are then not made, and those that have are waited for. Of several that
    /// panic the panic is that of the lowest number, as if the calls had been made one after the other.
    pub fn for_each(&self, count: usize, body: impl Fn(usize) + Sync) {
        self.workers().for_each(count, &body);
    }

    /// Waits until all workers are out of work: then none holds what a body that has ended had. Nothing on a worker,
    /// which is not.
    pub fn wait_until_idle(&self) {
        if self.operations().local().is_none() {
            self.workers().wait_until_all_sleep();
        }
    }

    /// Has those in [`help_while`](Self::help_while) look at their conditions again.
    pub fn nudge(&self) {
        self.workers().nudge();
    }

    /// Calls `callback` after these, on the thread that triggers the last of them, or at once on this one. It gets the
    /// fault of a poisoned precondition, must be short, and must not wait. If it panics, the realm [breaks
    /// down](crate::Breakdown), as no thread would hear of that: see [`when_event`](Self::when_event).
    pub fn when<'a, F>(&self, after: impl Into<After<'a>>, callback: F)
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.operations().when_unheard(after.into(), callback);
    }

    /// [`when`](Self::when), giving an event for the callback's return. It is poisoned as the preconditions are, or by
    /// a panic of the callback.
    pub fn when_event<'a, F>(&self, after: impl Into<After<'a>>, callback: F) -> Event
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.operations().when(after.into(), callback)
    }

    /// Does, on this thread, something whose panic would be reported to no thread: then the realm [breaks
    /// down](crate::Breakdown), and `during` says in the fault what was being done, as the subject of "panicked". None
    /// if it has panicked.
    #[inline]
    pub fn unheard<R>(&self, during: impl FnOnce() -> String, body: impl FnOnce() -> R) -> Option<R> {
        self.operations().unheard(during, body)
    }

    /// Something has gone wrong that would be reported to no thread: the realm [breaks down](crate::Breakdown).
    /// `during` says what was being done, as the subject of "panicked".
    pub fn break_down(&self, during: impl Into<String>, fault: &Fault) {
        self.operations().break_down(during.into(), fault);
    }

    /// The most operations and user events that were pending at a time, or some dozens more for each thread that makes
    /// any.
    #[must_use]
    pub fn most_pending(&self) -> usize {
        self.operations().table.handed_out()
    }

    /// Ends all waits, for a reason that becomes every wait's fault: the events that are waited for will never trigger.
    /// The realm ends as when it [breaks down](crate::Breakdown).
    pub fn give_up(&self, fault: Fault) {
        self.operations().give_up(fault);
    }

    /// Ends a realm that has broken down, or has been [given up](Self::give_up), even if other handles to it are left;
    /// does nothing if it has not, or on a worker, which could not wait for itself. For the realm's owner, once no
    /// thread but the realm's own would trigger events: workers are idle, and nothing is received any more.
    ///
    /// The events that such a realm waits for never come, and bodies that are pending may own handles that would keep
    /// it up for ever. So first all that is pending is discarded: user events that are not triggered yet are poisoned
    /// with the reason of the breakdown, and so in turn are the operations that wait for them; bodies are told that
    /// instead of being run ([`Work::poisoned`]), futures are dropped. Then the workers' threads are joined. Handles
    /// that are left may be used and dropped as those of a realm that goes down; a thread that triggers a user event
    /// that was poisoned here is not blamed for it.
    pub fn shut_down(&self) {
        let broken = self.breakdown().filter(|_| self.operations().local().is_none());
        if let (Some(why), Some(keeper)) = (broken, self.keeper.upgrade()) {
            keeper.shut_down(why);
        }
    }

    /// Why the realm has broken down, if it has: a [`Breakdown`](crate::Breakdown), unless it was [given
    /// up](Self::give_up).
    #[inline]
    pub fn breakdown(&self) -> Option<&Arc<Fault>> {
        self.operations().breakdowns.first()
    }

    /// Whether this process is a copy, made by `fork`, of the one in which the realm was built. The copy has none of
    /// its workers, so that nothing runs there and no wait ends. Known on Linux alone.
    #[inline]
    pub fn is_forked(&self) -> bool {
        self.shared.origin.is_elsewhere()
    }

    /// Has a waker woken when the realm breaks down, until the watch is dropped. A caller that polls a future itself,
    /// in a thread of its own, learns so that it may never be ready.
    ///
    /// # Errors
    /// The fault, if the realm has broken down.
    pub fn watch_for_breakdown(&self, waker: &Waker) -> Result<BreakdownWatch<'_>, Arc<Fault>> {
        self.operations().breakdowns.watch(Whom::Future(waker.clone()))
    }

    /// Waits for the event asynchronously: may be polled anywhere.
    pub fn event_future(&self, event: Event) -> EventFuture {
        EventFuture::new(Arc::clone(&self.shared.operations), event)
    }

    /// Runs `work` on a worker once its preconditions have triggered, and gives the event of its end.
    ///
    /// If a needed precondition is poisoned, [`Work::poisoned`] is called instead; an unknown target poisons the event
    /// at once.
    pub fn spawn<'a, W: Work>(&self, spawn: impl Into<Spawn<'a>>, work: W) -> Event {
        self.operations().spawn(spawn.into(), work)
    }

    /// Queues a job: on a worker with that worker, which runs the last one first, while others steal the oldest;
    /// elsewhere for any worker. If the realm goes down before the job was run, it is dropped.
    #[inline]
    pub fn queue_job(&self, job: Job) {
        self.operations().queue_job(job);
    }

    /// The number of the worker that this thread is, from 0, if it is one of this realm's.
    #[inline]
    pub fn current_worker(&self) -> Option<usize> {
        self.operations().local().map(|local| local.worker.index)
    }

    /// Polls `future` on workers once its preconditions have triggered, and gives the event of its end. While the
    /// future is pending no worker is held.
    ///
    /// If a needed precondition is poisoned, the future is dropped without being polled.
    pub fn spawn_async<'a, F>(&self, spawn: impl Into<Spawn<'a>>, future: F) -> Event
    where
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        self.operations().spawn_async(spawn.into(), future)
    }

    /// The profiler that records the realm, if it was built with one.
    #[inline]
    pub fn profiler(&self) -> Option<&Profiler> {
        self.operations().profiler.as_ref()
    }

    /// A signal that has not been given.
    #[must_use]
    pub fn signal(&self) -> Signal {
        Signal::new(&self.shared.workers)
    }

    /// While graphs run, a thread that is no worker and would have to wait as long as `holds` may do a worker's work,
    /// as in [`wait`](Self::wait); and when there is none, only until it has better to do. Gives whether it may go on:
    /// else it has to wait otherwise. Never sleeps.
    pub fn work_while(&self, holds: impl Fn() -> bool, has_better_to_do: impl Fn() -> bool) -> bool {
        self.workers().work_while(&holds, &has_better_to_do)
    }

    /// Waits until a signal of this realm is given, and takes it: one thread at a time, which is no worker. As in
    /// [`wait`](Self::wait), it may do a worker's work meanwhile. It ends by nothing else: see
    /// [`watch_for_breakdown`](Self::watch_for_breakdown).
    ///
    /// # Panics
    /// Inside a callback of [`when`](Self::when), which must not wait.
    pub fn wait_for(&self, signal: &Signal) {
        self.workers().wait_for(signal);
    }

    /// The same for so long at most, and without doing a worker's work; gives whether the signal was given. In a
    /// [simulation](crate::simulation) the time is over when no other thread can go on.
    ///
    /// # Panics
    /// As [`wait_for`](Self::wait_for).
    pub fn wait_for_at_most(&self, signal: &Signal, time: Duration) -> bool {
        self.workers().wait_for_at_most(signal, time)
    }
}

impl WorkerContext<'_> {
    /// The realm. The reference does not keep it from shutting down; a clone does.
    pub fn realm(&self) -> &Realm {
        // SAFETY: `RealmBuilder::build`, which alone makes workers, gives each a pointer to a handle that outlives it.
        unsafe { self.worker.realm.cast().as_ref() }
    }
}
