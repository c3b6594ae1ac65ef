//! The realm itself: what all threads share, how it is built, and how it ends.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::{Mutex, RwLock};

use crate::barrier::Barriers;
use crate::clock::Clock;
use crate::event::slot::{Kind, Table};
use crate::event::word::Phase;
use crate::event::{After, AlreadyTriggered, Event, EventStatus, UserEvent};
use crate::fault::{Abandoned, Fault, install_panic_hook};
use crate::machine::{Machine, MemoryId, ProcessorId, ProcessorKind};
use crate::memory::MemoryPool;
use crate::operation::{GroupId, Outcome, Spawn, Work};
use crate::record::{Record, Recorder};
use crate::topology::Topology;
use crate::worker::Local;
use crate::worker::helpers::Helpers;
use crate::worker::queue::{OwnDeques, Queues};
use crate::worker::sleep::Sleep;

/// What cannot be asked of a realm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// No worker to run anything.
    #[error("a realm needs at least one worker: the machine has no cpu, or `workers(0)` was asked for")]
    NoWorkers,
    /// The operating system gave no thread.
    #[error("cannot start the thread of worker {worker}: ask for fewer workers, or a smaller stack")]
    Thread {
        /// The worker.
        worker: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The processor has no worker here.
    #[error("{0} has no worker in this realm: only its cpus run operations")]
    UnknownProcessor(ProcessorId),
    /// The group is another realm's.
    #[error("processor group {} does not exist in this realm", .0.0)]
    UnknownGroup(GroupId),
    /// A group without members could run nothing.
    #[error("a processor group needs at least one processor")]
    EmptyGroup,
}

/// How a realm is to be: see [`Realm::builder`].
#[derive(Clone, Debug)]
pub struct RealmBuilder {
    workers: Option<usize>,
    machine: Option<Machine>,
    record: bool,
    stack_size: usize,
    help_depth: u32,
}

impl RealmBuilder {
    /// So many cpus, hence workers, and one memory. Without this and [`machine`](Self::machine): the machine as detected.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// This machine: one worker for each of its cpus. [`workers`](Self::workers) has no effect then.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Whether each operation leaves a [`Record`]. Off by default; off, it costs a branch an operation.
    pub fn record(mut self, record: bool) -> Self {
        self.record = record;
        self
    }

    /// The bytes of each worker's stack; 8 MiB by default. Unused stack costs address space only.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// How many helps ([`Realm::wait`] and [`Realm::help_while`] on a worker) may nest on one stack; 32 by default.
    pub fn help_depth(mut self, depth: u32) -> Self {
        self.help_depth = depth;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// [`RealmError::NoWorkers`] and [`RealmError::Thread`].
    pub fn build(self) -> Result<Realm, RealmError> {
        install_panic_hook();
        let machine = match (self.machine, self.workers) {
            (Some(machine), _) => machine,
            (None, Some(0)) => return Err(RealmError::NoWorkers),
            (None, workers) => detect(workers),
        };
        let processors: Vec<_> = machine.processors_of(ProcessorKind::Cpu).map(|processor| processor.id).collect();
        if processors.is_empty() {
            return Err(RealmError::NoWorkers);
        }
        let own: Vec<_> = processors.iter().map(|_| OwnDeques::new()).collect();
        let core = Arc::new_cyclic(|this| Core {
            this: this.clone(),
            table: Table::new(),
            faults: Mutex::default(),
            queues: Queues::new(&own),
            sleep: Sleep::new(processors.len()),
            helpers: Helpers::new(processors.len()),
            help_depth: self.help_depth,
            pools: MemoryPool::for_machine(&machine),
            machine,
            recorder: self.record.then(|| Recorder::new(processors.len())),
            clock: Clock::start(),
            barriers: Barriers::default(),
            stopping: AtomicBool::new(false),
            live: AtomicUsize::new(processors.len()),
            gate: RwLock::new(()),
            workers: processors.clone(),
        });
        let keeper = Arc::new(Keeper { core: Arc::clone(&core), threads: Mutex::default() });
        for (worker, (processor, own)) in processors.into_iter().zip(own).enumerate() {
            let inner = Realm { core: Arc::clone(&core), keeper: Arc::downgrade(&keeper), kept: None };
            let started = thread::Builder::new()
                .name(format!("realm-{worker}"))
                .stack_size(self.stack_size)
                .spawn(move || Local::new(inner, worker, processor, own).work());
            match started {
                Ok(thread) => keeper.threads.lock().push(thread),
                Err(source) => {
                    // The workers that never started count as ended.
                    let missing = core.workers.len() - worker;
                    core.live.fetch_sub(missing, Ordering::AcqRel);
                    return Err(RealmError::Thread { worker, source });
                }
            }
        }
        Ok(Realm { core, keeper: Arc::downgrade(&keeper), kept: Some(keeper) })
    }
}

/// The share of the detected memory that instances may take.
const INSTANCE_SHARE: f64 = 0.75;

fn detect(workers: Option<usize>) -> Machine {
    let topology = Topology::detect();
    match workers {
        None => topology.machine(INSTANCE_SHARE),
        Some(workers) => Machine::uniform(workers as u32, (topology.memory() as f64 * INSTANCE_SHARE) as u64),
    }
}

/// What all threads of a realm share.
pub(crate) struct Core {
    this: Weak<Core>,
    pub(crate) table: Table,
    /// The faults of poisoned events, and those that have reached pending operations, by slot.
    pub(crate) faults: Mutex<HashMap<u32, Arc<Fault>>>,
    pub(crate) queues: Queues,
    pub(crate) sleep: Sleep,
    pub(crate) helpers: Helpers,
    /// How many helps may nest on one stack.
    pub(crate) help_depth: u32,
    pub(crate) machine: Machine,
    pub(crate) pools: Vec<Arc<MemoryPool>>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) clock: Clock,
    pub(crate) barriers: Barriers,
    stopping: AtomicBool,
    /// Workers whose threads have not ended.
    live: AtomicUsize,
    /// Held for reading by those who touch slots without a handle that keeps the realm up; for writing while the last
    /// worker begins to abandon what is pending.
    pub(crate) gate: RwLock<()>,
    /// The processor of each worker.
    workers: Vec<ProcessorId>,
}

impl Core {
    pub(crate) fn weak(&self) -> Weak<Core> {
        self.this.clone()
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn worker_of(&self, processor: ProcessorId) -> Result<usize, RealmError> {
        let guess = processor.0 as usize;
        if self.workers.get(guess) == Some(&processor) {
            return Ok(guess);
        }
        let position = self.workers.iter().position(|&own| own == processor);
        position.ok_or(RealmError::UnknownProcessor(processor))
    }

    /// An event that has triggered, poisoned.
    pub(crate) fn poisoned_event(&self, fault: impl Into<Arc<Fault>>) -> Event {
        let user = self.user_event();
        self.poison(user, fault.into()).expect("a new user event has not triggered");
        user.event()
    }

    pub(crate) fn user_event(&self) -> UserEvent {
        let index = self.take_slot();
        let slot = self.table.slot(index);
        // SAFETY: the slot was just taken.
        unsafe { slot.header_mut() }.kind = Kind::Event;
        UserEvent(slot.pending_event(index))
    }

    pub(crate) fn trigger(&self, user: UserEvent) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.table.slot(event.slot());
        let head = slot.word.claim_and_trigger(event.generation(), false).ok_or(AlreadyTriggered { event })?;
        self.after_trigger(event.slot(), event.generation(), false, head);
        Ok(())
    }

    pub(crate) fn poison(&self, user: UserEvent, fault: Arc<Fault>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.table.slot(event.slot());
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        self.complete(event.slot(), slot, Err(fault));
        Ok(())
    }

    pub(crate) fn trigger_after(&self, user: UserEvent, after: After<'_>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.table.slot(event.slot());
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        if let Some(ready) = self.arm(event.slot(), slot, after) {
            self.trigger_slot(event.slot(), slot, ready.poisoned);
        }
        Ok(())
    }

    pub(crate) fn status(&self, event: Event) -> EventStatus {
        match self.phase(event) {
            Phase::Pending => EventStatus::Pending,
            Phase::Triggered => EventStatus::Triggered,
            Phase::Poisoned => EventStatus::Poisoned(self.fault_of(event.slot())),
        }
    }

    /// The result of an event that has triggered.
    pub(crate) fn result(&self, event: Event) -> Option<Result<(), Arc<Fault>>> {
        match self.status(event) {
            EventStatus::Pending => None,
            EventStatus::Triggered => Some(Ok(())),
            EventStatus::Poisoned(fault) => Some(Err(fault)),
        }
    }

    /// A worker's thread is about to end; the last one abandons what is pending.
    pub(crate) fn worker_ended(&self) {
        if self.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.gate.write());
            self.abandon_pending();
        }
    }

    /// Drops the bodies that never ran, telling those who wait for them.
    fn abandon_pending(&self) {
        let fault = Arc::new(Fault::new(Abandoned));
        for (_, slot) in self.table.all() {
            // SAFETY: the workers are gone, no handle is left, and who has none stops at the gate: nobody else uses slots.
            let header = unsafe { slot.header_mut() };
            header.record = None;
            let kind = std::mem::take(&mut header.kind);
            if let (Kind::Inline | Kind::Queued, Some(table)) = (kind, header.body.take()) {
                // SAFETY: the slot's kind says that its body is there; the kind was taken away just now.
                let abandon = || unsafe { (table.abandon)(slot.body(), &fault) };
                // A destructor that panics has nobody to tell.
                let _ = crate::fault::catch(abandon);
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // What was spawned through a borrowed handle after the workers' end.
        self.abandon_pending();
    }
}

/// Stops the realm when the last user handle goes away.
pub(crate) struct Keeper {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.core.stopping.store(true, Ordering::SeqCst);
        self.core.sleep.wake_all();
        if self.core.local().is_some() {
            // The last handle was dropped by a body: its worker cannot wait for itself.
            return;
        }
        for thread in self.threads.get_mut().drain(..) {
            // A worker catches its bodies' panics; one of its own was printed by the panic hook.
            let _ = thread.join();
        }
    }
}

/// A machine at work: its events, operations and workers. Clones are handles to the same realm.
///
/// When the last handle goes away the realm stops: bodies that are running finish, the workers' threads are joined
/// (unless a worker itself drops the last handle), bodies that have not begun are dropped, and callbacks, futures and
/// waits that depend on them are given the fault [`Abandoned`]. Handles that a pending body owns count, so a body should rather use its
/// [`WorkerContext::realm`](crate::WorkerContext::realm).
pub struct Realm {
    core: Arc<Core>,
    keeper: Weak<Keeper>,
    /// There in handles that keep the realm up.
    kept: Option<Arc<Keeper>>,
}

impl Clone for Realm {
    /// A handle that keeps the realm up, unless it is going down already.
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), keeper: Weak::clone(&self.keeper), kept: self.keeper.upgrade() }
    }
}

/// A handle that does not keep the realm up, nor its tables in memory.
pub(crate) struct WeakRealm {
    core: Weak<Core>,
    keeper: Weak<Keeper>,
}

impl WeakRealm {
    /// A handle that may be used, if the realm is up, or going down with this thread among its workers.
    pub(crate) fn upgrade(&self) -> Option<Realm> {
        let (core, kept) = (self.core.upgrade()?, self.keeper.upgrade());
        let usable = kept.is_some() || core.local().is_some();
        usable.then(|| Realm { core, keeper: Weak::clone(&self.keeper), kept })
    }
}

impl fmt::Debug for Realm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Realm")
            .field("workers", &self.core.workers.len())
            .field("keeps_it_up", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

impl Realm {
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
        RealmBuilder { workers: None, machine: None, record: false, stack_size: 8 << 20, help_depth: 32 }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// For what the realm itself holds on to: a handle there would keep it up for ever.
    pub(crate) fn downgrade(&self) -> WeakRealm {
        WeakRealm { core: Arc::downgrade(&self.core), keeper: Weak::clone(&self.keeper) }
    }

    /// The machine that the realm runs.
    pub fn machine(&self) -> &Machine {
        &self.core.machine
    }

    /// What accounts for the bytes of a memory of the [machine](Self::machine).
    ///
    /// # Panics
    /// If the machine has no such memory.
    pub fn memory_pool(&self, memory: MemoryId) -> &Arc<MemoryPool> {
        &self.core.pools[memory.0 as usize]
    }

    /// The processors that have workers.
    pub fn processors(&self) -> &[ProcessorId] {
        &self.core.workers
    }

    /// The processor whose worker this thread is, if it is one of this realm's.
    pub fn current_processor(&self) -> Option<ProcessorId> {
        self.core.local().map(|local| local.processor)
    }

    /// A group of processors, for [`Target::Group`](crate::Target::Group). Groups live as long as the realm.
    ///
    /// # Errors
    /// [`RealmError::UnknownProcessor`] and [`RealmError::EmptyGroup`].
    pub fn processor_group(&self, members: &[ProcessorId]) -> Result<GroupId, RealmError> {
        let workers: Result<Box<[_]>, _> = members.iter().map(|&member| self.core.worker_of(member)).collect();
        let workers = workers?;
        if workers.is_empty() { Err(RealmError::EmptyGroup) } else { Ok(self.core.queues.add_group(workers)) }
    }

    /// An event that the caller will trigger.
    pub fn user_event(&self) -> UserEvent {
        self.core.user_event()
    }

    /// Triggers a user event.
    ///
    /// # Panics
    /// If it was triggered or handed to [`trigger_after`](Self::trigger_after) before: see
    /// [`try_trigger`](Self::try_trigger).
    #[track_caller]
    pub fn trigger(&self, user: UserEvent) {
        if let Err(error) = self.core.trigger(user) {
            panic!("{error}");
        }
    }

    /// Triggers a user event that others may have triggered before.
    ///
    /// # Errors
    /// [`AlreadyTriggered`].
    pub fn try_trigger(&self, user: UserEvent) -> Result<(), AlreadyTriggered> {
        self.core.trigger(user)
    }

    /// Has a user event trigger once `after` has; poison of what it needs spreads to it.
    ///
    /// # Panics
    /// As [`trigger`](Self::trigger).
    #[track_caller]
    pub fn trigger_after<'a>(&self, user: UserEvent, after: impl Into<After<'a>>) {
        if let Err(error) = self.core.trigger_after(user, after.into()) {
            panic!("{error}");
        }
    }

    /// Triggers a user event as poisoned.
    ///
    /// # Panics
    /// As [`trigger`](Self::trigger).
    #[track_caller]
    pub fn poison(&self, user: UserEvent, fault: impl Into<Arc<Fault>>) {
        if let Err(error) = self.core.poison(user, fault.into()) {
            panic!("{error}");
        }
    }

    /// Poisons a user event that others may have triggered before.
    ///
    /// # Errors
    /// [`AlreadyTriggered`].
    pub fn try_poison(&self, user: UserEvent, fault: impl Into<Arc<Fault>>) -> Result<(), AlreadyTriggered> {
        self.core.poison(user, fault.into())
    }

    /// One event for many: it triggers when all have, poisoned if a needed one is. Makes nothing when nothing, or only one needed
    /// event, is left to wait for.
    pub fn merge<'a>(&self, after: impl Into<After<'a>>) -> Event {
        let remaining = self.core.remaining(after.into());
        self.core.merge_remaining(remaining)
    }

    /// Whether the event has triggered, poisoned or not. One load.
    #[inline]
    pub fn has_triggered(&self, event: Event) -> bool {
        self.core.phase(event) != Phase::Pending
    }

    /// How the event stands.
    pub fn status(&self, event: Event) -> EventStatus {
        self.core.status(event)
    }

    /// Waits until the event triggers. A thread of the caller's own sleeps; a worker runs other operations meanwhile, so
    /// what it waits for must not depend on a body further down its own stack.
    ///
    /// # Errors
    /// The event's fault if it is poisoned; [`HelpTooDeep`](crate::worker::HelpTooDeep) on a worker that waits within waits
    /// within waits: such a body should be async; [`Abandoned`] if the realm stops first.
    ///
    /// # Panics
    /// Inside a callback of [`when`](Self::when), which must not wait.
    pub fn wait(&self, event: Event) -> Result<(), Arc<Fault>> {
        self.core.wait(event)
    }

    /// Runs other operations as long as `condition` holds, if this thread is a worker; otherwise sleeps. Gives false at
    /// once, with the condition still true, when helps are nested too deeply to help again (or in a callback of
    /// [`when`](Self::when)), and when the realm stops.
    ///
    /// The condition is evaluated after each operation that ends; when something else changes it, that must call
    /// [`nudge`](Self::nudge).
    pub fn help_while(&self, condition: impl FnMut() -> bool) -> bool {
        self.core.help_while(condition)
    }

    /// Has those in [`help_while`](Self::help_while) look at their conditions again.
    pub fn nudge(&self) {
        self.core.nudge();
    }

    /// Calls `callback` after these, on the thread that triggers the last of them, or at once on this one. It gets the fault of
    /// a poisoned precondition, must be short, and must not wait.
    pub fn when<'a, F>(&self, after: impl Into<After<'a>>, callback: F)
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.core.when(after.into(), callback);
    }

    /// [`when`](Self::when), giving an event for the callback's return. It is poisoned as the preconditions are, or by a
    /// panic of the callback.
    pub fn when_event<'a, F>(&self, after: impl Into<After<'a>>, callback: F) -> Event
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.core.when(after.into(), callback)
    }

    /// Waits for the event asynchronously: may be polled anywhere.
    pub fn event_future(
        &self,
        event: Event,
    ) -> impl Future<Output = Result<(), Arc<Fault>>> + Send + Unpin + 'static + use<> {
        crate::event::future::EventFuture::new(Arc::clone(&self.core), event)
    }

    /// Runs `work` on a worker once its preconditions have triggered, and gives the event of its end.
    ///
    /// If a needed precondition is poisoned, [`Work::poisoned`] is called instead; an unknown target poisons the event at once.
    pub fn spawn<'a, W: Work>(&self, spawn: impl Into<Spawn<'a>>, work: W) -> Event {
        self.core.spawn(spawn.into(), work)
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
        self.core.spawn_async(spawn.into(), future)
    }

    /// The records of the operations that have ended since the last call, in no particular order; none unless the realm was built to
    /// [`record`](RealmBuilder::record).
    pub fn take_records(&self) -> Vec<Record> {
        self.core.recorder.as_ref().map_or_else(Vec::new, Recorder::take)
    }
}
