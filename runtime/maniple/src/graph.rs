//! A record of what was issued to the machine, and what waited for what.

use std::fmt;

use maniple_mapper::InstanceId;
use maniple_realm::Event;
use maniple_space::{AnyPoint, AnySpace};
use parking_lot::Mutex;

use crate::physical::instance::PhysicalInstance;
use crate::physical::movement::{Movement, Preconditions, Source};
use crate::physical::set::PendingReduction;

/// Something that was issued to the machine: see [`crate::Runtime::take_graph`].
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// What it is.
    pub kind: NodeKind,
    /// Its end.
    pub event: Event,
    /// The ends of what it waits for, whether they had come already or not.
    pub after: Vec<Event>,
}

/// What was issued.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeKind {
    /// A task, or one point of an index launch.
    Task {
        /// Its name.
        name: String,
        /// Its point.
        point: AnyPoint,
        /// For each requirement, the instances that it uses.
        instances: Vec<Vec<InstanceId>>,
    },
    /// Data copied from one instance to another.
    Copy {
        /// The instance read.
        from: InstanceId,
        /// The instance written.
        to: InstanceId,
        /// The names of the fields and the points of each, in order of issue.
        parts: Vec<(String, AnySpace)>,
    },
    /// An instance filled with a value.
    Fill {
        /// The instance written.
        to: InstanceId,
        /// The names of the fields and the points of each, in order of issue.
        parts: Vec<(String, AnySpace)>,
    },
    /// Buffered contributions applied to values.
    Reduction {
        /// The buffers, in order of application.
        from: Vec<InstanceId>,
        /// The instance written.
        to: InstanceId,
    },
}

impl NodeKind {
    pub(crate) fn of_movements(movements: &[&Movement]) -> Self {
        let parts = movements.iter().map(|movement| {
            let fields = movement.destination.region().fields().names_of(&movement.fields);
            (fields, movement.shape.space().clone())
        });
        let parts = parts.collect();
        let first = movements.first().expect("an operation moves something");
        let to = first.destination.id();
        match &first.source {
            Source::Instance(from) => Self::Copy { from: from.id(), to, parts },
            Source::Fill(_) => Self::Fill { to, parts },
        }
    }

    pub(crate) fn of_reductions(pending: &[PendingReduction], into: &PhysicalInstance) -> Self {
        Self::Reduction { from: pending.iter().map(|reduction| reduction.buffer.id()).collect(), to: into.id() }
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { name, point, .. } => write!(f, "{name}{point}"),
            Self::Copy { from, to, .. } => write!(f, "copy {} to {}", from.0, to.0),
            Self::Fill { to, .. } => write!(f, "fill {}", to.0),
            Self::Reduction { from, to } => write!(f, "apply {} buffers to {}", from.len(), to.0),
        }
    }
}

/// Collects nodes.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<GraphNode>>);

impl Recorder {
    pub(crate) fn push(&self, event: Event, kind: NodeKind, after: &Preconditions) {
        let after = after.needs.iter().chain(&after.follows).copied().collect();
        self.0.lock().push(GraphNode { kind, event, after });
    }

    pub(crate) fn take(&self) -> Vec<GraphNode> {
        std::mem::take(&mut *self.0.lock())
    }
}
