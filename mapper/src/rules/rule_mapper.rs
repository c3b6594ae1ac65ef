//! The mapper that obeys rules.

use std::sync::Arc;

use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::{Machine, MemoryId, NodeId, ProcessorId, ProcessorKind};
use maniple_space::AnyRect;

use super::choice::{Decided, visible};
use super::data::{Deal, Memory, Processors, Share, Steal};
use super::matching::{OfData, OfTask};
use super::usage::{RulesInUse, Seen};
use crate::{
    InstanceInfo, Mapper, MappingContext, NodeSlice, ReadyOperation, RequirementInfo, RequirementMapping, Sharding,
    Slice, TaskInfo, TaskMapping, Tunable,
};

/// The name of an inline mapping in rules and in [`Mapper::mapping_failed`].
pub(super) const INLINE: &str = "inline mapping";

/// Obeys [rules](crate::MappingRules), and leaves what they do not decide to another mapper. What the machine has not,
/// or a task cannot, is logged once and passed over, so that no rule makes a program fail.
///
/// ```
/// use maniple_mapper::{DefaultMapper, MappingRules, RuleMapper, RulesInUse};
/// use maniple_realm::machine::NodeId;
///
/// let rules = MappingRules::parse("[[task]]\nname = 'update'\nprocessors = [0, 1]\n")?;
/// let mapper = RuleMapper::new(DefaultMapper::new(), &RulesInUse::new(rules), NodeId(0));
/// # drop(mapper);
/// # Ok::<(), maniple_mapper::MappingFileError>(())
/// ```
pub struct RuleMapper<M: Mapper> {
    inner: M,
    rules: Arc<RulesInUse>,
    node: NodeId,
    seen: Seen,
}

impl<M: Mapper> RuleMapper<M> {
    /// A mapper on a node that obeys rules, and asks another mapper in all else.
    pub fn new(inner: M, rules: &Arc<RulesInUse>, node: NodeId) -> Self {
        Self { inner, rules: Arc::clone(rules), node, seen: Seen::of(node) }
    }

    fn of<'t>(&self, task: &'t TaskInfo<'_>) -> OfTask<'t> {
        OfTask { name: task.name, tag: Some(task.tag), node: self.node }
    }

    /// The processor and the variant that the rules want for a task which the other mapper has put somewhere, and if
    /// the first processor that is free is to run it, all of those.
    fn place(&mut self, task: &TaskInfo<'_>, given: (ProcessorId, usize), machine: &Machine) -> Placed {
        let rules = &self.rules;
        let of = self.of(task);
        let processors = rules.decided(of, |rule| rule.processors.as_ref());
        let variant = rules.decided(of, |rule| rule.variant.as_deref());
        let deal = rules.decided(of, |rule| rule.deal);
        if processors.is_none() && variant.is_none() && deal.is_none() {
            return Placed::at(given);
        }
        let variant_on = |processor: ProcessorId| {
            let kind = machine.processor(processor).kind;
            task.variants_for(kind).find(|&index| variant.is_none_or(|name| task.variants[index].name == name))
        };
        let is_wanted = |processor: ProcessorId| match processors {
            None => true,
            Some(Processors::Kind(kind)) => machine.processor(processor).kind == *kind,
            Some(Processors::These(all)) => all.contains(&processor),
        };
        let all = machine.processors().iter().map(|processor| processor.id);
        let able: Vec<ProcessorId> = all.filter(|&id| is_wanted(id) && variant_on(id).is_some()).collect();
        let Some(&first) = able.first() else {
            let variant = variant.map_or_else(|| "a variant".to_owned(), |name| format!("the variant `{name}`"));
            rules.tell(format!("task `{}` has {variant} for none of the processors that it is to run on", task.name));
            return Placed::at(given);
        };
        let index = task.index();
        let processor = match (task.is_index_launch, deal) {
            // Only the variant is decided, and can be had where the task is.
            (_, None | Some(Deal::FirstFree)) if processors.is_none() && able.contains(&given.0) => given.0,
            (true, Some(Deal::Cycles)) => able[(index % able.len() as u64) as usize],
            (true, _) => block(index, task.domain.volume(), &able),
            (false, _) if able.contains(&task.origin) => task.origin,
            (false, _) => first,
        };
        let fits = |index: usize| {
            let kind = machine.processor(processor).kind;
            task.variants.get(index).is_some_and(|variant| variant.processor == kind)
        };
        let chosen = match variant {
            Some(_) => variant_on(processor),
            None if fits(given.1) => Some(given.1),
            None => Some(self.inner.select_variant(task, processor, machine)).filter(|&index| fits(index)),
        };
        let place = (processor, chosen.or_else(|| variant_on(processor)).unwrap_or(given.1));
        Placed { place, first_free: if deal == Some(Deal::FirstFree) { able } else { Vec::new() } }
    }

    /// Applies the rules to the other mapper's choices of instances for a requirement. A virtual mapping stays as it
    /// is.
    fn put(
        &mut self,
        mapping: RequirementMapping,
        data: OfData<'_>,
        processor: ProcessorId,
        layout: &LayoutConstraint,
        machine: &Machine,
    ) -> RequirementMapping {
        let OfData { task, requirement, .. } = data;
        self.seen.data(requirement);
        let RequirementMapping::Instance(choices) = mapping else { return mapping };
        let mut decided = Decided::default();
        let mut is_any = false;
        for rule in self.rules.of_data(data) {
            decided.add(rule);
            is_any = true;
        }
        if !is_any {
            return RequirementMapping::Instance(choices);
        }
        let memories = visible(decided.memories, processor, machine);
        if memories.is_empty() && !decided.memories.is_empty() {
            self.rules
                .tell(format!("{processor} sees none of the memories that data of task `{task}` is to be put in"));
        }
        let dimensions = requirement.region.space().space().dim();
        RequirementMapping::Instance(decided.choices(choices, &memories, layout, dimensions))
    }

    /// The nodes of a list that there are.
    fn there(&self, wanted: &[NodeId], nodes: usize, task: &str) -> Vec<NodeId> {
        let there: Vec<NodeId> = wanted.iter().copied().filter(|node| usize::from(node.0) < nodes).collect();
        if there.len() < wanted.len() {
            self.rules.tell(format!("task `{task}` is dealt to nodes of which the job has not all: it has {nodes}"));
        }
        there
    }
}

impl<M: Mapper> Drop for RuleMapper<M> {
    fn drop(&mut self) {
        self.rules.add_seen(std::mem::take(&mut self.seen));
    }
}

/// The placement of a task by the rules.
struct Placed {
    /// Its processor and variant.
    place: (ProcessorId, usize),
    /// If the first that is free is to run it, these.
    first_free: Vec<ProcessorId>,
}

impl Placed {
    fn at(place: (ProcessorId, usize)) -> Self {
        Self { place, first_free: Vec::new() }
    }
}

/// Of some processors those that can run a task in place of its own: of the same node and kind, each once, and where
/// its data can be.
fn together(named: &[ProcessorId], mapping: &TaskMapping, machine: &Machine) -> Vec<ProcessorId> {
    let Some(own) = machine.processors().get(mapping.processor.0 as usize) else { return named.to_vec() };
    let memories: Vec<MemoryId> = mapping.requirements.iter().flat_map(memories).collect();
    let serves = |id: &ProcessorId| {
        machine.processors().get(id.0 as usize).is_some_and(|other| {
            (other.node, other.kind) == (own.node, own.kind)
                && memories.iter().all(|&memory| machine.affinity(*id, memory).is_some())
        })
    };
    let mut group: Vec<ProcessorId> = named.iter().copied().filter(serves).collect();
    group.push(own.id);
    group.sort_unstable();
    group.dedup();
    group
}

/// The kind of a processor, if the machine has it.
fn kind_of(processor: ProcessorId, machine: &Machine) -> Option<ProcessorKind> {
    machine.processors().get(processor.0 as usize).map(|processor| processor.kind)
}

/// The memories that choices name.
fn memories(mapping: &RequirementMapping) -> impl Iterator<Item = MemoryId> {
    let choices = match mapping {
        RequirementMapping::Virtual => &[][..],
        RequirementMapping::Instance(choices) => choices,
    };
    choices.iter().map(|choice| choice.memory)
}

/// The element that a point gets if so many points are dealt out in blocks.
fn block<T: Copy>(index: u64, points: u64, among: &[T]) -> T {
    let place = u128::from(index) * among.len() as u128 / u128::from(points.max(1));
    among[(place as usize).min(among.len() - 1)]
}

fn all_nodes(nodes: usize) -> Vec<NodeId> {
    (0..nodes).map(|node| NodeId(node as u16)).collect()
}

impl<M: Mapper> Mapper for RuleMapper<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn shard_launch(&mut self, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
        match self.rules.decided(self.of(launch), |rule| rule.sharding.as_ref()) {
            Some(Share::Blocks) => return Sharding::Blocked,
            Some(Share::Cycles) => return Sharding::Cyclic,
            Some(Share::Nodes(wanted)) => match &self.there(wanted, nodes, launch.name)[..] {
                [] => {}
                [one] => return Sharding::OnOne(one.0.into()),
                several => {
                    let several = several.to_vec();
                    let name = format!("blocks over nodes {:?}", several.iter().map(|node| node.0).collect::<Vec<_>>());
                    return Sharding::by_point(name, move |point, domain, _| {
                        block(domain.linear(point), domain.volume(), &several).0.into()
                    });
                }
            },
            Some(Share::Stay) | None => {}
        }
        self.inner.shard_launch(launch, nodes)
    }

    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        let slice = |domain, node| NodeSlice { domain, node, recurse: false };
        let over = match self.rules.decided(self.of(launch), |rule| rule.spread.as_ref()) {
            Some(Share::Stay) => return vec![slice(launch.domain, here)],
            Some(Share::Blocks | Share::Cycles) => all_nodes(nodes),
            Some(Share::Nodes(wanted)) => self.there(wanted, nodes, launch.name),
            None => Vec::new(),
        };
        if over.is_empty() {
            return self.inner.slice_across_nodes(launch, here, nodes);
        }
        let parts = launch.domain.split(over.len());
        parts.into_iter().zip(over).map(|(domain, node)| slice(domain, node)).collect()
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        let Some(points) = self.rules.decided(self.of(launch), |rule| rule.slice) else {
            return self.inner.slice_launch(launch, machine);
        };
        let mut parts = Vec::new();
        cut(launch.domain, points.max(1), &mut parts);
        parts.into_iter().map(|domain| Slice { domain, processor: launch.origin }).collect()
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Option<NodeId> {
        let over = match self.rules.decided(self.of(task), |rule| rule.migrate.as_ref()) {
            Some(Share::Stay) => return Some(here),
            Some(Share::Cycles) => return Some(NodeId((task.index() % nodes.max(1) as u64) as u16)),
            Some(Share::Blocks) => all_nodes(nodes),
            Some(Share::Nodes(wanted)) => self.there(wanted, nodes, task.name),
            None => Vec::new(),
        };
        if over.is_empty() {
            return self.inner.select_node(task, here, nodes);
        }
        Some(block(task.index(), task.domain.volume(), &over))
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.seen.task(task.name);
        let mut mapping = self.inner.map_task(task, context);
        let machine = context.machine();
        let given = (mapping.processor, mapping.variant);
        let Placed { place, first_free } = self.place(task, given, machine);
        (mapping.processor, mapping.variant) = place;
        mapping.any_variant &= place == given;
        if place != given || !first_free.is_empty() {
            mapping.group.clear();
        }
        let Some(variant) = task.variants.get(mapping.variant) else { return mapping };
        let of = self.of(task);
        let is_virtual = self.rules.decided(of, |rule| rule.is_virtual);
        if is_virtual == Some(true) && variant.is_leaf {
            self.rules.tell(format!("task `{}` cannot be mapped virtually: it is a leaf", task.name));
        }
        for (number, requirement) in mapping.requirements.iter_mut().enumerate().take(task.requirements.len()) {
            let was_virtual = *requirement == RequirementMapping::Virtual;
            if !variant.is_leaf && is_virtual.unwrap_or(was_virtual) {
                *requirement = RequirementMapping::Virtual;
                continue;
            }
            if place != given || was_virtual {
                *requirement = self.inner.map_requirement(task, number, mapping.processor, mapping.variant, context);
            }
            let taken = std::mem::replace(requirement, RequirementMapping::Virtual);
            let (processor, asked) = (mapping.processor, &task.requirements[number]);
            let kind = kind_of(processor, machine);
            let data = OfData { task: task.name, node: self.node, processor: kind, requirement: asked, number };
            *requirement = self.put(taken, data, processor, &variant.layout_of(number), machine);
        }
        if !first_free.is_empty() || !mapping.group.is_empty() {
            let named = if first_free.is_empty() { std::mem::take(&mut mapping.group) } else { first_free };
            mapping.group = together(&named, &mapping, machine);
        }
        let pinned = self.rules.decided(of, |rule| rule.pinned);
        mapping.pinned = pinned.unwrap_or(mapping.pinned);
        mapping.priority = self.rules.decided(of, |rule| rule.priority).unwrap_or(mapping.priority);
        let copies = self.rules.decided(of, |rule| rule.copy_priority);
        mapping.copy_priority = copies.unwrap_or(mapping.copy_priority);
        let window = self.rules.decided(of, |rule| rule.window);
        mapping.window = window.map(|window| usize::try_from(window).unwrap_or(usize::MAX)).or(mapping.window);
        mapping.validity = self.rules.decided(of, |rule| rule.validity).unwrap_or(mapping.validity);
        mapping
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mapping = self.inner.map_inline(requirement, processor, context);
        let machine = context.machine();
        let kind = kind_of(processor, machine);
        let data = OfData { task: INLINE, node: self.node, processor: kind, requirement, number: 0 };
        self.put(mapping, data, processor, &LayoutConstraint::default(), machine)
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        let mut order = self.inner.rank_sources(sources, destination, machine);
        let wanted = &self.rules.rules.copies_from;
        if wanted.is_empty() {
            return order;
        }
        let left_out: Vec<usize> = (0..sources.len()).filter(|index| !order.contains(index)).collect();
        order.extend(left_out);
        let is = |source: &InstanceInfo, memory: &Memory| match memory {
            Memory::Kind(kind) => machine.memories().get(source.memory.0 as usize).is_some_and(|m| m.kind == *kind),
            Memory::This(id) => source.memory == *id,
        };
        let rank = |index: &usize| {
            let source = sources.get(*index);
            source.and_then(|source| wanted.iter().position(|memory| is(source, memory))).unwrap_or(wanted.len())
        };
        order.sort_by_key(rank);
        order
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        let mut chosen = self.inner.select_operations_to_map(ready);
        if let Some(most) = self.rules.rules.at_once {
            chosen.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        chosen
    }

    fn tunable(&mut self, tunable: &Tunable<'_>, machine: &Machine) -> Option<i64> {
        let given = self.rules.rules.tunables.get(tunable.name).copied();
        given.or_else(|| self.inner.tunable(tunable, machine))
    }

    fn permit_steal(&mut self, task: &str, thief: NodeId) -> bool {
        let of = OfTask { name: task, tag: None, node: self.node };
        match self.rules.decided(of, |rule| rule.steal) {
            Some(steal) => steal != Steal::Never,
            None => self.inner.permit_steal(task, thief),
        }
    }

    fn permit_steal_with_data(&mut self, task: &str, thief: NodeId, bytes: u64) -> bool {
        let of = OfTask { name: task, tag: None, node: self.node };
        match self.rules.decided(of, |rule| rule.steal) {
            Some(Steal::Never) => false,
            Some(Steal::Always) => true,
            Some(Steal::UpTo(most)) => bytes <= most,
            None => self.inner.permit_steal_with_data(task, thief, bytes),
        }
    }
}

/// Cuts a domain into parts of at most so many points: those of one cut are only of about the same volume.
fn cut(domain: AnyRect, points: u64, parts: &mut Vec<AnyRect>) {
    match domain.volume().div_ceil(points) {
        0 | 1 => parts.push(domain),
        count => domain.split(count as usize).into_iter().for_each(|part| cut(part, points, parts)),
    }
}
