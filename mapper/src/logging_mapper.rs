//! A mapper that tells what another one decides.

use maniple_realm::machine::{Machine, NodeId, ProcessorId};

use crate::{
    InstanceInfo, Mail, MappedInstance, MappedTask, Mapper, MapperAddress, MappingContext, MappingFailure, NodeSlice,
    ReadyOperation, RequirementInfo, RequirementMapping, Sharding, Slice, TaskInfo, TaskMapping, TaskProfile, Tunable,
    VariantInfo,
};

/// Passes every question on to another mapper and hands question and answer to a sink, one line each. That everything
/// that is ready is to be mapped in its order is not worth a line.
///
/// ```text
/// map update(3) on processor 1: reads leakage and writes charge of piece (3) of partition 4 of Node region 3 -> memory 0, the whole | the part
/// ```
///
/// The places of an instance are those that are tried, in their order; as [`crate::InstanceChoice`] displays them.
pub struct LoggingMapper<M> {
    inner: M,
    sink: Box<dyn FnMut(&str) + Send>,
}

impl<M: Mapper> LoggingMapper<M> {
    /// Logs to [`tracing`], target `maniple::mapper`, level `INFO`.
    pub fn new(inner: M) -> Self {
        Self::with_sink(inner, |line| tracing::info!(target: "maniple::mapper", "{line}"))
    }

    /// Hands every line to `sink`.
    pub fn with_sink(inner: M, sink: impl FnMut(&str) + Send + 'static) -> Self {
        Self { inner, sink: Box::new(sink) }
    }

    fn log(&mut self, line: &str) {
        (self.sink)(line);
    }
}

/// Describes the places of data: `: reads a and writes b of Cell region 3 -> memory 0; ...`. Consecutive requirements
/// with one region and one place are described together.
fn places(requirements: &[RequirementInfo], mappings: &[RequirementMapping]) -> String {
    let mut text = String::new();
    let mut pairs = requirements.iter().zip(mappings).peekable();
    let mut separator = ": ";
    while let Some((requirement, place)) = pairs.next() {
        text += &format!("{separator}{} {}", requirement.privilege, requirement.field_names());
        let goes_on = pairs.peek().is_some_and(|next| next.0.region == requirement.region && next.1 == place);
        separator = if goes_on { " and " } else { "; " };
        if !goes_on {
            text += &format!(" of {} -> {place}", requirement.region);
        }
    }
    text
}

impl<M: Mapper> Mapper for LoggingMapper<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn shard_launch(&mut self, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
        let sharding = self.inner.shard_launch(launch, nodes);
        self.log(&format!("shard {} over {}: {sharding}", launch.name, launch.domain));
        sharding
    }

    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        let slices = self.inner.slice_across_nodes(launch, here, nodes);
        let parts: Vec<String> = slices.iter().map(NodeSlice::to_string).collect();
        self.log(&format!("slice {} over {} across nodes: {}", launch.name, launch.domain, parts.join(", ")));
        slices
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        let slices = self.inner.slice_launch(launch, machine);
        let parts: Vec<String> = slices.iter().map(Slice::to_string).collect();
        self.log(&format!("slice {} over {}: {}", launch.name, launch.domain, parts.join(", ")));
        slices
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mapping = self.inner.map_task(task, context);
        let mut line = format!("map {}{} on {}", task.name, task.point, mapping.processor);
        if task.variants.len() > 1 {
            let variant = task.variants.get(mapping.variant).map_or("no such variant", |variant| variant.name);
            line += &if mapping.any_variant { ", any variant".to_owned() } else { format!(", variant {variant}") };
        }
        if mapping.priority != 0 {
            line += &format!(", priority {}", mapping.priority);
        }
        line += &places(task.requirements, &mapping.requirements);
        self.log(&line);
        mapping
    }

    fn select_fitting(&mut self, task: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        let index = self.inner.select_fitting(task, fitting);
        let variant = fitting.get(index).map_or("no such variant", |variant| variant.name);
        self.log(&format!("of {} variants for {}{}, {variant}", fitting.len(), task.name, task.point));
        index
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Option<NodeId> {
        let node = self.inner.select_node(task, here, nodes);
        if let Some(node) = node {
            self.log(&format!("run {}{} on {node}", task.name, task.point));
        }
        node
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mapping = self.inner.map_inline(requirement, processor, context);
        self.log(&format!("map inline {requirement} -> {mapping}"));
        mapping
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        let order = self.inner.rank_sources(sources, destination, machine);
        let ids: Vec<u64> = sources.iter().map(|source| source.id.0).collect();
        self.log(&format!("rank sources {ids:?} for instance {}: {order:?}", destination.id.0));
        order
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        let chosen = self.inner.select_operations_to_map(ready);
        if chosen.iter().copied().eq(0..ready.len()) {
            return chosen;
        }
        let name = |&index: &usize| ready.get(index).map_or("no such operation", |operation| operation.name);
        let names: Vec<&str> = chosen.iter().map(name).collect();
        self.log(&format!("map {} of {} ready: {}", chosen.len(), ready.len(), names.join(", ")));
        chosen
    }

    fn tunable(&mut self, tunable: &Tunable<'_>, machine: &Machine) -> Option<i64> {
        let value = self.inner.tunable(tunable, machine);
        let arguments = if tunable.arguments.is_empty() { String::new() } else { format!("{:?}", tunable.arguments) };
        self.log(&format!("tunable {}{arguments}: {value:?}", tunable.name));
        value
    }

    fn permit_steal(&mut self, task: &str, thief: NodeId) -> bool {
        let permitted = self.inner.permit_steal(task, thief);
        self.log(&format!("{thief} may take {task}: {permitted}"));
        permitted
    }

    fn permit_steal_with_data(&mut self, task: &str, thief: NodeId, bytes: u64) -> bool {
        let permitted = self.inner.permit_steal_with_data(task, thief, bytes);
        self.log(&format!("{thief} may take {task} with {bytes} bytes: {permitted}"));
        permitted
    }

    fn mapping_failed(&mut self, task: &TaskInfo<'_>, failure: &MappingFailure) {
        self.log(&format!("mapping {}{} failed: {failure}", task.name, task.point));
        self.inner.mapping_failed(task, failure);
    }

    fn task_mapped(&mut self, task: &TaskInfo<'_>, mapped: &MappedTask) {
        let instances = mapped.requirements.iter().map(|instances| {
            let each = instances.iter().map(|MappedInstance { instance, is_new }| {
                format!("{}{} in {}", if *is_new { "new " } else { "" }, instance.id.0, instance.memory)
            });
            each.collect::<Vec<_>>().join(" and ")
        });
        let instances = instances.collect::<Vec<_>>().join("; ");
        self.log(&format!("{}{} got instances {instances}", task.name, task.point));
        self.inner.task_mapped(task, mapped);
    }

    fn hear(&mut self, from: MapperAddress, message: &[u8], mail: &dyn Mail) {
        self.log(&format!("hear {} bytes from {from}", message.len()));
        self.inner.hear(from, message, mail);
    }

    fn task_profiled(&mut self, task: &str, profile: &TaskProfile) {
        self.log(&format!("{task} ran on {} for {} ns", profile.processor, profile.ended - profile.started));
        self.inner.task_profiled(task, profile);
    }
}
