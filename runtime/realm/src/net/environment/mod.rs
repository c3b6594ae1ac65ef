//! The place of this process in its job, by the variables that its launcher has put into the environment.
//!
//! A program asks [`Place::find`], and needs to know nothing else about how it was started:
//!
//! | launcher | rank and number from | nodes talk by |
//! | --- | --- | --- |
//! | none | | there is one |
//! | `maniple launch`, or anything that sets these | [`RANK`], [`NODES`] | TCP, with [`RENDEZVOUS`] and [`SECRET`] |
//! | Open MPI's `mpirun` | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | MPI with the feature `mpi`; TCP where [`RENDEZVOUS`] is set |
//! | `mpiexec` of MPICH and its kin | `PMI_RANK`, `PMI_SIZE` | the same |
//! | Slurm's `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same |
//!
//! The first launcher of this table that has set its variables counts: a job that `maniple launch` starts within a
//! batch job is not the batch job. The script of a batch job is no node of it; what it starts with `srun` is.

#[cfg(feature = "tcp")]
mod tcp;
#[cfg(test)]
mod tests;

use std::env;
use std::fmt;
use std::sync::Arc;
#[cfg(any(feature = "mpi", feature = "tcp"))]
use std::time::Duration;

use thiserror::Error;

#[cfg(feature = "tcp")]
pub use self::tcp::Rendezvous;
#[cfg(feature = "tcp")]
pub use super::tcp::{Meeting, Secret};
use super::transport::Transport;
use crate::machine::NodeId;

/// The variable with this node's rank, from 0.
pub const RANK: &str = "MANIPLE_RANK";
/// The variable with the number of nodes.
pub const NODES: &str = "MANIPLE_NODES";
/// The variable with how many of the nodes are on this machine, which share its cores.
pub const NEIGHBOURS: &str = "MANIPLE_NEIGHBOURS";
/// The variable with where nodes meet: `HOST:PORT` or `[IPV6]:PORT`, where node 0 listens; or, with a `/` in it, a file
/// that all can read and node 0 writes.
pub const RENDEZVOUS: &str = "MANIPLE_RENDEZVOUS";
/// The variable with the job's secret, 64 hexadecimal digits.
pub const SECRET: &str = "MANIPLE_SECRET";
/// The variable with the address to listen on while nodes meet: 127.0.0.1 if it is not set, 0.0.0.0 for nodes on
/// several machines, which means all addresses, also those of IPv6.
pub const LISTEN: &str = "MANIPLE_LISTEN";
/// The variable with how many seconds to wait until all nodes have come.
pub const JOIN_TIMEOUT: &str = "MANIPLE_JOIN_TIMEOUT";
/// The variable with after how many seconds without a sign of life a node is lost.
pub const SILENCE: &str = "MANIPLE_SILENCE";
/// The variable with whether nodes of one machine send messages by memory that they share: 1, if it is not set, or 0.
pub const SHARED_MEMORY: &str = "MANIPLE_SHARED_MEMORY";

/// The variable that is 1 if a launcher has given the process cores that it shares with no other node.
pub const BOUND: &str = "MANIPLE_BOUND";

/// Variables of other launchers with how many nodes are on this machine.
const OTHER_NEIGHBOURS: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
/// Slurm's: how many there are on each machine of the job step, as a list, and which machine this is.
const SLURM_NEIGHBOURS: (&str, &str) = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID");

/// The launchers besides our own: their variables with rank and number.
const OTHERS: [(Launcher, &str, &str); 3] = [
    (Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    (Launcher::Pmi, "PMI_RANK", "PMI_SIZE"),
    // The script of a batch job has a rank as well, but is in no step.
    (Launcher::Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// The launcher that started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// No launcher: the process is the whole job.
    None,
    /// `maniple launch`, or another one that sets the same variables.
    Maniple,
    /// The `mpirun` of Open MPI.
    OpenMpi,
    /// The `mpiexec` of MPICH or one of its relatives.
    Pmi,
    /// The `srun` of Slurm.
    Slurm,
}

impl fmt::Display for Launcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "no launcher",
            Self::Maniple => "maniple launch",
            Self::OpenMpi => "Open MPI's mpirun",
            Self::Pmi => "mpiexec",
            Self::Slurm => "srun",
        })
    }
}

/// The place of a process in its job.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which node it is.
    pub rank: NodeId,
    /// How many there are.
    pub nodes: usize,
    /// How many of them share this machine's cores, as far as the launcher tells.
    pub neighbours: usize,
    /// Whether the cores that this process may use are its own.
    pub is_bound: bool,
    /// The launcher that started it.
    pub launcher: Launcher,
    /// How it reaches the others.
    pub way: Way,
}

/// How the nodes of a job reach each other.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Way {
    /// There are no others.
    Alone,
    /// Over TCP.
    #[cfg(feature = "tcp")]
    Tcp(Rendezvous),
    /// By MPI.
    #[cfg(feature = "mpi")]
    Mpi(super::mpi::Settings),
}

/// Why a process does not know its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// A variable that is not what it should be.
    #[error("the environment variable {name} is {expected}, not `{found}`")]
    BadValue {
        /// Its name.
        name: &'static str,
        /// The values that it may have.
        expected: &'static str,
        /// Its value; a secret is not shown.
        found: String,
    },
    /// A variable that is not there although another one is.
    #[error(
        "the environment variable {present} is set, but {missing} is not: start all nodes with `maniple launch`, or set both"
    )]
    Missing {
        /// The one that is there.
        present: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
    /// A rank beyond the number of nodes.
    #[error("{rank_name}={rank}, but {nodes_name}={nodes}: ranks count from 0, and a job has 1 to 65,536 nodes")]
    NoSuchRank {
        /// The variable with the rank.
        rank_name: &'static str,
        /// The rank.
        rank: u64,
        /// The variable with the number of nodes.
        nodes_name: &'static str,
        /// The number of nodes.
        nodes: u64,
    },
    /// A launcher that gives nodes a rank, but no way to meet.
    #[error(
        "{launcher} started this process as one of {nodes} nodes, which have no way to reach each other: build the program with the feature `{feature}`, \
        start it with `maniple launch`, or set {RENDEZVOUS} (HOST:PORT of node 0), {SECRET} (64 random hexadecimal digits) and, for several \
        machines, {LISTEN}=0.0.0.0 for all of them"
    )]
    NoWay {
        /// The launcher that started the process.
        launcher: Launcher,
        /// How many.
        nodes: usize,
        /// The feature that would have given one.
        feature: &'static str,
    },
}

/// Why a process does not reach the other nodes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Over TCP.
    #[cfg(feature = "tcp")]
    #[error(transparent)]
    Tcp(#[from] super::tcp::JoinError),
    /// By MPI.
    #[cfg(feature = "mpi")]
    #[error(transparent)]
    Mpi(#[from] super::mpi::JoinError),
}

impl Place {
    /// This process's place, by its environment.
    ///
    /// # Errors
    ///
    /// If variables are missing, or are not what they should be.
    pub fn find() -> Result<Self, PlaceError> {
        Self::find_in(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The place of a process with these variables.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub fn find_in(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, PlaceError> {
        let variables = Variables(&variable);
        let (launcher, rank_name, nodes_name) = if variables.has(RANK) || variables.has(NODES) {
            (Launcher::Maniple, RANK, NODES)
        } else {
            let found = OTHERS.into_iter().find(|(_, rank, nodes)| variables.has(rank) && variables.has(nodes));
            let Some(found) = found else {
                return Ok(Self::alone());
            };
            found
        };
        let (rank, nodes) = (variables.number(rank_name, nodes_name)?, variables.number(nodes_name, rank_name)?);
        if nodes > 1 << 16 || rank >= nodes {
            return Err(PlaceError::NoSuchRank { rank_name, rank, nodes_name, nodes });
        }
        let nodes = nodes as usize;
        let way = if nodes == 1 { Way::Alone } else { variables.way(launcher, nodes)? };
        let is_bound = variables.optional(BOUND, "0 or 1", zero_or_one)?.unwrap_or(false);
        let count = |text: &str| text.parse().ok().filter(|&count: &usize| count > 0);
        let neighbours = variables.optional(NEIGHBOURS, "a number of at least 1", count)?;
        // What others write and cannot be read only makes for more workers than cores.
        let others = || OTHER_NEIGHBOURS.into_iter().filter_map(&variable).find_map(|text| count(text.trim()));
        let (tasks, machine) = SLURM_NEIGHBOURS;
        let slurm = || tasks_on(&variable(tasks)?, variable(machine)?.trim().parse().ok()?);
        let neighbours = neighbours.or_else(others).or_else(slurm).unwrap_or(1).min(nodes);
        Ok(Self { rank: NodeId(rank as u16), nodes, neighbours, is_bound, launcher, way })
    }

    /// The place of a process that was not started as one of several nodes.
    #[must_use]
    pub fn alone() -> Self {
        Self { rank: NodeId(0), nodes: 1, neighbours: 1, is_bound: false, launcher: Launcher::None, way: Way::Alone }
    }

    /// How many cores are this node's, as far as is known: those that the process may use, or its share of them.
    #[must_use]
    pub fn cores(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.is_bound { cores } else { (cores / self.neighbours).max(1) }
    }

    /// Meets the other nodes; `None` if there are none.
    ///
    /// # Errors
    ///
    /// If they do not all come.
    pub fn connect(&self) -> Result<Option<Arc<dyn Transport>>, ConnectError> {
        match &self.way {
            Way::Alone => Ok(None),
            #[cfg(feature = "tcp")]
            Way::Tcp(rendezvous) => Ok(Some(super::tcp::Tcp::join(rendezvous.settings(self.rank, self.nodes)?)?)),
            #[cfg(feature = "mpi")]
            Way::Mpi(settings) => {
                let transport = super::mpi::Mpi::join(settings.clone())?;
                let (found, size) = (transport.rank(), transport.nodes());
                if (found, size) != (self.rank, self.nodes) {
                    let (expected, nodes) = (self.rank, self.nodes);
                    return Err(super::mpi::JoinError::OtherLibrary { expected, nodes, found, size }.into());
                }
                Ok(Some(transport))
            }
        }
    }
}

fn zero_or_one(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// How many tasks Slurm has started on a machine, of a list such as `2(x3),1`: two on each of three machines, and one
/// on the fourth.
fn tasks_on(list: &str, machine: usize) -> Option<usize> {
    let mut before = 0;
    for part in list.trim().split(',') {
        let (tasks, machines) = match part.split_once("(x") {
            Some((tasks, machines)) => (tasks, machines.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_usize),
        };
        before = machines.checked_add(before)?;
        if machine < before {
            return tasks.parse().ok().filter(|&tasks| tasks > 0);
        }
    }
    None
}

/// Looks up variables and reads them.
struct Variables<'a>(&'a dyn Fn(&'static str) -> Option<String>);

impl Variables<'_> {
    fn has(&self, name: &'static str) -> bool {
        (self.0)(name).is_some()
    }

    /// A variable that must be there because another one is.
    fn text(&self, name: &'static str, present: &'static str) -> Result<String, PlaceError> {
        (self.0)(name).ok_or(PlaceError::Missing { present, missing: name })
    }

    fn number(&self, name: &'static str, present: &'static str) -> Result<u64, PlaceError> {
        let text = self.text(name, present)?;
        text.trim().parse().map_err(|_| PlaceError::BadValue { name, expected: "a number", found: text })
    }

    #[cfg(feature = "mpi")]
    fn mpi(&self) -> Result<super::mpi::Settings, PlaceError> {
        let usual = super::mpi::Settings::default();
        let silence = self.seconds(SILENCE)?.unwrap_or(usual.silence);
        // Several signs of life must fit into the silence that is one too many.
        Ok(super::mpi::Settings { silence, heartbeat: usual.heartbeat.min(silence / 8) })
    }

    #[cfg(any(feature = "mpi", feature = "tcp"))]
    fn seconds(&self, name: &'static str) -> Result<Option<Duration>, PlaceError> {
        let read = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok().filter(|time| !time.is_zero());
        self.optional(name, "a number of seconds", read)
    }

    fn optional<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, PlaceError> {
        let Some(text) = (self.0)(name) else { return Ok(None) };
        match read(text.trim()) {
            Some(value) => Ok(Some(value)),
            None => Err(PlaceError::BadValue { name, expected, found: text }),
        }
    }

    fn way(&self, launcher: Launcher, nodes: usize) -> Result<Way, PlaceError> {
        // Ours always says where to meet; a user that sets the variables by hand and forgets that one is told so.
        let _meets = launcher == Launcher::Maniple || self.has(RENDEZVOUS);
        #[cfg(feature = "tcp")]
        if _meets {
            return Rendezvous::find(self, launcher).map(Way::Tcp);
        }
        #[cfg(feature = "mpi")]
        if !_meets {
            return self.mpi().map(Way::Mpi);
        }
        let feature = if _meets { "tcp" } else { "mpi" };
        Err(PlaceError::NoWay { launcher, nodes, feature })
    }
}
