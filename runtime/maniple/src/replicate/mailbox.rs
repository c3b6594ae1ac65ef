//! Parcels that have arrived, and who waits for which.
//!
//! Nodes run the same program at different speeds: a parcel may come before anybody here knows that it is needed, or long after.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_realm::{Realm, UserEvent};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::failure::Failure;
use super::layout::Rank;
use crate::once::Once;

/// Which parcel: what the nodes that know of it call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ParcelName {
    /// The operation of the program for which it is sent.
    pub(crate) operation: u64,
    /// The exchange before that operation.
    pub(crate) exchange: u32,
    /// Its number among those of the exchange from the same node to the same other one.
    pub(crate) number: u32,
}

/// What has come.
pub(crate) type Delivery = Result<Bytes, Failure>;

/// Parcels that an operation waits for.
pub(crate) struct Awaited {
    deliveries: Box<[Once<Delivery>]>,
    missing: AtomicUsize,
    realm: Realm,
    /// Triggers when all have come.
    complete: UserEvent,
}

impl Awaited {
    /// One of them, once all have come.
    pub(crate) fn delivery(&self, number: usize) -> Option<&Delivery> {
        self.deliveries.get(number)?.get()
    }

    fn deliver(&self, number: usize, delivery: Delivery) {
        self.deliveries[number].set(delivery);
        self.one_less();
    }

    fn one_less(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.realm.trigger(self.complete);
        }
    }
}

enum Slot {
    Arrived(Delivery),
    Expected(Arc<Awaited>, usize),
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<FxHashMap<(Rank, ParcelName), Slot>>);

impl Mailbox {
    /// Waits for parcels: an event that triggers when all have come, whatever they bring.
    pub(crate) fn expect(&self, parcels: &[(Rank, ParcelName)], realm: &Realm) -> (Arc<Awaited>, UserEvent) {
        let complete = realm.user_event();
        let awaited = Arc::new(Awaited {
            deliveries: parcels.iter().map(|_| Once::new()).collect(),
            // One more, so that it is not complete before all are looked at.
            missing: AtomicUsize::new(parcels.len() + 1),
            realm: realm.clone(),
            complete,
        });
        let mut slots = self.0.lock();
        for (number, parcel) in parcels.iter().enumerate() {
            match slots.remove(parcel) {
                Some(Slot::Arrived(delivery)) => awaited.deliver(number, delivery),
                _ => {
                    slots.insert(*parcel, Slot::Expected(Arc::clone(&awaited), number));
                }
            }
        }
        drop(slots);
        awaited.one_less();
        (awaited, complete)
    }

    /// Nothing comes any more.
    pub(crate) fn forget(&self) {
        let slots = std::mem::take(&mut *self.0.lock());
        drop(slots);
    }

    /// A parcel has come. False if it has come before.
    #[must_use]
    pub(crate) fn arrive(&self, from: Rank, name: ParcelName, delivery: Delivery) -> bool {
        let mut slots = self.0.lock();
        match slots.remove(&(from, name)) {
            None => {
                slots.insert((from, name), Slot::Arrived(delivery));
                true
            }
            Some(Slot::Expected(awaited, number)) => {
                drop(slots);
                awaited.deliver(number, delivery);
                true
            }
            Some(Slot::Arrived(_)) => false,
        }
    }
}
