//! A mapper that decides by chance.

use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;
use maniple_realm::layout::{Arrangement, DimensionOrder, LayoutConstraint, padded};
use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId, ProcessorInfo, Reachable};
use maniple_space::{AnyRect, AnySpace};

use crate::{
    Columns, Extent, InstanceChoice, InstanceInfo, Keep, Mail, Mapper, MapperAddress, MappingContext, NodeSlice,
    ReadyOperation, ReductionPlace, RequirementInfo, RequirementMapping, Reuse, Slice, TaskInfo, TaskMapping, Validity,
    VariantInfo,
};

/// Of more processors than this, groups have all or none.
const MOST_IN_ANY_GROUP: usize = 8;

/// An adversary: every decision is drawn at random from all that are allowed. Whatever it does, programs must give the
/// same results.
///
/// The same seed draws the same numbers; which decision gets which number depends on the order in which the runtime
/// asks. A [steady](RandomMapper::steady) one answers the same question the same way each time.
#[derive(Clone, Debug)]
pub struct RandomMapper {
    random: Rng,
    /// Chooses which operation goes first, which no answer may settle for ever.
    order: Rng,
    /// The seed of a steady mapper: its answers follow from the seed and the question alone.
    steady: Option<u64>,
}

impl RandomMapper {
    /// An adversary whose choices follow from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed), order: Rng::with_seed(!seed), steady: None }
    }

    /// An adversary that decides by chance, but the same each time that it is asked the same: launches that repeat are
    /// mapped as they were, as traces need it. Launches are the same if task, points and tag are. New instances are
    /// seldom demanded where there is one.
    ///
    /// Which operation goes first remains a matter of chance.
    #[must_use]
    pub fn steady(seed: u64) -> Self {
        Self { steady: Some(seed), ..Self::new(seed) }
    }

    /// Makes the choices that follow depend on the question alone, if they are to be steady.
    fn consider(&mut self, question: impl Hash) {
        if let Some(seed) = self.steady {
            let mut hasher = DefaultHasher::new();
            (seed, question).hash(&mut hasher);
            self.random.seed(hasher.finish());
        }
    }

    /// Which instances do. Seldom one of those that there are, as looking them up takes time.
    fn reuse(&mut self, requirement: usize, context: &dyn MappingContext) -> Reuse {
        match self.steady {
            Some(_) if self.random.usize(..50) > 0 => return self.one_of(&[Reuse::Any, Reuse::Any, Reuse::Exact]),
            None if self.random.usize(..8) > 0 => {
                return self.one_of(&[Reuse::Any, Reuse::Any, Reuse::Exact, Reuse::Never]);
            }
            _ => {}
        }
        let known = context.instances(requirement);
        match self.random.usize(..=known.len()) {
            0 => Reuse::Never,
            one => Reuse::Only(known[one - 1].id),
        }
    }

    /// Now and then sends a message to any mapper.
    fn chat(&mut self, mail: &dyn Mail) {
        if self.order.usize(..16) == 0 {
            let node = NodeId(self.order.usize(..mail.nodes()) as u16);
            // That of a node may not be there.
            let to = MapperAddress { node, processor: ProcessorId(self.order.u32(..4)) };
            let message: Vec<u8> = (0..self.order.usize(..4)).map(|_| self.order.u8(..)).collect();
            let _ = mail.send(to, &message);
        }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(..choices.len())]
    }

    /// Memories that a processor sees, in random order; each once with every extent so that something fits if anything
    /// does.
    fn choices(
        &mut self,
        number: usize,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        variant: &LayoutConstraint,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let visible = context.machine().memories_visible_from(processor);
        let mut memories: Vec<MemoryId> = visible.iter().map(|reachable| reachable.memory).collect();
        self.random.shuffle(&mut memories);
        let mut choices = Vec::new();
        for memory in memories {
            let wild = InstanceChoice {
                memory,
                reuse: self.reuse(number, context),
                extent: match self.random.usize(..3) {
                    0 => Extent::Region,
                    1 => Extent::Ancestor(self.random.usize(1..=3)),
                    _ => Extent::Root,
                },
                columns: self.one_of(&[Columns::Requirement, Columns::Separate, Columns::All]),
                layout: self.layout(variant, requirement.region.space().space()),
                reduction: self.one_of(&[ReductionPlace::Buffer, ReductionPlace::InPlace]),
                keep: self.keep(),
            };
            choices.extend([wild, InstanceChoice::in_memory(memory)]);
        }
        RequirementMapping::Instance(choices)
    }

    /// Now and then some processors, one of which is given, that see all that it sees.
    fn group(&mut self, processor: ProcessorId, machine: &Machine) -> Vec<ProcessorId> {
        if self.random.usize(..4) > 0 {
            return Vec::new();
        }
        let info = machine.processor(processor);
        let memories = machine.memories_visible_from(processor);
        let is_alike = |other: &&ProcessorInfo| {
            let sees = |memory: &Reachable| machine.affinity(other.id, memory.memory).is_some();
            (other.node, other.kind) == (info.node, info.kind) && memories.iter().all(sees)
        };
        let mut alike: Vec<_> = machine.processors().iter().filter(is_alike).map(|other| other.id).collect();
        // A runtime knows some groups only.
        if alike.len() <= MOST_IN_ANY_GROUP {
            let place = alike.iter().position(|&other| other == processor).unwrap_or(0);
            alike.truncate(self.random.usize(place..alike.len()) + 1);
            alike.drain(..self.random.usize(..=place));
        }
        alike
    }

    /// Seldom while it is used alone: that does not hold for later tasks.
    fn keep(&mut self) -> Keep {
        match self.random.usize(..16) {
            0 => Keep::WhileUsed,
            _ => Keep::Rank(self.random.i32(-1..=1)),
        }
    }

    /// Any layout that the variant accepts; or none, and the runtime sees to what the variant wants.
    fn layout(&mut self, variant: &LayoutConstraint, points: &AnySpace) -> LayoutConstraint {
        let arrangements = [
            Arrangement::StructOfArrays,
            Arrangement::ArrayOfStructs,
            Arrangement::Blocked(1 << self.random.usize(..6)),
        ];
        let mut layout = LayoutConstraint::default();
        if self.random.bool() {
            layout.arrangement = variant.arrangement.or_else(|| Some(self.one_of(&arrangements)));
        }
        if self.random.usize(..3) == 0 {
            let mut order: Vec<usize> = (0..points.dim()).collect();
            self.random.shuffle(&mut order);
            layout.order = variant.order.or_else(|| DimensionOrder::new(&order).ok());
        }
        match self.random.usize(..8) {
            0 if variant.pad.is_none() => {
                layout.align = Some(self.one_of(&[variant.align.unwrap_or(1), 256]));
            }
            1 if variant.align.is_none() => {
                layout.pad = Some(self.random.u32(..3)).filter(|&pad| padded(points, pad).is_some());
            }
            _ => {}
        }
        layout
    }
}

impl Mapper for RandomMapper {
    fn name(&self) -> &str {
        "random"
    }

    fn validity(&mut self, _task: &TaskInfo<'_>) -> Validity {
        match self.steady {
            Some(_) if self.random.usize(..8) > 0 => Validity::WhileUnchanged,
            _ => Validity::Once,
        }
    }

    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        self.consider(("slices across nodes", launch.name, launch.domain, launch.tag, here));
        let parts = 1 + self.random.usize(..4);
        let mut slice = |domain: AnyRect| {
            let node = NodeId(self.random.usize(..nodes) as u16);
            // Two steady ones could send the same points to and fro for ever.
            let is_smaller = domain.volume() < launch.domain.volume();
            NodeSlice { domain, node, recurse: self.random.bool() && is_smaller }
        };
        let mut slices: Vec<NodeSlice> = launch.domain.split(parts).into_iter().map(&mut slice).collect();
        self.random.shuffle(&mut slices);
        slices
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        self.consider(("slices", launch.name, launch.domain, launch.tag));
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
        self.consider(("task", task.name, task.domain, task.point, task.tag));
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
        let chosen = task.variants.get(variant);
        self.chat(context.mail());
        let is_virtual = !chosen.is_none_or(|variant| variant.is_leaf) && self.random.bool();
        // Others are taken where there are no leaves.
        let any_variant = chosen.is_some_and(|variant| variant.is_leaf) && self.random.usize(..4) == 0;
        let requirements = (task.requirements.iter().enumerate())
            .map(|(number, requirement)| match is_virtual {
                true => RequirementMapping::Virtual,
                false => {
                    let layout = chosen.map(|variant| variant.layout_of(number)).unwrap_or_default();
                    let mut choices = self.choices(number, requirement, processor, &layout, context);
                    if any_variant && let RequirementMapping::Instance(choices) = &mut choices {
                        // One at least is to fit.
                        choices.iter_mut().for_each(|choice| {
                            choice.layout = choice.layout.and(&layout).unwrap_or(layout);
                        });
                    }
                    choices
                }
            })
            .collect();
        TaskMapping {
            processor,
            pinned: self.random.bool(),
            group: self.group(processor, machine),
            variant,
            any_variant,
            requirements,
            priority: self.random.i32(-2..=2),
            copy_priority: self.random.i32(-2..=2),
            window: (self.random.usize(..4) == 0).then(|| self.random.usize(..3)),
            profile: self.random.usize(..8) == 0,
            report: self.random.usize(..8) == 0,
            validity: self.validity(task),
        }
    }

    fn select_fitting(&mut self, task: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        self.consider(("fitting", task.name, task.domain, task.point, task.tag, fitting.len()));
        self.random.usize(..fitting.len())
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, _here: NodeId, nodes: usize) -> Option<NodeId> {
        self.consider(("node", task.name, task.domain, task.point, task.tag));
        let node = self.random.usize(..=nodes);
        (node < nodes).then_some(NodeId(node as u16))
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.consider(("inline", &requirement.fields, processor));
        self.choices(0, requirement, processor, &LayoutConstraint::default(), context)
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, _machine: &Machine) -> Vec<usize> {
        let instances = sources.iter().map(|source| source.id);
        self.consider(("sources", instances.collect::<Vec<_>>(), destination.id));
        let mut order: Vec<usize> = (0..sources.len()).collect();
        self.random.shuffle(&mut order);
        order.truncate(self.random.usize(..=sources.len()));
        order
    }

    fn hear(&mut self, from: MapperAddress, message: &[u8], mail: &dyn Mail) {
        // What it hears changes what it draws, unless it is to be steady.
        for _ in 0..message.first().copied().unwrap_or_default() % 4 {
            self.order.bool();
            self.random.bool();
        }
        if self.order.usize(..4) > 0 {
            // One answer too many is refused.
            let _ = mail.send(from, &[self.order.u8(..)]);
        }
    }

    fn permit_steal(&mut self, task: &str, thief: NodeId) -> bool {
        self.consider(("steal", task, thief));
        self.random.usize(..4) > 0
    }

    fn permit_steal_with_data(&mut self, task: &str, thief: NodeId, bytes: u64) -> bool {
        self.consider(("steal with data", task, thief, bytes));
        self.random.usize(..4) > 0
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        let mut chosen: Vec<usize> = (0..ready.len()).filter(|_| self.order.bool()).collect();
        self.order.shuffle(&mut chosen);
        chosen
    }
}
