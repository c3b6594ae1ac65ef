//! Templates: recordings compiled to static graphs.

use std::sync::Arc;

use maniple_mapper::InstanceId;
use maniple_realm::graph::{Edge, Graph, GraphSpec, NodeSpec};
use maniple_realm::transfer::Transfer;
use maniple_realm::{Event, EventStatus, Realm};
use maniple_space::{AnyPoint, AnyRect};

use super::content::{Entry, Fit, makers_of};
use super::problem::Problem;
use super::recorded::{self, NodeRecord};
use super::recording::{NodeTape, PointTape, Role, Slot, Tape};
use crate::launch::LaunchSite;
use crate::mapping::decisions::MappedPoint;
use crate::physical::state::{RegionData, RegionState};
use crate::runtime::RuntimeCore;
use crate::task::call::PhysicalRegion;
use crate::task::{Body, LeafBody};

/// A stretch of launches that can be replayed where the data is as it was when they were recorded.
pub(super) struct Template {
    pub(super) stages: Vec<Stage>,
    pub(super) nodes: Vec<Node>,
    pub(super) graph: Arc<Graph>,
    /// What the nodes are on record, while one is kept.
    pub(super) on_record: Option<Vec<NodeRecord>>,
    /// What the recorded launches found: each set that they looked at.
    before: Vec<Entry>,
    states: Vec<Arc<RegionState>>,
    /// They left it all as they had found it: runs may follow one another without a look.
    pub(super) is_idempotent: bool,
}

/// One launch.
pub(super) struct Stage {
    pub(super) site: Arc<LaunchSite>,
    pub(super) points: Vec<PointTape>,
}

/// What one node of the graph does.
pub(super) enum Node {
    Task(Box<TaskNode>),
    Transfers(Vec<Transfer>),
}

/// One point of a launch.
pub(super) struct TaskNode {
    pub(super) stage: u32,
    pub(super) point: AnyPoint,
    pub(super) index: usize,
    pub(super) body: LeafBody,
    pub(super) profile: bool,
    /// Copies of what the launch site knows, where no launching task counts references.
    pub(super) name: Box<str>,
    pub(super) domain: AnyRect,
    pub(super) regions: Box<[PhysicalRegion]>,
}

impl Template {
    /// Compiles what was recorded, when all of it has ended.
    pub(super) fn compile(tape: Tape, core: &RuntimeCore) -> Result<Self, Problem> {
        let realm = core.realm();
        if let Some(problem) = tape.problem {
            return Err(problem);
        }
        if tape.outside.iter().any(|&event| matches!(realm.status(event), EventStatus::Poisoned(_))) {
            return Err(Problem::Spoilt);
        }
        let is_idempotent = {
            let locked: Vec<_> = tape.states.iter().map(|state| state.lock()).collect();
            // What may be about to end is looked at before each replay.
            tape.entries.iter().all(|entry| entry.fits(&locked[entry.state], realm) != Fit::No)
        };
        let after_previous = if is_idempotent { edges_between_runs(&tape) } else { vec![Vec::new(); tape.nodes.len()] };
        let nodes = tape.nodes.iter().zip(after_previous);
        let nodes = nodes.map(|(node, after_previous)| NodeSpec {
            stage: node.stage,
            home: node.processor,
            pinned: node.pinned,
            after: node.after.clone(),
            after_previous,
        });
        let nodes: Vec<NodeSpec> = nodes.collect();
        let spec = GraphSpec { stages: tape.stages.len() as u32, nodes };
        let graph = Arc::new(Graph::new(&spec, realm.processors()));
        let movements = core.recorder.as_ref().map(|recorder| recorded::movements(&tape, recorder));
        let stages = tape.stages.into_iter();
        let stages: Vec<Stage> = stages.map(|stage| Stage { site: stage.site, points: stage.points }).collect();
        let nodes = tape.nodes.into_iter().map(|node| {
            Ok(match node.body {
                NodeTape::Transfers(transfers) => Node::Transfers(transfers),
                NodeTape::Task(task) => {
                    let MappedPoint { point, index, ref mapping, ref physical, .. } = *task;
                    let Body::Leaf(body) = stages[node.stage as usize].site.definition.body(mapping.variant) else {
                        return Err(Problem::LaunchesTasks);
                    };
                    let body = Arc::clone(body);
                    let (profile, mut regions) = (mapping.profile, physical.clone().into_boxed_slice());
                    regions.iter_mut().for_each(PhysicalRegion::locate);
                    let site = &stages[node.stage as usize].site;
                    let (stage, name, domain) = (node.stage, site.name().into(), site.domain);
                    Node::Task(Box::new(TaskNode { stage, point, index, body, profile, name, domain, regions }))
                }
            })
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let on_record = movements.map(|movements| {
            let records =
                nodes.iter().zip(movements).map(|(node, movement)| recorded::of_node(&stages, node, movement));
            records.collect::<Option<Vec<_>>>().ok_or(Problem::RecordTaken)
        });
        let (before, states) = (tape.entries, tape.states);
        Ok(Self { stages, nodes, graph, on_record: on_record.transpose()?, before, states, is_idempotent })
    }

    /// Whether everything is as the recorded launches found it.
    pub(super) fn fits(&self, realm: &Realm) -> Fit {
        let locked: Vec<_> = self.states.iter().map(|state| state.lock()).collect();
        let fits = self.before.iter().map(|entry| entry.fits(&locked[entry.state], realm));
        fits.fold(Fit::Yes, |all, one| if all == Fit::No || one == Fit::Yes { all } else { one })
    }

    /// Whoever made the values that the recorded launches find, or contributed to them: where the template [fits](Self::fits), all have ended.
    pub(super) fn makers(&self) -> Vec<Event> {
        let mut makers = Vec::new();
        for entry in &self.before {
            let state = self.states[entry.state].lock();
            entry.find(&state).into_iter().for_each(|set| makers.extend(makers_of(set)));
        }
        makers
    }

    /// Says whether replays count on what is known of the data.
    pub(super) fn guard(&self, in_replay: bool) {
        self.states.iter().for_each(|state| state.lock().in_replay = in_replay);
    }
}

/// What the nodes come after in the run before: whatever stands, at the end of a run, where they found markers at the beginning.
fn edges_between_runs(tape: &Tape) -> Vec<Vec<Edge>> {
    let locked: Vec<_> = tape.states.iter().map(|state| state.lock()).collect();
    let stands_for: Vec<_> = tape.slots.iter().map(|&slot| after_a_run(tape, slot, |state| &locked[state])).collect();
    let nodes = tape.nodes.iter().enumerate().map(|(number, node)| {
        let mut edges: Vec<Edge> = Vec::new();
        for &(slot, needs) in &node.after_slots {
            edges.extend(stands_for[slot as usize].iter().map(|&node| Edge { node, needs }));
            // Of what is still there from runs before the last, the node itself came after it in the last run. That it may have failed then does
            // not matter now: what it needed was there.
            edges.push(Edge { node: number as u32, needs: false });
        }
        edges
    });
    nodes.collect()
}

/// The nodes that stand in a slot at the end of a run.
fn after_a_run<'a>(tape: &'a Tape, slot: Slot, data: impl Fn(usize) -> &'a RegionData) -> Vec<u32> {
    let known = |event| tape.by_event.get(&event).copied();
    match slot {
        Slot::View { entry, instance, role } => {
            let set = tape.entries[entry].find(data(tape.entries[entry].state));
            let view = set.and_then(|set| set.views.iter().find(|view| view.instance.id() == instance));
            view.map_or_else(
                || users(tape, instance),
                |view| match role {
                    Role::Writers => view.writers.events().filter_map(known).collect(),
                    Role::Readers => view.readers.events().filter_map(known).collect(),
                },
            )
        }
        Slot::Pending { entry, buffer } => {
            let set = tape.entries[entry].find(data(tape.entries[entry].state));
            let pending = set.and_then(|set| set.pending.iter().find(|pending| pending.buffer.id() == buffer));
            pending.map_or_else(
                || users(tape, buffer),
                |pending| pending.writers.iter().copied().filter_map(known).collect(),
            )
        }
        Slot::Instance(instance) => users(tape, instance),
    }
}

/// All nodes that use an instance.
fn users(tape: &Tape, instance: InstanceId) -> Vec<u32> {
    let uses = |node: &u32| tape.nodes[*node as usize].instances.contains(&instance);
    (0..tape.nodes.len() as u32).filter(uses).collect()
}
