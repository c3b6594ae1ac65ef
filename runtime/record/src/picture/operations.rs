//! The graph of what was issued: tasks, copies, fills and reductions, and what each was made to wait for.

use crate::picture::graph::{Class, Edge, Graph, Node};
use crate::record::{Kind, OperationNumber, Part, Record, Task, Usage};

impl Graph {
    /// The graph of the operations of a record, without edges that others imply unless `all_edges` are wanted.
    ///
    /// Operations that are only there to keep the books are left out: the top-level task, and joins that do no more
    /// than pass others on.
    #[must_use]
    pub fn of_operations(record: &Record, all_edges: bool) -> Self {
        let nodes = record.numbered().map(|(number, operation)| Node {
            key: format!("operation{number}"),
            label: label(record, &operation.kind),
            details: details(record, number, &operation.kind),
            class: class(&operation.kind),
        });
        let edges = record.operations.iter().enumerate().flat_map(|(to, operation)| {
            let known = operation.after.iter().filter_map(|&earlier| record.index(earlier));
            let known = known.filter(|&from| from < record.operations.len());
            known.map(move |from| Edge { from, to, labels: Vec::new() })
        });
        let graph = Self { title: "operations".to_owned(), nodes: nodes.collect(), edges: edges.collect() };
        let (mut before, mut behind) = (vec![0; graph.nodes.len()], vec![0; graph.nodes.len()]);
        for edge in &graph.edges {
            before[edge.to] += 1;
            behind[edge.from] += 1;
        }
        let keeps_books = |index: usize, node: &Node| match &record.operations[index].kind {
            Kind::TopLevel | Kind::FillRegion { .. } | Kind::Lost { .. } => true,
            Kind::End { task } => !matches!(record.operation(*task).map(|task| &task.kind), Some(Kind::Task(_))),
            // Many before and many behind: that is what a join is good for.
            _ => node.class == Class::Join && before[index].min(behind[index]) <= 1,
        };
        let graph = graph.without(keeps_books);
        if all_edges { graph } else { graph.reduced() }
    }
}

fn class(kind: &Kind) -> Class {
    match kind {
        Kind::Task(Task { is_leaf: true, .. }) => Class::Task,
        Kind::TopLevel | Kind::Task(_) | Kind::End { .. } => Class::Parent,
        Kind::Mapping { .. } => Class::Mapping,
        Kind::Copy { .. } => Class::Copy,
        Kind::Fill { .. } | Kind::FillRegion { .. } | Kind::Refill { .. } | Kind::Lost { .. } => Class::Fill,
        Kind::Apply { .. } => Class::Reduction,
        Kind::Fence { .. } => Class::Fence,
        Kind::Join => Class::Join,
    }
}

fn label(record: &Record, kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Task(task) => vec![task.to_string()],
        Kind::End { task } => match record.operation(*task).map(|operation| &operation.kind) {
            Some(Kind::Task(task)) => vec![format!("end of {task}")],
            _ => vec!["end".to_owned()],
        },
        Kind::Mapping { usage, .. } => vec!["inline mapping".to_owned(), used_fields(usage)],
        Kind::Copy { from, to, parts, .. } => {
            vec![format!("copy {} to {}", from.0, to.0), record.names_of(*to, &mut parts.iter())]
        }
        Kind::Fill { to, parts, .. } => {
            vec![format!("fill {}", to.0), record.names_of(*to, &mut parts.iter().map(|(part, _)| part))]
        }
        Kind::Refill { buffer, .. } => vec![format!("empty {}", buffer.0)],
        Kind::Apply { to, contributions, .. } => {
            let buffers: Vec<String> = contributions.iter().map(|one| one.buffer.0.to_string()).collect();
            vec![format!("apply {}", buffers.join(", ")), format!("to {}", to.0)]
        }
        Kind::Fence { .. } => vec!["fence".to_owned()],
        Kind::Join => Vec::new(),
        Kind::TopLevel => vec!["top level".to_owned()],
        Kind::FillRegion { .. } | Kind::Lost { .. } => vec![record.describe(kind)],
    }
}

fn used_fields(usage: &Usage) -> String {
    format!("{} {}", usage.privilege, usage.region.fields().names_of(&usage.fields))
}

/// Describes the uses that an operation makes of data, one line for each.
fn details(record: &Record, number: OperationNumber, kind: &Kind) -> Vec<String> {
    let part = |part: &Part| format!("at {}", part.points);
    let mut details = match kind {
        Kind::Task(Task { usages, .. }) => usages.iter().map(usage_line).collect(),
        Kind::Mapping { usage, .. } => vec![usage_line(usage)],
        Kind::Copy { parts, .. } => std::iter::once(record.describe(kind)).chain(parts.iter().map(part)).collect(),
        Kind::Fill { parts, .. } => {
            std::iter::once(record.describe(kind)).chain(parts.iter().map(|(filled, _)| part(filled))).collect()
        }
        Kind::Apply { contributions, .. } => contributions
            .iter()
            .map(|one| format!("{} of buffer {} at {}", one.operator, one.buffer.0, one.part.points))
            .collect(),
        _ => vec![record.describe(kind)],
    };
    if record.replayed.contains(&number) {
        details.push("replayed".to_owned());
    }
    details
}

fn usage_line(usage: &Usage) -> String {
    let instances: Vec<String> = usage.instances.iter().map(|(_, instance)| instance.0.to_string()).collect();
    let place = match instances.as_slice() {
        [] => String::new(),
        [only] => format!(" in instance {only}"),
        several => format!(" in instances {}", several.join(", ")),
    };
    format!("{} of {}{place}", used_fields(usage), usage.region)
}
