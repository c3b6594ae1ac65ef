//! The barriers of a realm.

use super::Realm;
use crate::barrier::{Barrier, BarrierError};
use crate::events::{After, Event};

impl Realm {
    /// A new barrier at its first phase, of which each phase expects so many arrivals.
    ///
    /// The realm keeps it until it is [destroyed](Self::destroy_barrier), with a few bytes for each of the last 1,024
    /// phases that were poisoned. Once there have been more, none of the phases before those counts as good.
    ///
    /// # Panics
    /// If `arrivals` is 0: every phase would be complete.
    pub fn barrier(&self, arrivals: u32) -> Barrier {
        assert!(arrivals > 0, "a barrier needs at least one arrival a phase");
        self.shared.barriers.make(self.operations(), arrivals)
    }

    /// Arrives `count` times at a phase, once `after` has triggered. A poisoned precondition poisons the phase, and the
    /// arrival still counts.
    ///
    /// Gives the event of the arrival's having been counted. It is poisoned if the arrival itself was; or by a
    /// [`BarrierError`] when the phase was complete or expected fewer, in which case nothing was counted.
    pub fn arrive<'a>(&self, barrier: Barrier, count: u32, after: impl Into<After<'a>>) -> Event {
        self.shared.barriers.arrive(self.operations(), barrier, count, after.into())
    }

    /// Changes how many arrivals this phase, and this phase alone, waits for, and gives the handle to arrive through
    /// afterwards.
    ///
    /// # Errors
    /// [`BarrierError`]: the phase is complete, fewer than `-delta` arrivals are missing, or there is no such barrier.
    pub fn alter_arrival_count(&self, barrier: Barrier, delta: i32) -> Result<Barrier, BarrierError> {
        self.shared.barriers.alter(self.operations(), barrier, delta)
    }

    /// The event that triggers when the phase is complete. Of a barrier that does not exist (any more), an event
    /// poisoned by [`BarrierError::Unknown`].
    pub fn phase_event(&self, barrier: Barrier) -> Event {
        self.shared.barriers.event(self.operations(), barrier)
    }

    /// Destroys the barrier. Events of phases that are not complete are poisoned with [`BarrierError::Unknown`].
    /// Nothing if it was destroyed before, or is another realm's.
    pub fn destroy_barrier(&self, barrier: Barrier) {
        self.shared.barriers.destroy(self.operations(), barrier);
    }
}
