//! The core of a runtime, which all its contexts share.

mod attachments;
pub(crate) mod block_on;
mod fork_counts;
mod fork_decisions;
mod groups;
mod mail;
mod open_files;
mod ready;
mod release;
mod top_levels;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use maniple_mapper::Mapper;
use maniple_realm::clock::Clock;
use maniple_realm::io::IoThreads;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId};
use maniple_realm::operation::with_context;
use maniple_realm::profile::Profiler;
use maniple_realm::threads::nap;
use maniple_realm::{Class, Event, Realm, Spawn, WorkerContext};
use maniple_region::Forest;

use crate::instances::store::Store;
use crate::mapping::{MapperSeat, Whom};
use crate::migration::{Executor, Migration};
use crate::operation::deletions::Log;
use crate::operation::lifecycle::MapperNumber;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};
use crate::support::profiling::MAPPING;

pub(crate) use self::attachments::{Claim, Claims};
pub(crate) use self::fork_counts::ForkCounts;
pub(crate) use self::fork_decisions::ForkDecisions;
use self::groups::Groups;
use self::mail::{Inbox, Unheard};
pub(crate) use self::open_files::{
    ArrayPart, Earlier, Extent, FileClaim, FileName, FileUse, FileUseKind, OpenFiles, number_of,
};
use self::ready::ReadyQueue;
pub(crate) use self::release::is_used_once;
use self::top_levels::{TopLevelRuns, TopLevels};

/// How far a program may run ahead, and whether it is traced.
pub(crate) struct Limits {
    /// The most operations of one task in flight.
    pub(crate) window: usize,
    pub(crate) tracing: bool,
    pub(crate) automatic_tracing: bool,
}

/// The mappers for the tasks of one processor, and their decisions about forking.
struct PerProcessor {
    /// By the numbers of mappers.
    desks: Vec<Desk>,
    forks: ForkDecisions,
}

/// A mapper object, and the operations that it is to choose from.
struct Desk {
    seat: MapperSeat,
    ready: ReadyQueue,
    inbox: Inbox,
}

impl PerProcessor {
    fn new(seats: Vec<MapperSeat>) -> Self {
        let desk = |seat| Desk { seat, ready: ReadyQueue::default(), inbox: Inbox::default() };
        Self { desks: seats.into_iter().map(desk).collect(), forks: ForkDecisions::default() }
    }
}

/// Waiting state that nothing can wake any more once the machine has broken down, although it refers to the core by its
/// context.
pub(crate) trait Abandon: Send + Sync {
    /// Drops what it holds.
    fn abandon(&self);
}

/// The state that all contexts of a runtime share.
pub(crate) struct RuntimeCore {
    pub(crate) store: Store,
    clock: Clock,
    processors: Vec<PerProcessor>,
    /// The names of mappers, from number 1.
    mappers: Arc<[Box<str>]>,
    pub(crate) window: usize,
    top_levels: Arc<TopLevels>,
    /// The log of the names that earlier runs have destroyed.
    pub(crate) deletions: Arc<Log>,
    /// Memory that tasks have left attached when they ended.
    pub(crate) left_attached: Claims,
    /// The files that are attached.
    pub(crate) files: OpenFiles,
    io: IoThreads,
    /// Work of theirs that has not ended.
    in_files: AtomicUsize,
    has_starving: AtomicBool,
    starving: Arc<Mutex<Starving>>,
    pub(crate) forks: ForkCounts,
    groups: Groups,
    tracing: bool,
    automatic_tracing: bool,
    /// Sessions of traces that have begun. Each knows the operation that stands for it, and that knows the session.
    sessions: Mutex<Vec<Weak<dyn Abandon>>>,
    /// Of messages between mappers.
    unheard: Unheard,
    /// How tasks go to other nodes of the job, and theirs come here, if there are several.
    migration: Option<Arc<Migration>>,
}

impl Drop for RuntimeCore {
    fn drop(&mut self) {
        for desk in std::mem::take(&mut self.processors).into_iter().flat_map(|processor| processor.desks) {
            drop_caught("a mapper", "", desk.seat);
        }
    }
}

impl RuntimeCore {
    /// The runtime's clock, which began with it.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Begins to look after what waits for memory, and after idle nodes of the job.
    pub(crate) fn new(
        store: Store,
        mappers: Vec<Box<str>>,
        seats: Vec<Vec<MapperSeat>>,
        limits: Limits,
        migration: Option<Arc<Migration>>,
    ) -> Arc<Self> {
        let forks = ForkCounts::new(store.realm.processors().len());
        let core = Arc::new(Self {
            store,
            clock: Clock::start(),
            processors: seats.into_iter().map(PerProcessor::new).collect(),
            mappers: mappers.into(),
            window: limits.window,
            top_levels: Arc::default(),
            deletions: Arc::default(),
            left_attached: Claims::default(),
            files: OpenFiles::default(),
            io: IoThreads::default(),
            in_files: AtomicUsize::new(0),
            has_starving: AtomicBool::new(false),
            starving: Arc::default(),
            forks,
            groups: Groups::default(),
            tracing: limits.tracing,
            automatic_tracing: limits.automatic_tracing,
            sessions: Mutex::default(),
            unheard: Unheard::new(migration.as_ref().map_or(1, |migration| migration.nodes())),
            migration,
        });
        let (idle, starving) = (Arc::downgrade(&core), Arc::clone(&core.starving));
        // While nothing waits for memory the core is left alone: when the runtime is dropped, no worker is to hold it.
        let joined = core.migration.as_ref().map(|migration| {
            let executor: Arc<dyn Executor> = core.clone();
            migration.open(Arc::downgrade(&executor));
            Arc::downgrade(migration)
        });
        core.store.realm.on_idle(move || {
            let feed = || idle.upgrade().is_some_and(|core| core.feed_one());
            let ask = |migration: &Weak<Migration>| migration.upgrade().is_some_and(|migration| migration.is_idle());
            (starving.lock().is_anybody() && feed()) || joined.as_ref().is_some_and(ask)
        });
        if let Some(migration) = core.migration() {
            // Workers that sleep already would only notice when they wake.
            migration.is_idle();
        }
        core
    }

    pub(crate) fn realm(&self) -> &Realm {
        &self.store.realm
    }

    /// Nanoseconds since the runtime started.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The migration of tasks between this node and the others of its job.
    #[inline]
    pub(crate) fn migration(&self) -> Option<&Arc<Migration>> {
        self.migration.as_ref()
    }

    pub(crate) fn forest(&self) -> &Arc<Forest> {
        &self.store.forest
    }

    #[inline]
    pub(crate) fn profiler(&self) -> Option<&Profiler> {
        self.store.realm.profiler()
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.store.realm.machine()
    }

    /// Has a worker do work of the runtime's own. If it panics the machine breaks down, as no task would be told.
    pub(crate) fn spawn_own(&self, during: &'static str, spawn: Spawn<'_>, work: impl FnOnce() + Send + 'static) {
        let body = move |worker: &WorkerContext<'_>| {
            worker.realm().unheard(|| during.to_owned(), work);
        };
        self.store.realm.spawn(spawn, with_context(body));
    }

    pub(crate) fn first_processor(&self) -> ProcessorId {
        self.machine().processors().first().map_or(ProcessorId(0), |processor| processor.id)
    }

    /// The processor of the worker that calls; the first one, if it is none.
    pub(crate) fn processor_here(&self) -> ProcessorId {
        self.store.realm.current_processor().unwrap_or_else(|| self.first_processor())
    }

    /// Refuses to go on in a copy of the process.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.store.realm.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Refuses to go on after a breakdown, or in a copy of the process.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.check_process()?;
        match self.store.realm.breakdown() {
            None => Ok(()),
            Some(fault) => Err(Error::of_fault(fault, "", None)),
        }
    }

    /// Whether the mapper lets a node that has nothing to do have a task that waits here, launched by a task on this
    /// processor.
    pub(crate) fn permits_steal(&self, task: &str, whom: impl Into<Whom>, thief: NodeId) -> bool {
        let ask = |mapper: &mut dyn Mapper| mapper.permit_steal(task, thief);
        self.seat(whom).try_call(&self.store, "permit_steal", ask).unwrap_or(false)
    }

    /// The same for a leaf task with its data, launched by a task on this processor.
    pub(crate) fn permits_steal_with_data(&self, task: &str, whom: impl Into<Whom>, thief: NodeId, bytes: u64) -> bool {
        let ask = |mapper: &mut dyn Mapper| mapper.permit_steal_with_data(task, thief, bytes);
        self.seat(whom).try_call(&self.store, "permit_steal_with_data", ask).unwrap_or(false)
    }

    /// A mapper of a processor.
    pub(crate) fn seat(&self, whom: impl Into<Whom>) -> &MapperSeat {
        &self.desk(whom.into()).seat
    }

    fn desk(&self, whom: Whom) -> &Desk {
        let desks = &self.of(whom.processor).desks;
        // Another node may have said the number, whose program has other mappers.
        desks.get(usize::from(whom.mapper.0)).unwrap_or(&desks[0])
    }

    /// The names of mappers, from number 1.
    pub(crate) fn names_of_mappers(&self) -> &Arc<[Box<str>]> {
        &self.mappers
    }

    /// The mapper with a name, for a launch of this name.
    pub(crate) fn mapper_named(&self, name: &str, operation: &str) -> Result<MapperNumber> {
        let place = self.mappers.iter().position(|known| **known == *name);
        place.map(|place| MapperNumber(place as u16 + 1)).ok_or_else(|| Error::NoSuchMapper {
            operation: operation.to_owned(),
            name: name.to_owned(),
            known: self.mappers.iter().map(|known| known.to_string()).collect(),
            launched: None,
        })
    }

    /// The decisions of mappers about forking tasks that tasks on this processor launch.
    #[inline]
    pub(crate) fn fork_decisions(&self, processor: ProcessorId) -> &ForkDecisions {
        &self.of(processor).forks
    }

    #[inline]
    fn of(&self, processor: ProcessorId) -> &PerProcessor {
        &self.processors[processor.0 as usize]
    }

    pub(crate) fn memory_used(&self, memory: MemoryId) -> u64 {
        self.store.realm.memory_pool(memory).used()
    }

    /// Whether launches may be forked. Not while a record is kept, which shows how each was analysed.
    pub(crate) fn is_forking(&self) -> bool {
        self.store.recorder.is_none()
    }

    pub(crate) fn is_tracing(&self) -> bool {
        self.tracing
    }

    pub(crate) fn is_tracing_automatically(&self) -> bool {
        self.tracing && self.automatic_tracing
    }

    /// Remembers a session of a trace.
    pub(crate) fn register_session(&self, session: Weak<dyn Abandon>) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= 64 && sessions.len().is_power_of_two() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(session);
    }

    /// Lets go of operations that will never be mapped, and of sessions that nothing wakes any more: they know their
    /// contexts, and these the core.
    pub(crate) fn forget_waiting(&self) {
        drop(std::mem::take(&mut self.starving.lock().work));
        self.processors.iter().flat_map(|processor| &processor.desks).for_each(|desk| desk.ready.forget());
        let sessions = std::mem::take(&mut *self.sessions.lock());
        for session in sessions.iter().filter_map(Weak::upgrade) {
            session.abandon();
        }
    }

    /// Has a thread do work that waits for a file.
    pub(crate) fn wait_for_file(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        self.in_files.fetch_add(1, Ordering::SeqCst);
        let core = Arc::clone(self);
        self.io.run(move || {
            work();
            // In this order: a thread that finds that nothing is to come from files is told of all that has come.
            core.in_files.fetch_sub(1, Ordering::SeqCst);
            core.task_ended();
        });
    }

    /// Waits until nothing is read from files or written to them.
    pub(crate) fn wait_for_files_to_end(&self) {
        self.io.wait_until_idle();
    }

    /// A leaf task has ended and given its instances back: the work that waits for room may try again.
    pub(crate) fn task_ended(&self) {
        if self.has_starving.load(Ordering::SeqCst) {
            let mut starving = self.starving.lock();
            self.has_starving.store(false, Ordering::SeqCst);
            (starving.asked, starving.naps) = (0, 0);
            starving.work.drain(..).for_each(|work| self.feed(work, Chance::Another));
        }
    }

    /// Runs `again` after some leaf task has ended; or, when the machine has run out of work and nothing will end, as a
    /// last chance.
    pub(crate) fn starve(&self, again: StarvingWork) {
        let mut starving = self.starving.lock();
        starving.work.push_back(again);
        self.has_starving.store(true, Ordering::SeqCst);
    }

    /// As [`starve`](Self::starve), for what is not work: an event after which it may try again, and then what it may
    /// hope for.
    pub(crate) fn starved(&self) -> (Event, Arc<OnceLock<Chance>>) {
        let (realm, again, hope) =
            (self.realm().clone(), self.realm().user_event(), Arc::<OnceLock<Chance>>::default());
        let told = Arc::clone(&hope);
        self.starve(Box::new(move |chance| {
            told.get_or_init(|| chance);
            realm.trigger(again);
        }));
        // A worker that sleeps already sees that something waits when it wakes.
        let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE };
        self.realm().spawn(spawn, || ());
        (again.event(), hope)
    }

    /// A top-level task runs until the guard is dropped.
    pub(crate) fn top_level_runs(&self) -> TopLevelRuns {
        self.top_levels.begin()
    }

    /// A thread of a top-level task waits where the runtime sees it: the task releases nothing meanwhile, unless
    /// several threads share it.
    pub(crate) fn while_top_level_waits<R>(&self, is_shared: bool, wait: impl FnOnce() -> R) -> R {
        self.top_levels.while_waiting(is_shared, wait)
    }

    /// Nothing runs on workers: lets the first of the work that waits try again; once all of it has, in vain, gives the
    /// first its last chance. Whether there was one.
    fn feed_one(&self) -> bool {
        let have_all_asked = self.starving.lock().have_all_asked();
        if have_all_asked && self.store.give_up_nameless() {
            // They may not have been looked at when room was wanted.
            self.starving.lock().asked = 0;
        }
        let mut starving = self.starving.lock();
        // Tasks that are elsewhere keep their instances, and end.
        if starving.have_all_asked() && self.migration().is_some_and(|migration| migration.has_data_away()) {
            return false;
        }
        // So do tasks that wait for a file. When that is there, the work that waits for room tries again.
        if starving.have_all_asked() && self.in_files.load(Ordering::SeqCst) > 0 {
            return false;
        }
        // A top-level task is on no worker. It may be about to let go of the last instance of a region, and may have
        // lost its core just then. It may as well be waiting for something that we know nothing of, so it is not waited
        // for for ever.
        if starving.have_all_asked() && starving.naps < MOST_NAPS && self.top_levels.are_running() {
            let time = FIRST_NAP << starving.naps;
            starving.naps += 1;
            starving.asked = 0;
            drop(starving);
            let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE };
            self.store.realm.spawn(spawn, move || nap(Duration::from_millis(time)));
            return true;
        }
        let chance = if starving.have_all_asked() { Chance::Last } else { Chance::Another };
        starving.asked = if chance == Chance::Last { 0 } else { starving.asked + 1 };
        let first = starving.work.pop_front();
        self.has_starving.store(!starving.work.is_empty(), Ordering::SeqCst);
        drop(starving);
        first.map(|work| self.feed(work, chance)).is_some()
    }

    fn feed(&self, work: StarvingWork, chance: Chance) {
        let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE };
        self.spawn_own("mapping what had no room before", spawn, move || work(chance));
    }
}

/// Work that waits for any task to end.
#[derive(Default)]
struct Starving {
    work: VecDeque<StarvingWork>,
    /// How much of it has tried in vain since a task last ended.
    asked: usize,
    /// How often all of it has, and then waited for a top-level task.
    naps: u32,
}

/// How long, in milliseconds, a top-level task that runs is waited for before what needs memory fails: at first, and
/// how often twice as long.
const FIRST_NAP: u64 = 1;
const MOST_NAPS: u32 = 8;

impl Starving {
    /// Whether anything waits. If not, nothing has tried in vain.
    fn is_anybody(&mut self) -> bool {
        if self.work.is_empty() {
            self.asked = 0;
        }
        !self.work.is_empty()
    }

    fn have_all_asked(&self) -> bool {
        self.asked >= self.work.len()
    }
}

/// Work that waits until there may be room in a memory.
pub(crate) type StarvingWork = Box<dyn FnOnce(Chance) + Send>;

/// The chance that waiting work has to be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// It may wait again.
    Another,
    /// Nothing runs, so nothing is going to change: it is now or never.
    Last,
}
