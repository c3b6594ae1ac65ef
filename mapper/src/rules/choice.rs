//! Changes by rules to another mapper's choices of instances.

use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::{Machine, MemoryId, ProcessorId};

use super::data::{DataRule, Memory, Order, ReuseKind};
use crate::{Columns, Extent, InstanceChoice, Keep, ReductionPlace, Reuse};
use maniple_realm::layout::Arrangement;

/// The joint decision of all rules that some data meets.
#[derive(Default)]
pub(super) struct Decided<'r> {
    pub(super) memories: &'r [Memory],
    extent: Option<Extent>,
    reuse: Option<ReuseKind>,
    columns: Option<Columns>,
    arrangement: Option<Arrangement>,
    order: Option<Order>,
    align: Option<u32>,
    reduction: Option<ReductionPlace>,
    keep: Option<Keep>,
}

impl<'r> Decided<'r> {
    /// A later rule decides in the place of those before.
    pub(super) fn add(&mut self, rule: &'r DataRule) {
        if !rule.memories.is_empty() {
            self.memories = &rule.memories;
        }
        self.extent = rule.extent.or(self.extent);
        self.reuse = rule.reuse.or(self.reuse);
        self.columns = rule.columns.or(self.columns);
        self.arrangement = rule.arrangement.or(self.arrangement);
        self.order = rule.order.or(self.order);
        self.align = rule.align.or(self.align);
        self.reduction = rule.reduction.or(self.reduction);
        self.keep = rule.keep.or(self.keep);
    }

    /// The choices as decided, in these memories first; then the other mapper's own, for the case that there is no
    /// room.
    pub(super) fn choices(
        &self,
        given: Vec<InstanceChoice>,
        memories: &[MemoryId],
        variant: &LayoutConstraint,
        dimensions: usize,
    ) -> Vec<InstanceChoice> {
        let mut choices: Vec<InstanceChoice> = Vec::with_capacity(2 * given.len());
        let mut add = |choice: InstanceChoice| {
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        };
        let changed = |choice: &InstanceChoice| self.changed(choice.clone(), variant, dimensions);
        let others = given.iter().filter(|choice| !memories.contains(&choice.memory));
        let wished = memories.iter().flat_map(|&memory| of_memory(&given, memory));
        wished.chain(others.cloned()).for_each(|choice| add(changed(&choice)));
        given.into_iter().for_each(add);
        choices
    }

    fn changed(&self, mut choice: InstanceChoice, variant: &LayoutConstraint, dimensions: usize) -> InstanceChoice {
        choice.extent = self.extent.unwrap_or(choice.extent);
        choice.columns = self.columns.unwrap_or(choice.columns);
        choice.reduction = self.reduction.unwrap_or(choice.reduction);
        choice.keep = self.keep.unwrap_or(choice.keep);
        if let Some(reuse) = self.reuse {
            choice.reuse = match reuse {
                ReuseKind::Any => Reuse::Any,
                ReuseKind::Exact => Reuse::Exact,
                ReuseKind::Never => Reuse::Never,
            };
        }
        // What a variant asks for is kept in any case.
        if variant.arrangement.is_none() {
            choice.layout.arrangement = self.arrangement.or(choice.layout.arrangement);
        }
        if variant.order.is_none() {
            choice.layout.order = self.order.and_then(|order| order.of(dimensions)).or(choice.layout.order);
        }
        // More than the variant asks for is enough for it. What is aligned has no room around it.
        if let (Some(align), None) = (self.align, variant.pad) {
            (choice.layout.align, choice.layout.pad) = (Some(align), None);
        }
        choice
    }
}

/// The choices that name a memory; if there are none, those that name the first memory, for this one.
fn of_memory(given: &[InstanceChoice], memory: MemoryId) -> Vec<InstanceChoice> {
    let named: Vec<InstanceChoice> = given.iter().filter(|choice| choice.memory == memory).cloned().collect();
    let Some(first) = given.first().filter(|_| named.is_empty()) else { return named };
    let alike = given.iter().filter(|choice| choice.memory == first.memory).cloned();
    let moved = |choice: InstanceChoice| {
        // A certain instance is where it is.
        let reuse = if matches!(choice.reuse, Reuse::Only(_)) { Reuse::Any } else { choice.reuse };
        InstanceChoice { memory, reuse, ..choice }
    };
    alike.map(moved).collect()
}

/// The memories that a processor sees among those that are wanted, best first.
pub(super) fn visible(wanted: &[Memory], processor: ProcessorId, machine: &Machine) -> Vec<MemoryId> {
    let is_known = (processor.0 as usize) < machine.processors().len();
    let visible = if is_known { machine.memories_visible_from(processor) } else { &[] };
    let is = |memory: MemoryId, wanted: &Memory| match wanted {
        Memory::Kind(kind) => machine.memory(memory).kind == *kind,
        Memory::This(id) => memory == *id,
    };
    let mut memories: Vec<MemoryId> = Vec::new();
    for wanted in wanted {
        let seen = visible.iter().map(|reachable| reachable.memory).filter(|&memory| is(memory, wanted));
        let new: Vec<MemoryId> = seen.filter(|memory| !memories.contains(memory)).collect();
        memories.extend(new);
    }
    memories
}
