//! Where tiles of tensors are kept.

use maniple::machine::{Machine, MemoryId, ProcessorId, ProcessorKind};
use maniple::mapper::{DefaultMapper, Extent, Mapper, MappingContext, RequirementMapping, TaskInfo, TaskMapping};

/// A mapper for plans: points of a grid go to processors in blocks, in their order, and tiles stay where their points run.
///
/// Where all processors of a node see one memory best, a tensor has one instance there, which neighbours read where it is. Where processors have memories of their own,
/// each keeps instances of the tiles that it uses, so that only what others have made is copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorMapper {
    inner: DefaultMapper,
}

impl TensorMapper {
    /// A mapper that leaves all else to the default one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Mapper for TensorMapper {
    fn name(&self) -> &str {
        "tensor"
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.inner.map_task(task, context);
        if task.is_index_launch && has_several_memories(context.machine()) {
            // Whoever is idle would have to fetch the tile.
            mapping.pinned = true;
            for requirement in &mut mapping.requirements {
                if let RequirementMapping::Instance(choices) = requirement {
                    choices.sort_by_key(|choice| choice.extent != Extent::Region);
                }
            }
        }
        mapping
    }
}

/// Whether the best memories of processors differ.
fn has_several_memories(machine: &Machine) -> bool {
    let best = |processor: ProcessorId| machine.memories_visible_from(processor).first().map(|best| best.memory);
    let mut memories = machine.processors_of(ProcessorKind::Cpu).filter_map(|processor| best(processor.id));
    let first: Option<MemoryId> = memories.next();
    memories.any(|memory| Some(memory) != first)
}
