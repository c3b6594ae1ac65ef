//! The words that decide when a node of a graph may run, and who runs it. The protocol is told in the folder's `README.md`.
//!
//! The file knows nothing of graphs, so that loom can check it alone (`tests/loom`).

use crate::sync::{AtomicU64, Ordering};

/// A node's word in one slot: the run that it is armed for, and in the lower half how many predecessors have not ended, with two flags.
pub(crate) struct NodeWord(AtomicU64);

/// Somebody runs the node, or has.
const CLAIMED: u64 = 1 << 31;
/// Something that the node needs has failed.
const POISONED: u64 = 1 << 30;
const COUNT: u64 = POISONED - 1;

/// How a node stands in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It may be claimed.
    Ready {
        /// It can't run, which is to be said in its place.
        poisoned: bool,
    },
    /// It may not run yet.
    Early,
    /// Somebody has claimed it, in this run or before a later one.
    Gone,
}

impl NodeWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Prepares the node for a run, in which so many predecessors end before it.
    pub(crate) fn arm(&self, run: u32, predecessors: u32) {
        self.0.store(u64::from(run) << 32 | u64::from(predecessors), Ordering::SeqCst);
    }

    /// A predecessor has ended. True if it was the last: whoever hears that sees what all of them did.
    #[inline]
    pub(crate) fn count_down(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(before & COUNT, 0, "a predecessor ends once a run");
        before & COUNT == 1
    }

    /// A predecessor whose result is needed has failed. Before it [counts down](Self::count_down).
    pub(crate) fn poison(&self) {
        self.0.fetch_or(POISONED, Ordering::SeqCst);
    }

    /// How the node stands in a run. It may start when all its predecessors have ended and `may_start` says so too.
    #[inline]
    pub(crate) fn state(&self, run: u32, may_start: impl FnOnce() -> bool) -> State {
        let word = self.0.load(Ordering::SeqCst);
        let armed_for = (word >> 32) as u32;
        if armed_for != run {
            // Signed, for runs count round.
            return if (armed_for.wrapping_sub(run) as i32) > 0 { State::Gone } else { State::Early };
        }
        match word {
            _ if word & CLAIMED != 0 => State::Gone,
            _ if word & COUNT != 0 || !may_start() => State::Early,
            _ => State::Ready { poisoned: word & POISONED != 0 },
        }
    }

    /// Claims a node that is ready in a run. False if another was faster.
    #[inline]
    pub(crate) fn claim(&self, run: u32, poisoned: bool) -> bool {
        // Of a node that is ready nothing changes but this.
        let ready = u64::from(run) << 32 | if poisoned { POISONED } else { 0 };
        self.0.compare_exchange(ready, ready | CLAIMED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether the node is armed for the run, and unclaimed.
    #[inline]
    pub(crate) fn is_to_come(&self, run: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        (word >> 32) as u32 == run && word & CLAIMED == 0
    }
}

/// The word of one stage in one slot: the run in which its nodes may start.
pub(crate) struct Gate(AtomicU64);

const MANNER: u64 = 3;
/// Somebody wants to be told when all nodes of the stage have ended.
const WATCHED: u64 = 1 << 2;
const FLAGS: u32 = 3;

/// What becomes of the nodes of an open stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Manner {
    /// They run.
    Run = 0,
    /// What some of them take has failed.
    Spoilt = 1,
    /// They are passed over.
    Skip = 2,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Lets the stage's nodes start, and says whether somebody wants to be told of their end.
    pub(crate) fn open(&self, run: u32, manner: Manner, watched: bool) {
        let watched = if watched { WATCHED } else { 0 };
        self.0.store((u64::from(run) + 1) << FLAGS | watched | manner as u64, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_open(&self, run: u32) -> bool {
        self.0.load(Ordering::SeqCst) >> FLAGS == u64::from(run) + 1
    }

    /// From now on somebody wants to be told of the end of the stage. False if the gate is not open for this run.
    pub(crate) fn watch(&self, run: u32) -> bool {
        let mut word = self.0.load(Ordering::SeqCst);
        while word >> FLAGS == u64::from(run) + 1 {
            match self.0.compare_exchange(word, word | WATCHED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Whether somebody wants to be told of the end of the stage that was opened last.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.0.load(Ordering::SeqCst) & WATCHED != 0
    }

    /// How the gate was opened last.
    #[inline]
    pub(crate) fn manner(&self) -> Manner {
        match self.0.load(Ordering::Relaxed) & MANNER {
            0 => Manner::Run,
            1 => Manner::Spoilt,
            _ => Manner::Skip,
        }
    }
}
