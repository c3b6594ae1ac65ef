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

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::locks::{Mutex, RwLock};

use crate::events::{After, Event, UserEvent};
use crate::fault::Fault;
use crate::operation::body::OperationBody;
use crate::operation::operations::{Call, Operations};
use phases::{Change, Phases, Refused};

mod phases;
#[cfg(test)]
mod tests;

/// One phase of a phase barrier.
///
/// The handle of an [altered](crate::Realm::alter_arrival_count) barrier carries the time of the alteration: arrivals
/// through it count only after the alteration, even where they overtake it on their way.
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

/// An error of a request to a barrier.
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

/// The state of a phase that is not complete.
#[derive(Default)]
struct PhaseState {
    event: Option<UserEvent>,
    fault: Option<Arc<Fault>>,
}

struct BarrierState {
    phases: Phases<PhaseState>,
    poisoned: Mutex<Poisoned>,
}

/// The events of complete phases that were poisoned.
#[derive(Default)]
struct Poisoned {
    latest: BTreeMap<u32, Event>,
    /// The last phase that was forgotten, of those the earliest of which go when there are many.
    forgotten: Option<(u32, Event)>,
}

/// So many poisoned phases are remembered of a barrier; of those before, no phase counts as good.
const MOST_POISONED: usize = 1 << 10;

impl Poisoned {
    fn insert(&mut self, phase: u32, event: Event) {
        self.latest.insert(phase, event);
        if self.latest.len() > MOST_POISONED {
            self.forgotten = self.latest.pop_first();
        }
    }

    /// The event of a phase if it was poisoned, or may have been.
    fn of(&self, phase: u32) -> Option<Event> {
        let forgotten = self.forgotten.filter(|(last, _)| phase <= *last).map(|(_, event)| event);
        self.latest.get(&phase).copied().or(forgotten)
    }
}

/// The barriers of a realm.
#[derive(Default)]
pub(crate) struct Barriers {
    made: RwLock<(u32, HashMap<u32, Arc<BarrierState>>)>,
}

impl Barriers {
    /// See [`Realm::barrier`](crate::Realm::barrier).
    pub(crate) fn make(&self, operations: &Operations, arrivals: u32) -> Barrier {
        let mut made = self.made.write();
        let id = made.0;
        made.0 += 1;
        let state = BarrierState { phases: Phases::new(arrivals), poisoned: Mutex::default() };
        made.1.insert(id, Arc::new(state));
        Barrier { realm: operations.id, id, phase: 0, timestamp: 0 }
    }

    fn get(&self, operations: &Operations, barrier: Barrier) -> Result<Arc<BarrierState>, BarrierError> {
        let of_ours = || self.made.read().1.get(&barrier.id).map(Arc::clone);
        (barrier.realm == operations.id).then(of_ours).flatten().ok_or(BarrierError::Unknown(barrier))
    }

    /// See [`Realm::arrive`](crate::Realm::arrive).
    pub(crate) fn arrive(&self, operations: &Operations, barrier: Barrier, count: u32, after: After<'_>) -> Event {
        let (state, remaining) = (self.get(operations, barrier), operations.remaining(after));
        let arrival = Arrival { state, barrier, count };
        if remaining.as_single() != Some(Event::NONE) {
            return operations.spawn_inline_remaining(remaining, arrival);
        }
        match arrival.count(operations, None) {
            Ok(()) => Event::NONE,
            Err(error) => operations.poisoned_event(Fault::new(error)),
        }
    }

    /// See [`Realm::alter_arrival_count`](crate::Realm::alter_arrival_count).
    pub(crate) fn alter(&self, operations: &Operations, barrier: Barrier, delta: i32) -> Result<Barrier, BarrierError> {
        let state = self.get(operations, barrier)?;
        let timestamp = state.phases.stamp();
        let change = Change { phase: barrier.phase, arrivals: i64::from(delta) };
        let altered = state.phases.alter(timestamp, change, |phase, data| state.announce(operations, phase, data));
        altered.map_err(|refused| refusal(barrier, refused, delta.unsigned_abs()))?;
        Ok(Barrier { timestamp, ..barrier })
    }

    /// See [`Realm::phase_event`](crate::Realm::phase_event).
    pub(crate) fn event(&self, operations: &Operations, barrier: Barrier) -> Event {
        self.get(operations, barrier)
            .and_then(|state| state.event(operations, barrier))
            .unwrap_or_else(|error| operations.poisoned_event(Fault::new(error)))
    }

    /// See [`Realm::destroy_barrier`](crate::Realm::destroy_barrier).
    pub(crate) fn destroy(&self, operations: &Operations, barrier: Barrier) {
        let is_ours = barrier.realm == operations.id;
        let removed = is_ours.then(|| self.made.write().1.remove(&barrier.id)).flatten();
        let open = removed.map_or_else(Vec::new, |state| state.phases.close());
        for event in open.into_iter().filter_map(|phase| phase.event) {
            operations.first_trigger(operations.poison(event, Arc::new(Fault::new(BarrierError::Unknown(barrier)))));
        }
    }
}

impl BarrierState {
    fn announce(&self, operations: &Operations, phase: u32, data: PhaseState) {
        let event = match (&data.fault, data.event) {
            (None, None) => return,
            (_, event) => event.unwrap_or_else(|| operations.user_event()),
        };
        let triggered = match data.fault {
            None => operations.trigger(event),
            Some(fault) => {
                self.poisoned.lock().insert(phase, event.event());
                operations.poison(event, fault)
            }
        };
        operations.first_trigger(triggered);
    }

    /// The event of a phase, made if need be.
    fn event(&self, operations: &Operations, barrier: Barrier) -> Result<Event, BarrierError> {
        let event = |data: &mut PhaseState| data.event.get_or_insert_with(|| operations.user_event()).event();
        let open = self.phases.with_open(barrier.phase, event).map_err(|refused| refusal(barrier, refused, 0))?;
        // A phase that was complete when the barrier was destroyed has its event still.
        let event = open.or_else(|| self.poisoned.lock().of(barrier.phase));
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

/// An arrival that may wait for its preconditions.
struct Arrival {
    state: Result<Arc<BarrierState>, BarrierError>,
    barrier: Barrier,
    count: u32,
}

impl Arrival {
    /// Counts it, with the fault that it brings.
    fn count(self, operations: &Operations, fault: Option<&Arc<Fault>>) -> Result<(), BarrierError> {
        let Self { state, barrier, count } = self;
        let state = state?;
        let change = Change { phase: barrier.phase, arrivals: -i64::from(count) };
        let note = |phase: &mut PhaseState| {
            if let Some(fault) = fault
                && phase.fault.is_none()
            {
                phase.fault = Some(Arc::clone(fault));
            }
        };
        let announce = |phase, data| state.announce(operations, phase, data);
        let counted = state.phases.arrive(barrier.timestamp, change, note, announce);
        counted.map_err(|refused| refusal(barrier, refused, count))
    }
}

impl OperationBody for Arrival {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        let counted = self.count(call.operations, call.fault);
        counted.map_err(|error| Arc::new(Fault::new(error)))
    }
}
