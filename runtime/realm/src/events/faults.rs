//! Why events were poisoned: what a slot has no place for, and what outlives the slot's next uses.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::Event;
use crate::fault::{Fault, Forgotten};
use crate::locks::Mutex;

const SHARDS: usize = 16;

/// So many of the last poisoned events have their own fault. Of those before them it is known for ever that they were
/// poisoned: see [`Generations`].
pub(crate) const KEPT: usize = 1 << 17;

/// The faults of poisoned events, and those that have reached pending ones.
pub(crate) struct Faults {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    forgotten: OnceLock<Arc<Fault>>,
}

#[derive(Default)]
struct Shard {
    of_events: HashMap<Event, Arc<Fault>>,
    /// The triggered ones among them, the oldest first.
    kept: VecDeque<Event>,
    /// Generations of events that were poisoned before the kept ones, by slot.
    forgotten: HashMap<u32, Generations>,
}

/// Generations of one slot: a bit each, in blocks of 32, of which those without any are left out. A program that fails
/// again and again uses the same few slots, so this takes less than a byte for each poisoned event, and 8 bytes at
/// most.
#[derive(Default)]
struct Generations {
    /// The number of each block, which rises, and its bits.
    blocks: Vec<(u32, u32)>,
}

impl Generations {
    fn insert(&mut self, generation: u32) {
        let (block, bit) = Self::place(generation);
        // Nearly always the last one, or a new one behind it: the events of a slot trigger one after the other.
        match self.blocks.last_mut() {
            Some((last, bits)) if *last == block => *bits |= bit,
            Some((last, _)) if *last > block => match self.find(block) {
                Ok(found) => self.blocks[found].1 |= bit,
                Err(place) => self.blocks.insert(place, (block, bit)),
            },
            _ => self.blocks.push((block, bit)),
        }
    }

    fn contains(&self, generation: u32) -> bool {
        let (block, bit) = Self::place(generation);
        self.find(block).is_ok_and(|found| self.blocks[found].1 & bit != 0)
    }

    fn find(&self, block: u32) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&block, |&(number, _)| number)
    }

    fn place(generation: u32) -> (u32, u32) {
        (generation / u32::BITS, 1 << (generation % u32::BITS))
    }
}

impl Shard {
    fn is_forgotten(&self, event: Event) -> bool {
        self.forgotten.get(&event.slot()).is_some_and(|generations| generations.contains(event.generation()))
    }
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
        let shard = self.shard(event).lock();
        match shard.of_events.get(&event) {
            Some(fault) => Some(Arc::clone(fault)),
            None => shard.is_forgotten(event).then(|| self.forgotten()),
        }
    }

    /// The fault of events that were poisoned long ago.
    fn forgotten(&self) -> Arc<Fault> {
        Arc::clone(self.forgotten.get_or_init(|| Arc::new(Fault::new(Forgotten))))
    }

    /// Whether an event was poisoned, or will be.
    pub(crate) fn has(&self, event: Event) -> bool {
        let shard = self.shard(event).lock();
        shard.of_events.contains_key(&event) || shard.is_forgotten(event)
    }

    /// The event has triggered, poisoned: from now on it counts among those that may be forgotten.
    #[cold]
    pub(crate) fn triggered(&self, event: Event) {
        let mut shard = self.shard(event).lock();
        shard.kept.push_back(event);
        if shard.kept.len() > KEPT / SHARDS
            && let Some(oldest) = shard.kept.pop_front()
        {
            shard.forgotten.entry(oldest.slot()).or_default().insert(oldest.generation());
            let fault = shard.of_events.remove(&oldest);
            drop(shard);
            // What it holds is another's.
            drop(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Abandoned;

    /// Poisons events of a few slots, each with other events in between, and gives them.
    fn poison(faults: &Faults, events: impl Iterator<Item = (u32, u32)>) -> Vec<Event> {
        let poison = |(slot, generation)| {
            let event = Event::new(slot, generation);
            faults.file(event, Arc::new(Fault::new(Abandoned)));
            faults.triggered(event);
            event
        };
        events.map(poison).collect()
    }

    fn is_forgotten(fault: &Fault) -> bool {
        fault.downcast_ref::<Forgotten>().is_some()
    }

    #[test]
    fn which_events_were_poisoned_is_known_for_ever_and_why_of_the_last() {
        let faults = Faults::default();
        let generations = |slot| move |turn| (slot, 1 + turn * (1 + slot % 7));
        let events = poison(&faults, (0..40_000).flat_map(|turn| (1..17).map(move |slot| generations(slot)(turn))));
        let (old, recent) = events.split_at(events.len() - KEPT);
        assert!(old.iter().all(|&event| faults.has(event) && is_forgotten(&faults.get(event).unwrap())));
        assert!(recent.iter().all(|&event| !is_forgotten(&faults.get(event).unwrap())));
        // Every second event of slot 1, whose generations are apart by two.
        assert!((0..40_000).all(|turn| faults.get(Event::new(1, 2 + 2 * turn)).is_none()));
        assert!((0..40_000).all(|turn| !faults.has(Event::new(1, 2 + 2 * turn))));
    }

    #[test]
    fn what_was_poisoned_long_ago_takes_a_fraction_of_a_byte_each() {
        let faults = Faults::default();
        let events = poison(&faults, (0..100_000).flat_map(|turn| (1..17).map(move |slot| (slot, 1 + 3 * turn))));
        let bytes: usize = faults.shards.iter().map(|shard| shard.lock().bytes_of_forgotten()).sum();
        let forgotten = events.len() - KEPT;
        assert!(bytes <= forgotten, "{bytes} bytes for {forgotten} poisoned events");
        let known: usize = faults.shards.iter().map(|shard| shard.lock().of_events.len()).sum();
        assert_eq!(known, KEPT);
    }

    impl Shard {
        fn bytes_of_forgotten(&self) -> usize {
            self.forgotten.values().map(|slot| slot.blocks.len() * size_of::<(u32, u32)>()).sum()
        }
    }

    #[test]
    fn generations_may_come_in_any_order() {
        let mut generations = Generations::default();
        let inserted = [900, 3, 35, 4, 901, 36];
        inserted.into_iter().for_each(|generation| generations.insert(generation));
        assert!((0..1000).all(|generation| generations.contains(generation) == inserted.contains(&generation)));
    }
}
