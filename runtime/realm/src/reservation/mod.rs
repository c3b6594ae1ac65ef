//! Reservations: locks that are acquired by an event instead of by blocking.
//!
//! The queue is fair: the request that came first gets it first, and requests of one shared mode that stand in line
//! together get it together. Without competition, acquiring and releasing cost a compare-and-swap each, and make no
//! event.
//!
//! ```
//! use maniple_realm::{After, Realm, Spawn, reservation::Mode};
//!
//! let realm = Realm::builder().workers(2).build()?;
//! let reservation = realm.reservation();
//! let mut all = Vec::new();
//! for _ in 0..10 {
//!     let granted = realm.acquire(&reservation, Mode::Exclusive, After::NOTHING);
//!     let done = realm.spawn(&granted, || { /* alone here */ });
//!     all.push(realm.release(&reservation, &done));
//! }
//! realm.wait(realm.merge(&all))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::events::{After, Event, UserEvent};
use crate::fault::Fault;
use crate::operation::body::OperationBody;
use crate::operation::operations::{Call, Operations};
use lock::{EXCLUSIVE, LAST_MODE, Lock, NotHeld};

mod lock;

/// A lock whose acquisition is an event. Clones are handles to the same lock.
///
/// Acquisitions and releases that wait for preconditions have handles of their own. When the last one goes while the
/// lock is held, it can't be released any more: the events of the requests that wait for it are poisoned with
/// [`NeverReleased`].
#[derive(Clone)]
pub struct Reservation(Arc<SharedReservation>);

struct SharedReservation {
    lock: Lock,
    /// The realm that made it, whose events stand in the queue.
    operations: Weak<Operations>,
    realm: u32,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Reservation({:p})", self.0)
    }
}

impl Drop for SharedReservation {
    fn drop(&mut self) {
        let waiting = self.lock.give_up();
        // Of a realm that is gone no thread waits for events.
        if !waiting.is_empty()
            && let Some(operations) = self.operations.upgrade()
        {
            // Its last worker may be at the end of what is pending just now.
            let _gate = operations.gate.read_recursive();
            if !operations.is_stopping() {
                let fault = Arc::new(Fault::new(NeverReleased));
                for ticket in waiting {
                    let event = UserEvent { event: Event::from_bits(ticket), realm: self.realm };
                    operations.first_trigger(operations.poison(event, Arc::clone(&fault)));
                }
            }
        }
    }
}

/// How a reservation is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Together with those in the shared mode of the same number, at most 2^31 - 1.
    Shared(NonZeroU32),
}

impl Mode {
    /// The shared mode for all holders that only read.
    pub const READ: Self = Self::Shared(NonZeroU32::MIN);

    fn code(self) -> u32 {
        match self {
            Self::Exclusive => EXCLUSIVE,
            Self::Shared(number) => number.get(),
        }
    }
}

/// A reservation was released more often than it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reservation is not held: release it once for each acquisition whose event has triggered well")]
pub struct NotReserved;

/// A reservation can't be acquired any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the last handle to the reservation was dropped while it was held: release it once for each acquisition")]
pub struct NeverReleased;

impl Reservation {
    /// See [`Realm::reservation`](crate::Realm::reservation).
    pub(crate) fn new(operations: &Operations) -> Self {
        Self(Arc::new(SharedReservation { lock: Lock::new(), operations: operations.weak(), realm: operations.id }))
    }

    /// See [`Realm::acquire`](crate::Realm::acquire).
    pub(crate) fn acquire(&self, operations: &Operations, mode: Mode, after: After<'_>) -> Event {
        assert!(mode.code() <= LAST_MODE, "{mode:?}: shared modes are numbered up to {LAST_MODE}");
        self.check_own(operations);
        let remaining = operations.remaining(after);
        if remaining.as_single() == Some(Event::NONE) {
            return self.acquire_now(operations, mode);
        }
        let granted = operations.user_event();
        let acquisition = Acquisition { reservation: self.clone(), mode, granted };
        operations.spawn_inline_remaining(remaining, acquisition);
        granted.event()
    }

    /// See [`Realm::release`](crate::Realm::release).
    pub(crate) fn release(&self, operations: &Operations, after: After<'_>) -> Event {
        self.check_own(operations);
        // A request that waits for the reservation must not pay for what went wrong under it.
        let events: SmallVec<[Event; 8]> = after.needs.iter().chain(after.follows).copied().collect();
        let remaining = operations.remaining(After::follows(&events));
        if remaining.as_single() != Some(Event::NONE) {
            return operations.spawn_inline_remaining(remaining, Release(self.clone()));
        }
        match self.release_now(operations) {
            Ok(()) => Event::NONE,
            Err(fault) => operations.poisoned_event(fault),
        }
    }

    fn check_own(&self, operations: &Operations) {
        assert_eq!(self.0.realm, operations.id, "{self:?} belongs to another realm: use it there");
    }

    /// Acquires now or in its turn; gives the event of having it.
    fn acquire_now(&self, operations: &Operations, mode: Mode) -> Event {
        let granted = self.0.lock.acquire(mode.code(), || operations.user_event().event().to_bits());
        granted.map_or(Event::NONE, Event::from_bits)
    }

    fn release_now(&self, operations: &Operations) -> Result<(), Arc<Fault>> {
        let granted = self.0.lock.release().map_err(|NotHeld| Arc::new(Fault::new(NotReserved)))?;
        for ticket in granted {
            let event = UserEvent { event: Event::from_bits(ticket), realm: operations.id };
            operations.first_trigger(operations.trigger(event));
        }
        Ok(())
    }
}

/// An acquisition that waits for its preconditions.
struct Acquisition {
    reservation: Reservation,
    mode: Mode,
    granted: UserEvent,
}

impl OperationBody for Acquisition {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        let operations = call.operations;
        operations.first_trigger(match call.fault {
            Some(fault) => operations.poison(self.granted, Arc::clone(fault)),
            None => {
                let held = self.reservation.acquire_now(operations, self.mode);
                operations.trigger_after(self.granted, After::from(&held))
            }
        });
        Ok(())
    }
}

struct Release(Reservation);

impl OperationBody for Release {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        self.0.release_now(call.operations)
    }
}
