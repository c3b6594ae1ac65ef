//! Recording: what the analysis of a stretch of launches did, in program order.
//!
//! Nothing is in flight when a recording begins, so whatever a recorded node waits for is another node of the
//! recording, or has happened. What it would have to wait for if the same stretch had run just before is found by
//! *markers*: events that have triggered already, which stand for all earlier uses of a set's instances. They are put
//! into each set before the first recorded launch looks at it; a node that comes after a marker will, in a replay, come
//! after what stands in the marker's place at the end of the run before.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_analysis::validity::{Instance as _, Role};
use maniple_mapper::InstanceId;
use maniple_realm::graph::Edge;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorId;
use maniple_realm::transfer::Transfer;
use maniple_realm::{Event, EventStatus, Realm};
use maniple_region::TreeId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::content::{Content, ContentEntry, Makers};
use super::problem::RecordingProblem;
use crate::context::FillNumbers;
use crate::instances::bound::Bound;
use crate::instances::issuing::TransferLog;
use crate::instances::placement::PhysicalRegion;
use crate::instances::state::RegionState;
use crate::instances::validity::Preconditions;
use crate::launch::{FillSite, LaunchSite};
use crate::mapping::decisions::MappedPoint;
use crate::mapping::point::LockedStates;

/// A recording under way. Launches are mapped one after the other.
pub(crate) struct Recording {
    /// Unlike any other's, to mark the sets that it has seen.
    id: u64,
    tape: Mutex<Tape>,
}

/// The contents of a recording.
#[derive(Default)]
pub(crate) struct Tape {
    /// The launches and fills, in program order.
    pub(crate) steps: Vec<RecordingStep>,
    pub(crate) stages: Vec<StageTape>,
    pub(crate) fills: Vec<FillTape>,
    pub(crate) nodes: Vec<TapeNode>,
    pub(crate) entries: Vec<ContentEntry>,
    pub(crate) states: Vec<Arc<RegionState>>,
    pub(crate) by_event: FxHashMap<Event, u32>,
    pub(crate) slots: Vec<MarkerSlot>,
    markers: FxHashMap<Event, u32>,
    marked_instances: FxHashSet<InstanceId>,
    /// Events of before the recording that may have been about to come, and must not have brought a failure.
    pub(crate) outside: Vec<Event>,
    pub(crate) problem: Option<RecordingProblem>,
}

/// A launch or a fill, by its number among these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordingStep {
    Launch(usize),
    Fill(usize),
}

/// One fill. It has no nodes: the value is put into instances by the launches that look.
pub(crate) struct FillTape {
    pub(crate) site: Arc<FillSite>,
    /// See [`FillNumbers`].
    pub(crate) numbers: FillNumbers,
}

/// One launch.
pub(crate) struct StageTape {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) points: Vec<PointTape>,
}

/// One point of a launch: enough to do the analysis again.
pub(crate) struct PointTape {
    pub(crate) mapped: Arc<MappedPoint>,
    /// The node of its task.
    pub(crate) task: u32,
    /// The nodes of its copies, fills and applications of reductions, but not those of the refilling of buffers.
    pub(crate) transfers: Vec<u32>,
}

/// Something that the machine was told to do.
pub(crate) struct TapeNode {
    pub(crate) stage: u32,
    pub(crate) processor: ProcessorId,
    pub(crate) pinned: bool,
    pub(crate) after: Vec<Edge>,
    /// Markers that it came after, and whether it needs what they stand for.
    pub(crate) after_slots: Vec<(u32, bool)>,
    pub(crate) instances: SmallVec<[InstanceId; 4]>,
    pub(crate) body: NodeTape,
}

pub(crate) enum NodeTape {
    /// A point of a launch.
    Task(Arc<MappedPoint>),
    Transfers(Vec<Transfer>),
}

/// The meaning of a marker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkerSlot {
    /// The operations that use an instance in this way for the points of a set.
    Use { entry: usize, instance: InstanceId, role: Role },
    /// The uses of an instance that sets have left behind in it.
    Instance(InstanceId),
}

impl Recording {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self { id: NUMBER.fetch_add(1, Ordering::Relaxed), tape: Mutex::default() }
    }

    /// Another launch. Gives its number.
    pub(crate) fn add_stage(&self, site: &Arc<LaunchSite>) -> u32 {
        let mut tape = self.tape.lock();
        let number = tape.stages.len();
        tape.steps.push(RecordingStep::Launch(number));
        tape.stages.push(StageTape { site: Arc::clone(site), points: Vec::new() });
        number as u32
    }

    /// Another fill. Gives its number among fills.
    pub(crate) fn add_fill(&self, site: &Arc<FillSite>) -> usize {
        let mut tape = self.tape.lock();
        let number = tape.fills.len();
        tape.steps.push(RecordingStep::Fill(number));
        tape.fills.push(FillTape { site: Arc::clone(site), numbers: FillNumbers::new() });
        number
    }

    /// A fill has been carried out, with these numbers on record.
    pub(crate) fn filled(&self, fill: usize, numbers: FillNumbers) {
        if let Some(fill) = self.tape.lock().fills.get_mut(fill) {
            fill.numbers = numbers;
        }
    }

    /// Whether what was recorded so far uses a region tree.
    pub(crate) fn uses(&self, tree: TreeId) -> bool {
        let tape = self.tape.lock();
        tape.stages.iter().any(|stage| stage.site.uses(tree)) || tape.fills.iter().any(|fill| fill.site.uses(tree))
    }

    /// The recording is of no use. Lets go of all that it holds.
    pub(crate) fn fail(&self, problem: RecordingProblem) {
        let mut tape = self.tape.lock();
        let problem = tape.problem.unwrap_or(problem);
        let stages = std::mem::take(&mut tape.stages);
        *tape = Tape { problem: Some(problem), stages, ..Tape::default() };
        tape.stages.iter_mut().for_each(|stage| stage.points.clear());
    }

    pub(crate) fn take(&self) -> Tape {
        std::mem::take(&mut *self.tape.lock())
    }

    /// A launch is about to look at its data: notes what is known of it, and marks it.
    pub(crate) fn touch(&self, states: &mut LockedStates<'_>, bounds: &[Bound], realm: &Realm) {
        let mut tape = self.tape.lock();
        if tape.problem.is_some() {
            return;
        }
        let mut invalidated = false;
        for bound in bounds {
            let region = bound.requirement.target.bound();
            for (fields, state) in &bound.parts {
                let number = tape.number_of(state);
                let data = states.of(state);
                for instance in data.table.instances() {
                    if tape.marked_instances.insert(instance.id()) {
                        instance.leave_behind([(tape.marker(MarkerSlot::Instance(instance.id()), realm), None)]);
                    }
                }
                data.validity.each_set(&region, fields, |fields, set| {
                    if set.mark() == self.id {
                        return;
                    }
                    match Makers::of(set, realm) {
                        Makers::Done => {}
                        Makers::Ending(event) => tape.outside.push(event),
                        Makers::Failed => invalidated = true,
                    }
                    let (fields, shape, content) = (fields.clone(), set.shape().clone(), Content::of(set));
                    let entry = tape.entries.len();
                    tape.entries.push(ContentEntry { state: number, fields, shape, content });
                    let slot = |instance, role| MarkerSlot::Use { entry, instance, role };
                    set.mark_uses(self.id, |instance, role| tape.marker(slot(instance, role), realm));
                });
            }
        }
        drop(tape);
        if invalidated {
            self.fail(RecordingProblem::Invalidated);
        }
    }
}

/// Records what is done for one point of a launch.
pub(crate) struct PointRecorder<'a> {
    recording: &'a Recording,
    stage: u32,
    processor: ProcessorId,
    realm: &'a Realm,
    /// The nodes of what the analysis moved for the point.
    moved: RefCell<Vec<u32>>,
}

impl<'a> PointRecorder<'a> {
    pub(crate) fn new(recording: &'a Recording, stage: u32, processor: ProcessorId, realm: &'a Realm) -> Self {
        Self { recording, stage, processor, realm, moved: RefCell::default() }
    }

    /// The recording is of no use.
    pub(crate) fn fail(&self, problem: RecordingProblem) {
        self.recording.fail(problem);
    }

    /// Notes the point, which was issued, with its task's event.
    pub(crate) fn add_point(&self, mapped: &Arc<MappedPoint>, after: &Preconditions, event: Event) {
        let mut tape = self.recording.tape.lock();
        if tape.problem.is_some() {
            return;
        }
        let instances = mapped.physical.iter().flat_map(PhysicalRegion::instance_ids).collect();
        let body = NodeTape::Task(Arc::clone(mapped));
        let task = tape.add_node(self, mapped.is_bound, instances, body, after, event);
        let (mapped, transfers) = (Arc::clone(mapped), self.moved.take());
        tape.stages[self.stage as usize].points.push(PointTape { mapped, task, transfers });
    }
}

impl TransferLog for PointRecorder<'_> {
    fn add_transfers(
        &self,
        transfers: Vec<Transfer>,
        instances: SmallVec<[InstanceId; 4]>,
        after: &Preconditions,
        event: Event,
        of_analysis: bool,
    ) {
        let mut tape = self.recording.tape.lock();
        if tape.problem.is_none() {
            let node = tape.add_node(self, false, instances, NodeTape::Transfers(transfers), after, event);
            if of_analysis {
                self.moved.borrow_mut().push(node);
            }
        }
    }

    fn note_creation(&self) {
        self.recording.fail(RecordingProblem::InstancesMade);
    }
}

impl Tape {
    fn number_of(&mut self, state: &Arc<RegionState>) -> usize {
        let known = self.states.iter().position(|known| Arc::ptr_eq(known, state));
        known.unwrap_or_else(|| {
            self.states.push(Arc::clone(state));
            self.states.len() - 1
        })
    }

    /// A new event that has triggered.
    fn marker(&mut self, slot: MarkerSlot, realm: &Realm) -> Event {
        let marker = realm.user_event();
        realm.trigger(marker);
        self.markers.insert(marker.event(), self.slots.len() as u32);
        self.slots.push(slot);
        marker.event()
    }

    /// The slot that a marker is for.
    pub(crate) fn slot_of(&self, event: Event) -> Option<u32> {
        self.markers.get(&event).copied()
    }

    fn add_node(
        &mut self,
        at: &PointRecorder<'_>,
        pinned: bool,
        instances: SmallVec<[InstanceId; 4]>,
        body: NodeTape,
        after: &Preconditions,
        event: Event,
    ) -> u32 {
        let number = self.nodes.len() as u32;
        let (mut edges, mut after_slots) = (Vec::new(), Vec::new());
        let needs = after.needs.iter().map(|&event| (event, true));
        for (event, needs) in needs.chain(after.follows.iter().map(|&event| (event, false))) {
            if let Some(&node) = self.by_event.get(&event) {
                edges.push(Edge { node, needs });
            } else if let Some(&slot) = self.markers.get(&event) {
                after_slots.push((slot, needs));
            } else {
                match at.realm.status(event) {
                    EventStatus::Triggered => {}
                    EventStatus::Poisoned(_) if !needs => {}
                    EventStatus::Poisoned(_) => self.problem = self.problem.or(Some(RecordingProblem::Invalidated)),
                    // Nothing of before is in flight, so it is about to come.
                    EventStatus::Pending if needs => self.outside.push(event),
                    EventStatus::Pending => {}
                }
            }
        }
        self.by_event.insert(event, number);
        let (stage, processor) = (at.stage, at.processor);
        self.nodes.push(TapeNode { stage, processor, pinned, after: edges, after_slots, instances, body });
        number
    }
}
