//! Preconditions: what an operation waits for.

use smallvec::SmallVec;

use super::Event;
use crate::profile::OperationId;

/// The preconditions of an operation: it waits for all of these events before it starts, poisoned or not.
///
/// When a precondition turns out poisoned the operation still waits for the others; a poisoned event therefore means
/// that everything behind it has stopped. Poison of a `needs` spreads to the operation; poison of a `follows` does not.
///
/// ```
/// use maniple_realm::{After, Event};
///
/// let (data, user) = (Event::NONE, Event::NONE);
/// let after = After { needs: &[data], follows: &[user] };
/// assert_eq!(after.needs.len() + after.follows.len(), 2);
/// let simple: After<'_> = (&data).into();
/// assert!(simple.follows.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct After<'a> {
    /// Events whose success the operation rests on: their poison spreads to it.
    pub needs: &'a [Event],
    /// Events that the operation must merely come after.
    pub follows: &'a [Event],
}

impl<'a> After<'a> {
    /// No precondition.
    pub const NOTHING: After<'static> = After { needs: &[], follows: &[] };

    /// After these, whose poison spreads.
    pub fn needs(events: &'a [Event]) -> Self {
        Self { needs: events, follows: &[] }
    }

    /// After these, poisoned or not.
    pub fn follows(events: &'a [Event]) -> Self {
        Self { needs: &[], follows: events }
    }

    /// As a profile names them.
    pub(crate) fn names(self) -> impl Iterator<Item = OperationId> + use<'a> {
        self.needs.iter().chain(self.follows).map(|&event| event.into())
    }
}

impl<'a> From<&'a Event> for After<'a> {
    fn from(event: &'a Event) -> Self {
        Self::needs(std::slice::from_ref(event))
    }
}

impl<'a> From<&'a [Event]> for After<'a> {
    fn from(events: &'a [Event]) -> Self {
        Self::needs(events)
    }
}

impl<'a, const N: usize> From<&'a [Event; N]> for After<'a> {
    fn from(events: &'a [Event; N]) -> Self {
        Self::needs(events)
    }
}

impl<'a> From<&'a Vec<Event>> for After<'a> {
    fn from(events: &'a Vec<Event>) -> Self {
        Self::needs(events)
    }
}

/// A precondition that had not triggered when looked at.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    pub(crate) event: Event,
    pub(crate) spreads: bool,
}

/// The rest of an [`After`] once triggered events are set aside.
pub(crate) struct Remaining {
    pub(crate) awaited: SmallVec<[Awaited; 8]>,
    /// A needed event that has triggered, poisoned.
    pub(crate) poisoned: Option<Event>,
}

impl Remaining {
    /// The only event left, if waiting for it alone comes to the same.
    pub(crate) fn as_single(&self) -> Option<Event> {
        match (&self.awaited[..], self.poisoned) {
            ([], None) => Some(Event::NONE),
            ([], Some(poisoned)) => Some(poisoned),
            ([Awaited { event, spreads: true }], None) => Some(*event),
            _ => None,
        }
    }
}
