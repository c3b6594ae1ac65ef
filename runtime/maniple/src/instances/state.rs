//! What is known of the data of one region tree in one context, and the instances that hold it.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use maniple_analysis::validity::Events;
use maniple_realm::Event;
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_realm::machine::MemoryId;
use maniple_region::LogicalRegion;

use super::table::InstanceTable;
use super::validity::{Instances, State};

/// The physical state of a region: of one that a task created, or of one that a task got from its parent and whose parts it hands to
/// its children. Siblings' states are separate; a virtually mapped task shares its parent's.
pub(crate) struct RegionState {
    data: Mutex<RegionData>,
}

/// The part of a [`RegionState`] that changes.
pub(crate) struct RegionData {
    pub(crate) validity: State,
    pub(crate) table: InstanceTable,
    /// A trace is replayed that counts on what is known here.
    pub(crate) in_replay: bool,
}

impl RegionState {
    /// The state of a new region: every value is zero.
    pub(crate) fn fresh(root: LogicalRegion) -> Arc<Self> {
        Self::of(State::fresh(root), InstanceTable::default())
    }

    /// The state of a region whose current values are in instances that the task got, from `ready` on.
    pub(crate) fn inherited(root: LogicalRegion, instances: &Instances, ready: Event) -> Arc<Self> {
        let mut table = InstanceTable::default();
        instances.iter().for_each(|(fields, instance)| table.insert(instance, fields));
        Self::of(State::inherited(root, instances, ready), table)
    }

    /// The state of a region to which a task may only contribute, into instances that it got, from `ready` on.
    pub(crate) fn contributing(root: LogicalRegion, sink: Instances, ready: Event) -> Arc<Self> {
        Self::of(State::contributing(root, sink, ready), InstanceTable::default())
    }

    fn of(validity: State, table: InstanceTable) -> Arc<Self> {
        Arc::new(Self { data: Mutex::new(RegionData { validity, table, in_replay: false }) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RegionData> {
        self.data.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, RegionData>> {
        self.data.try_lock()
    }
}

impl RegionData {
    /// Whether nobody can name the region any more: no handle is left, nor an operation in flight, nor anything else that was made with one. Then it will
    /// not be used again.
    pub(crate) fn is_nameless(&self) -> bool {
        let tree = self.validity.root().tree();
        // Each instance knows the region that it was made for.
        let own = 1 + self.table.instances().filter(|instance| Arc::ptr_eq(instance.region().tree(), tree)).count();
        let is_nameless = Arc::strong_count(tree) == own;
        // What others did with their names comes before their letting go of them.
        fence(Ordering::Acquire);
        is_nameless
    }

    /// Forgets all data. Whether there were instances.
    fn forget_data(&mut self) -> bool {
        let any = self.table.instances().next().is_some();
        self.validity.forget();
        self.table = InstanceTable::default();
        any
    }

    /// Makes room in a memory as far as that loses no value that anybody can name: by forgetting instances that hold nothing, and if there are none, copies of what
    /// other instances hold too. Returns whether there was anything.
    pub(crate) fn make_room(&mut self, memory: MemoryId, events: &impl Events<Event>) -> bool {
        if self.in_replay {
            return false;
        }
        if self.validity.sink().is_none() && self.is_nameless() {
            return self.forget_data();
        }
        self.table.collect(Some(memory))
            || self.validity.forget_copies(|instance| instance.memory() == memory && !instance.is_attached(), events)
                && self.table.collect(Some(memory))
    }
}
