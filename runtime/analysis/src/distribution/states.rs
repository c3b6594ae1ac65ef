//! States that the coherence of a region tree was in before, by number. A program that repeats itself goes through the
//! same states again and again; what follows from a launch in a state is found once.

use maniple_region::{FieldMask, OperatorId};
use rustc_hash::FxHashMap;

use super::history::{Histories, HistoryEntry};

/// The histories of a state as a key.
type Key = Vec<(FieldMask, Vec<(u8, u64, Option<OperatorId>)>)>;

/// States by number, and which is the current one.
#[derive(Default)]
pub(super) struct States {
    numbers: FxHashMap<Key, u64>,
    histories: FxHashMap<u64, Histories>,
    /// Numbers are not used again: what is remembered elsewhere of a state that is forgotten here is not found any
    /// more.
    next: u64,
    /// None if the tree was used since.
    current: Option<u64>,
}

/// The most states that are remembered.
const MOST_STATES: usize = 1 << 10;

impl States {
    /// The current state, if its number is known.
    pub(super) fn current(&self) -> Option<u64> {
        self.current
    }

    /// Makes a state the current one, and returns its number.
    pub(super) fn enter(&mut self, histories: &Histories) -> u64 {
        let key: Key = histories
            .iter()
            .map(|(fields, history)| (fields.clone(), history.iter().map(identity).collect()))
            .collect();
        let number = match self.numbers.get(&key) {
            Some(&known) => known,
            None => {
                if self.numbers.len() >= MOST_STATES {
                    (self.numbers, self.histories) = Default::default();
                }
                let number = self.next;
                self.next += 1;
                self.numbers.insert(key, number);
                self.histories.insert(number, histories.clone());
                number
            }
        };
        self.current = Some(number);
        number
    }

    /// The histories of a state, unless they have been forgotten.
    pub(super) fn get(&self, state: u64) -> Option<&Histories> {
        self.histories.get(&state)
    }

    /// Forgets all states.
    pub(super) fn forget(&mut self) {
        (self.numbers, self.histories, self.current) = Default::default();
    }

    /// Sets the current state; `None` if its number is not known.
    pub(super) fn set_current(&mut self, state: Option<u64>) {
        self.current = state;
    }
}

fn identity(entry: &HistoryEntry) -> (u8, u64, Option<OperatorId>) {
    let operator = if let HistoryEntry::Reduced(operator, _) = entry { Some(*operator) } else { None };
    let (kind, what) = entry.key();
    (kind, what, operator)
}
