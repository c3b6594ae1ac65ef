//! Why a job does not come together over MPI.

use std::io;

use thiserror::Error;

use crate::machine::NodeId;
use crate::net::build::BuildId;

/// Why a node could not join its job.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The system refused something.
    #[error("{what}: {error}")]
    Io {
        /// The action that was tried.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// MPI runs in this process already, or did.
    #[error(
        "MPI was started in this process before: it can be started once, by the runtime or by the program, but not by both"
    )]
    Started,
    /// The library does not allow for threads.
    #[error("this MPI library does not work in programs with threads: use one that offers MPI_THREAD_FUNNELED")]
    NoThreads,
    /// The library does not know of the job.
    #[error(
        "{expected} is one of {nodes} nodes by its environment, but {found} of {size} by the MPI library: the program was built for \
        another MPI than the one whose launcher started it; build it again with the `mpicc` of that one in the PATH"
    )]
    OtherLibrary {
        /// The node by its environment.
        expected: NodeId,
        /// Their number, by the environment.
        nodes: usize,
        /// The node by the library.
        found: NodeId,
        /// Their number, by the library.
        size: usize,
    },
    /// More nodes than there may be.
    #[error("a job has 1 to 65,536 nodes, not {nodes}")]
    TooManyNodes {
        /// How many.
        nodes: usize,
    },
    /// A node runs another program.
    #[error(
        "{node} does not run the build of node 0 (this node runs {ours}): all nodes of a job run the same program; copy it to every machine and start again"
    )]
    DifferentBuild {
        /// The first such node.
        node: NodeId,
        /// The build that this node runs.
        ours: BuildId,
    },
}
