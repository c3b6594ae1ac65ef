//! Building a realm: its machine, its options, its workers' threads.

use std::sync::Arc;

use super::Realm;
use super::core::{Core, Keeper, Setting};
use crate::fault::install_panic_hook;
use crate::machine::{Machine, ProcessorId, ProcessorKind};
use crate::operation::GroupId;
use crate::profile::Profiler;
use crate::scheduler::queue::OwnDeques;
use crate::threads::Thread;
use crate::topology::Topology;
use crate::worker::Local;

/// What cannot be asked of a realm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// No worker to run anything.
    #[error("a realm needs at least one worker: the machine has no cpu, or `workers(0)` was asked for")]
    NoWorkers,
    /// More workers than any machine has processors.
    #[error("{found} workers are more than {MOST_WORKERS}; ask for one a processor")]
    TooManyWorkers {
        /// How many.
        found: usize,
    },
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
    /// Two realms can't share a profile.
    #[error("the profiler records another realm, or has: make one for each")]
    ProfilerInUse,
    /// The group is another realm's.
    #[error("processor group {} is another realm's: make one in the realm that runs the operation", .0.number)]
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
    profiler: Option<Profiler>,
    stack_size: usize,
    help_depth: u32,
    cores: Option<usize>,
}

impl RealmBuilder {
    pub(super) fn new() -> Self {
        Self { workers: None, machine: None, profiler: None, stack_size: 8 << 20, help_depth: 32, cores: None }
    }

    /// So many cpus, hence workers, and one memory; at most 1024. Without this and [`machine`](Self::machine): the machine as
    /// detected.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// This machine: one worker for each of its cpus. [`workers`](Self::workers) has no effect then.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// So many of the system's cores are for this realm; at least one. By default those that the process may use. Workers for which there are no cores sleep more
    /// than others; and while a thread of the program's has no core of its own and waits, it may do a worker's work: see [`Realm::wait`].
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = Some(cores.max(1));
        self
    }

    /// Has this record a profile of the realm, from its start to its end; a profiler serves one realm. Without one, that costs a branch an
    /// operation.
    pub fn profile(mut self, profiler: Profiler) -> Self {
        self.profiler = Some(profiler);
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
    /// [`RealmError::NoWorkers`], [`RealmError::TooManyWorkers`] and [`RealmError::Thread`].
    pub fn build(self) -> Result<Realm, RealmError> {
        install_panic_hook();
        let machine = match (self.machine, self.workers) {
            (Some(machine), _) => machine,
            (None, Some(0)) => return Err(RealmError::NoWorkers),
            (None, Some(found)) if found > MOST_WORKERS => return Err(RealmError::TooManyWorkers { found }),
            (None, workers) => detect(workers),
        };
        let processors: Vec<_> = machine.processors_of(ProcessorKind::Cpu).map(|processor| processor.id).collect();
        if processors.is_empty() {
            return Err(RealmError::NoWorkers);
        }
        if processors.len() > MOST_WORKERS {
            return Err(RealmError::TooManyWorkers { found: processors.len() });
        }
        if self.profiler.as_ref().is_some_and(|profiler| !profiler.begin(&machine)) {
            return Err(RealmError::ProfilerInUse);
        }
        let own: Vec<_> = processors.iter().map(|_| OwnDeques::new()).collect();
        let Self { profiler, help_depth, stack_size, cores, .. } = self;
        let core = Core::new(Setting { machine, profiler, help_depth, stack_size, cores }, &processors, &own);
        let keeper = Keeper::new(Arc::clone(&core));
        for (worker, (processor, own)) in processors.into_iter().zip(own).enumerate() {
            let inner = Realm { core: Arc::clone(&core), keeper: Arc::downgrade(&keeper), kept: None };
            let work = move || Local::new(inner, (worker, processor), own, stack_size).work();
            let started = Thread::start(format!("realm-{worker}"), stack_size, work);
            match started {
                Ok(thread) => keeper.add(thread),
                Err(source) => {
                    core.never_started(core.presence.processors().len() - worker);
                    return Err(RealmError::Thread { worker, source });
                }
            }
        }
        Ok(Realm { core, keeper: Arc::downgrade(&keeper), kept: Some(keeper) })
    }
}

/// More workers than this are surely a mistake.
const MOST_WORKERS: usize = 1024;

/// The share of the detected memory that instances may take.
const INSTANCE_SHARE: f64 = 0.75;

fn detect(workers: Option<usize>) -> Machine {
    let topology = Topology::detect();
    match workers {
        None => topology.machine(INSTANCE_SHARE),
        Some(workers) => Machine::uniform(workers as u32, (topology.memory() as f64 * INSTANCE_SHARE) as u64),
    }
}
