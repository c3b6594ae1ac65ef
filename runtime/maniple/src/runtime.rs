//! The runtime: what all contexts share.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use maniple_mapper::{DefaultMapper, Mapper};
use maniple_realm::clock::Clock;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId};
use maniple_realm::net::Transport;
use maniple_realm::net::environment::Place;
use maniple_realm::operation::with_context;
use maniple_realm::profile::Profiler;
use maniple_realm::threads::nap;
use maniple_realm::{Class, Realm, Spawn, WorkerContext};
use maniple_record::Record;
use maniple_region::Forest;

use crate::context::Context;
use crate::deletions::Log;
use crate::error::{Error, Result};
use crate::fork::{self, ForkCounts};
use crate::launch::Launch;
use crate::let_go::let_go;
use crate::mapping::MapperSeat;
use crate::physical::store::Store;
use crate::profiling::{MAPPING, TellProblems, of_node, wanted_by_environment};
use crate::replicate::Node;
use crate::statistics::{PeerStatistics, Statistics};
use crate::trace::Session;

/// Makes the mapper of one processor.
type MapperFactory = Box<dyn Fn(&Machine, ProcessorId) -> Box<dyn Mapper> + Send>;

/// Starts a [`Runtime`]: workers, machine, mapper, limits. Defaults are right for a laptop: all cores, the machine's memory, the
/// [`DefaultMapper`].
pub struct RuntimeBuilder {
    workers: Option<usize>,
    machine: Option<Machine>,
    mapper: MapperFactory,
    window: usize,
    records: bool,
    profile: Option<PathBuf>,
    tracing: bool,
    automatic_tracing: bool,
    network: Network,
}

/// How a runtime reaches others.
enum Network {
    /// As the environment says.
    Environment,
    Given(Arc<dyn Transport>),
    /// There are no others.
    None,
}

impl RuntimeBuilder {
    /// The number of worker threads; by default one for each CPU processor of the machine.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// The machine to run on, or to pretend to; by default the one found.
    #[must_use]
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// The mapper: a copy for each processor.
    #[must_use]
    pub fn mapper<M: Mapper + Clone + 'static>(self, mapper: M) -> Self {
        self.mapper_for(move |_, _| Box::new(mapper.clone()))
    }

    /// The mapper, made for each processor by a function.
    #[must_use]
    pub fn mapper_for(mut self, factory: impl Fn(&Machine, ProcessorId) -> Box<dyn Mapper> + Send + 'static) -> Self {
        self.mapper = Box::new(factory);
        self
    }

    /// The most operations that one task may have in flight: launched and not ended. A task that reaches the limit helps with other
    /// work until a quarter has ended. 1024 by default; 0 means 1.
    #[must_use]
    pub fn window(mut self, operations: usize) -> Self {
        self.window = operations.max(1);
        self
    }

    /// Whether [`Context::trace`] and automatic tracing do anything. On by default; results are the same either way.
    #[must_use]
    pub fn tracing(mut self, trace: bool) -> Self {
        self.tracing = trace;
        self
    }

    /// Whether launches that repeat are found, recorded and replayed without [`Context::trace`]. On by default; results are the same either way.
    #[must_use]
    pub fn automatic_tracing(mut self, automatic: bool) -> Self {
        self.automatic_tracing = automatic;
        self
    }

    /// Whether to keep a record of every launch, task and copy with what it waited for, for [`Runtime::take_record`]. Costs time and memory, which
    /// grows with every task; off by default.
    #[must_use]
    pub fn record_operations(mut self, record: bool) -> Self {
        self.records = record;
        self
    }

    /// Records a profile of the runtime into a file: what every worker did, when, and after what. `maniple prof FILE` shows it. The file is
    /// whole once the runtime and everything that was made with it are gone.
    ///
    /// In a job of several nodes each writes one of its own: node 2 writes `FILE.node2`.
    ///
    /// Without this, the environment variable `MANIPLE_PROFILE` may name a file; later runtimes of the process then write `FILE.2`, `FILE.3` and
    /// so on, and `%p` in it stands for the number of the process.
    #[must_use]
    pub fn profile(mut self, file: impl Into<PathBuf>) -> Self {
        self.profile = Some(file.into());
        self
    }

    /// Makes the runtime one node of a job of several, which this transport connects. [`Runtime::run`] then runs its function on all nodes.
    ///
    /// Without this, the process's environment says whether it is one of a job's processes (see [`environment`](crate::environment)), and how it reaches the
    /// others. Their number also says how many cores it may use, unless that is set.
    #[must_use]
    pub fn network(mut self, transport: Arc<dyn Transport>) -> Self {
        self.network = Network::Given(transport);
        self
    }

    /// Has the runtime run by itself, even in a process that is one of several of a job.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.network = Network::None;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// [`Error::Start`] if there are no workers, more than 1024, the system has no threads, the file of a profile can't be written, or the other nodes of
    /// the job can't be reached.
    pub fn build(self) -> Result<Runtime> {
        let start = |error: maniple_realm::RealmError| Error::Start(Arc::new(error));
        let mut builder = Realm::builder();
        if let Some(machine) = self.machine {
            builder = builder.machine(machine);
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        let place = match self.network {
            Network::Environment => Some(Place::find().map_err(|error| Error::Start(Arc::new(error)))?),
            Network::Given(_) | Network::None => None,
        };
        let rank = match (&self.network, &place) {
            (Network::Given(transport), _) => (transport.nodes() > 1).then(|| transport.rank()),
            (_, place) => place.as_ref().filter(|place| place.nodes > 1).map(|place| place.rank),
        };
        let told = self.profile.is_some();
        let wanted = self.profile.or_else(wanted_by_environment);
        let profiler = match wanted.map(|file| rank.map_or(file.clone(), |rank| of_node(&file, rank))) {
            Some(file) => Some(Profiler::create(&file).map_err(|error| Error::Start(Arc::new(error)))?),
            None => None,
        };
        let profiler = match (profiler, rank) {
            (Some(profiler), Some(rank)) => Some(profiler.of_node(rank)),
            (profiler, _) => profiler,
        };
        if let Some(profiler) = &profiler {
            builder = builder.profile(profiler.clone());
        }
        if let Some(place) = place.as_ref().filter(|place| place.neighbours > 1) {
            builder = builder.cores(place.cores());
            if self.workers.is_none() {
                builder = builder.workers(place.cores());
            }
        }
        let realm = builder.build().map_err(start)?;
        let transport = match (self.network, place) {
            (Network::Given(transport), _) => Some(transport),
            (_, Some(place)) => connect(&place)?,
            _ => None,
        };
        let seats = realm.machine().processors().iter();
        let seats = seats.map(|processor| MapperSeat::new((self.mapper)(realm.machine(), processor.id))).collect();
        let forks = ForkCounts::new(realm.processors().len());
        let node = transport.map(|transport| Arc::new(Node::join(transport, &realm)));
        let core = Arc::new(RuntimeCore {
            store: Store::new(realm, self.records.then(Arc::default)),
            clock: Clock::start(),
            seats,
            window: self.window,
            top_levels: AtomicUsize::new(0),
            deletions: Arc::default(),
            has_starving: AtomicBool::new(false),
            starving: Arc::default(),
            forks,
            tracing: self.tracing,
            automatic_tracing: self.automatic_tracing,
            sessions: Mutex::default(),
            node,
        });
        let (idle, starving) = (Arc::downgrade(&core), Arc::clone(&core.starving));
        core.store.realm.on_rest(fork::forget);
        // Without anybody who starves the core is left alone: who drops the runtime is to find that no worker holds it.
        let hungry = core.node.as_ref().map(|node| {
            node.open_to_guests(&core);
            Arc::downgrade(node)
        });
        core.store.realm.on_idle(move || {
            let feed = || idle.upgrade().is_some_and(|core| core.feed_one());
            let ask = |node: &Weak<Node>| node.upgrade().is_some_and(|node| node.is_idle());
            (starving.lock().is_anybody() && feed()) || hungry.as_ref().is_some_and(ask)
        });
        if let Some(node) = &core.node {
            // Workers that sleep already would only notice when they wake.
            node.is_idle();
        }
        Ok(Runtime { core, _problems: profiler.filter(|_| !told).map(TellProblems) })
    }
}

/// Joins the job that the process was started for. A process joins once.
fn connect(place: &Place) -> Result<Option<Arc<dyn Transport>>> {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if place.nodes > 1 && JOINED.swap(true, Ordering::Relaxed) {
        return Err(Error::Start(Arc::new(JoinedBefore)));
    }
    place.connect().map_err(|error| Error::Start(Arc::new(error)))
}

/// A second runtime of a process was to join its job.
#[derive(Debug, thiserror::Error)]
#[error(
    "this process has joined its job before, with another runtime: use one runtime for everything, or `RuntimeBuilder::alone` for the others"
)]
struct JoinedBefore;

/// The runtime: a machine at work on tasks.
///
/// ```
/// use maniple::prelude::*;
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let answer = runtime.run(async |cx: &Context| {
///     let double = cx.colors(5).volume() * 2;
///     Ok(double)
/// })?;
/// assert_eq!(answer, 10);
/// # Ok::<(), maniple::Error>(())
/// ```
pub struct Runtime {
    core: Arc<RuntimeCore>,
    /// After the core, with which the profile ends.
    _problems: Option<TellProblems>,
}

impl Drop for Runtime {
    /// Whoever drops the last handle to the realm waits for its end, and that had better be this thread: workers may still hold what they
    /// have run or replayed.
    fn drop(&mut self) {
        self.core.store.realm.wait_until_idle();
        if let Some(node) = &self.core.node {
            match self.core.check_whole() {
                Err(error) => node.abort(&error.to_string()),
                Ok(()) if std::thread::panicking() => node.abort(&node.panicked()),
                Ok(()) => node.leave(),
            }
        }
        self.core.store.realm.release_graphs();
        if self.core.store.realm.breakdown().is_some() {
            // What will never end keeps the core, and with it the realm, by its handles.
            self.core.store.realm.shut_down();
            self.core.forget_waiting();
        }
    }
}

impl Runtime {
    /// Starts describing a runtime.
    #[must_use]
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            workers: None,
            machine: None,
            mapper: Box::new(|_, _| Box::new(DefaultMapper::new())),
            window: 1024,
            records: false,
            profile: None,
            tracing: true,
            automatic_tracing: true,
            network: Network::Environment,
        }
    }

    /// How many nodes the job has: 1 unless there is a [network](RuntimeBuilder::network).
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.core.node.as_ref().map_or(1, |node| node.nodes())
    }

    /// The number of this node, from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.core.node.as_ref().map_or(0, |node| node.rank())
    }

    /// The machine that tasks run on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.core.store.realm.machine()
    }

    /// Runs a function as the top-level task, on this thread, and waits for everything that it launches.
    ///
    /// When the function waits, in an `await` or as more is in flight than there is room for, and there are no more cores than workers, this thread runs tasks of traces
    /// that are being replayed. So those should not wait for what the function does afterwards, as by a lock that it holds or a channel that it has still to send to.
    ///
    /// # Errors
    /// What the function returns, or else the first failure among the operations that it launched and whose result nobody looked at.
    /// [`Error::Stranded`] if it waits for something and nobody has kept its waker: nobody can wake it then. A waker that somebody keeps but never uses,
    /// or two tasks that wait for each other, are no different to the runtime from a thread of the program's own that takes its time: it waits on.
    /// [`Error::StillMapped`] if it returns or leaks a mapping; [`Error::Launch`] when called within a task of the same runtime, whose worker
    /// would wait for itself; [`Error::BrokenDown`] when something panicked of which no task would hear: this run ends, and all later ones.
    ///
    /// # Panics
    /// If the function does, after everything that it launched has ended.
    pub fn run<T>(&self, body: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
        if self.core.store.realm.current_processor().is_some() {
            let problem = "a task of the same runtime would wait for it; launch from the task's own context";
            return Err(Error::launch("top level", problem));
        }
        self.core.check_whole()?;
        Context::run_top_level(&self.core, body)
    }

    /// Launches a task at top level, on a worker, and waits for it.
    ///
    /// # Errors
    /// What the task returns, or else the first failure among the operations that it launched and whose result nobody looked at.
    pub fn run_task<T: Clone + Send + Sync + 'static>(&self, task: Launch<T>) -> Result<T> {
        self.run(async |cx| cx.launch(task).await)
    }

    /// Why the runtime runs nothing more, if it has [broken down](Error::BrokenDown), or a node of its job [is lost](Error::NodeLost) or
    /// [does something else](Error::NodesDiffer). What was under way then keeps its memory.
    #[must_use]
    pub fn breakdown(&self) -> Option<Error> {
        self.core.check_whole().err()
    }

    /// What the runtime has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (forked, ended) = self.core.forks.read();
        let counted = self.core.store.counters.read();
        let most_pending = self.core.realm().most_pending() as u64;
        let open_exchanges = self.core.node.as_ref().map_or(0, |node| node.open_exchanges() as u64);
        let (launches, tasks) = (counted.launches + forked, counted.tasks + ended);
        Statistics { launches, tasks, open_exchanges, most_pending, ..counted }.with_parcels(&self.peers())
    }

    /// What this node has exchanged with each node of the job so far, by number; nothing with itself. Nothing at all unless there is a [network](RuntimeBuilder::network).
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatistics> {
        self.core.node.as_ref().map_or_else(|| vec![PeerStatistics::default()], |node| node.peers())
    }

    /// What has been launched and issued since the last call, with what came after what: to be [checked](maniple_record::check()), drawn, or
    /// looked through. Empty unless [`RuntimeBuilder::record_operations`] was set.
    ///
    /// Take it while nothing runs; else it lacks what ends later, and the next one what began before, and neither proves anything
    /// ([`Record::unfinished`](maniple_record::Record::unfinished)). The same goes for a runtime that has [broken down](Self::breakdown).
    #[must_use]
    pub fn take_record(&self) -> Record {
        self.core.store.recorder.as_ref().map_or_else(Record::default, |recorder| recorder.take())
    }

    /// What records the profile, if there is one. Keep a clone to ask it, after the runtime has gone, whether all was
    /// [written](Profiler::outcome).
    #[must_use]
    pub fn profiler(&self) -> Option<&Profiler> {
        self.core.profiler()
    }

    /// Bytes of instances in a memory.
    ///
    /// # Panics
    /// If the machine has no such memory.
    #[must_use]
    pub fn bytes_used(&self, memory: MemoryId) -> u64 {
        self.core.memory_used(memory)
    }
}

/// What all contexts share.
pub(crate) struct RuntimeCore {
    pub(crate) store: Store,
    clock: Clock,
    seats: Vec<MapperSeat>,
    pub(crate) window: usize,
    /// Top-level tasks that do not wait.
    top_levels: AtomicUsize,
    /// What earlier runs have destroyed.
    pub(crate) deletions: Arc<Log>,
    has_starving: AtomicBool,
    starving: Arc<Mutex<Starving>>,
    pub(crate) forks: ForkCounts,
    tracing: bool,
    automatic_tracing: bool,
    /// Sessions of traces that have begun. Each knows the operation that stands for it, and that knows the session.
    sessions: Mutex<Vec<Weak<Mutex<Session>>>>,
    /// This process's part in a job of several.
    node: Option<Arc<Node>>,
}

impl Drop for RuntimeCore {
    fn drop(&mut self) {
        while let Some(seat) = self.seats.pop() {
            let_go("a mapper", "", seat);
        }
    }
}

impl RuntimeCore {
    pub(crate) fn realm(&self) -> &Realm {
        &self.store.realm
    }

    /// Nanoseconds since the runtime started.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
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

    /// Has a worker do work of the runtime's own. If it panics the machine breaks down, as nobody would hear of that.
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

    /// Refuses to go on after a breakdown.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match self.store.realm.breakdown() {
            None => Ok(()),
            Some(fault) => Err(Error::of_fault(fault, "", None)),
        }
    }

    /// Whether the mapper lets a node that has nothing to do have a task that waits here, launched by a task on this processor.
    pub(crate) fn permits_steal(&self, (task, origin): (&str, ProcessorId), thief: NodeId) -> bool {
        let ask = |mapper: &mut dyn Mapper| mapper.permit_steal(task, thief);
        self.seat(origin).try_call(self, "permit_steal", ask).unwrap_or(false)
    }

    /// The same for a leaf task with its data, launched by a task on this processor.
    pub(crate) fn permits_steal_with_data(
        &self,
        (task, origin): (&str, ProcessorId),
        thief: NodeId,
        bytes: u64,
    ) -> bool {
        let ask = |mapper: &mut dyn Mapper| mapper.permit_steal_with_data(task, thief, bytes);
        self.seat(origin).try_call(self, "permit_steal_with_data", ask).unwrap_or(false)
    }

    /// The mapper of a processor.
    pub(crate) fn seat(&self, processor: ProcessorId) -> &MapperSeat {
        &self.seats[processor.0 as usize]
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
    pub(crate) fn register_session(&self, session: Weak<Mutex<Session>>) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= 64 && sessions.len().is_power_of_two() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(session);
    }

    /// Lets go of operations that will never be mapped, and of sessions that nothing wakes any more: they know their contexts, and these the core.
    fn forget_waiting(&self) {
        drop(std::mem::take(&mut self.starving.lock().work));
        self.seats.iter().for_each(MapperSeat::forget_waiting);
        let sessions = std::mem::take(&mut *self.sessions.lock());
        for session in sessions.iter().filter_map(Weak::upgrade) {
            let held = session.lock().abandon();
            drop(held);
        }
    }

    /// A leaf task has ended and given its instances back: who waits for room may try again.
    pub(crate) fn task_ended(&self) {
        if self.has_starving.load(Ordering::SeqCst) {
            let mut starving = self.starving.lock();
            self.has_starving.store(false, Ordering::SeqCst);
            (starving.asked, starving.naps) = (0, 0);
            starving.work.drain(..).for_each(|work| self.feed(work, Chance::Another));
        }
    }

    /// Runs `again` after some leaf task has ended; or, when the machine has run out of work and nothing will end, as a last chance.
    pub(crate) fn starve(&self, again: StarvingWork) {
        let mut starving = self.starving.lock();
        starving.work.push_back(again);
        self.has_starving.store(true, Ordering::SeqCst);
    }

    /// A top-level task runs until the guard is dropped.
    pub(crate) fn top_level_runs(&self) -> impl Drop {
        self.top_levels.fetch_add(1, Ordering::SeqCst);
        TopLevelRuns(self)
    }

    /// A top-level task waits where the runtime sees it: it lets go of nothing meanwhile.
    pub(crate) fn while_top_level_waits<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.top_levels.fetch_sub(1, Ordering::SeqCst);
        let result = wait();
        self.top_levels.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// Nothing runs on workers: lets the first of those who wait try again; once all have, in vain, gives it its last chance. Whether there was one.
    fn feed_one(&self) -> bool {
        let mut starving = self.starving.lock();
        // Tasks that are elsewhere keep their instances, and end.
        if starving.have_all_asked() && self.node.as_ref().is_some_and(|node| node.has_tasks_away()) {
            return false;
        }
        // A top-level task is on no worker. It may be about to let go of the last instance of a region, and may have lost its core just then. It
        // may as well be waiting for something that we know nothing of, so it is not waited for for ever.
        if starving.have_all_asked() && starving.naps < MOST_NAPS && self.top_levels.load(Ordering::SeqCst) > 0 {
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

/// How long, in milliseconds, a top-level task that runs is waited for before what needs memory fails: at first, and how often twice as long.
const FIRST_NAP: u64 = 1;
const MOST_NAPS: u32 = 6;

struct TopLevelRuns<'a>(&'a RuntimeCore);

impl Drop for TopLevelRuns<'_> {
    fn drop(&mut self) {
        self.0.top_levels.fetch_sub(1, Ordering::SeqCst);
    }
}

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

/// What waiting work may hope for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// It may wait again.
    Another,
    /// Nothing runs, so nothing is going to change: it is now or never.
    Last,
}
