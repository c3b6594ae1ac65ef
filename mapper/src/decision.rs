//! Decisions of a mapper: its answers about tasks, instances and slices.

use std::fmt;

use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::{MemoryId, NodeId, ProcessorId};
use maniple_space::AnyRect;

use crate::InstanceId;

/// The mapping of one task: its processor, its implementation and the place of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMapping {
    /// The processor.
    pub processor: ProcessorId,
    /// Whether the task must run on exactly that processor. Otherwise an idle one of the same kind and with the same
    /// memories may take it. Of a task that [goes to another node](crate::Mapper::select_node), whichever worker there
    /// is free takes it.
    pub pinned: bool,
    /// Processors of which the first that is free runs the task, and no other; [`processor`](Self::processor) is one of
    /// them, and the one that counts for what the task launches. They are of one node and kind, and each sees every
    /// memory that the choices name. Empty: what [`pinned`](Self::pinned) says, which counts for nothing else. Replays
    /// deal the points of a launch to these in turn, and those that are free take what others have not begun. A runtime
    /// knows 256 groups at most: a mapper should name the same again and again.
    pub group: Vec<ProcessorId>,
    /// The implementation, an index into [`crate::TaskInfo::variants`].
    pub variant: usize,
    /// Any implementation for the processor will do, whatever `variant` says: instances are found and made as the
    /// choices say, and of the variants that can work with their layouts [`crate::Mapper::select_fitting`] takes one.
    /// If there is none, the mapping has [failed](crate::MappingFailure::NoVariant). Variants that launch tasks are
    /// taken only where no other is for the processor.
    pub any_variant: bool,
    /// For each requirement, where its data shall be.
    pub requirements: Vec<RequirementMapping>,
    /// Tasks of higher priority run first, among those that could begin on this node. Copies that bring their data come
    /// before all tasks. Priority 0 is the cheapest. It goes to another node with the task.
    pub priority: i32,
    /// The same for the copies that bring its data, among the copies of all tasks: those of higher priority go first
    /// when there are more than workers. Copies that are replayed have none.
    pub copy_priority: i32,
    /// The most operations that the task may have in flight, if it launches others; the runtime's limit is one in any
    /// case. 0 means 1. Not for tasks without regions that are forked.
    pub window: Option<usize>,
    /// Whether the mapper wants to hear when and where the task ran ([`crate::Mapper::task_profiled`]).
    pub profile: bool,
    /// Whether the mapper wants to hear which instances the task got ([`crate::Mapper::task_mapped`]).
    pub report: bool,
    /// How long the decision holds.
    pub validity: Validity,
}

/// How long a decision about a task holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// For this task. The mapper is asked again for the next.
    Once,
    /// For the same point of every later launch that is the same but for its arguments: by the same parent, of the same
    /// task, over the same domain, with the same data and tag. The runtime may keep the instances that it chose, and
    /// the slices of the launch, and asks again when it pleases. Of a task without regions that is launched by itself,
    /// the decision holds for all launches without a tag whose parents run on one processor: if it is that processor,
    /// not pinned, with the first variant and nothing else, they are *forked* there, without another question, and idle
    /// workers take them. A choice that is never to be an instance that exists ([`Reuse::Never`]), or not to be kept
    /// ([`Keep::WhileUsed`]), does not hold.
    #[default]
    WhileUnchanged,
}

/// The place that the data of one requirement shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementMapping {
    /// Nowhere: the task only passes its privileges on to the tasks that it launches, which use the instances of its
    /// parent. Not for leaf tasks. If one requirement of a task is virtual, all are.
    Virtual,
    /// In an instance: the choices are tried in order until one has room.
    Instance(Vec<InstanceChoice>),
}

impl From<InstanceChoice> for RequirementMapping {
    fn from(choice: InstanceChoice) -> Self {
        Self::Instance(vec![choice])
    }
}

/// One way of giving a requirement an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceChoice {
    /// The memory. It must be visible from the processor.
    pub memory: MemoryId,
    /// Which instances are taken if they exist already. A buffer for contributions is empty when it is taken: any that
    /// is free will do, whatever this says.
    pub reuse: Reuse,
    /// The part of the region tree that a new instance is made for.
    pub extent: Extent,
    /// Which fields a new instance holds.
    pub columns: Columns,
    /// The layout. Old instances must have it; new ones get it. What the variant asks of it need not be repeated: the
    /// runtime adds it, and a choice that contradicts it is an error.
    pub layout: LayoutConstraint,
    /// For requirements that reduce: where contributions go.
    pub reduction: ReductionPlace,
    /// How long what it holds is kept once no task uses it, if other instances hold the same. The latest task that uses
    /// an instance decides.
    pub keep: Keep,
}

impl InstanceChoice {
    /// Any instance in a memory: one that exists, else a new one for just the data asked for, each field by itself in
    /// an array, contributions to a reduction in a buffer.
    #[must_use]
    pub fn in_memory(memory: MemoryId) -> Self {
        Self {
            memory,
            reuse: Reuse::Any,
            extent: Extent::Region,
            columns: Columns::Requirement,
            layout: LayoutConstraint::default(),
            reduction: ReductionPlace::Buffer,
            keep: Keep::default(),
        }
    }

    /// The same with new instances made for the whole region tree, so that pieces and neighbours find their data
    /// without copies.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.extent = Extent::Root;
        self
    }
}

impl fmt::Display for TaskMapping {
    /// `processor 1, variant 0: memory 0, the whole | the part; virtual`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.any_variant {
            true => write!(f, "{}, any variant", self.processor)?,
            false => write!(f, "{}, variant {}", self.processor, self.variant)?,
        }
        match &self.group[..] {
            [] if self.pinned => f.write_str(", pinned")?,
            [] => {}
            group => {
                let numbers: Vec<_> = group.iter().map(|processor| processor.0.to_string()).collect();
                write!(f, ", or the first free of {}", numbers.join(", "))?;
            }
        }
        if self.priority != 0 {
            write!(f, ", priority {}", self.priority)?;
        }
        if self.copy_priority != 0 {
            write!(f, ", copies at priority {}", self.copy_priority)?;
        }
        if let Some(window) = self.window {
            write!(f, ", at most {window} in flight")?;
        }
        for (number, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if number == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for RequirementMapping {
    /// The choices in their order, each memory named once: `memory 1, the whole | the part | memory 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Instance(choices) = self else { return f.write_str("virtual") };
        let mut memory = None;
        for choice in choices {
            if memory.is_some() {
                f.write_str(" | ")?;
            }
            match memory == Some(choice.memory) {
                true => write!(f, "{}", choice.extent)?,
                false => choice.write_place(f)?,
            }
            choice.write_manner(f)?;
            memory = Some(choice.memory);
        }
        Ok(())
    }
}

impl InstanceChoice {
    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.extent {
            Extent::Region => write!(f, "{}", self.memory),
            wider => write!(f, "{}, {wider}", self.memory),
        }
    }

    /// Writes the differences from [`InstanceChoice::in_memory`], but for the extent.
    fn write_manner(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reuse != Reuse::Any {
            write!(f, ", {}", self.reuse)?;
        }
        match self.columns {
            Columns::Requirement => {}
            Columns::Separate => f.write_str(", each field apart")?,
            Columns::All => f.write_str(", all fields")?,
        }
        if self.layout != LayoutConstraint::default() {
            write!(f, ", {}", self.layout)?;
        }
        if self.reduction == ReductionPlace::InPlace {
            f.write_str(", in place")?;
        }
        if self.keep != Keep::default() {
            write!(f, ", kept {}", self.keep)?;
        }
        Ok(())
    }
}

impl fmt::Display for InstanceChoice {
    /// The memory, and what differs from [`InstanceChoice::in_memory`]: `memory 0, the whole`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_place(f)?;
        self.write_manner(f)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region => f.write_str("the part"),
            Self::Ancestor(levels) => write!(f, "{levels} above"),
            Self::Root => f.write_str("the whole"),
        }
    }
}

impl fmt::Display for Reuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any instance"),
            Self::Exact => f.write_str("made for it"),
            Self::Only(id) => write!(f, "instance {}", id.0),
            Self::Never => f.write_str("new"),
        }
    }
}

/// Which existing instances may be used for a requirement. If its region is a rectangle, only those that store it in
/// one rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Any that fits, nearest in the region tree first.
    Any,
    /// Only those made for exactly the region asked for.
    Exact,
    /// This one alone, as far as it is there and can hold what is wanted; a new one is made for the rest. If it stores
    /// a region that is a rectangle in several, those made for exactly that region are taken in its stead.
    Only(InstanceId),
    /// None.
    Never,
}

/// How long an instance keeps a copy of values that others hold too. Values that no other instance holds are kept in
/// any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Until there is no room for others in the memory: then copies with lower numbers go first, whichever region they
    /// are of.
    Rank(i32),
    /// Until no task uses it: data that is used once, such as a piece of an operand that another piece takes the place
    /// of. An answer with it [holds](Validity) for one task, so the mapper is asked again for the next. What a trace
    /// replays keeps its copies.
    WhileUsed,
}

impl Default for Keep {
    /// `Rank(0)`.
    fn default() -> Self {
        Self::Rank(0)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "at rank {rank}"),
            Self::WhileUsed => f.write_str("while it is used"),
        }
    }
}

/// The part of the region tree that a new instance can hold. An instance of a region that is no rectangle stores
/// several. If the requirement's region, a rectangle, would lie in more than one of these, the instance is made for the
/// requirement's region whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The region of the requirement.
    Region,
    /// The region so many partitions above it, or the root if there are fewer. As long as the memory has room for all
    /// of it when it is made, the instance counts as used with the pages in which values lie of regions that were
    /// mapped to it, and no others; where these find no room later, they get instances of their own.
    Ancestor(usize),
    /// The largest region that the parent task holds. It counts as one of an ancestor's.
    Root,
}

/// The fields that a new instance holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Fields of the requirement that found no instance.
    Requirement,
    /// One instance for each of those.
    Separate,
    /// All that the parent task may use.
    All,
}

/// The target of the contributions of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionPlace {
    /// Into a buffer of their own, applied later: reducers run side by side even where they meet.
    Buffer,
    /// Into the data itself: no buffer and nothing to apply, but reducers that meet run one after another.
    InPlace,
}

/// A part of an index launch that is mapped as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The points.
    pub domain: AnyRect,
    /// The processor on which the part is mapped.
    pub processor: ProcessorId,
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.domain, self.processor)
    }
}

/// A part of an index launch that one node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSlice {
    /// The points.
    pub domain: AnyRect,
    /// The node.
    pub node: NodeId,
    /// Whether that node's mapper is asked how to slice the part again when it has come there; it may send parts of it
    /// on. Of no account for what stays.
    pub recurse: bool,
}

impl fmt::Display for NodeSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}{}", self.domain, self.node, if self.recurse { ", to be sliced again" } else { "" })
    }
}
