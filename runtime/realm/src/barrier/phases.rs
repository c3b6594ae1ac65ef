//! The counting of a barrier: arrivals and alterations in, completed phases out, in order.
//!
//! The file knows nothing of events, so that loom can check it alone (`tests/loom`). The protocol is described in the
//! crate's `README.md`.

use std::collections::{BTreeMap, VecDeque};

use crate::sync::Mutex;

/// Counts the phases of one barrier. `T` is what is kept for a phase until it is complete.
pub(crate) struct Phases<T> {
    state: Mutex<PhasesState<T>>,
}

struct PhasesState<T> {
    /// The arrivals that a phase expects, before alterations.
    expected: i64,
    /// The earliest phase that is not complete.
    first: u32,
    /// Phases from `first` on of which something is known.
    open: BTreeMap<u32, Phase<T>>,
    /// Complete phases that have not been announced.
    due: VecDeque<(u32, T)>,
    /// Whether a thread is announcing: it will see to whatever is due.
    announcing: bool,
    /// Whether the barrier is no more: no arrival will announce a phase that is not due.
    closed: bool,
    /// The last alteration made, hence the next one's timestamp; and how many of them, without a gap, have been
    /// applied.
    altered: u32,
    applied: u32,
    /// Alterations that have overtaken an earlier one, and arrivals that have overtaken the alteration they rest on.
    early: BTreeMap<u32, Change>,
    held: Vec<(u32, Change)>,
}

struct Phase<T> {
    /// Arrivals still to come; below 0 when more came than were expected.
    missing: i64,
    data: T,
}

/// So many more (or, if negative, fewer) arrivals for a phase to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) phase: u32,
    pub(crate) arrivals: i64,
}

/// A change that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The phase is complete.
    Over,
    /// The phase waits for fewer arrivals than that.
    TooMany { missing: i64 },
    /// The barrier was closed.
    Closed,
}

impl<T: Default> Phases<T> {
    /// Phases from 0 on that each expect so many arrivals.
    pub(crate) fn new(expected: u32) -> Self {
        Self {
            state: Mutex::new(PhasesState {
                expected: i64::from(expected),
                first: 0,
                open: BTreeMap::new(),
                due: VecDeque::new(),
                announcing: false,
                closed: false,
                altered: 0,
                applied: 0,
                early: BTreeMap::new(),
                held: Vec::new(),
            }),
        }
    }

    /// Looks at the data of a phase, unless it is complete and announced.
    pub(crate) fn with_open<R>(&self, phase: u32, look: impl FnOnce(&mut T) -> R) -> Result<Option<R>, Refused> {
        let mut state = self.state.lock();
        if phase >= state.first {
            state.check_open()?;
            return Ok(Some(look(&mut state.open(phase).data)));
        }
        let due = state.due.iter_mut().find(|(due, _)| *due == phase);
        Ok(due.map(|(_, data)| look(data)))
    }

    /// The timestamp of an alteration about to be made.
    pub(crate) fn stamp(&self) -> u32 {
        let mut state = self.state.lock();
        state.altered += 1;
        state.altered
    }

    /// Applies an alteration, once all with an earlier timestamp have been, and the arrivals that were waiting for it.
    pub(crate) fn alter(&self, timestamp: u32, change: Change, announce: impl Fn(u32, T)) -> Result<(), Refused> {
        let mut state = self.state.lock();
        state.check_open()?;
        state.early.insert(timestamp, change);
        let mut outcome = Ok(());
        loop {
            let next = state.applied + 1;
            let Some(change) = state.early.remove(&next) else {
                break;
            };
            // A refused alteration counts as applied: what bears its timestamp must not wait for ever.
            outcome = outcome.and(state.apply(change));
            state.applied = next;
        }
        let applied = state.applied;
        let (ready, held) = std::mem::take(&mut state.held).into_iter().partition(|&(stamp, _)| stamp <= applied);
        state.held = held;
        for (_, change) in ready {
            outcome = outcome.and(state.apply(change));
        }
        self.announce(state, announce);
        outcome
    }

    /// Counts arrivals that rest on the alterations up to `timestamp`. `note` marks the phase's data.
    pub(crate) fn arrive(
        &self,
        timestamp: u32,
        change: Change,
        note: impl FnOnce(&mut T),
        announce: impl Fn(u32, T),
    ) -> Result<(), Refused> {
        let mut state = self.state.lock();
        state.check_open()?;
        if change.phase < state.first {
            return Err(Refused::Over);
        }
        if timestamp > state.applied {
            note(&mut state.open(change.phase).data);
            state.held.push((timestamp, change));
            return Ok(());
        }
        state.check(change)?;
        note(&mut state.open(change.phase).data);
        state.apply(change)?;
        self.announce(state, announce);
        Ok(())
    }

    /// Takes everything that is still open: the barrier is no more, also for threads that come to it later.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.closed = true;
        state.held.clear();
        std::mem::take(&mut state.open).into_values().map(|phase| phase.data).collect()
    }

    /// Announces what is due, in order: one thread at a time does, without the lock, until nothing is due. So phases
    /// trigger in order although the thread that completes them may be interrupted, and announcing may arrive at the
    /// barrier again.
    fn announce<'a>(&'a self, mut state: Guard<'a, T>, announce: impl Fn(u32, T)) {
        if state.announcing {
            return;
        }
        state.announcing = true;
        while let Some((phase, data)) = state.due.pop_front() {
            drop(state);
            announce(phase, data);
            state = self.state.lock();
        }
        state.announcing = false;
    }
}

type Guard<'a, T> = crate::sync::MutexGuard<'a, PhasesState<T>>;

impl<T: Default> PhasesState<T> {
    fn open(&mut self, phase: u32) -> &mut Phase<T> {
        let missing = self.expected;
        self.open.entry(phase).or_insert_with(|| Phase { missing, data: T::default() })
    }

    fn check_open(&self) -> Result<(), Refused> {
        if self.closed { Err(Refused::Closed) } else { Ok(()) }
    }

    fn check(&mut self, change: Change) -> Result<(), Refused> {
        if change.phase < self.first {
            return Err(Refused::Over);
        }
        let missing = self.open(change.phase).missing;
        if missing + change.arrivals < 0 { Err(Refused::TooMany { missing }) } else { Ok(()) }
    }

    fn apply(&mut self, change: Change) -> Result<(), Refused> {
        self.check(change)?;
        self.open(change.phase).missing += change.arrivals;
        while self.open.get(&self.first).is_some_and(|phase| phase.missing == 0) {
            let first = self.first;
            if let Some(complete) = self.open.remove(&first) {
                self.due.push_back((first, complete.data));
            }
            // A barrier has no phase beyond the last, so there are no arrivals.
            self.first = self.first.saturating_add(1);
        }
        Ok(())
    }
}
