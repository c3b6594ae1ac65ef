//! Information for a mapper: tasks, requirements, instances, and the context in which it decides.

use std::fmt;

use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::{Machine, MemoryId, ProcessorId, ProcessorKind};
use maniple_region::{FieldMask, LogicalRegion, Privilege};
use maniple_space::{AnyPoint, AnyRect};

use crate::Mail;

/// The name of the task that takes what other nodes send for a launch: it has the tag of that.
pub const RECEIVE: &str = "receive";

/// A task that is to be placed: a single one, or one point of an index launch.
#[derive(Clone, Debug)]
pub struct TaskInfo<'a> {
    /// The task's name.
    pub name: &'a str,
    /// The point of the launch; of a single launch, the origin of a one-point domain.
    pub point: AnyPoint,
    /// All points of the launch.
    pub domain: AnyRect,
    /// Whether this is one of the points of an index launch.
    pub is_index_launch: bool,
    /// The requirements of the task, one entry for each requirement of its declaration.
    pub requirements: &'a [RequirementInfo],
    /// The implementations to choose from.
    pub variants: &'a [VariantInfo],
    /// The processor that the parent task runs on.
    pub origin: ProcessorId,
    /// How many tasks are above this one.
    pub depth: usize,
    /// A number that the application attached to the launch; 0 unless it did. A [`RECEIVE`] has that of the launch that
    /// it is for.
    pub tag: u64,
}

impl TaskInfo<'_> {
    /// The row-major number of the point in the launch.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.domain.linear(self.point)
    }

    /// The implementations for one kind of processor, as indices into [`TaskInfo::variants`].
    pub fn variants_for(&self, kind: ProcessorKind) -> impl Iterator<Item = usize> {
        (0..self.variants.len()).filter(move |&index| self.variants[index].processor == kind)
    }
}

/// A number that a program leaves to its mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable<'a> {
    /// Its name.
    pub name: &'a str,
    /// The values that the number depends on, as the program says: the number of rows, for instance.
    pub arguments: &'a [i64],
    /// The name of the task that asks.
    pub task: &'a str,
    /// How many nodes the job has.
    pub nodes: usize,
}

impl<'a> Tunable<'a> {
    /// One of this name that depends on nothing, asked for by the top-level task of a program on one node.
    #[must_use]
    pub fn named(name: &'a str) -> Self {
        Self { name, arguments: &[], task: "top level", nodes: 1 }
    }
}

/// A requirement of an operation: the use that it wants to make of one region.
#[derive(Clone, Debug)]
pub struct RequirementInfo {
    /// The data.
    pub region: LogicalRegion,
    /// The fields.
    pub fields: FieldMask,
    /// The privilege on the fields.
    pub privilege: Privilege,
    /// Whether different points of the launch may use the same data through this requirement, or through this and an
    /// earlier one. Reductions for which that is so run side by side only in buffers.
    pub is_shared: bool,
}

impl RequirementInfo {
    /// Bytes of the data if stored without gaps: points times sizes of fields.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let fields = self.region.fields();
        let size: usize = self.fields.iter().filter_map(|field| fields.type_of(field).ok()).map(|ty| ty.size).sum();
        self.region.space().space().volume().saturating_mul(size as u64)
    }

    /// The names of the fields, for messages.
    #[must_use]
    pub fn field_names(&self) -> String {
        self.region.fields().names_of(&self.fields)
    }
}

impl fmt::Display for RequirementInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.privilege, self.field_names(), self.region)
    }
}

/// One implementation of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantInfo {
    /// Its name.
    pub name: &'static str,
    /// The kind of processor that it runs on.
    pub processor: ProcessorKind,
    /// The constraint on the layout of its data. It always holds: the runtime adds it to the choices of the mapper.
    pub layout: LayoutConstraint,
    /// Constraints for the data of single requirements, by their numbers, in place of [`layout`](Self::layout).
    pub requirement_layouts: Vec<LayoutConstraint>,
    /// It runs to its end without launching anything.
    pub is_leaf: bool,
    /// It never looks at data, but only launches.
    pub is_inner: bool,
}

impl VariantInfo {
    /// Returns the constraint on the layout of a requirement's data.
    #[must_use]
    pub fn layout_of(&self, requirement: usize) -> LayoutConstraint {
        self.requirement_layouts.get(requirement).copied().unwrap_or(self.layout)
    }

    /// How many conditions it has for the layouts of so many requirements.
    #[must_use]
    pub fn conditions(&self, requirements: usize) -> usize {
        let of_one = |LayoutConstraint { arrangement, order, align, pad }| {
            let conditions = [arrangement.is_some(), order.is_some(), align.is_some(), pad.is_some()];
            conditions.into_iter().filter(|condition| *condition).count()
        };
        (0..requirements).map(|requirement| of_one(self.layout_of(requirement))).sum()
    }
}

/// The number of a physical instance, unique within a runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(pub u64);

/// A physical instance: memory that can hold the data of a region.
#[derive(Clone, Debug)]
pub struct InstanceInfo {
    /// Its number.
    pub id: InstanceId,
    /// The memory that it lies in.
    pub memory: MemoryId,
    /// The region that it was made for; it can hold that region and all below it. If it stores several rectangles,
    /// regions below that are a rectangle only where they lie in one.
    pub region: LogicalRegion,
    /// The fields that it can hold.
    pub fields: FieldMask,
    /// The fields of which it holds the current values, for the whole of the region asked about.
    pub valid: FieldMask,
    /// Its layout.
    pub layout: LayoutConstraint,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Information that a mapper may look up while it decides.
pub trait MappingContext {
    /// The processors and memories.
    fn machine(&self) -> &Machine;

    /// The instances that can hold a requirement's data, with what they hold now: a region that is a rectangle in one
    /// rectangle.
    fn instances(&self, requirement: usize) -> Vec<InstanceInfo>;

    /// Bytes in use in a memory at this moment.
    fn bytes_used(&self, memory: MemoryId) -> u64;

    /// How many tasks mappers have put on this processor that have not ended: those that wait for their data or for
    /// others, and those that idle processors have taken, included. Only tasks count of which the decision [holds
    /// once](crate::Validity::Once), as those of a mapper that balances loads do. A sample, which may be over when it
    /// is looked at.
    fn load(&self, processor: ProcessorId) -> usize {
        let _ = processor;
        0
    }

    /// Messages to the mappers of other processors and nodes.
    fn mail(&self) -> &dyn Mail;
}

/// Why a mapping did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MappingFailure {
    /// None of the memories named for a requirement had room.
    #[error("requirement {requirement} found no room: {}", self.shortage())]
    OutOfMemory {
        /// The requirement's number.
        requirement: usize,
        /// The last memory tried.
        memory: MemoryId,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes in use there.
        used: u64,
        /// Bytes that can be used there.
        capacity: u64,
    },
    /// An instance with more bytes than any memory has.
    #[error("requirement {requirement} found no room: {}", self.shortage())]
    TooLarge {
        /// The requirement's number.
        requirement: usize,
        /// The last memory tried.
        memory: MemoryId,
        /// The rectangle that the instance was to hold.
        bounds: AnyRect,
    },
    /// The system gave no bytes, although the memory has room by the model of the machine.
    #[error("requirement {requirement} found no room: {}", self.shortage())]
    SystemRefused {
        /// The requirement's number.
        requirement: usize,
        /// The last memory tried.
        memory: MemoryId,
        /// Bytes asked for.
        bytes: u64,
    },
    /// [Any variant](crate::TaskMapping::any_variant) would do, but none can work with the instances that were chosen.
    #[error("no variant for the processor can work with requirement {requirement} as {layout}")]
    NoVariant {
        /// The number of the first requirement of which that is true.
        requirement: usize,
        /// The layout of its data.
        layout: LayoutConstraint,
    },
}

impl MappingFailure {
    /// The number of the requirement that found no room, or no variant.
    #[must_use]
    pub fn requirement(&self) -> usize {
        match self {
            Self::OutOfMemory { requirement, .. }
            | Self::TooLarge { requirement, .. }
            | Self::SystemRefused { requirement, .. }
            | Self::NoVariant { requirement, .. } => *requirement,
        }
    }

    /// How much was asked for where, and what there is, for messages.
    #[must_use]
    pub fn shortage(&self) -> String {
        match self {
            Self::OutOfMemory { memory, bytes, used, capacity, .. } => {
                let (bytes, used, capacity) = (Bytes(*bytes), Bytes(*used), Bytes(*capacity));
                format!("{bytes} in {memory}, which has {capacity}, of which {used} are used")
            }
            Self::TooLarge { memory, bounds, .. } => {
                format!("no memory, and not {memory}, can hold all points of {bounds}")
            }
            Self::SystemRefused { memory, bytes, .. } => format!("the system refused {bytes} bytes for {memory}"),
            Self::NoVariant { layout, .. } => format!("no variant works with {layout}"),
        }
    }
}

/// The mapping that a task got, of all that its mapper had asked for: the processor, the implementation and the
/// instances.
#[derive(Clone, Debug)]
pub struct MappedTask {
    /// The processor.
    pub processor: ProcessorId,
    /// The implementation, an index into [`TaskInfo::variants`].
    pub variant: usize,
    /// For each requirement, its instances: several if several hold its fields. None for a task that is mapped
    /// virtually, and for a reduction that was never begun.
    pub requirements: Vec<Vec<MappedInstance>>,
}

/// An instance that a requirement got.
#[derive(Clone, Debug)]
pub struct MappedInstance {
    /// The instance. Its [`valid`](InstanceInfo::valid) fields are those of which it held current values before the
    /// task: what it lacks and the task reads is copied there.
    pub instance: InstanceInfo,
    /// Whether it was made for this task.
    pub is_new: bool,
}

/// A number of bytes, shown in the largest unit of which there is one.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.into_iter().find(|(_, shift)| self.0 >> shift > 0) {
            Some((unit, shift)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1_u64 << shift) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// When and where one task ran, in nanoseconds since the runtime started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProfile {
    /// The processor.
    pub processor: ProcessorId,
    /// The point of the launch; of a single launch, the origin of a one-point domain.
    pub point: AnyPoint,
    /// The body began.
    pub started: u64,
    /// The body ended.
    pub ended: u64,
    /// All that it launched has ended too, and its data is where the mapper wanted it; of a task that launches nothing,
    /// the same as [`ended`](Self::ended).
    pub finished: u64,
}
