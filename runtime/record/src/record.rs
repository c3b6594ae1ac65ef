//! The record: plain data that says what was launched, what was issued to the machine, and what waited for what.

use std::collections::{BTreeMap, BTreeSet};

use maniple_mapper::InstanceId;
use maniple_region::{FieldMask, LogicalRegion, OperatorId, Privilege, Provenance, Requirement};
use maniple_space::{AnyPoint, AnySpace};

/// The number of an operation of a record. Operations are numbered as they are issued, across all records of a runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct OperationNumber(pub u64);

/// The number of a launch of a record. Launches are numbered as they are made, across all records of a runtime; so of
/// two launches of one task, the one with the smaller number comes first in program order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LaunchNumber(pub u64);

/// A record of a run: the launches of tasks, the operations that the runtime issued for them, and their order.
///
/// A record that begins while nothing runs, and ends so, can be [checked](crate::check).
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The number of the first launch.
    pub first_launch: LaunchNumber,
    /// The launches of tasks, by number.
    pub launches: Vec<Launch>,
    /// The number of the first operation.
    pub first_operation: OperationNumber,
    /// The operations issued to the machine, by number.
    pub operations: Vec<Operation>,
    /// The operations that were replayed: no analysis found what they came after, but the compiled graph of a trace
    /// made them wait for it.
    pub replayed: BTreeSet<OperationNumber>,
    /// The tasks that launch others and had not ended, with all those, when the record was taken, or had begun before
    /// an earlier one was: the record lacks part of what they did.
    pub unfinished: BTreeSet<OperationNumber>,
    /// The instances that operations name.
    pub instances: BTreeMap<InstanceId, Instance>,
}

/// A launch: a task or an index launch, a fill, an inline mapping, a fence, or where launches that are traced begin and
/// end.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The task that launched it.
    pub parent: OperationNumber,
    /// The name of the task, or what it is.
    pub name: String,
    /// The place in the program that launched it, if that is known.
    pub launched: Option<Provenance>,
    /// How many points it has.
    pub points: u64,
    /// The uses that it makes of data.
    pub requirements: Vec<Requirement>,
    /// The earlier launches of the same task that had to be mapped first, or if it is replayed, that it is made to wait
    /// for.
    pub after: Vec<Dependence>,
}

/// That a launch had to be mapped after another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dependence {
    /// The earlier launch.
    pub on: LaunchNumber,
    /// Why.
    pub because: Because,
}

/// Why a launch had to be mapped after another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Because {
    /// They use the same data, the later one by the requirement of this number.
    Data(usize),
    /// One of them is a fence.
    Fence,
    /// The later one takes a result of the earlier one.
    Future,
    /// The later one is an inline mapping, which comes after everything launched before.
    Held,
    /// The later one is replayed, and the compiled graph of its trace has some of its points wait for some of the
    /// earlier one's.
    Trace,
}

/// Memory that holds data of a region.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The region that it was made for. It has room for the smallest rectangle around the points.
    pub region: LogicalRegion,
    /// The fields that it holds.
    pub fields: FieldMask,
    /// If it is a buffer for contributions, by which operator.
    pub buffer: Option<OperatorId>,
}

/// Something that was issued to the machine, or that has a place in its order.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The kind of the operation.
    pub kind: Kind,
    /// The operations whose ends it came after, before it began: those that it was made to wait for, and the task that
    /// it was issued by. All are of smaller numbers, but for [`Kind::End`] and [`Kind::Join`].
    pub after: Vec<OperationNumber>,
}

/// The kind of an operation that was issued.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The beginning of a top-level task.
    TopLevel,
    /// A task, or one point of an index launch. One that launches others is only its own beginning: see [`Kind::End`].
    Task(Task),
    /// An inline mapping, from when the data is there until it is given back.
    Mapping {
        /// The position in program order.
        place: Place,
        /// The use of the mapped data.
        usage: Usage,
    },
    /// Fields of a region given one value, which is stored nowhere yet.
    FillRegion {
        /// The position in program order.
        place: Place,
        /// The region.
        region: LogicalRegion,
        /// The fields.
        fields: FieldMask,
    },
    /// An execution fence.
    Fence {
        /// The position in program order.
        place: Place,
    },
    /// Data given up, because a task that was to change it could not be mapped, or failed after having used its
    /// parent's data: no operation may see it before it is written again.
    Lost {
        /// The position in program order: behind all other operations of the same place.
        place: Place,
        /// The uses that the task was to make of data, as far as these would have changed something. None of them was
        /// mapped.
        usages: Vec<Usage>,
    },
    /// The end of a task that launched others, and of all those.
    End {
        /// Its beginning.
        task: OperationNumber,
    },
    /// Nothing but the moment when several others have ended.
    Join,
    /// Data copied from one instance to another.
    Copy {
        /// On behalf of which launch.
        cause: Option<LaunchNumber>,
        /// The instance read.
        from: InstanceId,
        /// The instance written.
        to: InstanceId,
        /// The copied parts.
        parts: Vec<Part>,
    },
    /// An instance filled with values that regions were given.
    Fill {
        /// On behalf of which launch.
        cause: Option<LaunchNumber>,
        /// The instance written.
        to: InstanceId,
        /// The filled parts, each with its value.
        parts: Vec<(Part, Value)>,
    },
    /// A buffer emptied, to be used again.
    Refill {
        /// On behalf of which launch.
        cause: Option<LaunchNumber>,
        /// The buffer.
        buffer: InstanceId,
        /// The emptied part.
        part: Part,
    },
    /// Buffered contributions applied to values, or folded into another buffer.
    Apply {
        /// On behalf of which launch.
        cause: Option<LaunchNumber>,
        /// The instance changed.
        to: InstanceId,
        /// The contributions, in the order in which they are applied.
        contributions: Vec<Contribution>,
    },
}

/// A task, or one point of an index launch.
#[derive(Clone, Debug)]
pub struct Task {
    /// The position in program order.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Its point; nothing for a task that was launched alone.
    pub point: Option<AnyPoint>,
    /// Whether it uses data itself. One that does not launches others, which do.
    pub is_leaf: bool,
    /// The uses that it makes of data, by requirement.
    pub usages: Vec<Usage>,
}

/// The position of an operation in program order: behind operations of the same parent with an earlier launch, or the
/// same launch and a smaller index, and all operations that those launched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The task that launched it.
    pub parent: OperationNumber,
    /// The launch.
    pub launch: LaunchNumber,
    /// The row-major number of its point in the launch.
    pub index: u64,
}

/// The use of some data, and the instances that hold it.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The region.
    pub region: LogicalRegion,
    /// The fields.
    pub fields: FieldMask,
    /// The privilege on the fields.
    pub privilege: Privilege,
    /// The instances that hold the fields: some fields in one, some in another. Empty for a task that was mapped
    /// virtually.
    pub instances: Vec<(FieldMask, InstanceId)>,
}

/// Points of some fields of an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The fields.
    pub fields: FieldMask,
    /// The points.
    pub points: AnySpace,
}

/// Contributions in a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contribution {
    /// The buffer.
    pub buffer: InstanceId,
    /// By which operator.
    pub operator: OperatorId,
    /// The part of the buffer that is applied.
    pub part: Part,
}

/// The value that an instance is filled with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// Zero, as everything is that was never written.
    Initial,
    /// That of a [`Kind::FillRegion`].
    Of(OperationNumber),
    /// None, since it was [lost](Kind::Lost): the fill never runs, nor does an operation that needs it.
    Lost,
}

impl Record {
    /// An operation by its number, if it is in the record.
    #[must_use]
    pub fn operation(&self, number: OperationNumber) -> Option<&Operation> {
        self.operations.get(self.index(number)?)
    }

    /// A launch by its number, if it is in the record.
    #[must_use]
    pub fn launch(&self, number: LaunchNumber) -> Option<&Launch> {
        self.launches.get(usize::try_from(number.0.checked_sub(self.first_launch.0)?).ok()?)
    }

    /// The number that the next operation would have.
    #[must_use]
    pub fn next_operation(&self) -> OperationNumber {
        self.number(self.operations.len())
    }

    /// The number that the next launch would have.
    #[must_use]
    pub fn next_launch(&self) -> LaunchNumber {
        LaunchNumber(self.first_launch.0 + self.launches.len() as u64)
    }

    /// The operations with their numbers.
    pub fn numbered(&self) -> impl ExactSizeIterator<Item = (OperationNumber, &Operation)> {
        self.operations.iter().enumerate().map(|(index, operation)| (self.number(index), operation))
    }

    /// The launches with their numbers.
    pub fn numbered_launches(&self) -> impl ExactSizeIterator<Item = (LaunchNumber, &Launch)> {
        let first = self.first_launch.0;
        self.launches.iter().enumerate().map(move |(index, launch)| (LaunchNumber(first + index as u64), launch))
    }

    /// The position in [`Record::operations`], if the number is not of an earlier record. It may be of a later one.
    pub(crate) fn index(&self, number: OperationNumber) -> Option<usize> {
        usize::try_from(number.0.checked_sub(self.first_operation.0)?).ok()
    }

    pub(crate) fn number(&self, index: usize) -> OperationNumber {
        OperationNumber(self.first_operation.0 + index as u64)
    }
}

impl Kind {
    /// Returns the position of the operation in program order, if a task launched it. Operations that move data have no
    /// such position.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Task(Task { place, .. })
            | Self::Mapping { place, .. }
            | Self::FillRegion { place, .. }
            | Self::Fence { place }
            | Self::Lost { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// The launch that the operation is of, or that caused it.
    #[must_use]
    pub fn launch(&self) -> Option<LaunchNumber> {
        match self {
            Self::Copy { cause, .. }
            | Self::Fill { cause, .. }
            | Self::Refill { cause, .. }
            | Self::Apply { cause, .. } => *cause,
            other => other.place().map(|place| place.launch),
        }
    }

    /// Returns the uses that the operation itself makes of data by its privileges; only a leaf task or an inline
    /// mapping makes any.
    #[must_use]
    pub fn usages(&self) -> &[Usage] {
        match self {
            Self::Task(Task { is_leaf: true, usages, .. }) => usages,
            Self::Mapping { usage, .. } => std::slice::from_ref(usage),
            _ => &[],
        }
    }
}
