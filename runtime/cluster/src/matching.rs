//! Matching of parcels that arrive with the operations that await them.
//!
//! Nodes run the same program at different speeds: a parcel may arrive before any operation here awaits it (MPI's
//! *unexpected message*), or long after.

use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::graph::{Gate, WeakGate};
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_realm::profile::{OperationId, Profiler, Record};
use maniple_realm::{Event, Realm, UserEvent};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::Failure;
use crate::names::{ParcelName, Rank};

/// The delivery of a parcel: its bytes, or the failure because of which there are none.
pub type Delivery = Result<Bytes, Failure>;

/// A delivery, and the message that has brought it, for a profile.
struct Arrived {
    delivery: Delivery,
    message: OperationId,
}

/// Parcels that one operation awaits.
pub struct ParcelFuture {
    parcels: Mutex<Parcels>,
    /// The event that all have arrived, in a profile.
    all_arrived: OperationId,
}

/// The parcels of a future that have arrived. Under one lock: most futures have one parcel, which arrives, opens a
/// gate, and is taken.
struct Parcels {
    deliveries: SmallVec<[Option<Arrived>; 1]>,
    /// One more than how many are to arrive, so that the future is not complete before all were looked at.
    missing: usize,
    waiting: Waiting,
}

/// The event and the gates that wait until all parcels have arrived.
enum Waiting {
    /// An event, if one was asked for, and the gates of graphs, which need none.
    For(Option<UserEvent>, SmallVec<[WeakGate; 1]>),
    Complete,
    /// Nothing arrives any more.
    Never,
}

impl ParcelFuture {
    /// Of so many parcels: see [`Job::expect`](crate::Job::expect).
    #[must_use]
    pub fn new(parcels: usize, realm: &Realm) -> Arc<Self> {
        let deliveries = (0..parcels).map(|_| None).collect();
        let waiting = Waiting::For(None, SmallVec::new());
        let parcels = Mutex::new(Parcels { deliveries, missing: parcels + 1, waiting });
        Arc::new(Self { parcels, all_arrived: name_in_profile(realm) })
    }

    /// Uses it again for as many other parcels, once nothing waits for these.
    pub fn renew(&mut self, realm: &Realm) {
        self.all_arrived = name_in_profile(realm);
        let Parcels { deliveries, missing, waiting } = self.parcels.get_mut();
        (*missing, *waiting) = (deliveries.len() + 1, Waiting::For(None, SmallVec::new()));
        deliveries.iter_mut().for_each(|delivery| *delivery = None);
    }

    /// Takes what one of them brings, once all have arrived: the future may be kept for long, and the bytes are many.
    /// In a profile, what the thread is at work for comes after the message.
    pub fn take(&self, number: usize, realm: &Realm) -> Option<Delivery> {
        let Arrived { delivery, message } = self.parcels.lock().deliveries.get_mut(number)?.take()?;
        if let Some(profiler) = realm.profiler() {
            profiler.came_after(profiler.current(), [message]);
        }
        Some(delivery)
    }

    /// The event that all have arrived, in a profile.
    #[must_use]
    pub fn all_arrived(&self) -> OperationId {
        self.all_arrived
    }

    /// Triggers when all have arrived, whatever they bring.
    pub fn complete(&self, realm: &Realm) -> Event {
        match &mut self.parcels.lock().waiting {
            Waiting::For(event, _) => event.get_or_insert_with(|| realm.user_event()).event(),
            Waiting::Complete => Event::NONE,
            // Discarded with the realm, which gives the reason.
            Waiting::Never => realm.user_event().event(),
        }
    }

    /// Opens a gate when all have arrived. That needs no event.
    pub fn open(&self, gate: &Gate<'_>, realm: &Realm) {
        let mut parcels = self.parcels.lock();
        match &mut parcels.waiting {
            Waiting::For(_, gates) => return gates.push(gate.downgrade()),
            Waiting::Complete => {}
            Waiting::Never => {
                drop(parcels);
                return fail([gate.downgrade()], realm);
            }
        }
        drop(parcels);
        gate.open();
    }

    fn deliver(&self, number: usize, arrived: Arrived, realm: &Realm) {
        let mut parcels = self.parcels.lock();
        parcels.deliveries[number] = Some(arrived);
        self.one_less(parcels, realm);
    }

    /// One fewer is to arrive, or all were looked at.
    fn one_less(&self, mut parcels: MutexGuard<'_, Parcels>, realm: &Realm) {
        parcels.missing -= 1;
        if parcels.missing > 0 {
            return;
        }
        let (event, gates) = parcels.end_as(Waiting::Complete);
        drop(parcels);
        if let Some(profiler) = realm.profiler() {
            let (event, by, time) = (self.all_arrived, profiler.current(), profiler.now_ns());
            profiler.record(Record::Triggered { event, by, time });
        }
        gates.iter().for_each(|gate| gate.with(|gate| gate.open()));
        event.into_iter().for_each(|event| realm.trigger(event));
    }

    /// Nothing arrives any more. What waits for the event is discarded with the realm.
    fn give_up(&self, realm: &Realm) {
        let (_, gates) = self.parcels.lock().end_as(Waiting::Never);
        fail(gates, realm);
    }
}

impl Parcels {
    /// Nothing waits any more. Gives what did.
    fn end_as(&mut self, end: Waiting) -> (Option<UserEvent>, SmallVec<[WeakGate; 1]>) {
        let before = std::mem::replace(&mut self.waiting, end);
        if let Waiting::For(event, gates) = before { (event, gates) } else { Default::default() }
    }
}

/// A name in the profile for an event that is about to be awaited, if a profile is kept.
fn name_in_profile(realm: &Realm) -> OperationId {
    realm.profiler().map_or(OperationId::NONE, |profiler| profiler.new_operations(1))
}

/// A stage that cannot run any more must end, if only with a failure, as it keeps what it works for.
fn fail(gates: impl IntoIterator<Item = WeakGate>, realm: &Realm) {
    let Some(fault) = realm.breakdown() else { return };
    gates.into_iter().for_each(|later| later.with(|gate| gate.fail(fault)));
}

enum MatchingSlot {
    Arrived(Arrived),
    Expected(Arc<ParcelFuture>, usize),
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Matching(Mutex<Slots>);

/// A parcel, and from where.
type Key = (Rank, ParcelName);

/// Parcels that have arrived or are awaited: most of them in the place that follows from their numbers, those for which
/// it is taken in a map.
struct Slots {
    places: Box<[Option<(Key, MatchingSlot)>]>,
    others: FxHashMap<Key, MatchingSlot>,
}

/// Operations that have places of their own: more than a program is usually ahead of another node.
const OPERATIONS: usize = 128;

/// Places of an operation.
const PARCELS: usize = 2;

impl Default for Slots {
    fn default() -> Self {
        Self { places: (0..OPERATIONS * PARCELS).map(|_| None).collect(), others: FxHashMap::default() }
    }
}

impl Slots {
    fn place(from: Rank, name: ParcelName) -> usize {
        let parcel = from.wrapping_add(name.exchange as usize).wrapping_add(name.number as usize);
        (name.operation as usize % OPERATIONS) * PARCELS + parcel % PARCELS
    }

    #[inline]
    fn remove(&mut self, key: &Key) -> Option<MatchingSlot> {
        let (from, name) = *key;
        if let Some((_, slot)) = self.places[Self::place(from, name)].take_if(|(known, _)| known == key) {
            return Some(slot);
        }
        if self.others.is_empty() { None } else { self.others.remove(key) }
    }

    /// Keeps what was not there before.
    #[inline]
    fn insert(&mut self, key: Key, slot: MatchingSlot) {
        let (from, name) = key;
        match &mut self.places[Self::place(from, name)] {
            place @ None => *place = Some((key, slot)),
            Some(_) => _ = self.others.insert(key, slot),
        }
    }

    fn into_values(self) -> impl Iterator<Item = MatchingSlot> {
        self.places.into_vec().into_iter().flatten().map(|(_, slot)| slot).chain(self.others.into_values())
    }
}

impl Matching {
    /// Has a future await these parcels, as many as it was [made](ParcelFuture::new) for.
    pub(crate) fn expect(
        &self,
        awaited: &Arc<ParcelFuture>,
        parcels: impl Iterator<Item = (Rank, ParcelName)>,
        realm: &Realm,
    ) {
        let mut slots = self.0.lock();
        for (number, parcel) in parcels.enumerate() {
            match slots.remove(&parcel) {
                Some(MatchingSlot::Arrived(arrived)) => awaited.deliver(number, arrived, realm),
                _ => slots.insert(parcel, MatchingSlot::Expected(Arc::clone(awaited), number)),
            }
        }
        drop(slots);
        awaited.one_less(awaited.parcels.lock(), realm);
    }

    /// Nothing arrives any more.
    pub(crate) fn forget(&self, realm: &Realm) {
        let slots = std::mem::take(&mut *self.0.lock());
        for slot in slots.into_values() {
            if let MatchingSlot::Expected(awaited, _) = slot {
                awaited.give_up(realm);
            }
        }
    }

    /// How many parcels are awaited, or have arrived and are not awaited yet.
    pub(crate) fn kept(&self) -> usize {
        let slots = self.0.lock();
        slots.places.iter().flatten().count() + slots.others.len()
    }

    /// A parcel has arrived, by the message that this thread is at work for. False if one of the name has arrived
    /// before.
    #[must_use]
    pub(crate) fn arrive(&self, from: Rank, name: ParcelName, delivery: Delivery, realm: &Realm) -> bool {
        let message = realm.profiler().map_or(OperationId::NONE, Profiler::current);
        let arrived = Arrived { delivery, message };
        let mut slots = self.0.lock();
        match slots.remove(&(from, name)) {
            None => {
                slots.insert((from, name), MatchingSlot::Arrived(arrived));
                true
            }
            Some(MatchingSlot::Expected(awaited, number)) => {
                drop(slots);
                awaited.deliver(number, arrived, realm);
                true
            }
            Some(MatchingSlot::Arrived(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(number: u64) -> MatchingSlot {
        let bytes = Bytes::copy_from_slice(&number.to_le_bytes());
        MatchingSlot::Arrived(Arrived { delivery: Ok(bytes), message: OperationId::NONE })
    }

    fn number_of(slot: Option<MatchingSlot>) -> Option<u64> {
        let MatchingSlot::Arrived(Arrived { delivery: Ok(bytes), .. }) = slot? else {
            panic!("only parcels were put in place")
        };
        Some(u64::from_le_bytes(bytes[..].try_into().expect("eight bytes were put in place")))
    }

    #[test]
    fn slots_are_found_under_their_own_names_whichever_share_a_place() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut slots, mut model) = (Slots::default(), FxHashMap::default());
        let mut elsewhere = 0;
        for number in 0..20_000 {
            // So few names that most are there at one time or another, and so far apart that several share a place.
            let operation = random.u64(..4) * OPERATIONS as u64 + random.u64(..3);
            let name = ParcelName { operation, exchange: random.u32(..2), number: random.u32(..2) };
            let key = (random.usize(..2), name);
            assert_eq!(number_of(slots.remove(&key)), model.remove(&key), "{key:?}");
            if random.bool() {
                slots.insert(key, parcel(number));
                model.insert(key, number);
            }
            elsewhere = elsewhere.max(slots.others.len());
        }
        assert!(elsewhere > 10, "some had to go elsewhere");
        let mut left: Vec<_> = slots.into_values().filter_map(|slot| number_of(Some(slot))).collect();
        let mut expected: Vec<_> = model.into_values().collect();
        left.sort_unstable();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
