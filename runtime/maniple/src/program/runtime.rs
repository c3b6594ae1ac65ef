//! The runtime, as users start and hold it.

use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_mapper::{DefaultMapper, Mapper, MappingRules, RuleMapper, RulesInUse};
use maniple_realm::Realm;
use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId};
use maniple_realm::net::Transport;
use maniple_realm::net::environment::Place;
use maniple_realm::profile::Profiler;
use maniple_record::Record;
use maniple_region::Provenance;

use crate::context::{Context, forget_spare};
use crate::core::{Limits, RuntimeCore};
use crate::fork;
use crate::instances::store::Store;
use crate::launch::Launch;
use crate::mapping::MapperSeat;
use crate::nodes::replication::JobNode;
use crate::program::session::Session;
use crate::program::top_level::TopLevel;
use crate::support::error::{Error, Result};
use crate::support::profiling::{TellProblems, of_node, wanted_by_environment};
use crate::support::statistics::{MemoryStatistics, PeerStatistics, Statistics};
use crate::task::declared;

/// Makes the mapper of one processor.
type MapperFactory = Box<dyn Fn(&Machine, ProcessorId) -> Box<dyn Mapper> + Send>;

/// Starts a [`Runtime`]: workers, machine, mapper, limits. Defaults are right for a laptop: all cores, the machine's
/// memory, the [`DefaultMapper`].
pub struct RuntimeBuilder {
    workers: Option<usize>,
    machine: Option<Machine>,
    memory: Option<u64>,
    mapper: MapperFactory,
    named: Vec<(Box<str>, MapperFactory)>,
    mapping: Option<WrittenMapping>,
    window: usize,
    records: bool,
    profile: Option<PathBuf>,
    tracing: bool,
    automatic_tracing: bool,
    network: Network,
}

/// A mapping that is written down.
enum WrittenMapping {
    File(PathBuf),
    Rules(MappingRules),
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

    /// The most bytes that the values of regions take of the system's memory; by default most of what the process may
    /// have. What does not fit waits until something else has gone, and fails with [`Error::OutOfMemory`] if nothing
    /// will. With memories for several domains of processors, each has an equal share.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # #[task(leaf)]
    /// # fn clear(#[discards(value)] cells: Piece<Cell>) { cells.points().for_each(|point| cells.value[point] = 0.0) }
    /// let runtime = Runtime::builder().workers(2).memory(1 << 20).build()?;
    /// let outcome = runtime.run(async |cx: &Context| cx.launch(clear(&cx.region::<Cell>(1 << 20)?)).await);
    /// assert!(matches!(outcome, Err(Error::OutOfMemory { .. })));
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
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

    /// Another mapper, by a name: a copy for each processor. It is asked about launches that name it
    /// ([`Launch::mapper`], [`TaskLauncher::mapper`](crate::TaskLauncher::mapper)), whose tasks do
    /// (`#[task(mapper = "name")]`), or that are made from a context that does ([`Context::with_mapper`]), in this
    /// order; all other launches are for the mapper without a name. A name that was given before now stands for this
    /// mapper. On several nodes, all give the same names in the same order.
    ///
    /// # Panics
    /// If there are more than 65,535.
    #[must_use]
    pub fn mapper_named<M: Mapper + Clone + 'static>(self, name: &str, mapper: M) -> Self {
        self.mapper_named_for(name, move |_, _| Box::new(mapper.clone()))
    }

    /// The same, made for each processor by a function.
    ///
    /// # Panics
    /// If there are more than 65,535.
    #[must_use]
    pub fn mapper_named_for(
        mut self,
        name: &str,
        factory: impl Fn(&Machine, ProcessorId) -> Box<dyn Mapper> + Send + 'static,
    ) -> Self {
        let factory = Box::new(factory);
        match self.named.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, before)) => *before = factory,
            None => self.named.push((name.into(), factory)),
        }
        assert!(self.named.len() <= usize::from(u16::MAX), "a runtime has at most 65,535 mappers with names");
        self
    }

    /// A file that says where tasks run and where data lives: the book's chapter on mapping files has its keys. What it
    /// does not say is left to the mapper. It is read when the runtime starts, on each node of a job; all nodes must be
    /// told alike how launches are dealt to nodes.
    ///
    /// It cannot change a result, nor make a program fail: what names nothing, or cannot be, is logged (target
    /// `maniple::mapper`, level `WARN`) and passed over.
    #[must_use]
    pub fn mapping_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.mapping = Some(WrittenMapping::File(file.into()));
        self
    }

    /// The same, read already or made by the program.
    #[must_use]
    pub fn mapping_rules(mut self, rules: MappingRules) -> Self {
        self.mapping = Some(WrittenMapping::Rules(rules));
        self
    }

    /// The most operations that one task may have in flight: launched and not ended. A task that reaches the limit
    /// helps with other work until a quarter has ended. 1024 by default; 0 means 1.
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

    /// Whether launches that repeat are found, recorded and replayed without [`Context::trace`]. On by default; results
    /// are the same either way.
    #[must_use]
    pub fn automatic_tracing(mut self, automatic: bool) -> Self {
        self.automatic_tracing = automatic;
        self
    }

    /// Whether to keep a record of every launch, task and copy with what it waited for, for [`Runtime::take_record`].
    /// Costs time and memory, which grows with every task; off by default.
    #[must_use]
    pub fn record_operations(mut self, record: bool) -> Self {
        self.records = record;
        self
    }

    /// Records a profile of the runtime into a file: what every worker did, when, and after what. `maniple prof FILE`
    /// shows it. The file is whole once the runtime and everything that was made with it are gone.
    ///
    /// In a job of several nodes each writes one of its own: node 2 writes `FILE.node2`.
    ///
    /// Without this, the environment variable `MANIPLE_PROFILE` may name a file; later runtimes of the process then
    /// write `FILE.2`, `FILE.3` and so on, and `%p` in it stands for the number of the process.
    #[must_use]
    pub fn profile(mut self, file: impl Into<PathBuf>) -> Self {
        self.profile = Some(file.into());
        self
    }

    /// Makes the runtime one node of a job of several, which this transport connects. [`Runtime::run`] then runs its
    /// function on all nodes.
    ///
    /// Without this, the process's environment says whether it is one of a job's processes (see
    /// [`environment`](crate::environment)), and how it reaches the others. Their number also says how many cores it
    /// may use, unless that is set.
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
    /// [`Error::Start`] if there are no workers, more than 1024, the system has no threads, the file of a profile can't
    /// be written, or the other nodes of the job can't be reached; [`Error::MappingFile`] if a mapping file cannot be
    /// read, or has a mistake.
    pub fn build(self) -> Result<Runtime> {
        let rules = self.mapping.map(WrittenMapping::read).transpose()?;
        let start = |error: maniple_realm::RealmError| Error::Start(Arc::new(error));
        let mut builder = Realm::builder();
        if let Some(machine) = self.machine {
            builder = builder.machine(machine);
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(bytes) = self.memory {
            builder = builder.memory(bytes);
        }
        let place = match self.network {
            Network::Environment => Some(Place::find().map_err(|error| Error::Start(Arc::new(error)))?),
            Network::Given(_) | Network::None => None,
        };
        let rank = match (&self.network, &place) {
            (Network::Given(transport), _) => (transport.nodes() > 1).then(|| transport.rank()),
            (_, place) => place.as_ref().filter(|place| place.nodes > 1).map(|place| place.rank),
        };
        let is_named = self.profile.is_some();
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
        let machine = realm.machine();
        let rules = rules.map(|rules| in_use(rules, machine, rank.unwrap_or(NodeId(0))));
        let seat = |factory: &MapperFactory, processor| {
            let mapper = factory(machine, processor);
            MapperSeat::new(match &rules {
                Some((rules, node)) => Box::new(RuleMapper::new(mapper, rules, *node)),
                None => mapper,
            })
        };
        let (names, named): (Vec<_>, Vec<_>) = self.named.into_iter().unzip();
        let factories = || std::iter::once(&self.mapper).chain(&named);
        let seats = |processor| factories().map(|factory| seat(factory, processor)).collect();
        let seats = machine.processors().iter().map(|processor| seats(processor.id)).collect();
        let node = transport.map(|transport| Arc::new(JobNode::join(transport, &realm)));
        let store = Store::new(realm, self.records.then(Arc::default));
        let limits = Limits { window: self.window, tracing: self.tracing, automatic_tracing: self.automatic_tracing };
        store.realm.on_rest(|| {
            fork::forget();
            forget_spare();
        });
        let migration = node.as_deref().map(|node| Arc::clone(node.migration()));
        let core = RuntimeCore::new(store, names, seats, limits, migration);
        let problems = profiler.filter(|_| !is_named).map(TellProblems);
        Ok(Runtime { started: Arc::new(Started { core, node, _problems: problems }) })
    }
}

impl WrittenMapping {
    fn read(self) -> Result<MappingRules> {
        match self {
            Self::Rules(rules) => Ok(rules),
            Self::File(file) => MappingRules::read(file).map_err(|error| Error::MappingFile(Arc::new(error))),
        }
    }
}

/// Rules for the mappers of a node. What they name and nothing has is logged.
fn in_use(rules: MappingRules, machine: &Machine, node: NodeId) -> (Arc<RulesInUse>, NodeId) {
    let problems = rules.lacks(machine, node).into_iter().chain(rules.unknown_tasks(&declared()));
    problems.for_each(|problem| tracing::warn!(target: "maniple::mapper", "mapping file: {problem}"));
    (RulesInUse::new(rules), node)
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
    started: Arc<Started>,
}

/// A runtime that has started. It ends with the last that has it: the program, or a session.
struct Started {
    core: Arc<RuntimeCore>,
    /// This process's part in a job of several.
    node: Option<Arc<JobNode>>,
    /// After the core, with which the profile ends.
    _problems: Option<TellProblems>,
}

impl Drop for Started {
    /// Waits until the realm is idle, and leaves the job. The thread that drops the last handle to the realm waits for
    /// the end of the realm, and should be this one: workers may still hold tasks that they have run, or graphs that
    /// they have replayed.
    fn drop(&mut self) {
        if self.core.store.realm.is_forked() {
            // Its threads are elsewhere, and it can't wait for them: what they have left here stays.
            std::mem::forget((Arc::clone(&self.core), self.node.clone()));
            return;
        }
        self.core.store.realm.wait_until_idle();
        // They use memory that what follows may free.
        self.core.wait_for_files_to_end();
        if let Some(node) = &self.node {
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
            memory: None,
            mapper: Box::new(|_, _| Box::new(DefaultMapper::new())),
            named: Vec::new(),
            mapping: None,
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
        self.started.node.as_ref().map_or(1, |node| node.nodes())
    }

    /// The number of this node, from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.started.node.as_ref().map_or(0, |node| node.rank())
    }

    /// The machine that tasks run on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.started.core.store.realm.machine()
    }

    /// Notes why the program gives up on this node, outside of what all nodes [run](Self::run): should others go on
    /// without it, the job ends on them too when this runtime is dropped, with this reason. In a program that no other
    /// node runs, this has no effect.
    pub fn note_failure(&self, reason: impl std::fmt::Display) {
        if let Some(node) = &self.started.node {
            node.note_failure(reason.to_string());
        }
    }

    /// Runs a function as the top-level task, on this thread, and waits for everything that it launches.
    ///
    /// When the function waits, in an `await` or as more is in flight than there is room for, and there are no more
    /// cores than workers, this thread runs tasks of traces that are being replayed. So those should not wait for what
    /// the function does afterwards, as by a lock that it holds or a channel that it has still to send to.
    ///
    /// # Errors
    /// The error that the function returns, or else the first failure among the operations that it launched and whose
    /// result was not looked at. [`Error::Stranded`] if it waits for something and its waker was dropped: it cannot be
    /// woken then. A waker that is kept but never used, or two tasks that wait for each other, are no different to the
    /// runtime from a thread of the program's own that takes its time: it waits on. [`Error::StillMapped`] if it
    /// returns or leaks a mapping; [`Error::Launch`] when called within a task of the same runtime, whose worker would
    /// wait for itself; [`Error::BrokenDown`] when something panicked of which no task would hear: this run ends, and
    /// all later ones.
    ///
    /// # Panics
    /// If the function does, after everything that it launched has ended.
    pub fn run<T>(&self, body: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
        self.check_thread()?;
        Context::run_top_level(&self.started.core, self.started.node.as_ref(), body)
    }

    /// Begins a top-level task that is open until it is [finished](Session::finish): for programs that cannot be a
    /// function that is given to [`run`](Self::run). On several nodes every process begins one. As there, one top-level
    /// task runs at a time.
    ///
    /// # Errors
    /// [`Error::Launch`] within a task of the same runtime; [`Error::BrokenDown`] if that has broken down;
    /// [`Error::Forked`] in a copy of the process.
    pub fn begin(&self) -> Result<Session> {
        self.check_thread()?;
        let top_level = TopLevel::begin(&self.started.core, self.started.node.as_ref(), true);
        Ok(Session::new(top_level, Arc::clone(&self.started) as _))
    }

    /// Refuses to begin a top-level task on a worker, or after a breakdown.
    fn check_thread(&self) -> Result<()> {
        if self.started.core.store.realm.current_processor().is_some() {
            let problem = "a task of the same runtime would wait for it; launch from the task's own context";
            return Err(Error::launch("top level", problem));
        }
        self.started.core.check_whole()
    }

    /// Launches a task at top level, on a worker, and waits for it.
    ///
    /// # Errors
    /// The error that the task returns, or else the first failure among the operations that it launched and whose
    /// result was not looked at.
    #[track_caller]
    pub fn run_task<T: Clone + Send + Sync + 'static>(&self, task: Launch<T>) -> Result<T> {
        let launched = Provenance::at(Location::caller());
        self.run(async |cx| cx.launch_from(task, launched).await)
    }

    /// Why the runtime runs nothing more, if it has [broken down](Error::BrokenDown), or a node of its job [is
    /// lost](Error::NodeLost) or [does something else](Error::NodesDiffer). What was under way then keeps its memory.
    #[must_use]
    pub fn breakdown(&self) -> Option<Error> {
        self.started.core.check_whole().err()
    }

    /// Counts of the runtime's operations so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (forked, ended) = self.started.core.forks.read();
        let counted = self.started.core.store.counters.read();
        let most_pending = self.started.core.realm().most_pending() as u64;
        let open_exchanges = self.started.node.as_ref().map_or(0, |node| node.open_exchanges() as u64);
        let (launches, tasks) = (counted.launches + forked, counted.tasks + ended);
        Statistics { launches, tasks, open_exchanges, most_pending, ..counted }.with_parcels(&self.peers())
    }

    /// Counts of the exchanges of this node with each node of the job so far, by number; none with itself. All counts
    /// are 0 unless there is a [network](RuntimeBuilder::network).
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatistics> {
        self.started.node.as_ref().map_or_else(|| vec![PeerStatistics::default()], |node| node.peers())
    }

    /// How much of each memory of this node is used by instances, and was at most, by number. Memory of the program's
    /// that is attached to regions is not counted.
    #[must_use]
    pub fn memories(&self) -> Vec<MemoryStatistics> {
        self.started.core.store.memories()
    }

    /// Forgets how much of each memory was used: the [peaks](MemoryStatistics::peak) of a part of a program are those
    /// after this call.
    pub fn reset_peaks(&self) {
        self.started.core.store.reset_peaks();
    }

    /// The record of the operations launched and issued since the last call, and of their order: to be
    /// [checked](maniple_record::check()), drawn, or looked through. Empty unless [`RuntimeBuilder::record_operations`]
    /// was set.
    ///
    /// Take it while nothing runs; else it lacks what ends later, and the next one what began before, and neither
    /// proves anything ([`Record::unfinished`](maniple_record::Record::unfinished)). The same goes for a runtime that
    /// has [broken down](Self::breakdown).
    #[must_use]
    pub fn take_record(&self) -> Record {
        self.started.core.store.recorder.as_ref().map_or_else(Record::default, |recorder| recorder.take())
    }

    /// The profiler that records the profile, if there is one. Keep a clone to ask it, after the runtime has gone,
    /// whether all was [written](Profiler::outcome).
    #[must_use]
    pub fn profiler(&self) -> Option<&Profiler> {
        self.started.core.profiler()
    }

    /// Bytes of instances in a memory.
    ///
    /// # Panics
    /// If the machine has no such memory.
    #[must_use]
    pub fn bytes_used(&self, memory: MemoryId) -> u64 {
        self.started.core.memory_used(memory)
    }
}
