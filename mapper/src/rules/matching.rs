//! Which rules a task, or its data, meets.

use maniple_realm::machine::{NodeId, ProcessorKind};
use maniple_region::Privilege;

use super::data::{DataRule, PrivilegeKind, TaskRule};
use crate::RequirementInfo;

/// The properties of a task that conditions of rules about tasks refer to.
#[derive(Clone, Copy)]
pub(super) struct OfTask<'a> {
    pub(super) name: &'a str,
    /// None where the mapper is not told.
    pub(super) tag: Option<u64>,
    pub(super) node: NodeId,
}

/// The properties of a requirement that conditions of rules about data refer to.
#[derive(Clone, Copy)]
pub(super) struct OfData<'a> {
    pub(super) task: &'a str,
    pub(super) node: NodeId,
    pub(super) processor: Option<ProcessorKind>,
    pub(super) requirement: &'a RequirementInfo,
    /// Its place in the task's declaration.
    pub(super) number: usize,
}

fn holds_on(nodes: &[NodeId], node: NodeId) -> bool {
    nodes.is_empty() || nodes.contains(&node)
}

impl TaskRule {
    pub(super) fn is_about(&self, task: OfTask<'_>) -> bool {
        let tag = self.tag.is_none() || self.tag == task.tag;
        tag && holds_on(&self.nodes, task.node) && self.names.contains(task.name)
    }
}

impl DataRule {
    pub(super) fn is_about(&self, data: OfData<'_>) -> bool {
        let OfData { task, node, processor, requirement, number } = data;
        let is = |wanted: Option<u64>, found: usize| wanted.is_none_or(|wanted| wanted == found as u64);
        let cheap = holds_on(&self.nodes, node)
            && is(self.requirement, number)
            && self.processor.is_none_or(|kind| processor == Some(kind))
            && self.privilege.is_none_or(|kind| kind == PrivilegeKind::of(requirement.privilege))
            && self.tasks.contains(task);
        cheap
            && self.regions.contain_any(region_names(requirement))
            && self.partitions.contain_any(partition_name(requirement).into_iter())
            && (self.fields.is_all() || field_names(requirement).iter().any(|name| self.fields.contains(name)))
            && self.min_bytes.is_none_or(|least| requirement.bytes() >= least)
            && self.max_bytes.is_none_or(|most| requirement.bytes() <= most)
    }
}

impl PrivilegeKind {
    fn of(privilege: Privilege) -> Self {
        match privilege {
            Privilege::Read => Self::Reads,
            Privilege::ReadWrite => Self::Writes,
            Privilege::Discard => Self::Discards,
            Privilege::Reduce(_) => Self::Reduces,
        }
    }
}

/// The names that a region can be called by: its own, and that of the type of its rows.
pub(super) fn region_names(requirement: &RequirementInfo) -> impl Iterator<Item = &str> {
    let tree = requirement.region.tree();
    tree.name().into_iter().chain(Some(tree.row()).filter(|row| !row.is_empty()))
}

/// The name of the partition of which the region is a piece.
pub(super) fn partition_name(requirement: &RequirementInfo) -> Option<&str> {
    requirement.region.space().partition().and_then(|partition| partition.name())
}

pub(super) fn field_names(requirement: &RequirementInfo) -> Vec<String> {
    let fields = requirement.region.fields();
    requirement.fields.iter().map(|field| fields.name_of(field)).collect()
}
