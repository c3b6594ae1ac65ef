//! The state of the data of one region tree in one context, and the instances that hold that data.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};

use maniple_analysis::validity::{Events, Forgotten, Instance as _};
use maniple_realm::Event;
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_region::LogicalRegion;

use super::instance::{PhysicalInstance, USED_ONCE};
use super::table::InstanceTable;
use super::validity::{Instances, State};

/// The physical state of a region: of one that a task created, or of one that a task got from its parent and whose
/// parts it hands to its children. Siblings' states are separate; a virtually mapped task shares its parent's.
pub(crate) struct RegionState {
    data: Mutex<RegionData>,
    /// A worker will [let go](Self::release) of copies.
    release_is_due: AtomicBool,
}

/// The part of a [`RegionState`] that changes.
pub(crate) struct RegionData {
    /// The state that this is of.
    of: Weak<RegionState>,
    pub(crate) validity: State,
    pub(crate) table: InstanceTable,
    /// A trace is replayed that counts on what is known here.
    pub(crate) in_replay: bool,
    /// Another region had the name before, whose instances may still be in use: see [`begin_anew`](Self::begin_anew).
    pub(crate) is_renewed: bool,
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
        Arc::new_cyclic(|of| {
            let data = RegionData { of: Weak::clone(of), validity, table, in_replay: false, is_renewed: false };
            Self { data: Mutex::new(data), release_is_due: AtomicBool::new(false) }
        })
    }

    /// Notes that copies may be let go of. Whether the caller has to see to that, as no other does.
    pub(crate) fn release_is_due(&self) -> bool {
        !self.release_is_due.swap(true, Ordering::AcqRel)
    }

    /// Lets go of copies that are kept while they are used alone, and are not, unless they have to stay for now.
    pub(crate) fn release(&self, events: &impl Events<Event>, may: impl FnOnce() -> bool) {
        // What ends from here on is seen to by another.
        self.release_is_due.store(false, Ordering::Release);
        let mut data = self.lock();
        if !data.in_replay && may() {
            let is_used_once = |instance: &PhysicalInstance| instance.rank() == USED_ONCE && !instance.is_attached();
            data.validity.forget_copies(is_used_once, events);
            data.table.collect();
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RegionData> {
        self.data.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, RegionData>> {
        self.data.try_lock()
    }
}

impl RegionData {
    /// Whether nothing can name the region any more: no handle is left, nor an operation in flight, nor anything else
    /// that was made with one. Then it will not be used again.
    pub(crate) fn is_nameless(&self) -> bool {
        let tree = self.validity.root().tree();
        // Nearly always it has a name, and need not be told apart from what is known of instances.
        if Arc::strong_count(tree) > 1 + self.table.at_most() {
            return false;
        }
        // Each instance knows the region that it was made for.
        let own = 1 + self.table.instances().filter(|instance| Arc::ptr_eq(instance.region().tree(), tree)).count();
        let is_nameless = Arc::strong_count(tree) == own;
        // What others did with their names comes before their letting go of them.
        fence(Ordering::Acquire);
        is_nameless
    }

    /// The region is destroyed, and another will have its name, which holds nothing yet. The memory goes as it does
    /// with other regions that are destroyed: when the operations that use it have ended.
    pub(crate) fn begin_anew(&mut self) {
        self.is_renewed = true;
        if !self.in_replay {
            self.table.forget_unheld();
        }
    }

    /// Forgets all data. Whether there were instances.
    fn forget_data(&mut self) -> bool {
        let any = self.table.instances().next().is_some();
        self.validity.forget();
        self.table = InstanceTable::default();
        any
    }

    /// Gives up all data if nothing can name the region any more. Whether there was any.
    pub(crate) fn give_up_if_nameless(&mut self) -> bool {
        !self.in_replay && self.validity.sink().is_none() && self.is_nameless() && self.forget_data()
    }

    /// Gives up an instance of this state as far as that loses no value that anything can name. Also tells how many
    /// sets were looked at.
    pub(crate) fn give_up(
        &mut self,
        instance: &Arc<PhysicalInstance>,
        events: &impl Events<Event>,
    ) -> (Forgotten, u64) {
        if self.in_replay {
            return (Forgotten::InUse, 0);
        }
        if self.give_up_if_nameless() {
            return (Forgotten::Gone, 0);
        }
        if instance.is_attached() {
            return (Forgotten::Needed, 0);
        }
        let mut visits = 0;
        if instance.holders() > 0 {
            let (forgotten, sets) = self.validity.forget_copies_in(instance, instance.region(), events);
            visits = sets;
            if instance.holders() > 0 {
                return (forgotten.max(Forgotten::Needed), visits);
            }
        }
        (if self.table.collect_one(instance) { Forgotten::Gone } else { Forgotten::InUse }, visits)
    }

    /// The state that this is of.
    pub(crate) fn state(&self) -> &Weak<RegionState> {
        &self.of
    }
}
