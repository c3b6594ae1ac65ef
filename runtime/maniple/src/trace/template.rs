//! Templates: recordings compiled to static graphs.

use std::sync::Arc;

use maniple_mapper::InstanceId;
use maniple_realm::graph::{Edge, Graph, GraphSpec, NodeSpec};
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Event, EventStatus, Realm};
use maniple_record::Value;
use maniple_region::TreeId;
use rustc_hash::FxHashMap;

use super::node_record::{self, NodeRecord};
use super::nodes::{Stage, TaskNode, TraceNode};
use super::values::{self, Giver};
use super::whole::Mark;
use crate::core::RuntimeCore;
use crate::instances::instance::PhysicalInstance;
use crate::instances::placement::PhysicalRegion;
use crate::instances::state::{RegionData, RegionState};
use crate::launch::FillSite;
use crate::launch::recording::RecordingProblem;
use crate::launch::recording::content::{Content, ContentEntry, Fit};
use crate::launch::recording::recording::{FillTape, MarkerSlot, NodeTape, RecordingStep, Tape, TapeNode};
use crate::mapping::decisions::MappedPoint;
use crate::task::Body;

/// A stretch of launches that can be replayed where the data is as it was when they were recorded.
pub(super) struct Template {
    /// The launches and fills, in program order: never empty.
    pub(super) steps: Vec<RecordingStep>,
    pub(super) fills: Vec<FillTape>,
    pub(super) stages: Vec<Stage>,
    pub(super) nodes: Vec<TraceNode>,
    pub(super) graph: Arc<Graph>,
    /// For nodes that need values which no run writes anew, and which some nodes only change: these. Whatever run they
    /// fail in, the values are invalidated from then on.
    pub(super) changers: FxHashMap<u32, Vec<u32>>,
    /// The template on record, while a record is kept.
    pub(super) on_record: Option<OnRecord>,
    /// The sets that the recorded launches looked at, and what they found there.
    before: Vec<ContentEntry>,
    states: Vec<Arc<RegionState>>,
    /// Memory of the program's that the launches use: once that is detached, they cannot be replayed.
    attached: Vec<Arc<PhysicalInstance>>,
    /// The launches left all sets as they had found them: runs may follow one another without a look.
    pub(super) is_idempotent: bool,
}

/// The form in which a template is on record.
pub(super) struct OnRecord {
    pub(super) nodes: Vec<NodeRecord>,
    /// For each set that the recorded launches looked at, where the value comes from that it is filled with after a
    /// run.
    pub(super) after_a_run: Vec<Option<Giver>>,
}

impl Template {
    /// Compiles what was recorded, when all of it has ended.
    pub(super) fn compile(tape: Tape, core: &RuntimeCore) -> Result<Self, RecordingProblem> {
        let realm = core.realm();
        if let Some(problem) = tape.problem {
            return Err(problem);
        }
        if tape.stages.is_empty() {
            return Err(RecordingProblem::NothingLaunched);
        }
        if tape.outside.iter().any(|&event| matches!(realm.status(event), EventStatus::Poisoned(_))) {
            return Err(RecordingProblem::Invalidated);
        }
        let is_idempotent = {
            let locked: Vec<_> = tape.states.iter().map(|state| state.lock()).collect();
            // What may be about to end is looked at before each replay.
            tape.entries.iter().all(|entry| entry.fits(&locked[entry.state], realm) != Fit::No)
        };
        let (after_previous, changers) = match is_idempotent {
            true => edges_between_runs(&tape),
            false => (vec![Vec::new(); tape.nodes.len()], FxHashMap::default()),
        };
        let nodes = tape.nodes.iter().zip(after_previous);
        let nodes = nodes.map(|(node, after_previous)| NodeSpec {
            stage: node.stage,
            home: home(node, realm),
            pinned: node.pinned,
            others: group(node).to_vec(),
            // Data moves also for a task that cannot run: what is there must not depend on its arguments.
            takes: matches!(node.body, NodeTape::Task(_)),
            after: node.after.clone(),
            after_previous,
        });
        let nodes: Vec<NodeSpec> = nodes.collect();
        let spec = GraphSpec { stages: tape.stages.len() as u32, nodes };
        let graph = Arc::new(Graph::new(&spec, realm.processors()));
        let recorder = core.store.recorder.as_ref();
        let movements = recorder.map(|recorder| (node_record::movements(&tape, recorder), values::after_a_run(&tape)));
        let attached = attached_memory(&tape);
        let stages = tape.stages.into_iter();
        let stages: Vec<Stage> =
            stages.map(|stage| Stage { site: stage.site, points: stage.points, mark: Mark::default() }).collect();
        let nodes = tape.nodes.into_iter().map(|node| {
            Ok(match node.body {
                NodeTape::Transfers(transfers) => TraceNode::Transfers(transfers),
                NodeTape::Task(task) => {
                    let MappedPoint { point, index, ref mapping, ref physical, .. } = *task;
                    let Body::Leaf(body) = stages[node.stage as usize].site.definition.body(mapping.variant) else {
                        return Err(RecordingProblem::LaunchesTasks);
                    };
                    let body = Arc::clone(body);
                    let (profile, mut regions) = (mapping.profile, physical.clone().into_boxed_slice());
                    let site = &stages[node.stage as usize].site;
                    regions.iter_mut().for_each(|region| region.locate(site.definition.is_internal()));
                    let (stage, name, domain) = (node.stage, site.name().into(), site.domain);
                    TraceNode::Task(Box::new(TaskNode { stage, point, index, body, profile, name, domain, regions }))
                }
            })
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let on_record = movements.map(|(movements, after_a_run)| {
            let records =
                nodes.iter().zip(movements).map(|(node, movement)| node_record::of_node(&stages, node, movement));
            let nodes = records.collect::<Option<Vec<_>>>().ok_or(RecordingProblem::RecordTaken)?;
            Ok(OnRecord { nodes, after_a_run })
        });
        let (steps, fills, before, states) = (tape.steps, tape.fills, tape.entries, tape.states);
        let on_record = on_record.transpose()?;
        Ok(Self { steps, fills, stages, nodes, graph, changers, on_record, before, states, attached, is_idempotent })
    }

    /// Whether everything is as the recorded launches found it. If so, it stays like that until the template is
    /// [released](Self::release), which the end of its replay does: no copy that the template counts on is given up
    /// from the moment at which it was seen to be there.
    pub(super) fn take_up(&self, realm: &Realm) -> Fit {
        if self.attached.iter().any(|instance| instance.is_detached()) {
            return Fit::No;
        }
        let mut locked: Vec<_> = self.states.iter().map(|state| state.lock()).collect();
        let fits = self.before.iter().map(|entry| entry.fits(&locked[entry.state], realm));
        let fit = fits.fold(Fit::Yes, |all, one| if all == Fit::No || one == Fit::Yes { all } else { one });
        if fit == Fit::Yes {
            locked.iter_mut().for_each(|data| data.in_replay = true);
        }
        fit
    }

    /// The data that the recorded launches would not find as it was.
    #[cold]
    pub(super) fn misfits(&self, realm: &Realm) -> String {
        if self.attached.iter().any(|instance| instance.is_detached()) {
            return "memory of the program's, which was detached".to_owned();
        }
        let told = self.before.iter().filter_map(|entry| {
            let state = self.states[entry.state].lock();
            let fields = state.validity.root().fields().names_of(&entry.fields);
            (entry.fits(&state, realm) == Fit::No).then(|| format!("field(s) {fields} of {}", state.validity.root()))
        });
        let mut told: Vec<_> = told.collect();
        told.dedup();
        told.join(", ")
    }

    /// The ends of the operations that made the values which the recorded launches find, or contributed to them: once
    /// the template [is taken up](Self::take_up), all have triggered.
    pub(super) fn makers(&self) -> Vec<Event> {
        let mut makers = Vec::new();
        for entry in &self.before {
            let state = self.states[entry.state].lock();
            entry.find(&state).into_iter().for_each(|set| makers.extend(set.makers()));
        }
        makers
    }

    /// The values that fill the sets which the recorded launches find, for the record.
    pub(super) fn filled_with(&self) -> Vec<Value> {
        let filled = self.before.iter().map(|entry| {
            let state = self.states[entry.state].lock();
            let set = entry.find(&state);
            set.and_then(|set| Content::of(set).filled_with()).unwrap_or(Value::Initial)
        });
        filled.collect()
    }

    /// The site of a step that is a fill, and its number among fills.
    pub(super) fn fill_at(&self, at: usize) -> Option<(usize, &FillSite)> {
        match *self.steps.get(at)? {
            RecordingStep::Fill(number) => Some((number, &self.fills[number].site)),
            RecordingStep::Launch(_) => None,
        }
    }

    /// Whether it is about a region tree.
    pub(super) fn uses(&self, tree: TreeId) -> bool {
        self.stages.iter().any(|stage| stage.site.uses(tree)) || self.fills.iter().any(|fill| fill.site.uses(tree))
    }

    /// No replay counts on what is known of the data any more.
    pub(super) fn release(&self) {
        self.states.iter().for_each(|state| state.lock().in_replay = false);
    }
}

/// The processors that may run a node, if a mapper has named some of those that have workers.
fn group(node: &TapeNode) -> &[ProcessorId] {
    match &node.body {
        NodeTape::Task(task) if node.pinned => &task.mapping.group,
        _ => &[],
    }
}

/// The processor whose worker looks for a node first: points of a launch are dealt to those of a group in turn.
fn home(node: &TapeNode, realm: &Realm) -> ProcessorId {
    match (group(node), &node.body) {
        (group @ [_, ..], NodeTape::Task(task)) => group[task.index % group.len()],
        _ if node.pinned => node.processor,
        _ => realm.stand_in(node.processor),
    }
}

/// The program's memory that recorded tasks use.
fn attached_memory(tape: &Tape) -> Vec<Arc<PhysicalInstance>> {
    let tasks = tape.nodes.iter().filter_map(|node| match &node.body {
        NodeTape::Task(task) => Some(task),
        NodeTape::Transfers(_) => None,
    });
    let instances = tasks.flat_map(|task| &task.physical).flat_map(PhysicalRegion::instances);
    let mut attached: Vec<_> = instances.filter(|instance| instance.is_attached()).cloned().collect();
    attached.sort_unstable_by_key(|instance| instance.id());
    attached.dedup_by_key(|instance| instance.id());
    attached
}

/// The edges of each node from the run before: they come from whatever stands, at the end of a run, where the node
/// found markers at the beginning. And the nodes that change values which a node needs, if what was there before counts
/// as well.
fn edges_between_runs(tape: &Tape) -> (Vec<Vec<Edge>>, FxHashMap<u32, Vec<u32>>) {
    let locked: Vec<_> = tape.states.iter().map(|state| state.lock()).collect();
    let slots = tape.slots.iter().zip(0..);
    let stands_for: Vec<_> =
        slots.map(|(&slot, number)| after_a_run(tape, slot, number, |state| &locked[state])).collect();
    let mut changers: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let nodes = tape.nodes.iter().enumerate().map(|(number, node)| {
        let mut edges: Vec<Edge> = Vec::new();
        for &(slot, needs) in &node.after_slots {
            let Standing { nodes, is_added } = &stands_for[slot as usize];
            edges.extend(nodes.iter().map(|&node| Edge { node, needs }));
            if needs && *is_added && !nodes.is_empty() {
                changers.entry(number as u32).or_default().extend(nodes);
            }
            // Of what is still there from runs before the last, the node itself came after it in the last run. That it
            // may have failed then does not matter now: what it needed was there.
            edges.push(Edge { node: number as u32, needs: false });
        }
        edges
    });
    let edges = nodes.collect();
    (edges, changers)
}

/// The nodes that stand in a slot at the end of a run.
struct Standing {
    nodes: Vec<u32>,
    /// They stand there besides the nodes from before.
    is_added: bool,
}

impl Standing {
    fn of(tape: &Tape, slot: u32, events: impl Iterator<Item = Event>) -> Self {
        let (mut nodes, mut is_added) = (Vec::new(), false);
        for event in events {
            nodes.extend(tape.by_event.get(&event));
            is_added |= tape.slot_of(event) == Some(slot);
        }
        Self { nodes, is_added }
    }

    /// Anything that uses an instance, of which nothing is known any more.
    fn users(tape: &Tape, instance: InstanceId) -> Self {
        let uses = |node: &u32| tape.nodes[*node as usize].instances.contains(&instance);
        Self { nodes: (0..tape.nodes.len() as u32).filter(uses).collect(), is_added: false }
    }
}

/// Finds the nodes that stand in a slot at the end of a run.
fn after_a_run<'a>(tape: &'a Tape, slot: MarkerSlot, number: u32, data: impl Fn(usize) -> &'a RegionData) -> Standing {
    match slot {
        MarkerSlot::Use { entry, instance, role } => {
            let set = tape.entries[entry].find(data(tape.entries[entry].state));
            let users = set.and_then(|set| set.users(instance, role));
            users.map_or_else(|| Standing::users(tape, instance), |users| Standing::of(tape, number, users.into_iter()))
        }
        MarkerSlot::Instance(instance) => Standing::users(tape, instance),
    }
}
