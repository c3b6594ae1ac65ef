//! The words that decide when a node of a graph may run, and which worker runs it. The protocol is described in the
//! folder's `README.md`.
//!
//! The file knows nothing of graphs, so that loom can check it alone (`tests/loom`).

use crate::sync::{AtomicU64, Ordering};

/// By which workers claim a node in one slot: one more than the last run in which one did.
#[derive(Default)]
pub(crate) struct ClaimWord(AtomicU64);

impl ClaimWord {
    /// Whether a worker has claimed the node, in this run or in a later one.
    #[inline]
    pub(crate) fn is_claimed(&self, run: u64) -> bool {
        self.0.load(Ordering::Relaxed) > run
    }

    /// Claims the node in a run, which comes so many runs after the one that had the slot before. False if another was
    /// faster.
    #[inline]
    pub(crate) fn claim(&self, run: u64, slots: u64) -> bool {
        // By what it was claimed for last: a thief that slept for a whole turn of the slots claims nothing of a later
        // run.
        let before = (run + 1).saturating_sub(slots);
        // Relaxed: what the node sees of others, it sees by their ends and by the gate.
        self.0.compare_exchange(before, run + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// By which a node tells of its end in one slot: one more than the last run in which it has ended. Only the worker that
/// ran it writes it.
#[derive(Default)]
pub(crate) struct EndWord(AtomicU64);

impl EndWord {
    /// The node has ended in a run. A thread that sees that sees what the node did.
    ///
    /// Sequentially consistent, as the looks of those that wait for it before they fall asleep: see the folder's
    /// `README.md`.
    #[inline]
    pub(crate) fn end(&self, run: u64) {
        self.0.store(run + 1, Ordering::SeqCst);
    }

    /// Whether the node has ended in a run.
    #[inline]
    pub(crate) fn has_ended(&self, run: u64) -> bool {
        self.0.load(Ordering::SeqCst) > run
    }
}

/// How many of the nodes before a junction are known to have ended, so that no thread looks at them again: one more
/// than the run, in the upper half, and the number.
#[derive(Default)]
pub(crate) struct JunctionWord(AtomicU64);

const NUMBER: u64 = u32::MAX as u64;

impl JunctionWord {
    /// Whether all of so many nodes have ended in a run: looks at those of which that is not known. A caller that is
    /// told that they have sees what they did.
    #[inline]
    pub(crate) fn is_passed(&self, run: u64, nodes: usize, has_ended: impl Fn(usize) -> bool) -> bool {
        let word = self.0.load(Ordering::Acquire);
        let known = if word >> 32 == (run + 1) & NUMBER { (word & NUMBER) as usize } else { 0 };
        let ended = (known..nodes).find(|&node| !has_ended(node)).unwrap_or(nodes);
        if ended > known {
            // What others have noted may be lost, even by a thread that still looks for an earlier run: then it is
            // looked up again.
            self.0.store((run + 1) << 32 | ended as u64, Ordering::Release);
        }
        ended == nodes
    }
}

/// The word of one stage in one slot: the run in which its nodes may start.
pub(crate) struct Gate(AtomicU64);

const MANNER: u64 = 3;
/// The stage is watched: the end is to be announced when all nodes of the stage have ended.
const WATCHED: u64 = 1 << 2;
const FLAGS: u32 = 3;

/// The treatment of the nodes of an open stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Manner {
    /// They run.
    Run = 0,
    /// Nodes that take what the stage is opened with fail; the others run.
    Poisoned = 1,
    /// They are passed over.
    Skip = 2,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Lets the stage's nodes start, and says whether their end is watched.
    pub(crate) fn open(&self, run: u64, manner: Manner, watched: bool) {
        let watched = if watched { WATCHED } else { 0 };
        self.0.store((run + 1) << FLAGS | watched | manner as u64, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_open(&self, run: u64) -> bool {
        self.0.load(Ordering::SeqCst) >> FLAGS == run + 1
    }

    /// From now on the end of the stage is watched. False if the gate is not open for this run.
    pub(crate) fn watch(&self, run: u64) -> bool {
        let mut word = self.0.load(Ordering::SeqCst);
        while word >> FLAGS == run + 1 {
            match self.0.compare_exchange(word, word | WATCHED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Whether the end of the stage that was opened last is watched.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.0.load(Ordering::SeqCst) & WATCHED != 0
    }

    /// How the gate was opened last.
    #[inline]
    pub(crate) fn manner(&self) -> Manner {
        match self.0.load(Ordering::Relaxed) & MANNER {
            0 => Manner::Run,
            1 => Manner::Poisoned,
            _ => Manner::Skip,
        }
    }
}
