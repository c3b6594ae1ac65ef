//! A mapper with shardings of one's own.

use std::sync::Arc;

use maniple_realm::machine::{Machine, NodeId, ProcessorId};

use crate::{
    InstanceInfo, Mapper, MappingContext, MappingFailure, ReadyOperation, RequirementInfo, RequirementMapping,
    Sharding, Slice, TaskInfo, TaskMapping, TaskProfile, Validity,
};

/// Deals launches to nodes as a function says, and leaves all else to another mapper.
///
/// ```
/// use maniple_mapper::{DefaultMapper, Sharding, ShardingMapper};
///
/// // Later points have more to do.
/// let mapper = ShardingMapper::new(DefaultMapper::new(), |launch, _nodes| match launch.name {
///     "eliminate" => Sharding::Cyclic,
///     _ => Sharding::Blocked,
/// });
/// # drop(mapper);
/// ```
#[derive(Clone)]
pub struct ShardingMapper<M> {
    inner: M,
    sharding: Arc<ShardingOf>,
}

/// Of a launch and the number of nodes.
type ShardingOf = dyn Fn(&TaskInfo<'_>, usize) -> Sharding + Send + Sync;

impl<M: Mapper> ShardingMapper<M> {
    /// A mapper that deals launches as the function says, under the rules of [`Mapper::shard_launch`].
    pub fn new(inner: M, sharding: impl Fn(&TaskInfo<'_>, usize) -> Sharding + Send + Sync + 'static) -> Self {
        Self { inner, sharding: Arc::new(sharding) }
    }
}

impl<M: Mapper> Mapper for ShardingMapper<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn shard_launch(&mut self, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
        (self.sharding)(launch, nodes)
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        self.inner.slice_launch(launch, machine)
    }

    fn select_processor(&mut self, task: &TaskInfo<'_>, machine: &Machine) -> ProcessorId {
        self.inner.select_processor(task, machine)
    }

    fn select_variant(&mut self, task: &TaskInfo<'_>, processor: ProcessorId, machine: &Machine) -> usize {
        self.inner.select_variant(task, processor, machine)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.inner.map_task(task, context)
    }

    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        place: (ProcessorId, usize),
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.inner.map_requirement(task, requirement, place, context)
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.inner.map_inline(requirement, processor, context)
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        self.inner.rank_sources(sources, destination, machine)
    }

    fn priority(&mut self, task: &TaskInfo<'_>) -> i32 {
        self.inner.priority(task)
    }

    fn validity(&mut self, task: &TaskInfo<'_>) -> Validity {
        self.inner.validity(task)
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        self.inner.select_operations_to_map(ready)
    }

    fn tunable(&mut self, name: &str, machine: &Machine) -> Option<i64> {
        self.inner.tunable(name, machine)
    }

    fn permit_steal(&mut self, task: &str, thief: NodeId) -> bool {
        self.inner.permit_steal(task, thief)
    }

    fn mapping_failed(&mut self, task: &TaskInfo<'_>, failure: &MappingFailure) {
        self.inner.mapping_failed(task, failure);
    }

    fn task_profiled(&mut self, task: &str, profile: &TaskProfile) {
        self.inner.task_profiled(task, profile);
    }
}
