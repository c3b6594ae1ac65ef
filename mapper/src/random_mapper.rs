//! A mapper that decides by chance.

use fastrand::Rng;
use maniple_realm::layout::{Arrangement, LayoutConstraint};
use maniple_realm::machine::{Machine, MemoryId, ProcessorId};

use crate::{
    Columns, Extent, InstanceChoice, InstanceInfo, Mapper, MappingContext, ReadyOperation, ReductionPlace,
    RequirementInfo, RequirementMapping, Reuse, Slice, TaskInfo, TaskMapping, Validity,
};

/// An adversary: every decision is drawn at random from all that are allowed. Whatever it does, programs must give the same results.
///
/// The same seed draws the same numbers; which decision gets which number depends on the order in which the runtime asks.
#[derive(Clone, Debug)]
pub struct RandomMapper {
    random: Rng,
}

impl RandomMapper {
    /// An adversary whose choices follow from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed) }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(..choices.len())]
    }

    /// Memories that a processor sees, in random order; each once with every extent so that something fits if anything does.
    fn choices(&mut self, processor: ProcessorId, variant: &LayoutConstraint, machine: &Machine) -> RequirementMapping {
        let visible = machine.memories_visible_from(processor);
        let mut memories: Vec<MemoryId> = visible.iter().map(|reachable| reachable.memory).collect();
        self.random.shuffle(&mut memories);
        let mut choices = Vec::new();
        for memory in memories {
            let wild = InstanceChoice {
                memory,
                reuse: self.one_of(&[Reuse::Any, Reuse::Any, Reuse::Exact, Reuse::Never]),
                extent: self.one_of(&[Extent::Region, Extent::Ancestor(1), Extent::Root]),
                columns: self.one_of(&[Columns::Requirement, Columns::Separate, Columns::All]),
                layout: self.layout(variant),
                reduction: self.one_of(&[ReductionPlace::Buffer, ReductionPlace::InPlace]),
            };
            let modest = InstanceChoice { layout: *variant, ..InstanceChoice::in_memory(memory) };
            choices.extend([wild, modest]);
        }
        RequirementMapping::Instance(choices)
    }

    /// Any layout that the variant accepts.
    fn layout(&mut self, variant: &LayoutConstraint) -> LayoutConstraint {
        let arrangements = [
            Arrangement::StructOfArrays,
            Arrangement::ArrayOfStructs,
            Arrangement::Blocked(4),
            Arrangement::Blocked(32),
        ];
        let mut layout = *variant;
        if layout.arrangement.is_none() && self.random.bool() {
            layout.arrangement = Some(self.one_of(&arrangements));
        }
        layout
    }
}

impl Mapper for RandomMapper {
    fn name(&self) -> &str {
        "random"
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        let parts = 1 + self.random.usize(..4);
        let processors: Vec<ProcessorId> = machine.processors().iter().map(|processor| processor.id).collect();
        let mut slices: Vec<Slice> = launch
            .domain
            .split(parts)
            .into_iter()
            .map(|domain| Slice { domain, processor: self.one_of(&processors) })
            .collect();
        self.random.shuffle(&mut slices);
        slices
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let machine = context.machine();
        let able: Vec<ProcessorId> = machine
            .processors()
            .iter()
            .filter(|processor| task.variants_for(processor.kind).next().is_some())
            .map(|processor| processor.id)
            .collect();
        let processor = if able.is_empty() { task.origin } else { self.one_of(&able) };
        let variants: Vec<usize> = task.variants_for(machine.processor(processor).kind).collect();
        let variant = if variants.is_empty() { 0 } else { self.one_of(&variants) };
        let (layout, leaf) = match task.variants.get(variant) {
            Some(variant) => (variant.layout, variant.is_leaf),
            None => (LayoutConstraint::default(), true),
        };
        let is_virtual = !leaf && self.random.bool();
        let requirements = (0..task.requirements.len())
            .map(|_| match is_virtual {
                true => RequirementMapping::Virtual,
                false => self.choices(processor, &layout, machine),
            })
            .collect();
        TaskMapping {
            processor,
            pinned: self.random.bool(),
            variant,
            requirements,
            priority: self.random.i32(-2..=2),
            profile: false,
            validity: Validity::Once,
        }
    }

    fn map_inline(
        &mut self,
        _requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.choices(processor, &LayoutConstraint::default(), context.machine())
    }

    fn rank_sources(
        &mut self,
        sources: &[InstanceInfo],
        _destination: &InstanceInfo,
        _machine: &Machine,
    ) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sources.len()).collect();
        self.random.shuffle(&mut order);
        order.truncate(self.random.usize(..=sources.len()));
        order
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        let mut chosen: Vec<usize> = (0..ready.len()).filter(|_| self.random.bool()).collect();
        self.random.shuffle(&mut chosen);
        chosen
    }
}
