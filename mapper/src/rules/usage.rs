//! Rules that a runtime obeys, and which of them have met anything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;

use super::data::{MappingRules, TaskRule};
use super::matching::{OfData, OfTask, field_names, partition_name, region_names};
use super::pattern::{Names, nearest};
use crate::RequirementInfo;

/// Rules that mappers obey, which note which rules a task or its data has met. When the last mapper is gone, the others
/// are logged: each has met nothing, perhaps as a name is misspelt.
#[derive(Debug)]
pub struct RulesInUse {
    pub(super) rules: MappingRules,
    /// For each rule about tasks, in the order of the file: whether it has met a task.
    tasks: Vec<AtomicBool>,
    data: Vec<AtomicBool>,
    seen: Mutex<Seen>,
    /// The problems that were logged, each of which is logged only once.
    told: Mutex<BTreeSet<String>>,
}

/// The names that mappers were asked about.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The nodes of the mappers. Of others the rules say nothing here.
    nodes: BTreeSet<NodeId>,
    tasks: BTreeSet<String>,
    regions: BTreeSet<String>,
    partitions: BTreeSet<String>,
    fields: BTreeSet<String>,
}

/// No more names are remembered of a kind.
const MOST_NAMES: usize = 256;

impl RulesInUse {
    /// Rules that have met nothing.
    #[must_use]
    pub fn new(rules: MappingRules) -> Arc<Self> {
        let unused = |count| std::iter::repeat_with(AtomicBool::default).take(count).collect();
        let (tasks, data) = (unused(rules.tasks.len()), unused(rules.data.len()));
        Arc::new(Self { rules, tasks, data, seen: Mutex::default(), told: Mutex::default() })
    }

    /// The rules that a task meets, in their order.
    pub(super) fn of_task(&self, task: OfTask<'_>) -> impl DoubleEndedIterator<Item = &TaskRule> {
        let rules = self.rules.tasks.iter().zip(&self.tasks);
        rules.filter(move |(rule, _)| rule.is_about(task)).map(|(rule, is_used)| {
            is_used.store(true, Ordering::Relaxed);
            rule
        })
    }

    /// Returns the decision of the last rule that a task meets and that makes this decision.
    pub(super) fn decided<'s, T>(
        &'s self,
        task: OfTask<'_>,
        decision: impl Fn(&'s TaskRule) -> Option<T>,
    ) -> Option<T> {
        self.of_task(task).rev().filter_map(decision).next()
    }

    /// The rules that some data meets, in their order.
    pub(super) fn of_data(&self, data: OfData<'_>) -> impl Iterator<Item = &super::DataRule> {
        let rules = self.rules.data.iter().zip(&self.data);
        rules.filter(move |(rule, _)| rule.is_about(data)).map(|(rule, is_used)| {
            is_used.store(true, Ordering::Relaxed);
            rule
        })
    }

    /// Logs what a rule wants in vain, the first time.
    pub(super) fn tell(&self, problem: String) {
        let mut told = self.told.lock();
        if told.len() < MOST_NAMES && told.insert(problem.clone()) {
            drop(told);
            tracing::warn!(target: "maniple::mapper", "mapping file: {problem}");
        }
    }

    pub(super) fn add_seen(&self, seen: Seen) {
        self.seen.lock().add(seen);
    }

    /// The rules that have met nothing so far, with names that may have been meant. Nothing at all if no task has been
    /// mapped.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let seen = self.seen.lock();
        if seen.tasks.is_empty() {
            return Vec::new();
        }
        let holds = |nodes: &[NodeId]| nodes.is_empty() || nodes.iter().any(|node| seen.nodes.contains(node));
        let is_unused = |used: &AtomicBool, nodes: &[NodeId]| !used.load(Ordering::Relaxed) && holds(nodes);
        let mut unused = Vec::new();
        for (number, (rule, used)) in self.rules.tasks.iter().zip(&self.tasks).enumerate() {
            if is_unused(used, &rule.nodes) {
                let unknown = unknown(&[("task", &rule.names, &seen.tasks)]);
                unused.push(format!("[[task]] {} has met no task{unknown}", number + 1));
            }
        }
        for (number, (rule, used)) in self.rules.data.iter().zip(&self.data).enumerate() {
            if is_unused(used, &rule.nodes) {
                let unknown = unknown(&[
                    ("task", &rule.tasks, &seen.tasks),
                    ("region", &rule.regions, &seen.regions),
                    ("partition", &rule.partitions, &seen.partitions),
                    ("field", &rule.fields, &seen.fields),
                ]);
                unused.push(format!("[[data]] {} has met no data{unknown}", number + 1));
            }
        }
        unused
    }
}

impl Drop for RulesInUse {
    fn drop(&mut self) {
        for unused in self.unused() {
            tracing::warn!(target: "maniple::mapper", "mapping file: {unused}");
        }
    }
}

/// The names of a rule that nothing had: ``; there was no task `a`: did you mean `b`?``.
fn unknown(kinds: &[(&str, &Names, &BTreeSet<String>)]) -> String {
    let mut text = String::new();
    for (kind, names, seen) in kinds {
        for pattern in names.patterns() {
            let one = Names::of(vec![pattern.clone()]);
            if seen.iter().any(|name| one.contains(name)) {
                continue;
            }
            text += &format!("; there was no {kind} `{pattern}`");
            if let Some(near) = nearest(pattern, seen.iter().map(String::as_str)) {
                text += &format!(": did you mean `{near}`?");
            }
        }
    }
    text
}

impl Seen {
    pub(super) fn of(node: NodeId) -> Self {
        Self { nodes: BTreeSet::from([node]), ..Self::default() }
    }

    pub(super) fn task(&mut self, name: &str) {
        insert(&mut self.tasks, name);
    }

    pub(super) fn data(&mut self, requirement: &RequirementInfo) {
        region_names(requirement).for_each(|name| insert(&mut self.regions, name));
        partition_name(requirement).into_iter().for_each(|name| insert(&mut self.partitions, name));
        field_names(requirement).iter().for_each(|name| insert(&mut self.fields, name));
    }

    fn add(&mut self, other: Self) {
        let Self { nodes, tasks, regions, partitions, fields } = other;
        self.nodes.extend(nodes);
        tasks.iter().for_each(|name| insert(&mut self.tasks, name));
        regions.iter().for_each(|name| insert(&mut self.regions, name));
        partitions.iter().for_each(|name| insert(&mut self.partitions, name));
        fields.iter().for_each(|name| insert(&mut self.fields, name));
    }
}

fn insert(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < MOST_NAMES && !names.contains(name) {
        names.insert(name.to_owned());
    }
}
