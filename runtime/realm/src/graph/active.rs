//! A graph that runs: lanes with cursors, and what the end of a node sets off.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;

use super::compile::{Graph, GraphNode};
use super::failures::Failures;
use super::slots::Slots;
use super::words::{Gate, Manner};
use super::{GraphPlace, GraphWork};
use crate::fault::{self, Fault};
use crate::operation::WorkerContext;
use crate::prefetch::prefetch_for_writing;
use crate::scheduler::presence::Presence;

/// A graph that runs.
pub(crate) struct Active {
    graph: Arc<Graph>,
    work: Arc<dyn GraphWork>,
    slots: Slots,
    /// For each lane, the first node that may be unclaimed.
    cursors: Box<[CachePadded<AtomicU64>]>,
    failures: Failures,
    /// The last to go: when this is gone, so is the work.
    pub(super) rest: Arc<()>,
}

/// A node that the caller has to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    run: u64,
    /// Among the graph's nodes.
    place: usize,
    manner: Manner,
}

/// How a node stands in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState {
    /// It may be claimed.
    Ready,
    /// It may not run yet.
    Early,
    /// A worker has claimed it.
    Gone,
}

/// The worker that looks at a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The worker whose lane it is.
    Owner,
    /// Another worker, that of this lane, which leaves nodes alone that are pinned and not for it.
    Thief(usize),
    /// Another worker, which leaves all nodes alone.
    Bystander,
}

impl Who {
    /// Whether a node has to wait for its own worker, or another.
    fn leaves(self, node: &GraphNode, graph: &Graph) -> bool {
        match self {
            Self::Owner => false,
            Self::Thief(lane) => node.pinned && !graph.is_for(node, lane),
            Self::Bystander => true,
        }
    }
}

/// A place in a lane.
#[derive(Clone)]
struct Cursor {
    run: u64,
    index: u32,
    range: Range<u32>,
}

impl Cursor {
    fn place(&self) -> usize {
        (self.range.start + self.index) as usize
    }

    /// The next place, maybe of the next run.
    #[inline]
    fn next(self) -> Self {
        match self.index + 1 {
            index if index == self.range.len() as u32 => Self { run: self.run + 1, index: 0, ..self },
            index => Self { index, ..self },
        }
    }
}

/// How far beyond a node that may not run yet a worker looks for one that may.
const LOOK_AHEAD: usize = 8;

/// So many claimed nodes in a row are stepped over at a time.
const STEPS: usize = 64;

/// A cursor: a run, and a node of the lane.
fn pack(run: u64, index: u32) -> u64 {
    run << 24 | u64::from(index)
}

fn unpack(cursor: u64) -> (u64, u32) {
    (cursor >> 24, cursor as u32 & 0xFF_FFFF)
}

impl Active {
    pub(super) fn new(graph: Arc<Graph>, work: Arc<dyn GraphWork>, depth: usize) -> Self {
        let slots = Slots::new(&graph, depth as u64);
        let cursors = graph.lanes.iter().map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        Self { graph, work, slots, cursors, failures: Failures::default(), rest: Arc::default() }
    }

    /// How many lanes there are: one a worker.
    pub(crate) fn lanes(&self) -> usize {
        self.graph.lanes.len()
    }

    pub(super) fn is_armed(&self, run: u64) -> bool {
        self.slots.is_armed(run)
    }

    /// Says why a stage fails that is about to be opened as poisoned.
    pub(super) fn blame_stage(&self, run: u64, stage: u32, fault: &Arc<Fault>) {
        self.failures.note_stage(run, stage, fault);
    }

    /// Opens a stage, whose end is told if it is watched.
    pub(super) fn open(&self, presence: &Presence, run: u64, stage: u32, manner: Manner, watched: bool) {
        self.gate(run, stage).open(run, manner, watched);
        if self.graph.shifts_of_stage(stage).is_empty() {
            self.tell_end(run, stage);
            if self.slots.ends.end_part(&self.graph, run) {
                self.retire(run);
            }
        } else if presence.sleep.is_anybody_asleep() {
            (0..self.lanes()).for_each(|lane| self.wake_if_ready(presence, lane));
            Self::see_to_watch(presence);
        }
    }

    /// Nodes may have become ready whose workers are at others that wait for these, by means that the realm knows
    /// nothing of.
    fn see_to_watch(presence: &Presence) {
        if !presence.is_simulated {
            presence.sleep.see_to_watch();
        }
    }

    /// Wakes the worker of a lane if it sleeps and a node is ready that it should run, after something has been done
    /// that may have made one so. If the node may run elsewhere and that worker is only one more than there are cores,
    /// the workers that are awake will look at its lane before they sleep.
    #[cold]
    fn wake_if_ready(&self, presence: &Presence, lane: usize) {
        let may_wake = presence.has_idle_core();
        // Its worker will not come to it soon.
        let is_elsewhere = presence.is_elsewhere(lane);
        if !(is_elsewhere || presence.sleep.is_asleep(lane)) || !(may_wake || self.graph.pins[lane]) {
            return;
        }
        // Against the fence of a worker that falls asleep: either it sees what has been done, or we see where its lane
        // stands.
        fence(Ordering::SeqCst);
        if self.near_cursor(lane).any(|(node, state)| state == NodeState::Ready && (node.pinned || may_wake)) {
            match is_elsewhere {
                true => presence.announce_nodes(),
                false => _ = presence.sleep.wake(lane),
            }
        }
    }

    /// The worker of a lane has begun something else: others are to look at the nodes that are ready.
    #[cold]
    pub(crate) fn leave_to_others(&self, presence: &Presence, lane: usize) {
        self.wake_if_ready(presence, lane);
    }

    /// The nodes of a lane that its worker looks at.
    fn near_cursor(&self, lane: usize) -> impl Iterator<Item = (&GraphNode, NodeState)> {
        let mut ahead = 0;
        let next = move |cursor: &Cursor| Some(cursor.clone().next());
        std::iter::successors(self.cursor(lane), next).map_while(move |cursor| {
            let state = self.state(cursor.run, cursor.place());
            let is_near = ahead < LOOK_AHEAD;
            ahead += usize::from(state != NodeState::Gone);
            is_near.then(|| (&self.graph.nodes[cursor.place()], state))
        })
    }

    /// Claims a node of a lane that is ready, if there is one near its cursor. A thief leaves pinned nodes alone, and
    /// sees to it that their worker is awake: maybe it was not seen when they became ready.
    #[inline]
    pub(crate) fn claim(&self, presence: &Presence, lane: usize, who: Who) -> Option<Claimed> {
        self.claim_among(presence, lane, who, LOOK_AHEAD)
    }

    /// Claims the first unclaimed node of the caller's lane, if it is ready. Nothing beyond is looked at.
    #[inline]
    pub(crate) fn claim_first(&self, presence: &Presence, lane: usize) -> Option<Claimed> {
        self.claim_among(presence, lane, Who::Owner, 1)
    }

    /// Claims a node of a lane that is ready, if it is one of the first so many that are unclaimed.
    #[inline]
    fn claim_among(&self, presence: &Presence, lane: usize, who: Who, nodes: usize) -> Option<Claimed> {
        let mut cursor = self.cursor(lane)?;
        let (mut ahead, mut passed) = (0, 0);
        // Those behind a node that may not run yet are not counted: the lane's cursor stays there, so the next look
        // would come no further.
        while passed < STEPS {
            let (run, place) = (cursor.run, cursor.place());
            let node = &self.graph.nodes[place];
            match self.state(run, place) {
                NodeState::Ready if who.leaves(node, &self.graph) => {
                    presence.sleep.wake(node.lane as usize);
                    ahead += 1;
                }
                NodeState::Ready => {
                    if self.slots.claims.at(run, place).claim(run, self.slots.count()) {
                        // Workers that wait for the node keep the line, too.
                        prefetch_for_writing(self.slots.node_ends.at(run, place));
                        self.step(lane, &mut cursor, ahead == 0, who);
                        if who == Who::Owner {
                            self.expect(&cursor);
                        }
                        return Some(Claimed { run, place, manner: self.gate(run, node.stage).manner() });
                    }
                }
                NodeState::Early => ahead += 1,
                NodeState::Gone => {}
            }
            if ahead == nodes {
                break;
            }
            passed += usize::from(ahead == 0);
            self.step(lane, &mut cursor, ahead == 0, who);
        }
        None
    }

    /// The node will probably be run soon, by this worker: what was launched for it comes from another core meanwhile.
    #[inline]
    fn expect(&self, cursor: &Cursor) {
        let (run, node) = (cursor.run, &self.graph.nodes[cursor.place()]);
        if self.gate(run, node.stage).is_open(run) {
            self.work.expect(GraphPlace { node: node.index, run });
        }
    }

    /// Whether a node of a lane is ready, and the caller's to run: see [`claim`](Self::claim).
    pub(crate) fn has_ready(&self, presence: &Presence, lane: usize, who: Who) -> bool {
        let Some(mut cursor) = self.cursor(lane) else { return false };
        while self.state(cursor.run, cursor.place()) == NodeState::Gone {
            self.step(lane, &mut cursor, true, who);
        }
        // Against the fence in `wake_if_ready`: either it sees where the cursor stands, or we see what has made a node
        // ready.
        fence(Ordering::SeqCst);
        let mut ready = self.near_cursor(lane).filter(|(_, state)| *state == NodeState::Ready).map(|(node, _)| node);
        ready.any(|node| {
            let leaves = who.leaves(node, &self.graph);
            if leaves {
                presence.sleep.wake(node.lane as usize);
            }
            !leaves
        })
    }

    /// Whether the first unclaimed node of a lane only waits for others to end.
    #[inline]
    pub(crate) fn is_expecting(&self, lane: usize) -> bool {
        let Some(cursor) = self.cursor(lane) else { return false };
        let (run, place) = (cursor.run, cursor.place());
        self.gate(run, self.graph.nodes[place].stage).is_open(run) && !self.slots.claims.at(run, place).is_claimed(run)
    }

    #[inline]
    fn cursor(&self, lane: usize) -> Option<Cursor> {
        let range = self.graph.lanes[lane].clone();
        let (run, index) = unpack(self.cursors[lane].load(Ordering::Relaxed));
        (!range.is_empty()).then_some(Cursor { run, index, range })
    }

    /// Goes to the next node of the lane. If nothing unclaimed was passed, neither need others look at it again, and
    /// the lane's cursor moves too. A thief moves it only from where it found it: were the thief to set it back when
    /// the lane's worker has gone to sleep, [`open`](Self::open) would not know what that worker waits for.
    #[inline]
    fn step(&self, lane: usize, cursor: &mut Cursor, moves_lane: bool, who: Who) {
        let before = pack(cursor.run, cursor.index);
        *cursor = cursor.clone().next();
        let (lane, after) = (&self.cursors[lane], pack(cursor.run, cursor.index));
        if moves_lane && who != Who::Owner {
            // Relaxed: a cursor is where to begin looking; what is found there, the words tell.
            let _ = lane.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
        } else if moves_lane {
            lane.store(after, Ordering::Relaxed);
        }
    }

    #[inline]
    fn state(&self, run: u64, place: usize) -> NodeState {
        if self.slots.claims.at(run, place).is_claimed(run) {
            NodeState::Gone
        } else if self.gate(run, self.graph.nodes[place].stage).is_open(run)
            && self.slots.may_start(&self.graph, run, place)
        {
            NodeState::Ready
        } else {
            NodeState::Early
        }
    }

    #[inline]
    fn gate(&self, run: u64, stage: u32) -> &Gate {
        self.slots.gates.at(run, stage as usize)
    }

    /// Runs a claimed node and settles what follows from its end.
    #[inline]
    pub(crate) fn run(&self, presence: &Presence, worker: usize, claimed: Claimed, context: &WorkerContext<'_>) {
        let Claimed { run, place, manner } = claimed;
        let node = &self.graph.nodes[place];
        let named = GraphPlace { node: node.index, run };
        let result = match manner {
            Manner::Skip => Ok(()),
            Manner::Run | Manner::Poisoned => match self.failure_before(claimed, node) {
                Some(fault) => {
                    self.work.poisoned(named, &fault);
                    Err(fault)
                }
                None => {
                    let ran = fault::catch(|| self.work.run(named, context));
                    ran.inspect_err(|panic| self.work.panicked(named, panic)).flatten()
                }
            },
        };
        if let Err(fault) = result {
            self.failures.note_node(run, place, &fault);
            self.gate(run, node.stage).watch(run);
        }
        self.slots.node_ends.at(run, place).end(run);
        if presence.sleep.is_anybody_asleep() {
            self.wake_for_what_follows(presence, worker, place);
        }
        self.count_ended(run, node);
    }

    /// Why a node cannot run, if something that it needs has failed.
    #[inline]
    fn failure_before(&self, Claimed { run, place, manner }: Claimed, node: &GraphNode) -> Option<Arc<Fault>> {
        if !self.failures.are_any() {
            return None;
        }
        let before = self.failures.before(&self.graph, run, place);
        before.or_else(|| self.failures.of_stage(run, node.stage).filter(|_| manner == Manner::Poisoned && node.takes))
    }

    /// A node has ended, and workers sleep: wakes those whose nodes that has made ready, and others if there are
    /// several for this worker.
    #[cold]
    fn wake_for_what_follows(&self, presence: &Presence, worker: usize, place: usize) {
        let node = &self.graph.nodes[place];
        for &lane in self.graph.lanes_after(place) {
            self.wake_if_ready(presence, lane as usize);
        }
        if node.lane as usize != worker {
            self.wake_if_ready(presence, node.lane as usize);
        } else if node.leads_several
            && presence.has_idle_core()
            && self.near_cursor(worker).filter(|(_, state)| *state == NodeState::Ready).nth(1).is_some()
        {
            presence.announce_nodes();
        }
        Self::see_to_watch(presence);
    }

    /// Counts an ended node: the last of a stage may be what a thread waits for, and the last of all ends the run.
    #[inline]
    fn count_ended(&self, run: u64, node: &GraphNode) {
        let ends = &self.slots.ends;
        if ends.end_node(&self.graph, run, node.shift as usize) {
            self.tell_end(run, node.stage);
            // Not before it is told: then the slot may be used for another run.
            if ends.end_shift(&self.graph, run, node.lane) {
                self.retire(run);
            }
        }
    }

    /// Tells of the end of a stage, if it has ended and it is watched.
    #[inline]
    fn tell_end(&self, run: u64, stage: u32) {
        let gate = self.gate(run, stage);
        if gate.is_watched()
            && gate.manner() != Manner::Skip
            && self.has_ended(run, stage)
            && self.slots.ends.tells(run, stage)
        {
            self.work.stage_ended(run, stage);
        }
    }

    /// Has the end of an open stage told. False if it has ended, and may not be told any more.
    pub(super) fn watch(&self, run: u64, stage: u32) -> bool {
        // If the gate is not open for the run, another has been opened since.
        self.gate(run, stage).watch(run) && !self.has_ended(run, stage)
    }

    /// Whether all nodes of an open stage have ended.
    pub(super) fn has_ended(&self, run: u64, stage: u32) -> bool {
        self.slots.has_stage_ended(&self.graph, run, stage)
    }

    /// Makes the slot of a run that has ended ready for the run that uses it next.
    fn retire(&self, run: u64) {
        // Nodes of a run that is under way may need those of the run before.
        self.failures.forget_before(run.saturating_sub(self.slots.count()));
        self.slots.arm_again(run);
        self.work.run_ended(run);
    }

    pub(super) fn faults(&self) -> Vec<(GraphPlace, Arc<Fault>)> {
        let named = |((run, place), fault): ((u64, u32), _)| {
            (GraphPlace { node: self.graph.nodes[place as usize].index, run }, fault)
        };
        self.failures.of_nodes().into_iter().map(named).collect()
    }
}

/// Shows the place of each lane's cursor, for looking into a program that does not go on.
impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lanes = (0..self.lanes()).filter_map(|lane| {
            let cursor = self.cursor(lane)?;
            let (run, place) = (cursor.run, cursor.place());
            let node = self.graph.nodes[place];
            let gate = self.gate(run, node.stage).is_open(run);
            Some((lane, run, node, gate, self.state(run, place)))
        });
        f.debug_struct("Active").field("lanes", &lanes.collect::<Vec<_>>()).field("armed", &self.slots.armed()).finish()
    }
}
