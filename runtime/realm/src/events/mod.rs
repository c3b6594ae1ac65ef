//! Events: what has happened, and what waits for it.
//!
//! An [`Event`] is a handle of 64 bits that is copied and stored at will. It goes from pending to triggered once and
//! stays so for ever, also after the slot behind it has been given to other events. An event can be *poisoned*: it has
//! triggered, and what it stood for failed. Poison spreads along [`After::needs`].
//!
//! Read on in `word` (the protocol), `slot` (the table behind the handles), `faults` (why events were poisoned),
//! `precondition` (what operations wait for) and `idle` (the waiters that an awaited event wakes). What a trigger sets
//! off is described in [`operation`](crate::operation).

use std::fmt;
use std::sync::Arc;

use crate::fault::Fault;
use crate::profile::OperationId;

pub(crate) mod faults;
pub(crate) mod idle;
pub(crate) mod precondition;
pub(crate) mod slot;
pub(crate) mod word;

pub use precondition::After;

const SLOT_BITS: u32 = 26;
const GENERATION_BITS: u32 = 24;

/// A handle to something that will have happened: node (14 bits), slot (26 bits) and generation (24 bits).
///
/// The null event, [`Event::NONE`], has always triggered. A handle belongs to the realm that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Event(u64);

impl Event {
    /// The event that has always triggered.
    pub const NONE: Self = Self(0);

    #[inline]
    pub(crate) fn new(slot: u32, generation: u32) -> Self {
        debug_assert!(slot < 1 << SLOT_BITS && generation < 1 << GENERATION_BITS);
        Self((u64::from(slot) << GENERATION_BITS) | u64::from(generation))
    }

    /// Whether this is [`Event::NONE`].
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The node that made the event; 0 as long as a realm is one process.
    pub fn node(self) -> u16 {
        (self.0 >> (SLOT_BITS + GENERATION_BITS)) as u16
    }

    /// The 64 bits, for records and messages.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The event of these [bits](Self::to_bits).
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        (self.0 >> GENERATION_BITS) as u32 & ((1 << SLOT_BITS) - 1)
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        self.0 as u32 & ((1 << GENERATION_BITS) - 1)
    }
}

/// A profile names an operation by its event.
impl From<Event> for OperationId {
    fn from(event: Event) -> Self {
        Self(event.to_bits())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return formatter.write_str("Event(none)");
        }
        write!(formatter, "Event(node {}, slot {}, generation {})", self.node(), self.slot(), self.generation())
    }
}

/// An event that the user triggers, once: by [`Realm::trigger`](crate::Realm::trigger),
/// [`trigger_after`](crate::Realm::trigger_after) or [`poison`](crate::Realm::poison).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserEvent {
    pub(crate) event: Event,
    /// The realm that made it, and that alone may trigger it.
    pub(crate) realm: u32,
}

impl UserEvent {
    /// The event to wait for.
    pub fn event(self) -> Event {
        self.event
    }
}

impl From<UserEvent> for Event {
    fn from(user: UserEvent) -> Self {
        user.event
    }
}

/// How an event stands.
#[derive(Clone, Debug)]
pub enum EventStatus {
    /// It has not triggered.
    Pending,
    /// It has triggered.
    Triggered,
    /// It has triggered, and what it stood for failed for this reason.
    Poisoned(Arc<Fault>),
}

impl EventStatus {
    /// Whether the event has triggered, poisoned or not.
    pub fn has_triggered(&self) -> bool {
        !matches!(self, Self::Pending)
    }

    /// The reason of a poisoned event.
    pub fn fault(&self) -> Option<&Arc<Fault>> {
        match self {
            Self::Poisoned(fault) => Some(fault),
            Self::Pending | Self::Triggered => None,
        }
    }
}

/// A user event was triggered, or was promised to be, before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} was triggered (or handed to `trigger_after`) before; a user event triggers once: make a new one")]
pub struct AlreadyTriggered {
    /// The event.
    pub event: Event,
}
