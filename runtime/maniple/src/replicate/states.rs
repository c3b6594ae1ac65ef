//! States that the coherence of a region tree was in before, by number. A program that repeats itself goes through the same ones over and over, so what it
//! does in them is found out once.

use maniple_region::{FieldMask, OperatorId};
use rustc_hash::FxHashMap;

use super::coherence::{Entry, Story};

/// What happened to all fields.
pub(super) type Stories = Vec<(FieldMask, Story)>;

/// What stories are, for telling whether they are the same.
type Key = Vec<(FieldMask, Vec<(u8, u64, Option<OperatorId>)>)>;

/// States by number, and which is the current one.
#[derive(Default)]
pub(super) struct States {
    numbers: FxHashMap<Key, u64>,
    stories: FxHashMap<u64, Stories>,
    /// Numbers are never given again: what is remembered elsewhere of a state that is forgotten here is of no use, and does no harm.
    next: u64,
    /// Unless something has happened since.
    current: Option<u64>,
}

/// So many states are remembered.
const MOST_STATES: usize = 1 << 10;

impl States {
    /// The current state, if it is known which that is.
    pub(super) fn current(&self) -> Option<u64> {
        self.current
    }

    /// The number of a state, which is the current one.
    pub(super) fn enter(&mut self, stories: &Stories) -> u64 {
        let key: Key =
            stories.iter().map(|(fields, story)| (fields.clone(), story.iter().map(identity).collect())).collect();
        let number = match self.numbers.get(&key) {
            Some(&known) => known,
            None => {
                if self.numbers.len() >= MOST_STATES {
                    (self.numbers, self.stories) = Default::default();
                }
                let number = self.next;
                self.next += 1;
                self.numbers.insert(key, number);
                self.stories.insert(number, stories.clone());
                number
            }
        };
        self.current = Some(number);
        number
    }

    /// The stories of a state, unless they have been forgotten.
    pub(super) fn get(&self, state: u64) -> Option<&Stories> {
        self.stories.get(&state)
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        (self.numbers, self.stories, self.current) = Default::default();
    }

    /// Another state is the current one, or something has happened of which it is not known where it leads.
    pub(super) fn set_current(&mut self, state: Option<u64>) {
        self.current = state;
    }
}

fn identity(entry: &Entry) -> (u8, u64, Option<OperatorId>) {
    let operator = if let Entry::Reduced(operator, _) = entry { Some(*operator) } else { None };
    let (kind, what) = entry.key();
    (kind, what, operator)
}
