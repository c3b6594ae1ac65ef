//! Parcels that have arrived, and who waits for which.
//!
//! Nodes run the same program at different speeds: a parcel may come before anybody here knows that it is needed, or long after.

use std::sync::Arc;

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::graph::{Gate, WeakGate};
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_realm::profile::{OperationId, Profiler, Record};
use maniple_realm::{Event, Realm, UserEvent};
use maniple_space::{AnyRect, Rect};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::failure::Failure;
use super::parcel::ParcelName;
use crate::future::{Origin, Results, Sources};

/// What has come.
pub(crate) type Delivery = Result<Bytes, Failure>;

/// A delivery, and which message has brought it, for a profile.
struct Arrived {
    delivery: Delivery,
    message: OperationId,
}

/// Parcels that an operation waits for.
pub(crate) struct Awaited {
    parcels: Mutex<Parcels>,
    /// What a profile calls that all have come.
    all_have_come: OperationId,
}

/// What has come of them. Under one lock: of most there is one, which comes, opens a gate, and is taken.
struct Parcels {
    deliveries: SmallVec<[Option<Arrived>; 1]>,
    /// One more than how many are to come, so that it is not complete before all are looked at.
    missing: usize,
    waiting: Waiting,
}

/// Who waits until all parcels have come.
enum Waiting {
    /// Whoever wants an event, and launches that are replayed, which need none.
    For(Option<UserEvent>, SmallVec<[WeakGate; 1]>),
    Complete,
    /// Nothing comes any more.
    Never,
}

impl Awaited {
    pub(crate) fn new(parcels: usize, realm: &Realm) -> Arc<Self> {
        let deliveries = (0..parcels).map(|_| None).collect();
        let waiting = Waiting::For(None, SmallVec::new());
        let parcels = Mutex::new(Parcels { deliveries, missing: parcels + 1, waiting });
        Arc::new(Self { parcels, all_have_come: name_in_profile(realm) })
    }

    /// Makes it that of other parcels, as many: for one who knows that nobody waits for these.
    pub(crate) fn renew(&mut self, realm: &Realm) {
        self.all_have_come = name_in_profile(realm);
        let Parcels { deliveries, missing, waiting } = self.parcels.get_mut();
        (*missing, *waiting) = (deliveries.len() + 1, Waiting::For(None, SmallVec::new()));
        deliveries.iter_mut().for_each(|delivery| *delivery = None);
    }

    /// Takes one of them, once all have come: whoever waited may be kept for long, and the bytes are many. Whoever takes it is at work for whom it is.
    pub(crate) fn take(&self, number: usize, realm: &Realm) -> Option<Delivery> {
        let Arrived { delivery, message } = self.parcels.lock().deliveries.get_mut(number)?.take()?;
        if let Some(profiler) = realm.profiler() {
            profiler.came_after(profiler.current(), [message]);
        }
        Some(delivery)
    }

    /// What a profile calls that all have come.
    pub(crate) fn all_have_come(&self) -> OperationId {
        self.all_have_come
    }

    /// Triggers when all have come, whatever they bring.
    pub(crate) fn complete(&self, realm: &Realm) -> Event {
        match &mut self.parcels.lock().waiting {
            Waiting::For(event, _) => event.get_or_insert_with(|| realm.user_event()).event(),
            Waiting::Complete => Event::NONE,
            // As if somebody waited: what the realm discards in the end is told why.
            Waiting::Never => realm.user_event().event(),
        }
    }

    /// For launches that wait for them as for results of others.
    pub(crate) fn results(&self, realm: &Realm) -> Arc<Results> {
        let one = AnyRect::from(Rect::<1>::from(0..1));
        Results::from_afar(realm, (Origin::BuiltIn("parcel"), one), self.complete(realm), Sources::new())
    }

    /// Opens a gate when all have come. No event is made for that, and nothing else by which the launch could be asked for its end meanwhile.
    pub(crate) fn open(&self, gate: &Gate<'_>, realm: &Realm) {
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

    /// One fewer is to come, or all were looked at.
    fn one_less(&self, mut parcels: MutexGuard<'_, Parcels>, realm: &Realm) {
        parcels.missing -= 1;
        if parcels.missing > 0 {
            return;
        }
        let (event, gates) = parcels.end_as(Waiting::Complete);
        drop(parcels);
        if let Some(profiler) = realm.profiler() {
            let (event, by, time) = (self.all_have_come, profiler.current(), profiler.now_ns());
            profiler.record(Record::Triggered { event, by, time });
        }
        gates.iter().for_each(|gate| gate.with(|gate| gate.open()));
        event.into_iter().for_each(|event| realm.trigger(event));
    }

    /// Nothing comes any more. What waits for the event is discarded with the realm.
    fn give_up(&self, realm: &Realm) {
        let (_, gates) = self.parcels.lock().end_as(Waiting::Never);
        fail(gates, realm);
    }
}

impl Parcels {
    /// Nobody waits any more. Gives who did.
    fn end_as(&mut self, end: Waiting) -> (Option<UserEvent>, SmallVec<[WeakGate; 1]>) {
        let before = std::mem::replace(&mut self.waiting, end);
        if let Waiting::For(event, gates) = before { (event, gates) } else { Default::default() }
    }
}

/// What a profile calls something that is about to be waited for, if one is kept.
fn name_in_profile(realm: &Realm) -> OperationId {
    realm.profiler().map_or(OperationId::NONE, |profiler| profiler.new_operations(1))
}

/// What is replayed and cannot run any more must end, if only with a failure, as it keeps its context.
fn fail(gates: impl IntoIterator<Item = WeakGate>, realm: &Realm) {
    let Some(fault) = realm.breakdown() else { return };
    gates.into_iter().for_each(|later| later.with(|gate| gate.fail(fault)));
}

enum Slot {
    Arrived(Arrived),
    Expected(Arc<Awaited>, usize),
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Slots>);

/// A parcel, and from where.
type Key = (Rank, ParcelName);

/// What is kept of parcels that have arrived or are waited for: of most of them in the place that their numbers say, of those for which this is taken elsewhere.
struct Slots {
    places: Box<[Option<(Key, Slot)>]>,
    others: FxHashMap<Key, Slot>,
}

/// More operations than a program is usually ahead have places of their own,
const OPERATIONS: usize = 128;

/// each for so many parcels.
const PARCELS: usize = 2;

impl Default for Slots {
    fn default() -> Self {
        Self { places: (0..OPERATIONS * PARCELS).map(|_| None).collect(), others: FxHashMap::default() }
    }
}

impl Slots {
    fn place((from, name): &Key) -> usize {
        let parcel = from.wrapping_add(name.exchange as usize).wrapping_add(name.number as usize);
        (name.operation as usize % OPERATIONS) * PARCELS + parcel % PARCELS
    }

    #[inline]
    fn remove(&mut self, key: &Key) -> Option<Slot> {
        if let Some((_, slot)) = self.places[Self::place(key)].take_if(|(known, _)| known == key) {
            return Some(slot);
        }
        if self.others.is_empty() { None } else { self.others.remove(key) }
    }

    /// Keeps what was not there before.
    #[inline]
    fn insert(&mut self, key: Key, slot: Slot) {
        match &mut self.places[Self::place(&key)] {
            place @ None => *place = Some((key, slot)),
            Some(_) => _ = self.others.insert(key, slot),
        }
    }

    fn into_values(self) -> impl Iterator<Item = Slot> {
        self.places.into_vec().into_iter().flatten().map(|(_, slot)| slot).chain(self.others.into_values())
    }
}

impl Mailbox {
    /// Waits for parcels, as many as were said when `awaited` was made.
    pub(crate) fn expect(
        &self,
        awaited: &Arc<Awaited>,
        parcels: impl Iterator<Item = (Rank, ParcelName)>,
        realm: &Realm,
    ) {
        let mut slots = self.0.lock();
        for (number, parcel) in parcels.enumerate() {
            match slots.remove(&parcel) {
                Some(Slot::Arrived(arrived)) => awaited.deliver(number, arrived, realm),
                _ => slots.insert(parcel, Slot::Expected(Arc::clone(awaited), number)),
            }
        }
        drop(slots);
        awaited.one_less(awaited.parcels.lock(), realm);
    }

    /// Nothing comes any more.
    pub(crate) fn forget(&self, realm: &Realm) {
        let slots = std::mem::take(&mut *self.0.lock());
        for slot in slots.into_values() {
            if let Slot::Expected(awaited, _) = slot {
                awaited.give_up(realm);
            }
        }
    }

    /// How many parcels are awaited, or have come and were not taken.
    pub(crate) fn kept(&self) -> usize {
        let slots = self.0.lock();
        slots.places.iter().flatten().count() + slots.others.len()
    }

    /// A parcel has come, with the message that this thread is at work for. False if it has come before.
    #[must_use]
    pub(crate) fn arrive(&self, from: Rank, name: ParcelName, delivery: Delivery, realm: &Realm) -> bool {
        let message = realm.profiler().map_or(OperationId::NONE, Profiler::current);
        let arrived = Arrived { delivery, message };
        let mut slots = self.0.lock();
        match slots.remove(&(from, name)) {
            None => {
                slots.insert((from, name), Slot::Arrived(arrived));
                true
            }
            Some(Slot::Expected(awaited, number)) => {
                drop(slots);
                awaited.deliver(number, arrived, realm);
                true
            }
            Some(Slot::Arrived(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(number: u64) -> Slot {
        let bytes = Bytes::copy_from_slice(&number.to_le_bytes());
        Slot::Arrived(Arrived { delivery: Ok(bytes), message: OperationId::NONE })
    }

    fn number_of(slot: Option<Slot>) -> Option<u64> {
        let Slot::Arrived(Arrived { delivery: Ok(bytes), .. }) = slot? else {
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
