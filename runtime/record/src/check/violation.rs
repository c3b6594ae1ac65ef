//! Violations of the rules that a record can show.

use std::fmt;

use maniple_mapper::InstanceId;
use maniple_space::AnySpace;

use crate::names::OperationName;

/// Why a record is no proof that the run was right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The record contradicts itself, or lacks something.
    #[error("the record makes no sense at {operation}: {problem}")]
    Malformed {
        /// The operation at which the record makes no sense.
        operation: OperationName,
        /// A description of the problem.
        problem: String,
    },
    /// The record was taken too early, or began too late: it lacks part of what a task did, and so proves nothing of
    /// the whole.
    #[error(
        "{task} was under way when the record was taken, or one before it, so part of what it did is missing: take records while nothing runs; of a \
         runtime that has broken down there is no whole one"
    )]
    Unfinished {
        /// The task.
        task: OperationName,
    },
    /// Operations wait for each other.
    #[error("these wait for each other, each for the one before: {}", listed(.operations))]
    Circle {
        /// All of them, each waiting for the one before, the first for the last.
        operations: Vec<OperationName>,
    },
    /// Two operations use the same memory, at least one to change it, and neither was made to wait for the other.
    #[error("{first} and {second} both use {data}, one of them changes it, and neither was made to wait for the other")]
    Unordered {
        /// The one that was issued first.
        first: OperationName,
        /// The other.
        second: OperationName,
        /// The data that both use.
        data: Data,
    },
    /// An operation sees other values than if all had run one after another in program order.
    #[error("{reader} reads {data} and finds {found}; by program order it should find {expected}")]
    WrongVersion {
        /// The operation that reads.
        reader: OperationName,
        /// The data that it reads.
        data: Data,
        /// The version that it finds, described by its makers.
        found: String,
        /// The version that it should find, described likewise.
        expected: String,
    },
    /// Contributions of a reduction are applied to values that they are part of already, or something else in their
    /// place.
    #[error("{operation} spoils {data}: {problem}")]
    Misapplied {
        /// The operation that applies them.
        operation: OperationName,
        /// The data that they are applied to.
        data: Data,
        /// A description of the problem.
        problem: String,
    },
    /// An operation that uses interfering data was mapped before one that comes earlier in program order.
    #[error("{second} was mapped before {first}, which comes earlier in program order and uses the same {data}")]
    MappedTooEarly {
        /// The one that comes first in program order.
        first: OperationName,
        /// The one that was mapped first.
        second: OperationName,
        /// The data that both use.
        data: Data,
    },
}

/// Values of a field at some points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The field's name.
    pub field: String,
    /// The region tree.
    pub region: String,
    /// The points.
    pub points: AnySpace,
    /// The instance that holds the values, if that matters.
    pub instance: Option<InstanceId>,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} at {}", self.field, self.region, self.points)?;
        self.instance.map_or(Ok(()), |instance| write!(f, " in instance {}", instance.0))
    }
}

fn listed(operations: &[OperationName]) -> String {
    operations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
