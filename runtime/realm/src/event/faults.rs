//! Why events were poisoned: what a slot has no place for, and what outlives the slot's next uses.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::Event;
use crate::fault::{Fault, Forgotten};
use crate::locks::Mutex;

const SHARDS: usize = 16;

/// So many of the last poisoned events have their own fault. Of those before them it is known for ever that they were
/// poisoned, which takes some 32 bytes each.
pub(crate) const KEPT: usize = 1 << 17;

/// The faults of poisoned events, and those that have reached pending ones.
pub(crate) struct Faults {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    forgotten: OnceLock<Arc<Fault>>,
}

#[derive(Default)]
struct Shard {
    of_events: HashMap<Event, Arc<Fault>>,
    /// The triggered ones among them that have a fault of their own still, the oldest first.
    kept: VecDeque<Event>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| CachePadded::default()), forgotten: OnceLock::new() }
    }
}

impl Faults {
    fn shard(&self, event: Event) -> &Mutex<Shard> {
        &self.shards[event.slot() as usize % SHARDS]
    }

    /// Files why a pending event will be poisoned, unless that is known.
    pub(crate) fn file(&self, event: Event, fault: Arc<Fault>) {
        self.shard(event).lock().of_events.entry(event).or_insert(fault);
    }

    /// The fault of an event, if it was poisoned or will be.
    pub(crate) fn get(&self, event: Event) -> Option<Arc<Fault>> {
        self.shard(event).lock().of_events.get(&event).map(Arc::clone)
    }

    /// Whether an event was poisoned, or will be.
    pub(crate) fn has(&self, event: Event) -> bool {
        self.shard(event).lock().of_events.contains_key(&event)
    }

    /// The event has triggered, poisoned: from now on it counts among those that may be forgotten.
    #[cold]
    pub(crate) fn triggered(&self, event: Event) {
        let mut shard = self.shard(event).lock();
        shard.kept.push_back(event);
        if shard.kept.len() > KEPT / SHARDS
            && let Some(oldest) = shard.kept.pop_front()
        {
            let forgotten = self.forgotten.get_or_init(|| Arc::new(Fault::new(Forgotten)));
            let fault = shard.of_events.insert(oldest, Arc::clone(forgotten));
            drop(shard);
            // What it holds is somebody else's.
            drop(fault);
        }
    }
}
