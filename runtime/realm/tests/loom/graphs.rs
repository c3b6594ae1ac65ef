//! Static graphs: the words of nodes and the gates of stages, and what `graph/active.rs` does with them, as described
//! in `src/graph/README.md`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::model;
use super::sleep::Sleep;
use super::sync::{AtomicU32, AtomicU64, Mutex, Ordering, Parker, fence};
use super::words::{ClaimWord, EndWord, Gate, JunctionWord, Manner};

/// To loom the value that an atomic is made with is not sequentially consistent, and may be read for ever: so a run has
/// ended with it. No thread asks what that run did.
fn not_ended_yet() -> EndWord {
    let word = EndWord::default();
    word.end(0);
    word
}

/// The first run of which the models ask.
const RUN: u64 = 1;

/// A node after two others, and how often it ran.
struct Node {
    claim: ClaimWord,
    before: [EndWord; 2],
    /// The results of the two nodes before it.
    inputs: [UnsafeCell<u32>; 2],
    /// By way of which it comes after them, if it does.
    junction: Option<JunctionWord>,
    runs: UnsafeCell<u32>,
}

impl Node {
    fn new(junction: Option<JunctionWord>) -> Arc<Self> {
        let claim = ClaimWord::default();
        assert!(claim.claim(0, 1));
        Arc::new(Self {
            claim,
            before: [not_ended_yet(), not_ended_yet()],
            inputs: [UnsafeCell::new(0), UnsafeCell::new(0)],
            junction,
            runs: UnsafeCell::new(0),
        })
    }

    /// Runs one of the two nodes before it and ends it, as that node's worker does.
    fn end(&self, which: usize) {
        // SAFETY: loom checks it: the accesses race unless the protocol orders them.
        self.inputs[which].with_mut(|input| unsafe { *input = 1 });
        self.before[which].end(RUN);
    }

    fn may_start(&self) -> bool {
        let has_ended = |which: usize| self.before[which].has_ended(RUN);
        match &self.junction {
            None => (0..2).all(has_ended),
            Some(junction) => junction.is_passed(RUN, 2, has_ended),
        }
    }

    /// Runs the node if it is ready and no other worker does, as a passing worker does.
    fn try_to_run(&self) -> bool {
        let claimed = !self.claim.is_claimed(RUN) && self.may_start() && self.claim.claim(RUN, 1);
        if claimed {
            for input in &self.inputs {
                // SAFETY: as in `end`.
                input.with(|input| assert_eq!(unsafe { *input }, 1));
            }
            // SAFETY: as in `end`.
            self.runs.with_mut(|runs| unsafe { *runs += 1 });
        }
        claimed
    }

    fn runs(&self) -> u32 {
        // SAFETY: as in `end`.
        self.runs.with(|runs| unsafe { *runs })
    }
}

/// Two workers run what comes before a node and then look at it, and a thief comes by.
fn run_once(junction: fn() -> Option<JunctionWord>) {
    model(move || {
        let node = Node::new(junction());
        let workers: Vec<_> = (0..2)
            .map(|which| {
                let node = node.clone();
                thread::spawn(move || {
                    node.end(which);
                    node.try_to_run()
                })
            })
            .collect();
        let stolen = node.try_to_run();
        let ran = workers.into_iter().map(|worker| worker.join().unwrap());
        let times = usize::from(stolen) + ran.filter(|&ran| ran).count();
        assert_eq!((times, node.runs()), (1, 1));
    });
}

#[test]
fn a_node_runs_once_after_all_that_comes_before_it_though_a_thief_comes_by() {
    run_once(|| None);
}

#[test]
fn who_passes_a_junction_sees_what_all_before_it_did_though_another_looked_at_some_of_it() {
    run_once(|| Some(JunctionWord::default()));
}

#[test]
fn what_is_noted_before_a_node_ends_is_seen_by_those_after_it() {
    model(|| {
        // As `graph/failures.rs` notes that there are any.
        let failed = Arc::new((AtomicU32::new(0), not_ended_yet()));
        let theirs = failed.clone();
        let worker = thread::spawn(move || {
            theirs.0.store(1, Ordering::Relaxed);
            theirs.1.end(RUN);
        });
        if failed.1.has_ended(RUN) {
            assert_eq!(failed.0.load(Ordering::Relaxed), 1);
        }
        worker.join().unwrap();
    });
}

#[test]
fn a_thief_who_slept_for_a_whole_turn_of_the_slots_claims_nothing_of_a_later_run() {
    const SLOTS: u64 = 2;
    model(|| {
        let word = Arc::new(ClaimWord::default());
        let owners = word.clone();
        let owner = thread::spawn(move || {
            let ran = owners.claim(0, SLOTS);
            if ran {
                // The run has ended, and that which uses the slot next is open at once.
                assert!(owners.claim(SLOTS, SLOTS));
            }
            ran
        });
        let stolen = word.claim(0, SLOTS);
        assert_ne!(owner.join().unwrap(), stolen);
        assert_eq!(word.is_claimed(SLOTS), !stolen);
    });
}

#[test]
fn nodes_of_an_open_stage_see_its_launch_and_in_which_manner_it_was_opened() {
    for manner in [Manner::Run, Manner::Poisoned, Manner::Skip] {
        model(move || {
            let stage = Arc::new((Gate::new(), ClaimWord::default(), UnsafeCell::new(0_u32)));
            // As the run left it that had the slot before.
            stage.0.open(1, Manner::Skip, false);
            let run = |(gate, claim, launch): &(Gate, ClaimWord, UnsafeCell<u32>)| {
                let ran = gate.is_open(3) && claim.claim(3, 4);
                ran.then(|| {
                    // SAFETY: loom checks it: the stage is open.
                    launch.with(|launch| assert_eq!(unsafe { *launch }, 1));
                    gate.manner()
                })
            };
            let theirs = stage.clone();
            let worker = thread::spawn(move || run(&theirs));
            // SAFETY: loom checks it: no thread looks at it before the gate is open.
            stage.2.with_mut(|launch| unsafe { *launch = 1 });
            stage.0.open(3, manner, false);
            let seen = worker.join().unwrap();
            assert!(seen.is_none_or(|seen| seen == manner));
            assert!(seen.is_some() || run(&stage) == Some(manner));
        });
    }
}

/// The end of a stage, of which no thread wanted to know when it was opened: what `graph/ends.rs` and `graph/active.rs`
/// do with it.
struct Ending {
    gate: Gate,
    ended: [EndWord; 2],
    told: AtomicU64,
    /// The results of the nodes.
    outputs: [UnsafeCell<u32>; 2],
}

impl Ending {
    fn has_ended(&self) -> bool {
        self.ended.iter().all(|ended| ended.has_ended(RUN))
    }

    fn check_outputs(&self) {
        for output in &self.outputs {
            // SAFETY: loom checks it: both nodes have ended.
            output.with(|output| assert_eq!(unsafe { *output }, 1));
        }
    }

    /// The only node of a shift. True if it is its worker that tells of the end of the stage.
    fn run(&self, shift: usize) -> bool {
        // SAFETY: loom checks it: no thread looks at it before the end.
        self.outputs[shift].with_mut(|output| unsafe { *output = 1 });
        self.ended[shift].end(RUN);
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
            ended: [not_ended_yet(), not_ended_yet()],
            told: AtomicU64::new(0),
            outputs: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        ending.gate.open(RUN, Manner::Run, false);
        let workers: Vec<_> = (0..2)
            .map(|shift| {
                let ending = ending.clone();
                thread::spawn(move || ending.run(shift))
            })
            .collect();
        assert!(ending.gate.watch(RUN));
        let has_ended = ending.has_ended();
        if has_ended {
            ending.check_outputs();
        }
        let told = workers.into_iter().map(|worker| worker.join().unwrap()).filter(|&tells| tells).count();
        assert!(told == 1 || (has_ended && told == 0), "told {told} times, seen: {has_ended}");
    });
}

/// A slot, which one run at a time uses.
struct Slot {
    claims: [ClaimWord; 2],
    ends: [EndWord; 2],
    gate: Gate,
    /// Nodes that have ended, in all runs.
    ended: AtomicU64,
    armed: AtomicU64,
    /// The launch, which the driver puts there before it opens the gate.
    launch: UnsafeCell<u64>,
    /// The result of the first node, for the second.
    output: UnsafeCell<u64>,
}

impl Slot {
    fn armed_for(run: u64) -> Self {
        Self {
            claims: Default::default(),
            ends: Default::default(),
            gate: Gate::new(),
            ended: AtomicU64::new(0),
            armed: AtomicU64::new(run),
            launch: UnsafeCell::new(0),
            output: UnsafeCell::new(0),
        }
    }
}

/// A graph of two nodes, each in the lane of a worker of its own: each comes after itself in the run before, and the
/// second after the first. So while the second is at one run, the first may be at the next.
struct Ring {
    slots: Box<[Slot]>,
    /// The run that the driver opens next.
    next: Mutex<u64>,
    /// The parkers of the workers, which are told of everything that may have made a node of theirs ready.
    parkers: [Parker; 2],
}

const RUNS: u64 = 4;

impl Ring {
    fn new(slots: u64) -> Arc<Self> {
        let slots: Box<[Slot]> = (0..slots).map(Slot::armed_for).collect();
        Arc::new(Self { slots, next: Mutex::new(0), parkers: Default::default() })
    }

    fn slot(&self, run: u64) -> &Slot {
        &self.slots[run as usize % self.slots.len()]
    }

    /// Opens the next runs whose slots are armed, as the driver does when it begins and whenever a slot has been armed.
    fn drive(&self) {
        let mut next = self.next.lock();
        while *next < RUNS && self.slot(*next).armed.load(Ordering::Acquire) == *next {
            let slot = self.slot(*next);
            // SAFETY: loom checks it: no thread looks at it before the gate is open.
            slot.launch.with_mut(|launch| unsafe { *launch = *next });
            slot.gate.open(*next, Manner::Run, false);
            *next += 1;
            self.parkers.iter().for_each(Parker::unpark);
        }
    }

    fn may_start(&self, run: u64, node: usize) -> bool {
        let is_after_itself = run == 0 || self.slot(run - 1).ends[node].has_ended(run - 1);
        is_after_itself && (node == 0 || self.slot(run).ends[0].has_ended(run))
    }

    /// Runs the node in all runs, as the worker does whose lane has it.
    fn work(&self, node: usize) {
        let slots = self.slots.len() as u64;
        for run in 0..RUNS {
            let slot = self.slot(run);
            assert!(!slot.claims[node].is_claimed(run), "nobody else claims nodes of this lane");
            while !(slot.gate.is_open(run) && self.may_start(run, node)) {
                self.parkers[node].park();
            }
            assert!(slot.claims[node].claim(run, slots));
            // SAFETY: loom checks it: the stage is open.
            slot.launch.with(|launch| assert_eq!(unsafe { *launch }, run));
            if node == 0 {
                // SAFETY: loom checks it: the run that had the slot before has ended.
                slot.output.with_mut(|output| unsafe { *output = run });
            } else {
                // SAFETY: loom checks it: this node comes after the first.
                slot.output.with(|output| assert_eq!(unsafe { *output }, run));
            }
            slot.ends[node].end(run);
            self.parkers[1].unpark();
            if slot.ended.fetch_add(1, Ordering::AcqRel) + 1 == (run / slots + 1) * 2 {
                slot.armed.store(run + slots, Ordering::Release);
                self.drive();
            }
        }
    }
}

/// In two slots two runs are under way at a time, and the third run uses the first slot again.
#[test]
fn runs_overlap_and_use_slots_again() {
    model(|| {
        let ring = Ring::new(2);
        let theirs = ring.clone();
        let worker = thread::spawn(move || theirs.work(1));
        ring.drive();
        ring.work(0);
        worker.join().unwrap();
    });
}

/// The lane of a worker that sleeps when its next node may not run: two nodes, each in a stage of its own, the second
/// after something else.
struct Lane {
    claims: [ClaimWord; 2],
    before_second: EndWord,
    gates: [Gate; 2],
    /// The first node that may be unclaimed.
    cursor: AtomicU32,
    sleep: Sleep,
}

impl Lane {
    fn new() -> Arc<Self> {
        let lane = Self {
            claims: Default::default(),
            before_second: not_ended_yet(),
            gates: [Gate::new(), Gate::new()],
            cursor: AtomicU32::new(0),
            sleep: Sleep::new(1, 1),
        };
        lane.claims.iter().for_each(|claim| assert!(claim.claim(0, 1)));
        // As earlier runs left them: see `not_ended_yet`.
        lane.gates.iter().for_each(|gate| gate.open(9, Manner::Skip, false));
        lane.sleep.begin_search();
        lane.sleep.fall_asleep(0);
        lane.sleep.cancel(0);
        let _ = lane.sleep.end_search();
        Arc::new(lane)
    }

    fn is_ready(&self, node: usize) -> bool {
        let may_start = || node == 0 || self.before_second.has_ended(RUN);
        !self.claims[node].is_claimed(RUN) && self.gates[node].is_open(RUN) && may_start()
    }

    /// Wakes the owner if a node is ready, after something that may have made one ready.
    fn wake_if_ready(&self) {
        if self.sleep.is_anybody_asleep() && self.sleep.is_asleep(0) {
            fence(Ordering::SeqCst);
            if (self.cursor.load(Ordering::Relaxed) as usize..2).any(|node| self.is_ready(node)) {
                self.sleep.wake(0);
            }
        }
    }

    /// Opens a stage, as the driver does.
    fn open(&self, stage: usize) {
        self.gates[stage].open(RUN, Manner::Run, false);
        self.wake_if_ready();
    }

    /// Ends what is before the second node, as a predecessor's worker does.
    fn end_what_is_before_second(&self) {
        self.before_second.end(RUN);
        self.wake_if_ready();
    }

    /// Runs both nodes, as the owner does.
    fn work(&self) {
        for node in 0..2 {
            while !self.claim(node) {
                self.sleep.begin_search();
                self.sleep.fall_asleep(0);
                fence(Ordering::SeqCst);
                if self.is_ready(node) {
                    self.sleep.cancel(0);
                } else {
                    self.sleep.park(0);
                }
                let _ = self.sleep.end_search();
            }
        }
    }

    fn claim(&self, node: usize) -> bool {
        let claimed = self.is_ready(node) && self.claims[node].claim(RUN, 1);
        if claimed {
            self.cursor.store(node as u32 + 1, Ordering::Relaxed);
        }
        claimed
    }
}

#[test]
fn a_worker_sleeps_through_no_node_whether_its_gate_or_what_is_before_it_comes_last() {
    model(|| {
        let lane = Lane::new();
        let [owner, predecessor] = [lane.clone(), lane.clone()];
        let threads =
            [thread::spawn(move || owner.work()), thread::spawn(move || predecessor.end_what_is_before_second())];
        lane.open(0);
        lane.open(1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
