//! Errors of building a realm, and of requests to it.

use crate::machine::ProcessorId;
use crate::scheduler::GroupId;

/// More workers than this are surely a mistake.
pub(crate) const MOST_WORKERS: usize = 1024;

/// An error of building a realm, or of a request to it.
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
        /// The error of the system.
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
