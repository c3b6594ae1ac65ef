//! Events, and the preconditions of operations.

use std::fmt::Debug;
use std::hash::Hash;

use smallvec::SmallVec;

/// The end of an operation, as the caller names it. The default names an operation that ended long ago, which no
/// operation need wait for.
pub trait Event: Copy + Eq + Hash + Default + Debug {}

impl<T: Copy + Eq + Hash + Default + Debug> Event for T {}

/// The outcomes of events, so that the analysis can forget the events that no operation need wait for any more.
pub trait Events<E> {
    /// Whether the operation has ended, well or not.
    fn has_ended(&self, event: E) -> bool;
    /// Whether it has ended well.
    fn has_succeeded(&self, event: E) -> bool;
    /// An event that comes after all of these, and has failed if any of them has.
    fn merge(&self, needed: &[E]) -> E;
}

/// Events that an operation comes after: `needs` pass their failures on, `follows` only their order.
#[derive(Clone, Debug, Default)]
pub struct Preconditions<E> {
    /// Events whose failure the operation takes over.
    pub needs: SmallVec<[E; 8]>,
    /// Events that need only have ended.
    pub follows: SmallVec<[E; 8]>,
}

impl<E: Event> Preconditions<E> {
    /// Adds an event whose failure is passed on.
    #[inline]
    pub fn need(&mut self, event: E) {
        add(&mut self.needs, event);
    }

    /// Adds an event of which only the order counts.
    #[inline]
    pub fn follow(&mut self, event: E) {
        add(&mut self.follows, event);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty() && self.follows.is_empty()
    }

    /// How many there are of each kind.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.needs.len(), self.follows.len())
    }

    /// Forgets those that were added since there were so many.
    pub(super) fn truncate(&mut self, needs: usize, follows: usize) {
        self.needs.truncate(needs);
        self.follows.truncate(follows);
    }

    /// Many as one.
    #[must_use]
    pub fn all(many: &[Self]) -> Self {
        many.iter().fold(Self::default(), Self::and)
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        if self.is_empty() {
            return others.clone();
        }
        self.add_all(others);
        self
    }

    /// Adds others.
    pub fn add_all(&mut self, others: &Self) {
        others.needs.iter().for_each(|&event| self.need(event));
        others.follows.iter().for_each(|&event| self.follow(event));
    }
}

/// Adds an event unless it was added lately. That keeps nearly all doubles out, which would do no harm, and never takes
/// long.
#[inline]
pub(super) fn add<E: Event>(events: &mut SmallVec<[E; 8]>, event: E) {
    const LATELY: usize = 16;
    if event == E::default() {
        return;
    }
    let lately = &events[events.len().saturating_sub(LATELY)..];
    if !lately.contains(&event) {
        events.push(event);
    }
}
