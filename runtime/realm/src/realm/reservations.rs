//! The reservations of a realm.

use super::Realm;
use crate::events::{After, Event};
use crate::reservation::{Mode, Reservation};

impl Realm {
    /// A new reservation, not held.
    pub fn reservation(&self) -> Reservation {
        Reservation::new(self.operations())
    }

    /// Asks for the reservation once `after` has triggered, and gives the event of having it. If a needed precondition
    /// is poisoned, so is the event, and nothing was acquired.
    ///
    /// # Panics
    /// If a shared mode's number is above 2^31 - 1, or the reservation is another realm's.
    pub fn acquire<'a>(&self, reservation: &Reservation, mode: Mode, after: impl Into<After<'a>>) -> Event {
        reservation.acquire(self.operations(), mode, after.into())
    }

    /// Releases the reservation once `after` has triggered, poisoned or not, and gives the event of that. It is
    /// poisoned by [`NotReserved`](crate::reservation::NotReserved) when it was not held.
    pub fn release<'a>(&self, reservation: &Reservation, after: impl Into<After<'a>>) -> Event {
        reservation.release(self.operations(), after.into())
    }
}
