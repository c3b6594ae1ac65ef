//! Instances that can be given up when a memory is full, known before it is.
//!
//! Of each memory two lists are kept: instances that hold nothing, and instances that may hold only values which are
//! elsewhere too. An instance gets on a list when something happens to it that may make it so: a set drops its view of
//! it, or values are copied from it or to it. A search for room looks at these alone. An instance that is found to be
//! needed goes off the list, until something happens to it again; an instance that is only in use stays. So a memory
//! full of values that are needed is not searched over and over.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use maniple_mapper::InstanceId;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::MemoryId;

/// The lists of all memories.
pub(crate) struct Spares(Box<[Mutex<Lists>]>);

#[derive(Default)]
struct Lists {
    empty: BTreeMap<InstanceId, Spare>,
    copies: BTreeMap<InstanceId, Spare>,
}

/// Why an instance is on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It holds nothing.
    Empty,
    /// Its values may be elsewhere too.
    Copies,
}

/// An instance, as the lists know it.
pub(crate) trait Listed: Any + Send + Sync {
    /// How long its copies are kept: those of lower ranks go first.
    fn rank(&self) -> i64;
}

/// An instance that may be given up, with the state whose it is. The code that takes it off a list knows both by their
/// types.
#[derive(Clone)]
pub(crate) struct Spare {
    pub(crate) instance: Weak<dyn Listed>,
    pub(crate) state: Weak<dyn Any + Send + Sync>,
}

impl Why {
    /// A bit of its own.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Self::Empty => 1,
            Self::Copies => 2,
        }
    }
}

impl Lists {
    fn of(&mut self, why: Why) -> &mut BTreeMap<InstanceId, Spare> {
        match why {
            Why::Empty => &mut self.empty,
            Why::Copies => &mut self.copies,
        }
    }
}

impl Spares {
    /// Of so many memories, in which there is nothing yet.
    pub(crate) fn new(memories: usize) -> Arc<Self> {
        Arc::new(Self((0..memories).map(|_| Mutex::default()).collect()))
    }

    fn lists(&self, memory: MemoryId) -> &Mutex<Lists> {
        &self.0[memory.0 as usize]
    }

    pub(crate) fn insert(&self, memory: MemoryId, why: Why, id: InstanceId, spare: Spare) {
        self.lists(memory).lock().of(why).insert(id, spare);
    }

    /// Takes an instance off both lists.
    pub(crate) fn remove(&self, memory: MemoryId, id: InstanceId) {
        let mut lists = self.lists(memory).lock();
        [Why::Empty, Why::Copies].into_iter().for_each(|why| _ = lists.of(why).remove(&id));
    }

    /// Takes the next instance off a list, in the order of their numbers.
    pub(crate) fn take_after(
        &self,
        memory: MemoryId,
        why: Why,
        earlier: Option<InstanceId>,
    ) -> Option<(InstanceId, Spare)> {
        let mut lists = self.lists(memory).lock();
        let list = lists.of(why);
        let after = earlier.map_or(Bound::Unbounded, Bound::Excluded);
        let id = *list.range((after, Bound::Unbounded)).next()?.0;
        list.remove(&id).map(|spare| (id, spare))
    }

    /// The ranks of what may hold copies, lowest first.
    pub(crate) fn ranks(&self, memory: MemoryId) -> BTreeSet<i64> {
        let listed: Vec<_> = self.lists(memory).lock().copies.values().cloned().collect();
        // The last to know an instance takes it off the list, for which that must be free.
        listed.iter().filter_map(|spare| spare.instance.upgrade()).map(|instance| instance.rank()).collect()
    }
}
