//! The two atomic words on which all synchronisation rests: [`EventWord`] and [`Preconditions`].
//!
//! The file knows nothing of slots, threads or bodies, so that loom can check it alone (`tests/loom`). The protocol
//! is described in the crate's `README.md`.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The largest generation of a slot; a slot that reaches it is retired.
pub(crate) const LAST_GENERATION: u32 = (1 << 24) - 1;

const HEAD: u64 = 0xFFFF_FFFF;
const POISONED: u64 = 1 << 32;
const CLAIMED: u64 = 1 << 33;
const PROMISED: u64 = 1 << 34;
const SCARRED: u64 = 1 << 35;
const GENERATION_SHIFT: u32 = 40;

/// The phase of one generation, as the word tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has not triggered.
    Pending,
    /// It has triggered and all is well.
    Triggered,
    /// It has triggered, poisoned.
    Poisoned,
    /// It has triggered, and so has a later one; some generation of the slot was poisoned. Whether it was this one,
    /// others must know.
    Past,
}

/// One event of a slot and all its waiters, in one word.
///
/// ```text
/// 63        40 39     36    35        34        33        32     31                  0
/// | generation | unused | SCARRED | PROMISED | CLAIMED | POISONED | head of the waiters |
/// ```
///
/// `generation` counts the events of this slot that have triggered, so event `g` has triggered once it is at least `g`.
/// `head` is the first waiter's node (0 for none); each node's link holds the next. Subscribing is a compare-and-swap
/// of the head that fails once the generation has moved on; triggering is one swap that moves the generation on and
/// takes the whole list. So a waiter is either seen by the trigger, or learns from its failed subscription that there
/// is nothing to wait for.
///
/// `POISONED` is the last generation's alone. Once there was a poisoned one, the word is `SCARRED` for ever: then it
/// says of earlier generations only that they have triggered.
#[derive(Debug)]
pub(crate) struct EventWord(AtomicU64);

impl EventWord {
    /// The word of a slot that has had no event yet: the all-zero word.
    #[allow(dead_code)] // slots are made by the thousand, as zeroed memory; the model checker makes words one by one
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The generation that triggered last. Exact only for a thread that owns the slot.
    #[inline]
    pub(crate) fn last_triggered(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> GENERATION_SHIFT) as u32
    }

    /// How `generation` stands. After `Triggered` or `Poisoned`, what happened before the trigger is visible.
    #[inline]
    pub(crate) fn phase(&self, generation: u32) -> Phase {
        phase_of(self.0.load(Ordering::Acquire), generation)
    }

    /// Makes `node` wait for `generation`, writing `link`, which must be the node's own link and not in other use.
    /// Gives how the generation stands when there is nothing left to wait for.
    #[inline]
    pub(crate) fn subscribe(&self, generation: u32, node: u32, link: &AtomicU32) -> Result<(), Phase> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            match phase_of(word, generation) {
                Phase::Pending => {}
                triggered => return Err(triggered),
            }
            link.store((word & HEAD) as u32, Ordering::Relaxed);
            // Release: the trigger that takes this node must see its link and its operation. The compare-and-swaps of
            // later subscribers continue this release sequence, so taking their node as the head shows this one too.
            match self.0.compare_exchange_weak(
                word,
                (word & !HEAD) | u64::from(node),
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(changed) => word = changed,
            }
        }
    }

    /// Triggers the pending generation and gives the head of its waiters. The caller alone has the right to.
    #[inline]
    pub(crate) fn trigger(&self, generation: u32, poisoned: bool) -> u32 {
        // This bit is decided by the triggering thread alone, so it is read beforehand.
        let scarred = self.0.load(Ordering::Relaxed) & SCARRED;
        let word = self.0.swap(triggered(generation, poisoned, scarred), Ordering::AcqRel);
        debug_assert_eq!(phase_of(word, generation), Phase::Pending);
        (word & HEAD) as u32
    }

    /// Says that the pending generation triggers by nothing but a [claim](Self::claim). Before publication.
    #[inline]
    pub(crate) fn promise(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) | PROMISED, Ordering::Relaxed);
    }

    /// Takes the right to trigger the pending generation, if that was [promised](Self::promise) and not claimed yet.
    pub(crate) fn claim_promised(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & PROMISED != 0 && self.claim((word >> GENERATION_SHIFT) as u32 + 1)
    }

    /// Takes the right to trigger `generation`; false if it has been taken, or used, before.
    pub(crate) fn claim(&self, generation: u32) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & CLAIMED != 0 || phase_of(word, generation) != Phase::Pending {
                return false;
            }
            match self.0.compare_exchange_weak(word, word | CLAIMED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => word = changed,
            }
        }
    }

    /// [`claim`](Self::claim) and [`trigger`](Self::trigger) in one step; `None` if the right was taken before.
    pub(crate) fn claim_and_trigger(&self, generation: u32, poisoned: bool) -> Option<u32> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & CLAIMED != 0 || phase_of(word, generation) != Phase::Pending {
                return None;
            }
            match self.0.compare_exchange_weak(
                word,
                triggered(generation, poisoned, word & SCARRED),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some((word & HEAD) as u32),
                Err(changed) => word = changed,
            }
        }
    }
}

#[inline]
fn triggered(generation: u32, poisoned: bool, scarred: u64) -> u64 {
    (u64::from(generation) << GENERATION_SHIFT) | if poisoned { POISONED | SCARRED } else { scarred }
}

#[inline]
fn phase_of(word: u64, generation: u32) -> Phase {
    let last = (word >> GENERATION_SHIFT) as u32;
    if last < generation {
        Phase::Pending
    } else if word & SCARRED == 0 {
        Phase::Triggered
    } else if last == generation {
        if word & POISONED != 0 { Phase::Poisoned } else { Phase::Triggered }
    } else {
        Phase::Past
    }
}

/// How many preconditions an operation still waits for, and whether one of them was poisoned.
///
/// While the preconditions are being subscribed to, the count holds one more, so that the operation cannot become ready
/// under the hands of the thread that makes it.
#[derive(Debug)]
pub(crate) struct Preconditions(AtomicU32);

const SPREAD: u32 = 1 << 31;

/// That an operation's last precondition has triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    /// A precondition whose poison spreads was poisoned.
    pub(crate) poisoned: bool,
}

impl Preconditions {
    /// Of an operation that waits for nothing.
    #[allow(dead_code)] // slots are made by the thousand, as zeroed memory; the model checker makes words one by one
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Starts with `count` preconditions, plus the guard of the thread that subscribes to them. Before publication.
    #[inline]
    pub(crate) fn begin(&self, count: u32) {
        self.0.store(count + 1, Ordering::Relaxed);
    }

    /// Nothing to wait for. Before publication.
    #[inline]
    pub(crate) fn none(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Notes that poison has reached the operation; the caller then counts its own precondition off by
    /// [`arrive`](Self::arrive), which publishes the note.
    pub(crate) fn poison(&self) {
        self.0.fetch_or(SPREAD, Ordering::Relaxed);
    }

    /// Whether poison has reached the operation. Exact once it is ready.
    #[inline]
    pub(crate) fn poisoned(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SPREAD != 0
    }

    /// Counts off `count` preconditions; `Some` if they were the last.
    #[inline]
    pub(crate) fn arrive(&self, count: u32) -> Option<Ready> {
        let seen = self.0.load(Ordering::Acquire);
        if seen & !SPREAD == count {
            // All that is left is ours, so nothing else will touch the counter: no read-modify-write is needed.
            self.0.store(seen & SPREAD, Ordering::Relaxed);
            return Some(Ready { poisoned: seen & SPREAD != 0 });
        }
        let before = self.0.fetch_sub(count, Ordering::AcqRel);
        (before & !SPREAD == count).then_some(Ready { poisoned: before & SPREAD != 0 })
    }
}
