//! Phase barriers: events that trigger, one phase after another, when so many have arrived.
//!
//! A [`Barrier`] handle names one phase; [`Barrier::advance`] names the next. Arrivals never block, may come early, and
//! may wait for preconditions; a phase is complete when all its arrivals have come and all phases before it are
//! complete. A poisoned arrival counts, and poisons its phase.
//!
//! ```
//! use maniple_realm::{After, Realm};
//!
//! let realm = Realm::builder().workers(2).build()?;
//! let first = realm.barrier(2);
//! let second = first.advance();
//! realm.arrive(first, 1, After::NOTHING);
//! realm.arrive(second, 2, After::NOTHING);
//! assert!(!realm.has_triggered(realm.phase_event(second)));
//! realm.arrive(first, 1, After::NOTHING);
//! assert!(realm.has_triggered(realm.phase_event(second)));
//! # Ok::<(), maniple_realm::RealmError>(())
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use crate::locks::{Mutex, RwLock};

use crate::event::{After, Event, UserEvent};
use crate::fault::Fault;
use crate::operation::body::{Body, Call};
use crate::realm::{Core, Realm};
use phases::{Change, Phases, Refused};

mod phases;
#[cfg(test)]
mod tests;

/// One phase of a phase barrier.
///
/// The handle of an [altered](Realm::alter_arrival_count) barrier carries the time of the alteration: arrivals through
/// it count only after the alteration, even where they overtake it on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// The realm that made it, and that alone knows it.
    realm: u32,
    id: u32,
    phase: u32,
    timestamp: u32,
}

impl Barrier {
    /// The next phase.
    ///
    /// # Panics
    /// After 2^32 phases.
    #[must_use]
    pub fn advance(self) -> Self {
        let phase = self.phase.checked_add(1).expect("a barrier has at most 2^32 phases: make a new one");
        Self { phase, ..self }
    }

    /// The number of the phase; 0 is the first.
    pub fn phase(self) -> u32 {
        self.phase
    }
}

/// What cannot be asked of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierError {
    /// All arrivals of the phase have come.
    #[error("phase {} of barrier {} is complete: arrive at, or alter, a later one", .0.phase, .0.id)]
    PhaseOver(Barrier),
    /// The phase waits for fewer arrivals.
    #[error(
        "{excess} more than the {missing} arrivals that phase {} of barrier {} waits for: make the barrier with a \
         larger count, or alter its arrival count first", .barrier.phase, .barrier.id
    )]
    TooManyArrivals {
        /// The phase.
        barrier: Barrier,
        /// The arrivals that it still waits for.
        missing: u32,
        /// The arrivals beyond those.
        excess: u32,
    },
    /// The barrier was destroyed, or is another realm's.
    #[error("barrier {} does not exist: it was destroyed, or belongs to another realm", .0.id)]
    Unknown(Barrier),
}

/// What is kept for a phase that is not complete.
#[derive(Default)]
struct PhaseState {
    event: Option<UserEvent>,
    fault: Option<Arc<Fault>>,
}

struct BarrierState {
    phases: Phases<PhaseState>,
    /// The events of complete phases that were poisoned, as long as there is the barrier.
    poisoned: Mutex<HashMap<u32, Event>>,
}

/// The barriers of a realm.
#[derive(Default)]
pub(crate) struct Barriers {
    made: RwLock<(u32, HashMap<u32, Arc<BarrierState>>)>,
}

impl Core {
    fn barrier(&self, barrier: Barrier) -> Result<Arc<BarrierState>, BarrierError> {
        let of_ours = || self.barriers.made.read().1.get(&barrier.id).map(Arc::clone);
        (barrier.realm == self.id).then(of_ours).flatten().ok_or(BarrierError::Unknown(barrier))
    }

    /// Counts `count` arrivals, with the fault that they bring.
    fn count_arrivals(&self, barrier: Barrier, count: u32, fault: Option<&Arc<Fault>>) -> Result<(), BarrierError> {
        let state = self.barrier(barrier)?;
        let change = Change { phase: barrier.phase, arrivals: -i64::from(count) };
        let note = |phase: &mut PhaseState| {
            if let Some(fault) = fault
                && phase.fault.is_none()
            {
                phase.fault = Some(Arc::clone(fault));
            }
        };
        let counted =
            state.phases.arrive(barrier.timestamp, change, note, |phase, data| self.announce(&state, phase, data));
        counted.map_err(|refused| refusal(barrier, refused, count))
    }

    fn announce(&self, barrier: &BarrierState, phase: u32, data: PhaseState) {
        let event = match (&data.fault, data.event) {
            (None, None) => return,
            (_, event) => event.unwrap_or_else(|| self.user_event()),
        };
        let triggered = match data.fault {
            None => self.trigger(event),
            Some(fault) => {
                barrier.poisoned.lock().insert(phase, event.event());
                self.poison(event, fault)
            }
        };
        self.first_trigger(triggered);
    }
}

impl BarrierState {
    /// The event of a phase, made if need be.
    fn event(&self, core: &Core, barrier: Barrier) -> Result<Event, BarrierError> {
        let event = |data: &mut PhaseState| data.event.get_or_insert_with(|| core.user_event()).event();
        let open = self.phases.with_open(barrier.phase, event).map_err(|refused| refusal(barrier, refused, 0))?;
        // A phase that was complete when the barrier was destroyed has its event still.
        let event = open.or_else(|| self.poisoned.lock().get(&barrier.phase).copied());
        Ok(event.unwrap_or(Event::NONE))
    }
}

fn refusal(barrier: Barrier, refused: Refused, count: u32) -> BarrierError {
    match refused {
        Refused::Closed => BarrierError::Unknown(barrier),
        Refused::Over => BarrierError::PhaseOver(barrier),
        Refused::TooMany { missing } => {
            let missing = missing as u32;
            BarrierError::TooManyArrivals { barrier, missing, excess: count.saturating_sub(missing) }
        }
    }
}

/// An arrival that waits for its preconditions.
struct Arrival {
    barrier: Barrier,
    count: u32,
}

impl Body for Arrival {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        let counted = call.core.count_arrivals(self.barrier, self.count, call.fault);
        counted.map_err(|error| Arc::new(Fault::new(error)))
    }
}

impl Realm {
    /// A new barrier at its first phase, of which each phase expects so many arrivals.
    ///
    /// The realm keeps it until it is [destroyed](Self::destroy_barrier), with a few bytes for each of its phases that was
    /// poisoned.
    ///
    /// # Panics
    /// If `arrivals` is 0: every phase would be complete.
    pub fn barrier(&self, arrivals: u32) -> Barrier {
        assert!(arrivals > 0, "a barrier needs at least one arrival a phase");
        let mut made = self.core().barriers.made.write();
        let id = made.0;
        made.0 += 1;
        let state = BarrierState { phases: Phases::new(arrivals), poisoned: Mutex::default() };
        made.1.insert(id, Arc::new(state));
        Barrier { realm: self.core().id, id, phase: 0, timestamp: 0 }
    }

    /// Arrives `count` times at a phase, once `after` has triggered. A poisoned precondition poisons the phase, and the
    /// arrival still counts.
    ///
    /// Gives the event of the arrival's having been counted. It is poisoned if the arrival itself was; or by a
    /// [`BarrierError`] when the phase was complete or expected fewer, in which case nothing was counted.
    pub fn arrive<'a>(&self, barrier: Barrier, count: u32, after: impl Into<After<'a>>) -> Event {
        let remaining = self.core().remaining(after.into());
        if remaining.as_single() != Some(Event::NONE) {
            return self.core().spawn_inline_remaining(remaining, Arrival { barrier, count });
        }
        match self.core().count_arrivals(barrier, count, None) {
            Ok(()) => Event::NONE,
            Err(error) => self.core().poisoned_event(Fault::new(error)),
        }
    }

    /// Changes how many arrivals this phase, and this phase alone, waits for, and gives the handle to arrive through
    /// afterwards.
    ///
    /// # Errors
    /// [`BarrierError`]: the phase is complete, fewer than `-delta` arrivals are missing, or there is no such barrier.
    pub fn alter_arrival_count(&self, barrier: Barrier, delta: i32) -> Result<Barrier, BarrierError> {
        let core = self.core();
        let state = core.barrier(barrier)?;
        let timestamp = state.phases.stamp();
        let change = Change { phase: barrier.phase, arrivals: i64::from(delta) };
        let altered = state.phases.alter(timestamp, change, |phase, data| core.announce(&state, phase, data));
        altered.map_err(|refused| refusal(barrier, refused, delta.unsigned_abs()))?;
        Ok(Barrier { timestamp, ..barrier })
    }

    /// The event that triggers when the phase is complete. Of a barrier that does not exist (any more), an event
    /// poisoned by [`BarrierError::Unknown`].
    pub fn phase_event(&self, barrier: Barrier) -> Event {
        let core = self.core();
        core.barrier(barrier)
            .and_then(|state| state.event(core, barrier))
            .unwrap_or_else(|error| core.poisoned_event(Fault::new(error)))
    }

    /// Destroys the barrier. Events of phases that are not complete are poisoned with [`BarrierError::Unknown`]. Nothing if
    /// it was destroyed before, or is another realm's.
    pub fn destroy_barrier(&self, barrier: Barrier) {
        let is_ours = barrier.realm == self.core().id;
        let removed = is_ours.then(|| self.core().barriers.made.write().1.remove(&barrier.id)).flatten();
        let open = removed.map_or_else(Vec::new, |state| state.phases.close());
        for event in open.into_iter().filter_map(|phase| phase.event) {
            self.poison(event, Fault::new(BarrierError::Unknown(barrier)));
        }
    }
}
