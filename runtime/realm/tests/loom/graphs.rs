//! Static graphs: the words of nodes and the gates of stages, and what `graph/active.rs` does with them, as told in `src/graph/README.md`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::model;
use super::sleep::Sleep;
use super::sync::{AtomicU32, AtomicU64, Mutex, Ordering, Parker, fence};
use super::words::{Gate, Manner, NodeWord, State};

/// A node's word, what comes before it, and how often it ran.
struct Node {
    word: NodeWord,
    inputs: [UnsafeCell<u32>; 2],
    runs: UnsafeCell<u32>,
}

impl Node {
    fn armed(run: u32, predecessors: u32) -> Arc<Self> {
        let word = NodeWord::new();
        word.arm(run, predecessors);
        Arc::new(Self { word, inputs: [UnsafeCell::new(0), UnsafeCell::new(0)], runs: UnsafeCell::new(0) })
    }

    fn write_input(&self, which: usize) {
        // SAFETY: loom checks it: the accesses race unless the protocol orders them.
        self.inputs[which].with_mut(|input| unsafe { *input = 1 });
    }

    /// What a worker does that comes by: runs the node if it is ready and nobody else does.
    fn try_to_run(&self, run: u32, gate: impl FnOnce() -> bool) -> bool {
        match self.word.state(run, gate) {
            State::Ready { poisoned } => self.try_to_run_ready(run, poisoned),
            _ => false,
        }
    }

    fn try_to_run_ready(&self, run: u32, poisoned: bool) -> bool {
        let claimed = self.word.claim(run, poisoned);
        if claimed {
            for input in &self.inputs {
                // SAFETY: as in `write_input`.
                input.with(|input| unsafe { std::hint::black_box(*input) });
            }
            // SAFETY: as in `write_input`.
            self.runs.with_mut(|runs| unsafe { *runs += 1 });
        }
        claimed
    }

    fn runs(&self) -> u32 {
        // SAFETY: as in `write_input`.
        self.runs.with(|runs| unsafe { *runs })
    }
}

#[test]
fn a_node_runs_once_after_all_that_comes_before_it_though_a_thief_comes_by() {
    model(|| {
        let node = Node::armed(0, 2);
        let predecessors: Vec<_> = (0..2)
            .map(|which| {
                let node = node.clone();
                thread::spawn(move || {
                    node.write_input(which);
                    node.word.count_down() && node.try_to_run(0, || true)
                })
            })
            .collect();
        let stolen = node.try_to_run(0, || true);
        let ran = predecessors.into_iter().map(|predecessor| predecessor.join().unwrap());
        let times = usize::from(stolen) + ran.filter(|&ran| ran).count();
        assert_eq!((times, node.runs()), (1, 1));
    });
}

#[test]
fn who_counts_a_node_down_to_zero_sees_what_all_before_it_did() {
    model(|| {
        let node = Node::armed(0, 2);
        let theirs = node.clone();
        let thread = thread::spawn(move || {
            theirs.write_input(0);
            if theirs.word.count_down() {
                // SAFETY: loom checks it.
                theirs.inputs[1].with(|input| assert_eq!(unsafe { *input }, 1));
            }
        });
        node.write_input(1);
        if node.word.count_down() {
            // SAFETY: loom checks it.
            node.inputs[0].with(|input| assert_eq!(unsafe { *input }, 1));
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_node_whose_predecessor_failed_is_poisoned_for_whoever_claims_it() {
    model(|| {
        let node = Node::armed(0, 2);
        let theirs = node.clone();
        let thread = thread::spawn(move || {
            theirs.word.poison();
            theirs.word.count_down();
        });
        node.word.count_down();
        let claim = |node: &Node| match node.word.state(0, || true) {
            State::Ready { poisoned } => {
                assert!(poisoned, "poison comes before the last predecessor's end");
                node.word.claim(0, poisoned)
            }
            _ => false,
        };
        let early = claim(&node);
        thread.join().unwrap();
        assert_ne!(early, claim(&node), "one claims it, now or then");
    });
}

#[test]
fn a_thief_who_slept_for_a_whole_turn_of_the_slots_claims_nothing_of_a_later_run() {
    model(|| {
        let node = Node::armed(0, 0);
        assert_eq!(node.word.state(0, || true), State::Ready { poisoned: false });
        let owners = node.clone();
        let owner = thread::spawn(move || {
            let ran = owners.try_to_run(0, || true);
            if ran {
                // The run has ended, the slot is armed for the one that uses it next, and that node is ready at once.
                owners.word.arm(2, 0);
                assert!(owners.try_to_run(2, || true));
            }
            ran
        });
        let stolen = node.try_to_run_ready(0, false);
        let ran = owner.join().unwrap();
        assert_ne!(ran, stolen);
        assert_eq!(node.runs(), if ran { 2 } else { 1 });
    });
}

#[test]
fn nodes_of_an_open_stage_see_its_launch_and_in_which_manner_it_was_opened() {
    for manner in [Manner::Run, Manner::Spoilt, Manner::Skip] {
        model(move || {
            let (node, gate) = (Node::armed(3, 0), Arc::new(Gate::new()));
            // As the run left it that had the slot before.
            gate.open(1, Manner::Skip, false);
            let (theirs, their_gate) = (node.clone(), gate.clone());
            let worker = thread::spawn(move || {
                // The launch is the node's first input.
                let ran = theirs.try_to_run(3, || their_gate.is_open(3));
                ran.then(|| their_gate.manner())
            });
            node.write_input(0);
            gate.open(3, manner, false);
            let seen = worker.join().unwrap();
            assert!(seen.is_none_or(|seen| seen == manner));
            assert!(seen.is_some() || node.try_to_run(3, || gate.is_open(3)));
        });
    }
}

/// The end of a stage, of which nobody wanted to know when it was opened: what `graph/ends.rs` and `graph/active.rs` do with it.
struct Ending {
    gate: Gate,
    /// For each shift, one more than the run in which it has ended.
    ended: [AtomicU64; 2],
    told: AtomicU64,
    /// What the nodes did.
    outputs: [UnsafeCell<u32>; 2],
}

impl Ending {
    fn has_ended(&self) -> bool {
        self.ended.iter().all(|ended| ended.load(Ordering::SeqCst) > 0)
    }

    fn check_outputs(&self) {
        for output in &self.outputs {
            // SAFETY: loom checks it: both nodes have ended.
            output.with(|output| assert_eq!(unsafe { *output }, 1));
        }
    }

    /// The only node of a shift. True if it is its worker that tells of the end of the stage.
    fn run(&self, shift: usize) -> bool {
        // SAFETY: loom checks it: nobody looks at it before the end.
        self.outputs[shift].with_mut(|output| unsafe { *output = 1 });
        self.ended[shift].store(1, Ordering::SeqCst);
        let tells = self.gate.is_watched() && self.has_ended() && self.told.fetch_max(1, Ordering::Relaxed) == 0;
        if tells {
            self.check_outputs();
        }
        tells
    }
}

#[test]
fn who_asks_for_the_end_of_a_stage_sees_it_or_will_be_told_once() {
    model(|| {
        let ending = Arc::new(Ending {
            gate: Gate::new(),
            ended: [AtomicU64::new(0), AtomicU64::new(0)],
            told: AtomicU64::new(0),
            outputs: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        // To loom the value that an atomic is made with is not sequentially consistent, and may be read for ever.
        ending.ended.iter().for_each(|ended| ended.store(0, Ordering::SeqCst));
        ending.gate.open(0, Manner::Run, false);
        let workers: Vec<_> = (0..2)
            .map(|shift| {
                let ending = ending.clone();
                thread::spawn(move || ending.run(shift))
            })
            .collect();
        assert!(ending.gate.watch(0));
        let has_ended = ending.has_ended();
        if has_ended {
            ending.check_outputs();
        }
        let told = workers.into_iter().map(|worker| worker.join().unwrap()).filter(|&tells| tells).count();
        assert!(told == 1 || (has_ended && told == 0), "told {told} times, seen: {has_ended}");
    });
}

/// What one run at a time uses.
struct Slot {
    words: [NodeWord; 2],
    gate: Gate,
    /// Nodes that have not ended.
    left: AtomicU32,
    armed: AtomicU64,
    /// What the driver puts there before it opens the gate.
    launch: UnsafeCell<u32>,
    /// What the first node makes, for the second.
    output: UnsafeCell<u32>,
}

/// A graph of two nodes, each in the lane of a worker of its own: each comes after itself in the run before, and the second after the first. So
/// while the second is at one run, the first may be at the next.
struct Ring {
    slots: Box<[Slot]>,
    /// The run that the driver opens next.
    next: Mutex<u32>,
    /// Where workers wait, who are told of everything that may have made a node of theirs ready.
    parkers: [Parker; 2],
}

impl Ring {
    /// With so many slots, all armed.
    fn new(slots: u32) -> Arc<Self> {
        let slots: Box<[Slot]> = (0..slots).map(Slot::armed_for).collect();
        Arc::new(Self { slots, next: Mutex::new(0), parkers: Default::default() })
    }

    fn slot(&self, run: u32) -> &Slot {
        &self.slots[run as usize % self.slots.len()]
    }

    fn is_armed(&self, run: u32) -> bool {
        self.slot(run).armed.load(Ordering::Acquire) == u64::from(run)
    }

    /// What the driver does, when it begins and whenever a slot has been armed.
    fn drive(&self) {
        let mut next = self.next.lock();
        while *next < RUNS && self.is_armed(*next) && self.is_armed(*next + 1) {
            let slot = self.slot(*next);
            // SAFETY: loom checks it: nobody looks at it before the gate is open.
            slot.launch.with_mut(|launch| unsafe { *launch = *next });
            slot.gate.open(*next, Manner::Run, false);
            *next += 1;
            self.parkers.iter().for_each(Parker::unpark);
        }
    }

    /// What the worker does whose lane has this node.
    fn work(&self, node: usize) {
        for run in 0..RUNS {
            let slot = self.slot(run);
            let poisoned = loop {
                match slot.words[node].state(run, || slot.gate.is_open(run)) {
                    State::Ready { poisoned } => break poisoned,
                    State::Early => self.parkers[node].park(),
                    State::Gone => panic!("nobody else claims nodes of this lane"),
                }
            };
            assert!(slot.words[node].claim(run, poisoned));
            // SAFETY: loom checks it: the stage is open.
            slot.launch.with(|launch| assert_eq!(unsafe { *launch }, run));
            if node == 0 {
                // SAFETY: loom checks it: the run that had the slot before has ended.
                slot.output.with_mut(|output| unsafe { *output = run });
                self.count_down(run, 1);
            } else {
                // SAFETY: loom checks it: this node comes after the first.
                slot.output.with(|output| assert_eq!(unsafe { *output }, run));
            }
            self.count_down(run + 1, node);
            if slot.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                slot.arm(run + self.slots.len() as u32);
                self.drive();
            }
        }
    }

    fn count_down(&self, run: u32, node: usize) {
        if self.slot(run).words[node].count_down() {
            self.parkers[node].unpark();
        }
    }
}

impl Slot {
    fn armed_for(run: u32) -> Self {
        let slot = Self {
            words: [NodeWord::new(), NodeWord::new()],
            gate: Gate::new(),
            left: AtomicU32::new(0),
            armed: AtomicU64::new(u64::MAX),
            launch: UnsafeCell::new(0),
            output: UnsafeCell::new(0),
        };
        slot.arm(run);
        slot
    }

    fn arm(&self, run: u32) {
        self.left.store(2, Ordering::Relaxed);
        let steady = u32::from(run > 0);
        self.words[0].arm(run, steady);
        self.words[1].arm(run, 1 + steady);
        self.armed.store(u64::from(run), Ordering::Release);
    }
}

const RUNS: u32 = 4;

/// In three slots two runs are under way at a time, and the fourth run uses the first slot again.
#[test]
fn runs_overlap_and_use_slots_again_and_no_word_is_counted_down_before_it_is_armed() {
    model(|| {
        let ring = Ring::new(3);
        let theirs = ring.clone();
        let worker = thread::spawn(move || theirs.work(1));
        ring.drive();
        ring.work(0);
        worker.join().unwrap();
    });
}

/// The lane of a worker that sleeps when its next node may not run: two nodes, each in a stage of its own, the second after something else.
struct Lane {
    words: [NodeWord; 2],
    gates: [Gate; 2],
    /// The first node that may be unclaimed.
    cursor: AtomicU32,
    sleep: Sleep,
}

impl Lane {
    fn new() -> Arc<Self> {
        let lane = Self {
            words: [NodeWord::new(), NodeWord::new()],
            gates: [Gate::new(), Gate::new()],
            cursor: AtomicU32::new(0),
            sleep: Sleep::new(1),
        };
        lane.words.iter().zip([0, 1]).for_each(|(word, predecessors)| word.arm(0, predecessors));
        // As earlier runs left them. To loom the value that an atomic is made with is not sequentially consistent, and may be read for ever.
        lane.gates.iter().for_each(|gate| gate.open(9, Manner::Skip, false));
        lane.sleep.begin_search();
        lane.sleep.fall_asleep(0);
        lane.sleep.cancel(0);
        let _ = lane.sleep.end_search();
        Arc::new(lane)
    }

    fn state(&self, node: usize) -> State {
        self.words[node].state(0, || self.gates[node].is_open(0))
    }

    fn wake_owner(&self) {
        if self.sleep.is_asleep(0) {
            self.sleep.wake(0);
        }
    }

    /// What the driver does.
    fn open(&self, stage: usize) {
        self.gates[stage].open(0, Manner::Run, false);
        if !self.sleep.is_anybody_asleep() {
            return;
        }
        fence(Ordering::SeqCst);
        if self.cursor.load(Ordering::Relaxed) == stage as u32 {
            self.wake_owner();
        }
    }

    /// What a predecessor's worker does.
    fn count_down(&self, node: usize) {
        if self.words[node].count_down() && self.gates[node].is_open(0) {
            self.wake_owner();
        }
    }

    /// What the owner does until it has run both.
    fn work(&self) {
        for node in 0..2 {
            while !self.claim(node) {
                self.sleep.begin_search();
                self.sleep.fall_asleep(0);
                fence(Ordering::SeqCst);
                if self.state(node) == State::Early {
                    self.sleep.park(0);
                } else {
                    self.sleep.cancel(0);
                }
                let _ = self.sleep.end_search();
            }
        }
    }

    fn claim(&self, node: usize) -> bool {
        let State::Ready { poisoned } = self.state(node) else { return false };
        let claimed = self.words[node].claim(0, poisoned);
        self.cursor.store(node as u32 + 1, Ordering::Relaxed);
        claimed
    }
}

#[test]
fn a_worker_sleeps_through_no_node_whether_its_word_or_its_gate_comes_last() {
    model(|| {
        let lane = Lane::new();
        let [owner, predecessor] = [lane.clone(), lane.clone()];
        let threads = [thread::spawn(move || owner.work()), thread::spawn(move || predecessor.count_down(1))];
        lane.open(0);
        lane.open(1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
