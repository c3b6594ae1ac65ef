//! The graph of what was launched, and which data or results made which launch wait for which.

use std::collections::BTreeMap;

use maniple_region::{FieldMask, Requirement};

use crate::picture::graph::{Class, Edge, Graph, Node};
use crate::record::{Because, Kind, Launch, LaunchNumber, Record};

impl Graph {
    /// The graph of the launches of a record: which had to be mapped after which, and because of which fields of which
    /// region; without edges that others imply unless `all_edges` are wanted.
    ///
    /// A launch is one node, whatever the number of its points. What a task launches comes after the launch of the
    /// task. That an inline mapping is mapped after everything else is shown only with all edges.
    #[must_use]
    pub fn of_launches(record: &Record, all_edges: bool) -> Self {
        let nodes = record.numbered_launches().map(|(number, launch)| node(number, launch));
        let mut edges: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        for (to, launch) in record.launches.iter().enumerate() {
            // An inline mapping is mapped after everything before it. That orders nothing but mapping, and would hide
            // the rest.
            let shown = launch.after.iter().filter(|dependence| all_edges || dependence.because != Because::Held);
            for dependence in shown {
                let Some(from) = position(record, dependence.on) else { continue };
                let labels = edges.entry((from, to)).or_default();
                for label in reasons(&record.launches[from], launch, dependence.because) {
                    if !labels.contains(&label) {
                        labels.push(label);
                    }
                }
            }
            if let Some(from) = launch_of_parent(record, launch) {
                edges.entry((from, to)).or_default().push("launches".to_owned());
            }
        }
        let edges = edges.into_iter().map(|((from, to), labels)| Edge { from, to, labels });
        let graph = Self { title: "launches".to_owned(), nodes: nodes.collect(), edges: edges.collect() };
        if all_edges { graph } else { graph.reduced() }
    }
}

fn node(number: LaunchNumber, launch: &Launch) -> Node {
    let class = match launch.name.as_str() {
        "fill" => Class::Fill,
        "inline mapping" => Class::Mapping,
        "mapping fence" | "execution fence" | "trace" | "end of trace" => Class::Fence,
        _ => Class::Task,
    };
    let over = (launch.points > 1).then(|| format!("{} points", launch.points));
    let requirement = |requirement: &Requirement| {
        format!("{} {} of {}", requirement.privilege, requirement.field_names(), requirement.target)
    };
    Node {
        key: format!("launch{number}"),
        label: std::iter::once(launch.name.clone()).chain(over).collect(),
        details: launch.requirements.iter().map(requirement).collect(),
        class,
    }
}

/// Why a launch comes after an earlier one, in words.
fn reasons(earlier: &Launch, launch: &Launch, because: Because) -> Vec<String> {
    match because {
        Because::Data(number) => {
            launch.requirements.get(number).map(|requirement| shared_data(earlier, requirement)).into_iter().collect()
        }
        Because::Fence => vec!["fence".to_owned()],
        Because::Future => vec!["result".to_owned()],
        Because::Held => vec!["mapping".to_owned()],
        // The graph of a trace knows nodes, not why they come after one another.
        Because::Trace => {
            let shared =
                launch.requirements.iter().filter(|requirement| interfering(earlier, requirement).next().is_some());
            shared.map(|requirement| shared_data(earlier, requirement)).collect()
        }
    }
}

/// The requirements of an earlier launch that interfere with one of a later one.
fn interfering<'a>(earlier: &'a Launch, requirement: &'a Requirement) -> impl Iterator<Item = &'a Requirement> {
    earlier.requirements.iter().filter(move |other| {
        other.target.tree().id() == requirement.target.tree().id()
            && other.privilege.interferes_with(requirement.privilege)
    })
}

/// The fields of a requirement that an earlier launch uses in a way that interferes. Where neither uses any, launches
/// between have passed the dependence on.
fn shared_data(earlier: &Launch, requirement: &Requirement) -> String {
    let tree = requirement.target.tree();
    let common = interfering(earlier, requirement)
        .fold(FieldMask::new(), |all, other| all.union(&other.fields.intersection(&requirement.fields)));
    let fields = if common.is_empty() { &requirement.fields } else { &common };
    format!("{} of {tree}", tree.fields().names_of(fields))
}

fn position(record: &Record, launch: LaunchNumber) -> Option<usize> {
    let position = usize::try_from(launch.0.checked_sub(record.first_launch.0)?).ok()?;
    (position < record.launches.len()).then_some(position)
}

/// The launch of the task that launched another one.
fn launch_of_parent(record: &Record, launch: &Launch) -> Option<usize> {
    let Kind::Task(task) = &record.operation(launch.parent)?.kind else { return None };
    position(record, task.place.launch)
}
