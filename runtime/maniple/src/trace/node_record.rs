//! The nodes of a template as operations on record.

use maniple_record::{Kind, LaunchNumber, OperationNumber, Place, Task};

use super::nodes::{Stage, TaskNode, TraceNode};
use super::values::{self, Giver, ReplayValues};
use crate::instances::placement::PhysicalRegion;
use crate::launch::recording::recording::{NodeTape, Tape};
use crate::support::recorder::Recorder;

/// The form in which a node is on record, for whichever launch it is replayed.
pub(super) struct NodeRecord {
    pub(super) stage: u32,
    kind: Kind,
    /// If it is a fill, where the values come from.
    givers: Vec<Option<Giver>>,
}

impl NodeRecord {
    pub(super) fn of_launch(&self, parent: OperationNumber, launch: LaunchNumber, values: &ReplayValues) -> Kind {
        let mut kind = self.kind.clone();
        if let Kind::Fill { parts, .. } = &mut kind {
            for ((_, value), giver) in parts.iter_mut().zip(&self.givers) {
                giver.iter().for_each(|&giver| *value = values.of(giver));
            }
        }
        match &mut kind {
            Kind::Task(Task { place, .. }) => *place = Place { parent, launch, ..*place },
            Kind::Copy { cause, .. }
            | Kind::Fill { cause, .. }
            | Kind::Refill { cause, .. }
            | Kind::Apply { cause, .. } => *cause = Some(launch),
            _ => {}
        }
        kind
    }
}

/// The stages of copies, fills and applications of reductions, and what they were when they were recorded; of tasks,
/// nothing.
pub(super) fn movements(tape: &Tape, recorder: &Recorder) -> Vec<Option<NodeRecord>> {
    let mut movements: Vec<_> = tape.nodes.iter().map(|_| None).collect();
    for (&event, &number) in &tape.by_event {
        let node = &tape.nodes[number as usize];
        if let NodeTape::Transfers(_) = node.body {
            let kind = recorder.ending_with(event);
            movements[number as usize] = kind.map(|kind| {
                let givers = values::of_node(&kind, tape, recorder);
                NodeRecord { stage: node.stage, kind, givers }
            });
        }
    }
    movements
}

/// The form in which a node is on record: for a task, by the template; for a movement, only if it is given.
pub(super) fn of_node(stages: &[Stage], node: &TraceNode, movement: Option<NodeRecord>) -> Option<NodeRecord> {
    let TraceNode::Task(task) = node else { return movement };
    let TaskNode { stage, point, index, regions, .. } = &**task;
    let site = &stages[*stage as usize].site;
    let nowhere = Place { parent: OperationNumber::default(), launch: LaunchNumber::default(), index: *index as u64 };
    let kind = Kind::Task(Task {
        place: nowhere,
        name: site.name().to_owned(),
        point: site.shown_point(*point),
        is_leaf: true,
        usages: regions.iter().map(PhysicalRegion::usage).collect(),
    });
    Some(NodeRecord { stage: *stage, kind, givers: Vec::new() })
}
