//! Building a realm: its machine, its options, its workers' threads.

use std::ptr::NonNull;
use std::sync::Arc;

use super::Realm;
use super::shared::{Keeper, SharedRealm};
use crate::fault::install_panic_hook;
use crate::machine::{Machine, ProcessorKind};
use crate::operation::operations::Operations;
use crate::operation::{MOST_WORKERS, RealmError};
use crate::profile::Profiler;
use crate::scheduler::presence::Presence;
use crate::scheduler::queue::OwnDeques;
use crate::threads::{Thread, simulated};
use crate::topology::Topology;
use crate::worker::{Local, Waiting, Workers};

/// How a realm is to be: see [`Realm::builder`].
#[derive(Clone, Debug)]
pub struct RealmBuilder {
    workers: Option<usize>,
    machine: Option<Machine>,
    memory: Option<u64>,
    profiler: Option<Profiler>,
    stack_size: usize,
    help_depth: u32,
    cores: Option<usize>,
}

impl RealmBuilder {
    pub(super) fn new() -> Self {
        let (workers, machine, memory, profiler, cores) = (None, None, None, None, None);
        Self { workers, machine, memory, profiler, stack_size: 8 << 20, help_depth: 32, cores }
    }

    /// So many cpus, hence workers, and one memory; at most 1024. Without this and [`machine`](Self::machine): the
    /// machine as detected.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// This machine: one worker for each of its cpus. [`workers`](Self::workers) has no effect then.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// So many bytes of the system's memory at most: see [`Machine::with_system_memory`].
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// So many of the system's cores are for this realm; at least one. By default those that the process may use.
    /// Workers for which there are no cores sleep more than others; and while a thread of the program's has no core of
    /// its own and waits, it may do a worker's work: see [`Realm::wait`].
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = Some(cores.max(1));
        self
    }

    /// Has this record a profile of the realm, from its start to its end; a profiler serves one realm. Without one,
    /// that costs a branch an operation.
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
        let Self { workers, machine, memory, profiler, stack_size, help_depth, cores } = self;
        let machine = match (machine, workers) {
            (Some(machine), _) => machine,
            (None, Some(0)) => return Err(RealmError::NoWorkers),
            (None, Some(found)) if found > MOST_WORKERS => return Err(RealmError::TooManyWorkers { found }),
            (None, workers) => detect(workers),
        };
        let machine = match memory {
            Some(bytes) => machine.with_system_memory(bytes),
            None => machine,
        };
        let processors: Vec<_> = machine.processors_of(ProcessorKind::Cpu).map(|processor| processor.id).collect();
        if processors.is_empty() {
            return Err(RealmError::NoWorkers);
        }
        if processors.len() > MOST_WORKERS {
            return Err(RealmError::TooManyWorkers { found: processors.len() });
        }
        if profiler.as_ref().is_some_and(|profiler| !profiler.begin(&machine)) {
            return Err(RealmError::ProfilerInUse);
        }
        let own: Vec<_> = processors.iter().map(|_| OwnDeques::new()).collect();
        let cores = cores.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
        let cores = cores.filter(|_| !simulated::is_inside()).unwrap_or(processors.len());
        let lends_place = processors.len() >= cores;
        let waiting = Waiting { help_depth, lends_place, stack_of_guests: stack_size / 4 * 3 };
        let operations = Operations::new(Presence::new(&processors, cores), &own, profiler);
        let shared = SharedRealm::new(machine, Workers::new(operations, waiting));
        let keeper = Keeper::new(Arc::clone(&shared));
        for (worker, (processor, own)) in processors.into_iter().zip(own).enumerate() {
            let inner = Realm::new(Arc::clone(&shared), Arc::downgrade(&keeper), None);
            let work = move || {
                let realm = NonNull::from(&inner).cast();
                // SAFETY: the handle outlives all that the thread does.
                unsafe { Local::new(&inner.shared.workers, worker, processor, own, stack_size, realm) }.work();
            };
            let started = Thread::start(format!("realm-{worker}"), stack_size, work);
            match started {
                Ok(thread) => keeper.add(thread),
                Err(source) => {
                    shared.workers.never_started(shared.operations.presence.processors().len() - worker);
                    return Err(RealmError::Thread { worker, source });
                }
            }
        }
        Ok(Realm::new(shared, Arc::downgrade(&keeper), Some(keeper)))
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
