//! Why a job does not come together.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

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
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The rank is none of the job's, or there are too many nodes.
    #[error("{node} of a job of {nodes} nodes: ranks count from 0, and a job has 1 to 65,536 nodes")]
    NoSuchRank {
        /// The rank.
        node: NodeId,
        /// The nodes.
        nodes: usize,
    },
    /// The file in which nodes are to find node 0 says nothing that can be used.
    #[error(
        "node 0 listens on all addresses of its machine, so {} cannot tell where to find it: let it listen on one that the others reach",
        file.display()
    )]
    NoAddressToTell {
        /// The file.
        file: PathBuf,
    },
    /// There is something in the place of the file in which nodes are to find node 0 that is not one.
    #[error(
        "nodes cannot meet at {}: {found}; give the path of a file that does not exist, in a folder that all nodes see", file.display()
    )]
    NotAPlace {
        /// The file.
        file: PathBuf,
        /// A description of what is there.
        found: &'static str,
    },
    /// A node did not come.
    #[error(
        "after {}s {waited_for} had not come: see whether all nodes run, and whether they reach node 0 ({meeting}){}{refused}",
        after.as_secs_f64(),
        if refused.is_empty() { "" } else { "; " }
    )]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
        /// The nodes that had not come.
        waited_for: String,
        /// The place where nodes meet.
        meeting: String,
        /// Why a process was refused meanwhile, or why we were.
        refused: String,
    },
    /// A node of the job runs another program.
    #[error(
        "{node} runs build {theirs}, but {us} runs build {ours}: all nodes of a job run the same program; copy it to every machine and start again"
    )]
    DifferentBuild {
        /// The other node.
        node: NodeId,
        /// The build that it runs.
        theirs: BuildId,
        /// This node.
        us: NodeId,
        /// The build that this node runs.
        ours: BuildId,
    },
    /// A program that speaks another version of the protocol.
    #[error(
        "{peer} speaks version {theirs} of Maniple's protocol, this node version {ours}: all nodes of a job run the same program"
    )]
    DifferentProtocol {
        /// The process at the other end.
        peer: String,
        /// Its version.
        theirs: u16,
        /// Ours.
        ours: u16,
    },
    /// A program that is no node.
    #[error("{peer} is no Maniple node: {found}")]
    NotANode {
        /// The process at the other end.
        peer: String,
        /// A description of what it did instead of greeting.
        found: String,
    },
    /// A process that does not know the secret.
    #[error(
        "{peer} does not know this job's secret: it belongs to another job, or was not started by this job's launcher"
    )]
    WrongSecret {
        /// The process at the other end.
        peer: String,
    },
    /// A node that thinks of another job.
    #[error(
        "{node} of {theirs} nodes greets a job of {ours} nodes: start all with one launcher, each with a rank of its own"
    )]
    DifferentJob {
        /// The rank that it has.
        node: NodeId,
        /// How many nodes it thinks there are.
        theirs: usize,
        /// How many there are.
        ours: usize,
    },
    /// A rank that is taken, or is not the one expected.
    #[error("a process greets as {node}, which is here already or not expected: give each process a rank of its own")]
    RankTaken {
        /// The rank.
        node: NodeId,
    },
    /// A node that ended before all had met.
    #[error("{node} ended while the job was coming together: see what it says itself")]
    Died {
        /// Which.
        node: NodeId,
    },
    /// The other side refused, and said why.
    #[error("{peer} refused: {reason}")]
    Refused {
        /// The process at the other end.
        peer: String,
        /// Its words.
        reason: String,
    },
    /// The system has no randomness.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(#[from] getrandom::Error),
}

impl JoinError {
    pub(in crate::net) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }

    /// Whether it is about a node that knows the secret, or one of ours by its version: there is no point in waiting
    /// for another try.
    pub(super) fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Io { .. } | Self::NotANode { .. } | Self::WrongSecret { .. } | Self::DifferentProtocol { .. }
        )
    }
}
