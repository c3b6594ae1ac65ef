//! The mapper that decides where tiles of tensors are kept.

use maniple::machine::{Machine, MemoryId, ProcessorId, ProcessorKind};
use maniple::mapper::{
    DefaultMapper, Extent, InstanceChoice, Keep, Mapper, MappingContext, RECEIVE, RequirementMapping, Reuse, TaskInfo,
    TaskMapping,
};

/// A mapper for plans: points of a grid go to processors in blocks, in their order, and tiles stay where their points
/// run.
///
/// A tensor has one instance on a node whose processors all see one memory best, and neighbours read it there. If
/// processors have memories of their own, each keeps instances of the tiles that it uses, so that only tiles that
/// others have made are copied.
///
/// A tile that is used by one step alone, in plans that [run in steps](super::Computation::run_in_steps), has an
/// instance of its own that goes after the step, as far as there is room for it.
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
        let passing = mapping.requirements.iter_mut().enumerate().filter(|(number, _)| passes(task, *number));
        for (_, requirement) in passing {
            if let RequirementMapping::Instance(choices) = requirement {
                let own = choices.iter().filter(|choice| choice.extent == Extent::Region);
                let own =
                    own.map(|choice| InstanceChoice { reuse: Reuse::Exact, keep: Keep::WhileUsed, ..choice.clone() });
                // Where there is no room for more, what lies in another instance is used there.
                let own: Vec<InstanceChoice> = own.collect();
                choices.splice(..0, own);
            }
        }
        if task.is_index_launch && has_several_memories(context.machine()) {
            // An idle processor that took the task would have to fetch the tile.
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

/// A flag in the tags of launches of steps. A program that sets it in a tag of its own says the same.
const OF_STEPS: u64 = 1 << 63;

/// The tag of a launch of which these requirements are used by one step alone, so far as there are numbers for them.
pub(super) fn passing(requirements: impl IntoIterator<Item = usize>) -> u64 {
    requirements.into_iter().filter(|number| *number < 63).fold(0, |tag, number| tag | OF_STEPS | 1 << number)
}

/// Whether a requirement is used by one step alone. So is what comes from other nodes for a launch of steps, whichever
/// requirement it is for: if it is one that stays, it is copied.
fn passes(task: &TaskInfo<'_>, requirement: usize) -> bool {
    task.tag & OF_STEPS != 0 && (task.name == RECEIVE || requirement < 63 && task.tag >> requirement & 1 == 1)
}

/// Whether the best memories of processors differ.
fn has_several_memories(machine: &Machine) -> bool {
    let best = |processor: ProcessorId| machine.memories_visible_from(processor).first().map(|best| best.memory);
    let mut memories = machine.processors_of(ProcessorKind::Cpu).filter_map(|processor| best(processor.id));
    let first: Option<MemoryId> = memories.next();
    memories.any(|memory| Some(memory) != first)
}
