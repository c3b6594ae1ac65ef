//! The store that all region states of a runtime share.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use maniple_analysis::validity::{Events, Forgotten, Instance as _};
use maniple_mapper::{InstanceId, Keep};
use maniple_realm::instance::{Instance, InstanceError};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::{Machine, MemoryId};
use maniple_realm::memory::OutOfMemory;
use maniple_realm::transfer::{Transfer, TransferError};
use maniple_realm::{After, Class, Event, EventStatus, Fault, Realm, Spawn};
use maniple_record as record;
use maniple_region::{FieldMask, Forest, LogicalRegion, OperatorId, TreeId};

use super::instance::{Backing, NewInstance, PhysicalInstance};
use super::loads::Loads;
use super::manner::Manner;
use super::recordings::Recordings;
use super::spares::{Spares, Why};
use super::state::{RegionData, RegionState};
use super::validity::{self, Preconditions};
use crate::support::error::Error;
use crate::support::recorder::Recorder;
use crate::support::statistics::{Counters, MemoryStatistics};

/// The machine with the instances in its memories, and what is counted and recorded of their use.
pub(crate) struct Store {
    pub(crate) realm: Realm,
    pub(crate) forest: Arc<Forest>,
    next_instance: AtomicU64,
    /// All region states, to find instances that are not needed when a memory is full.
    states: Mutex<Vec<Weak<RegionState>>>,
    /// Caches that remember instances, besides the region states.
    caches: Mutex<Vec<Weak<dyn Cache>>>,
    pub(crate) counters: Counters,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) recordings: Recordings,
    has_ranks: AtomicBool,
    spares: Arc<Spares>,
    /// Searches for room since all states were looked at for such that nothing can name.
    searches: AtomicUsize,
    pub(crate) loads: Loads,
}

/// Something that remembers instances, or the regions that they are of, and can find them out anew.
pub(crate) trait Cache: Send + Sync {
    /// Forgets what it remembers to some extent. Returns whether there was anything to forget.
    fn discard(&self, extent: Discard) -> bool;

    /// Forgets instances of a region tree: there is another one, or one less.
    fn discard_of(&self, tree: TreeId);
}

/// The part of its contents that a [`Cache`] forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discard {
    /// Instances.
    Instances,
    /// Everything, the names of regions too.
    Everything,
}

/// So few states or caches are not swept.
const FEW: usize = 64;

/// Adds to a list; those that have been dropped are swept out when its length has doubled.
fn remember<T: ?Sized>(list: &Mutex<Vec<Weak<T>>>, new: Weak<T>) {
    let mut list = list.lock();
    if list.len() >= FEW && list.len().is_power_of_two() {
        list.retain(|known| known.strong_count() > 0);
    }
    list.push(new);
}

fn alive<T: ?Sized>(list: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    list.lock().iter().filter_map(Weak::upgrade).collect()
}

impl Store {
    /// Of a machine that has no instances yet.
    pub(crate) fn new(realm: Realm, recorder: Option<Arc<Recorder>>) -> Self {
        Self {
            loads: Loads::new(realm.machine()),
            spares: Spares::new(realm.machine().memories().len()),
            searches: AtomicUsize::new(0),
            realm,
            forest: Forest::new(),
            next_instance: AtomicU64::new(0),
            states: Mutex::default(),
            caches: Mutex::default(),
            counters: Counters::default(),
            recorder,
            recordings: Recordings::default(),
            has_ranks: AtomicBool::new(false),
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.realm.machine()
    }

    /// How much of each memory is used.
    pub(crate) fn memories(&self) -> Vec<MemoryStatistics> {
        let of = |memory: MemoryId| {
            let (used, peak, capacity) = self.realm.memory_pool(memory).usage();
            MemoryStatistics { memory, used, peak, capacity }
        };
        self.machine().memories().iter().map(|memory| of(memory.id)).collect()
    }

    /// Counts peaks from now on.
    pub(crate) fn reset_peaks(&self) {
        self.machine().memories().iter().for_each(|memory| self.realm.memory_pool(memory.id).reset_peak());
    }

    /// Whether ended uses are forgotten: not while a record is kept, or a trace recorded, which want to see them.
    #[inline]
    pub(crate) fn prunes(&self) -> bool {
        self.recorder.is_none() && !self.recordings.are_under_way()
    }

    /// Remembers a region state.
    pub(crate) fn register(&self, state: &Arc<RegionState>) {
        remember(&self.states, Arc::downgrade(state));
    }

    /// Remembers a cache.
    pub(crate) fn register_cache(&self, cache: Weak<dyn Cache>) {
        remember(&self.caches, cache);
    }

    /// Has caches forget instances; if none remembers any, everything: regions that only they can name stay for their
    /// sake. Returns whether there was anything to forget.
    pub(crate) fn discard_caches(&self) -> bool {
        let caches = alive(&self.caches);
        let discard = |extent| caches.iter().filter(|cache| cache.discard(extent)).count() > 0;
        discard(Discard::Instances) || discard(Discard::Everything)
    }

    /// Has caches forget instances of a region tree, so that mappers are asked again: there is another one, or one
    /// less.
    pub(crate) fn forget_decisions(&self, tree: TreeId) {
        for cache in alive(&self.caches) {
            cache.discard_of(tree);
        }
    }

    /// Makes room in a memory, in all region states but those that are being worked on, by giving up instances of up to
    /// a rank. Whether there was one.
    pub(crate) fn make_room(&self, memory: MemoryId, rank: i64) -> bool {
        self.give_up_one(memory, rank, None) || self.give_up_nameless()
    }

    /// The same for a caller that works on one of the states. Copies of lower rank go first.
    pub(crate) fn make_room_for(&self, memory: MemoryId, own: &mut RegionData) -> bool {
        if self.give_up_one(memory, i64::MAX, Some(own)) {
            return true;
        }
        // Handles are dropped without a word, so that all states are looked at, if there are many only as often as
        // there are searches for a part of them.
        const FEW_STATES: usize = 64;
        let searches = self.searches.fetch_add(1, Ordering::Relaxed);
        let many = self.states.lock().len();
        if many > FEW_STATES && searches < many / FEW_STATES {
            return false;
        }
        own.give_up_if_nameless() || self.give_up_nameless()
    }

    /// Gives up the data of regions that nothing can name any more. Whether there were any.
    pub(crate) fn give_up_nameless(&self) -> bool {
        self.searches.store(0, Ordering::Relaxed);
        let nameless = |state: &Arc<RegionState>| state.try_lock().is_some_and(|mut data| data.give_up_if_nameless());
        alive(&self.states).iter().filter(|state| nameless(state)).count() > 0
    }

    /// Gives up one instance of up to a rank: one that holds nothing, or else a copy.
    fn give_up_one(&self, memory: MemoryId, most: i64, mut own: Option<&mut RegionData>) -> bool {
        let ranks = if self.has_ranks() { self.spares.ranks(memory) } else { BTreeSet::new() };
        let ranks = ranks.into_iter().filter(|rank| *rank < most).chain([most]);
        let searches = [(Why::Empty, i64::MAX)].into_iter().chain(ranks.map(|rank| (Why::Copies, rank)));
        searches.into_iter().any(|(why, rank)| {
            let mut last = None;
            while let Some((id, spare)) = self.spares.take_after(memory, why, last) {
                last = Some(id);
                let Some(listed) = spare.instance.upgrade() else { continue };
                let listed: Arc<dyn Any + Send + Sync> = listed;
                let Ok(instance) = listed.downcast::<PhysicalInstance>() else { continue };
                instance.is_listed_no_more(why);
                self.counters.room_visits.add(1);
                if why == Why::Empty && instance.holders() > 0 {
                    // Something was put into it since. Copies go by their ranks.
                    instance.list(Why::Copies);
                    continue;
                }
                let given_up = if why == Why::Copies && instance.rank() > rank {
                    Forgotten::InUse
                } else {
                    self.give_up(&instance, &spare.state, own.as_deref_mut())
                };
                match given_up {
                    Forgotten::Gone => return true,
                    Forgotten::InUse => instance.list(why),
                    Forgotten::Needed => {}
                }
            }
            false
        })
    }

    fn give_up(
        &self,
        instance: &Arc<PhysicalInstance>,
        state: &Weak<dyn Any + Send + Sync>,
        own: Option<&mut RegionData>,
    ) -> Forgotten {
        let one = |data: &mut RegionData| {
            let (forgotten, sets) = data.give_up(instance, self);
            self.counters.room_visits.add(sets);
            forgotten
        };
        match own {
            Some(own) if std::ptr::addr_eq(own.state().as_ptr(), state.as_ptr()) => one(own),
            // Without its state it goes when its users have ended.
            _ => state
                .upgrade()
                .and_then(|state| state.downcast::<RegionState>().ok())
                .map_or(Forgotten::Needed, |state| {
                    state.try_lock().map_or(Forgotten::InUse, |mut data| one(&mut data))
                }),
        }
    }

    /// A mapper says how long copies in some instances are kept.
    pub(crate) fn keep(&self, instances: &[(FieldMask, Arc<PhysicalInstance>)], keep: Keep) {
        let are_ranked = instances.iter().filter(|(_, instance)| instance.keep(keep)).count() > 0;
        if are_ranked && !self.has_ranks() {
            self.has_ranks.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a mapper has ever said that copies are kept longer, or less long, than others.
    pub(crate) fn has_ranks(&self) -> bool {
        self.has_ranks.load(Ordering::Relaxed)
    }

    pub(crate) fn new_instance(
        &self,
        storage: Arc<Instance>,
        ready: Event,
        region: LogicalRegion,
        fields: FieldMask,
        reduction: Option<OperatorId>,
    ) -> Arc<PhysicalInstance> {
        self.backed_instance(NewInstance { storage, ready, region, fields, reduction, backing: Backing::Own })
    }

    /// An instance in memory of the program's.
    pub(crate) fn attached_instance(
        &self,
        storage: Arc<Instance>,
        region: LogicalRegion,
        fields: FieldMask,
        backing: Backing,
    ) -> Arc<PhysicalInstance> {
        let (ready, reduction) = (Event::NONE, None);
        self.backed_instance(NewInstance { storage, ready, region, fields, reduction, backing })
    }

    fn backed_instance(&self, made: NewInstance) -> Arc<PhysicalInstance> {
        let id = InstanceId(self.next_instance.fetch_add(1, Ordering::Relaxed));
        self.counters.instances.add(1);
        let (realm, recorder, spares) = (self.realm.clone(), self.recorder.clone(), Arc::clone(&self.spares));
        let instance = PhysicalInstance::new(id, realm, recorder, spares, self.recordings.clone(), made);
        if let Some(recorder) = &self.recorder {
            let known = record::Instance {
                region: instance.region().clone(),
                fields: instance.fields().clone(),
                buffer: instance.reduction(),
            };
            recorder.instance(id, known);
        }
        instance
    }

    /// Has the machine carry out transfers after the preconditions.
    pub(crate) fn transfer(
        &self,
        transfers: impl IntoIterator<Item = Result<Transfer, TransferError>>,
        after: &Preconditions,
        Manner { priority, tag }: Manner,
    ) -> Event {
        match transfers.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(transfers) if transfers.is_empty() => self.own_handle(self.realm.merge(validity::after(after))),
            Ok(transfers) => {
                let spawn = Spawn { class: Class::Runtime, priority, tag, ..Spawn::after(validity::after(after)) };
                // SAFETY: the physical analysis orders every use of the fields and points concerned before or after
                // this one by the preconditions and by the event returned; fields have the types that the field space
                // says, in all instances.
                unsafe { self.realm.transfer(transfers, spawn) }
            }
            Err(error) => self.poisoned(Error::internal(error)),
        }
    }

    /// An event that has failed.
    pub(crate) fn poisoned(&self, error: Error) -> Event {
        let event = self.realm.user_event();
        self.realm.poison(event, Arc::<Fault>::from(error));
        event.event()
    }

    /// Gives back an instance whose memory is still to be freed.
    pub(crate) fn promised(&self, instance: &Arc<Instance>) -> InstanceError {
        // SAFETY: the instance was not given to any user.
        let given_back = unsafe { self.realm.destroy_instance(instance, After::NOTHING) };
        debug_assert!(given_back.is_ok(), "an instance is destroyed once: {given_back:?}");
        let memory = instance.memory();
        let pool = self.realm.memory_pool(memory);
        let (requested, used, capacity) = (instance.layout().bytes() as u64, pool.used(), pool.capacity());
        InstanceError::OutOfMemory(OutOfMemory {
            memory,
            requested,
            used,
            capacity,
            releasing: 0,
            deferred: pool.deferred(),
        })
    }
}

impl Events<Event> for Store {
    #[inline]
    fn has_ended(&self, event: Event) -> bool {
        self.realm.has_triggered(event)
    }

    fn has_succeeded(&self, event: Event) -> bool {
        matches!(self.realm.status(event), EventStatus::Triggered)
    }

    fn merge(&self, needed: &[Event]) -> Event {
        self.realm.merge(After::needs(needed))
    }
}
