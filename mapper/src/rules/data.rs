//! The content of a mapping file, as plain data.

use std::collections::BTreeMap;

use maniple_realm::layout::{Arrangement, DimensionOrder};
use maniple_realm::machine::{MemoryId, MemoryKind, NodeId, ProcessorId, ProcessorKind};

use super::pattern::Names;
use crate::{Columns, Extent, Keep, ReductionPlace, Validity};

/// Rules about where tasks run and where data lives. Made from a mapping file by [`MappingRules::parse`]; obeyed by a
/// [`RuleMapper`](crate::RuleMapper).
///
/// A rule has conditions and decisions. Of the rules whose conditions a task or its data meet, the last one that
/// decides something is obeyed in that; what none of them decides is left to the mapper beneath.
///
/// ```
/// use maniple_mapper::MappingRules;
///
/// let rules = MappingRules::parse(
///     r#"
///     [[task]]
///     name = "update_*"
///     priority = 2
///
///     [[data]]
///     field = ["voltage", "charge"]
///     memory = "zero-copy"
///     "#,
/// )?;
/// assert_eq!(rules.tasks[0].priority, Some(2));
/// assert_eq!(MappingRules::parse(&rules.to_string())?, rules);
/// # Ok::<(), maniple_mapper::MappingFileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingRules {
    /// `[[task]]`: rules about tasks.
    pub tasks: Vec<TaskRule>,
    /// `[[data]]`: rules about the data of tasks.
    pub data: Vec<DataRule>,
    /// `[copies] from`: the memories from which values are copied, best first.
    pub copies_from: Vec<Memory>,
    /// `[operations] at_once`: how many operations that are ready are mapped at a time.
    pub at_once: Option<u64>,
    /// `[tunables]`: numbers that the program leaves to its mapper, by name.
    pub tunables: BTreeMap<String, i64>,
}

/// A rule about tasks. Conditions that are not given hold for every task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRule {
    /// `name`, a condition: the names of the tasks.
    pub names: Names,
    /// `tag`, a condition: the number that the program has put on the launch.
    pub tag: Option<u64>,
    /// `node`, a condition: the nodes on which the rule holds.
    pub nodes: Vec<NodeId>,
    /// `processors`: which processors run the tasks.
    pub processors: Option<Processors>,
    /// `deal`: how points of a launch are dealt to these processors, or that the first that is free runs each task; in
    /// blocks if nothing is said.
    pub deal: Option<Deal>,
    /// `variant`: the name of the implementation.
    pub variant: Option<String>,
    /// `pinned`: whether no other processor may take the task.
    pub pinned: Option<bool>,
    /// `priority`.
    pub priority: Option<i32>,
    /// `copy_priority`: that of the copies that bring their data.
    pub copy_priority: Option<i32>,
    /// `window`: how many operations a task that launches others may have in flight.
    pub window: Option<u64>,
    /// `validity`: how long the decision holds.
    pub validity: Option<Validity>,
    /// `virtual`: whether a task that launches others is mapped to no instance.
    pub is_virtual: Option<bool>,
    /// `slice`: how many points of a launch are mapped together, at most.
    pub slice: Option<u64>,
    /// `sharding`: which node runs which points of what the top-level task launches.
    pub sharding: Option<Share>,
    /// `spread`: which node runs which slice of what other tasks launch.
    pub spread: Option<Share>,
    /// `migrate`: which node runs which leaf task of what other tasks launch.
    pub migrate: Option<Share>,
    /// `steal`: whether idle nodes may take the tasks.
    pub steal: Option<Steal>,
}

/// A rule about the data of tasks: of one requirement of one task each time. Conditions that are not given hold for
/// all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataRule {
    /// `task`, a condition: the names of the tasks. Inline mappings are called `inline mapping`.
    pub tasks: Names,
    /// `node`, a condition: the nodes on which the rule holds.
    pub nodes: Vec<NodeId>,
    /// `processor`, a condition: the kind of the processor that has been chosen.
    pub processor: Option<ProcessorKind>,
    /// `region`, a condition: the names of the regions, or of the types of their rows.
    pub regions: Names,
    /// `partition`, a condition: the names of the partitions of which pieces are used.
    pub partitions: Names,
    /// `field`, a condition: names of fields, of which one at least is used.
    pub fields: Names,
    /// `requirement`, a condition: the number of the requirement in the task's declaration, from 0.
    pub requirement: Option<u64>,
    /// `privilege`, a condition: what is done with the data.
    pub privilege: Option<PrivilegeKind>,
    /// `min_bytes`, a condition: the data takes so many bytes at least.
    pub min_bytes: Option<u64>,
    /// `max_bytes`, a condition: the data takes so many bytes at most.
    pub max_bytes: Option<u64>,
    /// `memory`: where the data is put, best first.
    pub memories: Vec<Memory>,
    /// `extent`: what a new instance is made for.
    pub extent: Option<Extent>,
    /// `reuse`: which instances that exist will do.
    pub reuse: Option<ReuseKind>,
    /// `columns`: which fields a new instance has.
    pub columns: Option<Columns>,
    /// `arrangement`: how the fields lie among each other.
    pub arrangement: Option<Arrangement>,
    /// `order`: how the dimensions lie.
    pub order: Option<Order>,
    /// `align`: the bytes of which the address of the first value of each field is a multiple, a power of two.
    pub align: Option<u32>,
    /// `reduction`: where contributions go.
    pub reduction: Option<ReductionPlace>,
    /// `keep`: how long copies are kept.
    pub keep: Option<Keep>,
}

/// Which processors run a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// All of a kind.
    Kind(ProcessorKind),
    /// These.
    These(Vec<ProcessorId>),
}

/// How points are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// Neighbours together.
    Blocks,
    /// One to each in turn.
    Cycles,
    /// To the first that is free, tasks that are no index launch too: see
    /// [`TaskMapping::group`](crate::TaskMapping::group).
    FirstFree,
}

/// Which node gets which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All stays where it is.
    Stay,
    /// In blocks over all nodes.
    Blocks,
    /// One point to each node in turn.
    Cycles,
    /// In blocks over these nodes, in this order.
    Nodes(Vec<NodeId>),
}

/// Whether idle nodes may take tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// None.
    Never,
    /// All.
    Always,
    /// Tasks with at most so many bytes of data.
    UpTo(u64),
}

/// A memory, or all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All memories of a kind.
    Kind(MemoryKind),
    /// This one.
    This(MemoryId),
}

/// The kind of use of some data, regardless of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivilegeKind {
    /// It is read.
    Reads,
    /// It is read and written.
    Writes,
    /// It is written without being read.
    Discards,
    /// It is contributed to.
    Reduces,
}

/// Which instances that exist will do: [`Reuse`](crate::Reuse), but for certain ones, which have no names in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReuseKind {
    /// Any.
    Any,
    /// Instances made for exactly the region.
    Exact,
    /// None.
    Never,
}

/// The order of dimensions, of any number of them or of a certain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last dimension fastest.
    RowMajor,
    /// The first dimension fastest.
    ColumnMajor,
    /// This one, for regions with as many dimensions.
    Dimensions(DimensionOrder),
}

impl Order {
    /// The order for so many dimensions, if there is one.
    #[must_use]
    pub fn of(self, dimensions: usize) -> Option<DimensionOrder> {
        match self {
            Self::RowMajor => Some(DimensionOrder::row_major(dimensions)),
            Self::ColumnMajor => Some(DimensionOrder::column_major(dimensions)),
            Self::Dimensions(order) => (order.dim() == dimensions).then_some(order),
        }
    }
}
