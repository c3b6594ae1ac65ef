//! Programs run through the public interface of the runtime, and compared with the oracle on the way.
//!
//! In reading order: `statement` interprets blocks, `traced` those that are traces, `launch` launches tasks and `body`
//! is the one leaf task of all programs, `split` makes partitions, `bulk` copies, `compare` looks at what has come out,
//! `mistake` names what can be done wrong on purpose, `tally` counts. What deviates from the oracle is noted in the
//! [`Run`]; the program goes on as far as it can.

mod attach;
mod body;
mod bulk;
mod compare;
mod launch;
mod mistake;
mod split;
mod statement;
mod tally;
mod traced;

use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maniple::task::TaskDefinition;
use maniple::{
    Error, FieldId, FieldSpace, Future, FutureMap, IndexSpaceNode, LogicalRegion, Partitioning, Projection, Region,
};
use tempfile::NamedTempFile;

use crate::oracle::{Context as Fate, World};
use crate::program::{
    FieldNumber, FieldsName, FutureName, Node, PartitionName, Place, Program, RegionName, Site, SpaceName, Use,
};
use crate::value::{Cells, Word};

pub use compare::{Way, run_program, run_side_by_side};
pub use mistake::Mistake;
pub use tally::{Counts, Tally};

/// The deviations from the oracle that are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tolerance {
    /// Nothing.
    #[default]
    None,
    /// Anything may fail (for want of memory, by a mapper's fault), but what does not fail is right.
    Errors,
}

/// A run of a program.
pub struct Run {
    /// The program.
    pub program: Program,
    /// The expected result.
    pub expected: World,
    /// The expected end of the top-level task: the regions that it leaves, its digest, whether it can succeed.
    pub fate: Fate,
    /// The deviations from `expected` that are allowed.
    pub tolerance: Tolerance,
    /// The mistake that is made on purpose.
    pub mistake: Mistake,
    /// Seeds delays.
    pub delays: Option<u64>,
    /// Whether to print each statement and task as it begins and ends.
    pub trace: bool,
    /// On how many nodes it runs.
    pub nodes: usize,
    /// Whether launches name mappers: those that each [`Environment`](crate::environment::Environment) has.
    pub names_mappers: bool,
    /// By a function or a session.
    pub way: Way,
    /// The counts of the run.
    pub tally: Arc<Tally>,
    names: Names,
    deviations: Mutex<Vec<String>>,
    /// The top level's block was left early, so that regions need not be right at the end.
    cut_short: AtomicBool,
    /// The comparison of what is left was told of a failure, so that the program need not fail of it.
    was_told: AtomicBool,
}

/// The objects that the names of a program stand for.
#[derive(Default)]
struct Names {
    spaces: Table<SpaceName, IndexSpaceNode>,
    partitions: Table<PartitionName, Arc<Partitioning>>,
    fields: Table<FieldsName, (Arc<FieldSpace>, Vec<FieldId>)>,
    regions: Table<RegionName, LogicalRegion>,
    scratch: Table<RegionName, Arc<dyn Any + Send + Sync>>,
    futures: Table<FutureName, Handle>,
    /// Results that tasks may use which are not given them as arguments: they are not forgotten.
    handed: Table<FutureName, ()>,
    /// Files that nothing waits for: they are there until they are written.
    files: Mutex<Vec<Arc<NamedTempFile>>>,
    /// Tasks and projections: the same in all turns of a loop, as they are in a program that names functions.
    tasks: Table<Site, Arc<TaskDefinition>>,
    projections: Table<(Site, usize), (Use, Projection)>,
}

/// The objects that names of one kind stand for.
struct Table<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + std::fmt::Debug, V: Clone> Table<K, V> {
    fn get(&self, name: K) -> Result<V, Stop> {
        let found = locked(&self.0).get(&name).cloned();
        found.ok_or_else(|| Stop(Error::application(format!("there is no {name:?}"))))
    }

    fn insert(&self, name: K, value: V) {
        locked(&self.0).insert(name, value);
    }

    fn get_or_insert(&self, name: K, make: impl FnOnce() -> Result<V, Stop>) -> Result<V, Stop> {
        if let Some(known) = locked(&self.0).get(&name) {
            return Ok(known.clone());
        }
        let made = make()?;
        self.insert(name, made.clone());
        Ok(made)
    }

    fn remove(&self, name: K) {
        // Dropped when the table is free again: that may take a while, in which others are run.
        let gone = locked(&self.0).remove(&name);
        drop(gone);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result to come.
#[derive(Clone)]
enum Handle {
    One(Future<Word>),
    Many(FutureMap<Word>),
    Unit(Future<()>),
    /// Memory that comes back.
    Memory(attach::Memory),
}

/// A block cannot go on.
#[derive(Debug)]
struct Stop(Error);

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<maniple::RegionError> for Stop {
    fn from(error: maniple::RegionError) -> Self {
        Self(error.into())
    }
}

impl Run {
    /// A run of a program that must come out as the oracle says.
    #[must_use]
    pub fn new(program: Program, expected: World, fate: Fate) -> Self {
        Self {
            program,
            expected,
            fate,
            tolerance: Tolerance::None,
            mistake: Mistake::None,
            delays: None,
            trace: false,
            nodes: 1,
            names_mappers: false,
            way: Way::Function,
            tally: Arc::default(),
            names: Names::default(),
            deviations: Mutex::default(),
            cut_short: AtomicBool::new(false),
            was_told: AtomicBool::new(false),
        }
    }

    /// The deviations from the oracle.
    #[must_use]
    pub fn deviations(&self) -> Vec<String> {
        locked(&self.deviations).clone()
    }

    /// Notes something that must not be.
    pub fn deviates(&self, what: String) {
        locked(&self.deviations).push(what);
    }

    /// Prints that something begins (`>`) or ends (`<`), if that is wanted.
    fn trace(&self, mark: char, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{mark} {}", what());
        }
    }

    fn node(&self, node: Node) -> Result<IndexSpaceNode, Stop> {
        match node {
            Node::Root(space) => self.names.spaces.get(space),
            Node::Piece(partition, color) => {
                let partitioning = self.names.partitions.get(partition)?;
                let color = partitioning.colors().delinear(color as u64);
                Ok(partitioning.piece(color)?)
            }
        }
    }

    fn logical(&self, place: Place) -> Result<LogicalRegion, Stop> {
        Ok(self.names.regions.get(place.region)?.with_space(self.node(place.node)?))
    }

    fn region<const D: usize>(&self, place: Place) -> Result<Region<Cells, D>, Stop> {
        Ok(Region::try_from_logical(self.logical(place)?)?)
    }

    fn field(&self, region: RegionName, field: FieldNumber) -> Result<FieldId, Stop> {
        let expected = self.expected.regions.get(&region).map(|region| region.fields);
        let fields = expected.ok_or_else(|| Stop(Error::application(format!("there is no {region:?}"))))?;
        let (_, ids) = self.names.fields.get(fields)?;
        ids.get(field).copied().ok_or_else(|| Stop(Error::application(format!("there is no field {field}"))))
    }
}

/// Runs an expression with the number of dimensions as a constant.
macro_rules! with_dimension {
    ($dim:expr, $D:ident => $body:expr) => {
        match $dim {
            1 => {
                const $D: usize = 1;
                $body
            }
            2 => {
                const $D: usize = 2;
                $body
            }
            _ => {
                const $D: usize = 3;
                $body
            }
        }
    };
}
pub(crate) use with_dimension;
