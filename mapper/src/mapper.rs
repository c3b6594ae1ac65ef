//! The questions that the runtime asks.

use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId, ProcessorKind};
use maniple_region::Privilege;

use crate::{
    InstanceChoice, InstanceInfo, Mail, MappedTask, MapperAddress, MappingContext, MappingFailure, NodeSlice,
    ReductionPlace, RequirementInfo, RequirementMapping, Sharding, Slice, TaskInfo, TaskMapping, TaskProfile, Tunable,
    Validity, VariantInfo,
};

/// Decides where tasks run and where data lives. It can make a program slow, never wrong: the runtime checks every
/// answer.
///
/// Every call has a sound default, so that a mapper overrides only what it cares about. The runtime keeps one mapper
/// object for each processor and never calls one object from two threads at once; an object is called for the tasks
/// whose parent runs on its processor. Calls must not block. A panic in a call fails the operation that was being
/// mapped.
///
/// ```
/// use maniple_mapper::{Mapper, TaskInfo};
/// use maniple_realm::machine::{Machine, ProcessorId};
///
/// /// Runs everything on the first processor.
/// struct OneAfterAnother;
///
/// impl Mapper for OneAfterAnother {
///     fn select_processor(&mut self, _task: &TaskInfo<'_>, machine: &Machine) -> ProcessorId {
///         machine.processors()[0].id
///     }
/// }
/// ```
pub trait Mapper: Send {
    /// A name for messages and logs.
    fn name(&self) -> &str {
        "mapper"
    }

    /// The mapper that decides whatever this one does not override. By default none: then the defaults below do.
    ///
    /// It decides as it would by itself: what this one overrides, such as [`select_processor`](Self::select_processor),
    /// is not asked when the other's [`map_task`](Self::map_task) comes to it. Override `map_task` too, and change what
    /// the other says.
    ///
    /// ```
    /// use maniple_mapper::{DefaultMapper, Mapper, TaskInfo};
    ///
    /// /// What begins with `urgent` runs first; all else is as it was.
    /// struct UrgentFirst(DefaultMapper);
    ///
    /// impl Mapper for UrgentFirst {
    ///     fn inner(&mut self) -> Option<&mut dyn Mapper> {
    ///         Some(&mut self.0)
    ///     }
    ///
    ///     fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn maniple_mapper::MappingContext) -> maniple_mapper::TaskMapping {
    ///         let mapping = self.0.map_task(task, context);
    ///         let priority = if task.name.starts_with("urgent") { 1 } else { mapping.priority };
    ///         maniple_mapper::TaskMapping { priority, ..mapping }
    ///     }
    /// }
    /// ```
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        None
    }

    /// Deals the points of a launch to the nodes of a job: asked in programs that run on several nodes, about what the
    /// top-level task launches, on every node, when something is launched for the first time.
    ///
    /// All nodes must answer the same. So the answer may follow from the launch and the number of nodes alone, and not
    /// from the machine, a node's number, chance or what was asked before. Should nodes differ, the job ends with an
    /// error that shows both answers. The point is the first of the domain, and the requirements are not told.
    ///
    /// By default in blocks.
    fn shard_launch(&mut self, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
        if let Some(inner) = self.inner() {
            return inner.shard_launch(launch, nodes);
        }

        Sharding::Blocked
    }

    /// Cuts an index launch into slices that different nodes run. Asked in jobs of several nodes, when an index launch
    /// is about to be mapped whose points can go as slices: of a task without regions or of a leaf task, whose
    /// arguments and result can be sent, launched by a task that runs on one node, as all do but the top-level one. And
    /// where a slice arrives that was to be [sliced again](NodeSlice::recurse): then the domain of the launch is the
    /// slice; of leaf tasks with regions, which may arrive in parts, for each part. This node is `here`, and the job
    /// has so many nodes.
    ///
    /// Every point of the domain must be in exactly one slice. Without regions, what goes to another node is mapped
    /// there. Leaf tasks with regions are mapped here, and go together with their data as
    /// [`select_node`](Self::select_node) has them go one by one, which is not asked about them. What stays is mapped
    /// as any launch, by [`slice_launch`](Self::slice_launch) first. The answer that all stays holds as long as what is
    /// said of the points.
    ///
    /// By default all stays: how much work a point is, against what it takes to send it, only a mapper can know that
    /// knows the program.
    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        if let Some(inner) = self.inner() {
            return inner.slice_across_nodes(launch, here, nodes);
        }

        vec![NodeSlice { domain: launch.domain, node: here, recurse: false }]
    }

    /// Cuts an index launch into parts that are mapped separately, perhaps in parallel. Every point must be in exactly
    /// one part.
    ///
    /// By default a part has up to 256 points.
    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        if let Some(inner) = self.inner() {
            return inner.slice_launch(launch, machine);
        }

        const POINTS: u64 = 256;
        let parts = launch.domain.volume().div_ceil(POINTS).max(1);
        let parts = launch.domain.split(parts as usize);
        parts.into_iter().map(|domain| Slice { domain, processor: launch.origin }).collect()
    }

    /// Picks the processor of a task.
    ///
    /// By default the points of an index launch are dealt out in blocks over the processors that have a variant, and a
    /// single task stays on its parent's.
    fn select_processor(&mut self, task: &TaskInfo<'_>, machine: &Machine) -> ProcessorId {
        if let Some(inner) = self.inner() {
            return inner.select_processor(task, machine);
        }

        let runs_on = |kind: ProcessorKind| task.variants_for(kind).next().is_some();
        let able = || machine.processors().iter().filter(|processor| runs_on(processor.kind));
        let count = able().count() as u64;
        if count == 0 || (!task.is_index_launch && runs_on(machine.processor(task.origin).kind)) {
            return task.origin;
        }
        let points = task.domain.volume().max(1);
        let chosen = (u128::from(task.index()) * u128::from(count) / u128::from(points)) as usize;
        able().nth(chosen).map_or(task.origin, |processor| processor.id)
    }

    /// Selects the node that runs a leaf task, to which its data goes and from which what it has made comes back. Asked
    /// once the task is mapped, in jobs of several nodes, about tasks that can go: those whose arguments and result can
    /// be sent, and that are launched by a task that runs on one node, as all do but the top-level one. This node is
    /// `here`, and the job has so many nodes. The answer holds as long as that of [`map_task`](Self::map_task). There
    /// the task is run by whichever worker is free, in instances with the layout that its variant asks for, in the best
    /// memory that has room; no mapper of that node is asked.
    ///
    /// By default none: the task runs here, unless a node that has nothing to do [may have
    /// it](Self::permit_steal_with_data). `Some(here)` keeps it.
    fn select_node(&mut self, task: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Option<NodeId> {
        if let Some(inner) = self.inner() {
            return inner.select_node(task, here, nodes);
        }

        None
    }

    /// Picks the implementation of a task for a processor, as an index into [`TaskInfo::variants`].
    ///
    /// By default the first one for the processor's kind.
    fn select_variant(&mut self, task: &TaskInfo<'_>, processor: ProcessorId, machine: &Machine) -> usize {
        if let Some(inner) = self.inner() {
            return inner.select_variant(task, processor, machine);
        }

        // A processor that there is not is for the runtime to refuse.
        let known = machine.processors().get(processor.0 as usize);
        known.and_then(|processor| task.variants_for(processor.kind).next()).unwrap_or(0)
    }

    /// Picks the implementation of a task that is mapped to [any variant](TaskMapping::any_variant), of those that can
    /// work with the instances that were chosen: an index into `fitting`. Not asked if there is one only. Among them
    /// may be variants that were made while the program runs, which are not in [`TaskInfo::variants`].
    ///
    /// By default the one with most conditions for the layouts of its data, which can count on most; of several the
    /// first.
    fn select_fitting(&mut self, task: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        if let Some(inner) = self.inner() {
            return inner.select_fitting(task, fitting);
        }

        let conditions = |index: &usize| fitting[*index].conditions(task.requirements.len());
        (0..fitting.len()).rev().max_by_key(conditions).unwrap_or(0)
    }

    /// Decides everything about one task.
    ///
    /// By default asks [`select_processor`](Self::select_processor), [`select_variant`](Self::select_variant), for each
    /// requirement [`map_requirement`](Self::map_requirement), and [`priority`](Self::priority); the decision holds as
    /// [`validity`](Self::validity) says.
    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        if let Some(inner) = self.inner() {
            return inner.map_task(task, context);
        }

        let processor = self.select_processor(task, context.machine());
        let variant = self.select_variant(task, processor, context.machine());
        let requirements = (0..task.requirements.len())
            .map(|requirement| self.map_requirement(task, requirement, processor, variant, context))
            .collect();
        let (priority, validity) = (self.priority(task), self.validity(task));
        TaskMapping {
            processor,
            pinned: false,
            group: Vec::new(),
            variant,
            any_variant: false,
            requirements,
            priority,
            copy_priority: 0,
            window: None,
            profile: false,
            report: false,
            validity,
        }
    }

    /// Says where the data of one requirement of a task shall be.
    ///
    /// By default in the memories that the processor sees, best first: an instance that exists, else a new one for the
    /// whole region if it fits, else one for the region asked for. Reductions go in place where no other contributions
    /// can meet them. The layout is left open: the runtime adds what the variant asks for.
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        processor: ProcessorId,
        variant: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        if let Some(inner) = self.inner() {
            return inner.map_requirement(task, requirement, processor, variant, context);
        }

        RequirementMapping::Instance(choices_by_affinity(&task.requirements[requirement], processor, context.machine()))
    }

    /// Says where the data shall be that a task maps for itself.
    ///
    /// By default as [`map_requirement`](Self::map_requirement) does for a task on `processor`.
    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        if let Some(inner) = self.inner() {
            return inner.map_inline(requirement, processor, context);
        }

        RequirementMapping::Instance(choices_by_affinity(requirement, processor, context.machine()))
    }

    /// Ranks the instances from which current values could be copied into `destination`: indices into `sources`, best
    /// first. Sources left out come last, as do all if this panics; numbers that are no indices, and those given
    /// before, do not count. The runtime logs the first such answer.
    ///
    /// [`valid`](InstanceInfo::valid) of a source are those of the wanted fields of which it holds all the wanted
    /// values; others hold a part. Of the destination it is empty.
    ///
    /// By default by the bandwidth of the path.
    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        if let Some(inner) = self.inner() {
            return inner.rank_sources(sources, destination, machine);
        }

        let mut order: Vec<usize> = (0..sources.len()).collect();
        let bandwidth = |index: &usize| {
            let path = machine.memory_affinity(sources[*index].memory, destination.memory);
            std::cmp::Reverse(path.map_or(0, |path| path.bandwidth_mb_s))
        };
        order.sort_by_key(bandwidth);
        order
    }

    /// The priority of a task; higher ones run first. 0 by default.
    fn priority(&mut self, task: &TaskInfo<'_>) -> i32 {
        if let Some(inner) = self.inner() {
            return inner.priority(task);
        }

        0
    }

    /// How long a decision about a task holds. Decisions that hold make the launches of a loop several times as fast.
    ///
    /// By default for as long as the same is launched: a mapper that would decide otherwise the next time, because it
    /// balances loads or draws lots, says [`Validity::Once`].
    fn validity(&mut self, task: &TaskInfo<'_>) -> Validity {
        if let Some(inner) = self.inner() {
            return inner.validity(task);
        }

        Validity::WhileUnchanged
    }

    /// Picks which of the operations that could be mapped now, oldest first, are mapped now: indices into `ready`. The
    /// others are asked about again when something else has finished. If nothing is left to wait for, the runtime maps
    /// the oldest anyway. All are mapped if this panics; numbers that are no indices, and those given before, do not
    /// count. The runtime logs the first such answer.
    ///
    /// By default all.
    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        if let Some(inner) = self.inner() {
            return inner.select_operations_to_map(ready);
        }

        (0..ready.len()).collect()
    }

    /// A number that the application leaves to the mapper, such as how many pieces to make; `None` if this mapper does
    /// not know the name.
    ///
    /// By default `"pieces"` and `"processors"` are the number of CPU processors.
    fn tunable(&mut self, tunable: &Tunable<'_>, machine: &Machine) -> Option<i64> {
        if let Some(inner) = self.inner() {
            return inner.tunable(tunable, machine);
        }

        let processors = machine.processors_of(ProcessorKind::Cpu).count();
        matches!(tunable.name, "pieces" | "processors").then_some(processors as i64)
    }

    /// Whether a node that has nothing to do may take a task without regions that waits here to be run, with all that
    /// it will launch; or an equal part of an index launch of such a task that stays here, has more points than there
    /// are processors, and is about to be mapped.
    ///
    /// By default it may. If this panics the task stays, and the first time the runtime logs that.
    fn permit_steal(&mut self, task: &str, thief: NodeId) -> bool {
        if let Some(inner) = self.inner() {
            return inner.permit_steal(task, thief);
        }

        true
    }

    /// Whether a node that has nothing to do may run a leaf task that would begin here now, with its data: so many
    /// bytes go there and come back. Of an index launch the node gets its share of the points that have not ended, in
    /// one message: this is asked about each, with the bytes of all so far.
    ///
    /// By default it may if these are at most a megabyte, or the [inner](Self::inner) mapper permits it, and
    /// [`permit_steal`](Self::permit_steal) permits it too. The runtime does not know how much work the task is: a
    /// mapper that does should say. If this panics the task stays, and the first time the runtime logs that.
    fn permit_steal_with_data(&mut self, task: &str, thief: NodeId, bytes: u64) -> bool {
        const MOST: u64 = 1 << 20;
        let is_little = match self.inner() {
            Some(inner) => inner.permit_steal_with_data(task, thief, bytes),
            None => bytes <= MOST,
        };
        is_little && self.permit_steal(task, thief)
    }

    /// Hears that a mapping did not work. The task will be mapped again, so this is the time to change one's mind. An
    /// inline mapping is told of as a task called `inline mapping`, with one requirement and no variants, launched by
    /// the task that maps. If this panics, the mapping goes on, and the first time the runtime logs that.
    fn mapping_failed(&mut self, task: &TaskInfo<'_>, failure: &MappingFailure) {
        if let Some(inner) = self.inner() {
            inner.mapping_failed(task, failure);
        }
    }

    /// Hears which instances a task got, if its [`TaskMapping::report`] asked for it: when it is mapped by what
    /// [`map_task`](Self::map_task) has just said, and not when an earlier decision holds. If this panics, the mapping
    /// goes on, and the first time the runtime logs that.
    fn task_mapped(&mut self, task: &TaskInfo<'_>, mapped: &MappedTask) {
        if let Some(inner) = self.inner() {
            inner.task_mapped(task, mapped);
        }
    }

    /// Hears a message of another mapper of the same name, that of another processor or node, or its own: see [`Mail`].
    /// If this panics, the message counts as heard, and the first time the runtime logs that.
    fn hear(&mut self, from: MapperAddress, message: &[u8], mail: &dyn Mail) {
        if let Some(inner) = self.inner() {
            inner.hear(from, message, mail);
        }
    }

    /// Hears when and where a task ran, if its [`TaskMapping::profile`] asked for it. If this panics, nothing else
    /// happens, and the first time the runtime logs that.
    fn task_profiled(&mut self, task: &str, profile: &TaskProfile) {
        if let Some(inner) = self.inner() {
            inner.task_profiled(task, profile);
        }
    }
}

/// An operation that could be mapped now.
#[derive(Clone, Copy, Debug)]
pub struct ReadyOperation<'a> {
    /// The task's name, or the kind of operation.
    pub name: &'a str,
    /// Its place in the program order of its parent.
    pub sequence: u64,
    /// How many points it has.
    pub points: u64,
}

/// The memories that a processor sees, best first, first for the whole region and then for just the part asked for.
fn choices_by_affinity(
    requirement: &RequirementInfo,
    processor: ProcessorId,
    machine: &Machine,
) -> Vec<InstanceChoice> {
    let is_known = (processor.0 as usize) < machine.processors().len();
    let visible = if is_known { machine.memories_visible_from(processor) } else { &[] };
    let memories = || visible.iter().map(|reachable| reachable.memory);
    let exclusive = !requirement.is_shared && matches!(requirement.privilege, Privilege::Reduce(_));
    let choice = |memory: MemoryId| {
        let mut choice = InstanceChoice::in_memory(memory);
        if exclusive {
            choice.reduction = ReductionPlace::InPlace;
        }
        choice
    };
    memories().map(|memory| choice(memory).whole()).chain(memories().map(choice)).collect()
}

impl Mapper for Box<dyn Mapper> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut **self)
    }
}
