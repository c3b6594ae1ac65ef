//! A graph that runs: slots of counters, lanes with cursors, and what the end of a node sets off.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::compile::{Graph, JUNCTION, Node};
use super::ends::Ends;
use super::words::{Gate, Manner, NodeWord, State};
use super::{GraphWork, Place};
use crate::fault::{self, Fault};
use crate::prefetch::prefetch_for_writing;
use crate::realm::Core;
use crate::worker::WorkerContext;

/// A graph that runs.
pub(crate) struct Active {
    graph: Arc<Graph>,
    work: Arc<dyn GraphWork>,
    /// Run `r` uses slot `r & mask`.
    slots: Box<[Slot]>,
    mask: u64,
    /// For each lane, the first node that may be unclaimed.
    cursors: Box<[CachePadded<AtomicU64>]>,
    faults: Mutex<Faults>,
    /// The last to go: when this is gone, so is the work.
    pub(super) rest: Arc<()>,
}

/// Why nodes failed, and why stages did.
#[derive(Default)]
struct Faults {
    of_nodes: FxHashMap<(u64, u32), Arc<Fault>>,
    of_stages: FxHashMap<(u64, u32), Arc<Fault>>,
}

/// What one run at a time uses.
struct Slot {
    words: Box<[NodeWord]>,
    gates: Box<[Gate]>,
    ends: Ends,
    /// The run that the slot is armed for.
    armed: CachePadded<AtomicU64>,
}

/// A node that the caller has to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    run: u64,
    /// Among the graph's nodes.
    place: usize,
    poisoned: bool,
    manner: Manner,
}

/// A place in a lane.
struct Cursor {
    run: u64,
    index: u32,
    range: Range<u32>,
}

impl Cursor {
    fn place(&self) -> usize {
        (self.range.start + self.index) as usize
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
        let slots: Box<[Slot]> = (0..depth).map(|_| Slot::new(&graph)).collect();
        for (run, slot) in slots.iter().enumerate() {
            slot.arm(&graph, run as u64);
        }
        let cursors = graph.lanes.iter().map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        Self { graph, work, slots, mask: depth as u64 - 1, cursors, faults: Mutex::default(), rest: Arc::default() }
    }

    /// How many lanes there are: one a worker.
    pub(crate) fn lanes(&self) -> usize {
        self.graph.lanes.len()
    }

    fn slot(&self, run: u64) -> &Slot {
        &self.slots[(run & self.mask) as usize]
    }

    pub(super) fn is_armed(&self, run: u64) -> bool {
        self.slot(run).armed.load(Ordering::Acquire) == run
    }

    /// Whether the slot is or was armed for a run.
    pub(super) fn was_armed(&self, run: u64) -> bool {
        self.slot(run).armed.load(Ordering::Acquire) >= run
    }

    /// Says why a stage fails that is about to be opened as spoilt.
    pub(super) fn blame_stage(&self, run: u64, stage: u32, fault: &Arc<Fault>) {
        self.faults.lock().of_stages.insert((run, stage), Arc::clone(fault));
    }

    /// Opens a stage, whose end is told if it is watched.
    pub(super) fn open(&self, core: &Core, (run, stage): (u64, u32), manner: Manner, watched: bool) {
        self.gate(run, stage).open(run as u32, manner, watched);
        if self.graph.shifts_of_stage(stage).is_empty() {
            self.tell_end(run, stage);
            if self.slot(run).ends.end_part() {
                self.retire(run);
            }
            return;
        }
        // Where lanes stand is written by their workers all the time, and far away. Whoever falls asleep later than this sees the open gate, as all of
        // that is sequentially consistent.
        if !core.sleep.is_anybody_asleep() {
            return;
        }
        // Against the fence of a worker that falls asleep: either it sees the open gate, or we see where its lane stands.
        fence(Ordering::SeqCst);
        for (lane, cursor) in self.cursors.iter().enumerate() {
            let (at, index) = unpack(cursor.load(Ordering::Relaxed));
            let range = &self.graph.lanes[lane];
            if at == run && !range.is_empty() && self.graph.nodes[(range.start + index) as usize].stage == stage {
                wake_home(core, &self.graph.nodes[(range.start + index) as usize]);
            }
        }
    }

    /// Claims a node of a lane that is ready, if there is one near its cursor. A thief leaves pinned nodes alone, and sees to it that their
    /// worker is awake: maybe nobody thought so when they became ready.
    #[inline]
    pub(crate) fn claim(&self, core: &Core, lane: usize, is_thief: bool) -> Option<Claimed> {
        let mut cursor = self.cursor(lane)?;
        let mut ahead = 0;
        for _ in 0..STEPS {
            let (run, place) = (cursor.run, cursor.place());
            let node = &self.graph.nodes[place];
            let mut state = self.state(run, place);
            if let State::Ready { .. } = state
                && is_thief
                && node.pinned
            {
                wake_home(core, node);
            } else if let State::Ready { poisoned } = state {
                if self.slot(run).words[place].claim(run as u32, poisoned) {
                    // Whoever armed it for the next run did so on another core, and we are about to count down there.
                    prefetch_for_writing(&self.slot(run + 1).words[place]);
                    self.step(lane, &mut cursor, ahead == 0, is_thief);
                    if !is_thief {
                        self.expect(&cursor);
                    }
                    return Some(Claimed { run, place, poisoned, manner: self.gate(run, node.stage).manner() });
                }
                state = State::Gone;
            }
            if state != State::Gone {
                ahead += 1;
                if ahead == LOOK_AHEAD {
                    break;
                }
            }
            self.step(lane, &mut cursor, ahead == 0, is_thief);
        }
        None
    }

    /// The node will probably be run soon, by this worker: what was launched for it comes from another core meanwhile.
    #[inline]
    fn expect(&self, cursor: &Cursor) {
        let (run, node) = (cursor.run, &self.graph.nodes[cursor.place()]);
        if self.gate(run, node.stage).is_open(run as u32) {
            self.work.expect(Place { node: node.index, run });
        }
    }

    /// Whether the first unclaimed node of a lane is ready, and the caller's to run: see [`claim`](Self::claim).
    pub(crate) fn has_ready(&self, core: &Core, lane: usize, is_thief: bool) -> bool {
        let Some(mut cursor) = self.cursor(lane) else { return false };
        loop {
            // Against the fence in `open`: either it sees where the cursor stands, or we see the open gate.
            fence(Ordering::SeqCst);
            match self.state(cursor.run, cursor.place()) {
                State::Gone => self.step(lane, &mut cursor, true, is_thief),
                State::Early => return false,
                State::Ready { .. } => {
                    let node = &self.graph.nodes[cursor.place()];
                    if is_thief && node.pinned {
                        wake_home(core, node);
                        return false;
                    }
                    return true;
                }
            }
        }
    }

    /// Whether the first unclaimed node of a lane may be claimed now. Of the words, only that node's is looked at, and had for writing at once: it is the
    /// caller's to claim, and its line comes from far away whenever somebody has counted it down.
    #[inline]
    pub(crate) fn is_first_ready(&self, lane: usize) -> bool {
        let Some(cursor) = self.cursor(lane) else { return false };
        let (run, place) = (cursor.run, cursor.place());
        prefetch_for_writing(&self.slot(run).words[place]);
        self.state(run, place) != State::Early
    }

    /// Whether the first unclaimed node of a lane only waits for others to end.
    #[inline]
    pub(crate) fn is_expecting(&self, lane: usize) -> bool {
        let Some(cursor) = self.cursor(lane) else { return false };
        let (run, place) = (cursor.run, cursor.place());
        self.gate(run, self.graph.nodes[place].stage).is_open(run as u32)
            && self.slot(run).words[place].is_to_come(run as u32)
    }

    #[inline]
    fn cursor(&self, lane: usize) -> Option<Cursor> {
        let range = self.graph.lanes[lane].clone();
        let (run, index) = unpack(self.cursors[lane].load(Ordering::Relaxed));
        (!range.is_empty()).then_some(Cursor { run, index, range })
    }

    /// Goes to the next node of the lane. If nothing unclaimed was passed, neither need others look at it again, and the lane's cursor moves too.
    /// A thief moves it only from where he found it: were he to set it back when its worker has gone to sleep, [`open`](Self::open) would
    /// not know what that waits for.
    #[inline]
    fn step(&self, lane: usize, cursor: &mut Cursor, moves_lane: bool, is_thief: bool) {
        let before = pack(cursor.run, cursor.index);
        cursor.index += 1;
        if cursor.index == cursor.range.len() as u32 {
            (cursor.run, cursor.index) = (cursor.run + 1, 0);
        }
        let (lane, after) = (&self.cursors[lane], pack(cursor.run, cursor.index));
        if moves_lane && is_thief {
            // Relaxed: a cursor is where to begin looking; what is found there, the words tell.
            let _ = lane.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
        } else if moves_lane {
            lane.store(after, Ordering::Relaxed);
        }
    }

    #[inline]
    fn state(&self, run: u64, place: usize) -> State {
        let gate = self.gate(run, self.graph.nodes[place].stage);
        self.slot(run).words[place].state(run as u32, || gate.is_open(run as u32))
    }

    #[inline]
    fn gate(&self, run: u64, stage: u32) -> &Gate {
        &self.slot(run).gates[stage as usize]
    }

    /// Runs a claimed node and settles what follows from its end.
    #[inline]
    pub(crate) fn run(&self, core: &Core, worker: usize, claimed: Claimed, context: &WorkerContext<'_>) {
        let node = &self.graph.nodes[claimed.place];
        let place = Place { node: node.index, run: claimed.run };
        let result = match claimed.manner {
            Manner::Skip => Ok(()),
            Manner::Spoilt if node.takes => self.tell(claimed, place, node.stage),
            Manner::Run | Manner::Spoilt if claimed.poisoned => self.tell(claimed, place, node.stage),
            Manner::Run | Manner::Spoilt => {
                let ran = fault::catch(|| self.work.run(place, context));
                ran.inspect_err(|panic| self.work.panicked(place, panic)).flatten()
            }
        };
        if let Err(fault) = result {
            self.spread(claimed.run, claimed.place, &fault);
            self.gate(claimed.run, node.stage).watch(claimed.run as u32);
        }
        let mut readied = 0;
        self.end(core, worker, claimed.run, claimed.place, &mut readied);
        if readied > 1 {
            core.sleep.announce();
        }
        self.count_ended(claimed.run, node);
    }

    /// Counts down what comes after a node.
    fn end(&self, core: &Core, worker: usize, run: u64, place: usize, readied: &mut u32) {
        for (run, successors) in [(run, &self.graph.next), (run + 1, &self.graph.next_run)] {
            let successors = successors.of(place);
            if successors.is_empty() {
                continue;
            }
            let slot = self.slot(run);
            for successor in successors {
                if slot.words[successor.place()].count_down() {
                    self.ready(core, worker, run, successor.place(), readied);
                }
            }
        }
    }

    /// All that comes before a node has ended.
    #[inline]
    fn ready(&self, core: &Core, worker: usize, run: u64, place: usize, readied: &mut u32) {
        let node = &self.graph.nodes[place];
        if node.lane == JUNCTION {
            // Nobody else claims a junction.
            if self.slot(run).words[place].state(run as u32, || true) == (State::Ready { poisoned: true }) {
                let fault = self.faults.lock().of_nodes.get(&(run, place as u32)).cloned();
                fault.iter().for_each(|fault| self.spread(run, place, fault));
            }
            self.end(core, worker, run, place, readied);
        } else if node.lane as usize == worker {
            *readied += 1;
        } else if self.gate(run, node.stage).is_open(run as u32) {
            wake_home(core, node);
        }
    }

    /// Tells the work that a node can't run, and gives the reason.
    #[cold]
    fn tell(&self, claimed: Claimed, place: Place, stage: u32) -> Result<(), Arc<Fault>> {
        let faults = self.faults.lock();
        let key = (place.run, claimed.place as u32);
        let known = faults.of_nodes.get(&key).or_else(|| faults.of_stages.get(&(place.run, stage))).cloned();
        drop(faults);
        let fault = known.expect("whoever poisons a node says why first");
        self.work.poisoned(place, &fault);
        Err(fault)
    }

    /// A node has failed: notes why, and spreads it to those that need it.
    #[cold]
    fn spread(&self, run: u64, place: usize, fault: &Arc<Fault>) {
        let mut faults = self.faults.lock();
        faults.of_nodes.entry((run, place as u32)).or_insert_with(|| Arc::clone(fault));
        for (run, successors) in [(run, &self.graph.next), (run + 1, &self.graph.next_run)] {
            for successor in successors.of(place).iter().filter(|successor| successor.needs()) {
                let key = (run, successor.place() as u32);
                faults.of_nodes.entry(key).or_insert_with(|| Arc::clone(fault));
                self.slot(run).words[successor.place()].poison();
            }
        }
    }

    /// Counts an ended node: the last of a stage may be what somebody waits for, and the last of all ends the run.
    #[inline]
    fn count_ended(&self, run: u64, node: &Node) {
        let ends = &self.slot(run).ends;
        if ends.end_node(&self.graph, run, node.shift as usize) {
            self.tell_end(run, node.stage);
            // Not before it is told: then the slot may be used for another run.
            if ends.end_shift(node.lane) {
                self.retire(run);
            }
        }
    }

    /// Tells of the end of a stage, if it has ended and somebody wants to know.
    #[inline]
    fn tell_end(&self, run: u64, stage: u32) {
        let gate = self.gate(run, stage);
        if gate.is_watched() && gate.manner() != Manner::Skip {
            let ends = &self.slot(run).ends;
            if ends.has_ended(&self.graph, run, stage) && ends.tells(run, stage) {
                self.work.stage_ended(run, stage);
            }
        }
    }

    /// Has the end of an open stage told. False if it has ended, and may not be told any more.
    pub(super) fn watch(&self, run: u64, stage: u32) -> bool {
        // If the gate is not open for the run, another has been opened since.
        self.gate(run, stage).watch(run as u32) && !self.has_ended(run, stage)
    }

    /// Whether all nodes of an open stage have ended.
    pub(super) fn has_ended(&self, run: u64, stage: u32) -> bool {
        self.slot(run).ends.has_ended(&self.graph, run, stage)
    }

    /// Makes the slot of a run that has ended ready for the run that uses it next.
    fn retire(&self, run: u64) {
        self.forget_faults(run);
        self.slot(run).arm(&self.graph, run + self.slots.len() as u64);
        self.work.run_ended(run);
    }

    /// Of old runs nobody asks any more.
    fn forget_faults(&self, run: u64) {
        let mut faults = self.faults.lock();
        if !faults.of_nodes.is_empty() || !faults.of_stages.is_empty() {
            let oldest = run.saturating_sub(self.slots.len() as u64);
            faults.of_nodes.retain(|&(run, _), _| run >= oldest);
            faults.of_stages.retain(|&(run, _), _| run >= oldest);
        }
    }

    pub(super) fn faults(&self) -> Vec<(Place, Arc<Fault>)> {
        let faults = self.faults.lock();
        let found = faults.of_nodes.iter().map(|(&(run, place), fault)| {
            (Place { node: self.graph.nodes[place as usize].index, run }, Arc::clone(fault))
        });
        found.filter(|(place, _)| place.node != JUNCTION).collect()
    }
}

/// Wakes the worker whose node is ready. If that is only one more than there are cores, those who are awake will look at its lane before they
/// sleep, but for what is pinned.
fn wake_home(core: &Core, node: &Node) {
    let home = node.lane as usize;
    if core.sleep.is_asleep(home) && (node.pinned || core.has_idle_core()) {
        core.sleep.wake(home);
    }
}

impl Slot {
    fn new(graph: &Graph) -> Self {
        Self {
            words: (0..graph.len()).map(|_| NodeWord::new()).collect(),
            gates: (0..graph.stages()).map(|_| Gate::new()).collect(),
            ends: Ends::new(graph),
            armed: CachePadded::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Everything as it must be before the run begins.
    fn arm(&self, graph: &Graph, run: u64) {
        self.ends.arm(graph);
        let steady = usize::from(run > 0);
        for (word, node) in self.words.iter().zip(&graph.nodes) {
            word.arm(run as u32, node.predecessors[steady]);
        }
        self.armed.store(run, Ordering::Release);
    }
}

/// Where each lane stands, for looking into a program that does not go on.
impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lanes = (0..self.lanes()).filter_map(|lane| {
            let cursor = self.cursor(lane)?;
            let (run, place) = (cursor.run, cursor.place());
            let node = self.graph.nodes[place];
            let gate = self.gate(run, node.stage).is_open(run as u32);
            Some((lane, run, node, gate, self.slot(run).words[place].state(run as u32, || true)))
        });
        let slots: Vec<_> =
            self.slots.iter().map(|slot| (slot.armed.load(Ordering::Relaxed), slot.ends.left())).collect();
        f.debug_struct("Active").field("lanes", &lanes.collect::<Vec<_>>()).field("slots", &slots).finish()
    }
}
