//! The preparation of an operation: events and work that precede the use of its instances.

use std::sync::Arc;

use smallvec::SmallVec;

use super::effects::Application;
use super::events::Preconditions;
use super::instance::Instance;
use super::set::PendingReduction;

/// The preparation for the use of the data of one point of an operation.
#[derive(Debug)]
pub struct Preparation<I: Instance> {
    /// Events that must have ended, regardless of the requirement that they are for.
    together: Preconditions<I::Event>,
    /// Events that must have ended for each requirement, if the operation may use some of its data before the rest is
    /// there.
    each: Vec<Preconditions<I::Event>>,
    /// The work that the operation does itself when it begins. `None` if others have to do it.
    beginning: Option<Beginning<I>>,
    /// The contributions that it applies then, which keep their buffers until its end is known.
    applied: Vec<PendingReduction<I>>,
}

/// The work that an operation does itself with its data when it begins: too little for an operation of its own.
#[derive(Debug)]
pub struct Beginning<I> {
    /// Buffers that it empties.
    pub empties: SmallVec<[Arc<I>; 2]>,
    /// Contributions that it applies, in this order, to values that no other operation uses.
    pub applications: Vec<Application<I>>,
}

impl<I: Instance> Preparation<I> {
    fn new(each: Vec<Preconditions<I::Event>>, beginning: Option<Beginning<I>>) -> Self {
        Self { together: Preconditions::default(), each, beginning, applied: Vec::new() }
    }

    /// Of an operation that uses no data before all of it is there.
    #[must_use]
    pub fn together() -> Self {
        Self::new(Vec::new(), None)
    }

    /// Of one that may use some before the rest is there.
    #[must_use]
    pub fn each(requirements: usize) -> Self {
        Self::new(vec![Preconditions::default(); requirements], None)
    }

    /// Of one that uses no data before all of it is there, and can do some of the work itself.
    #[must_use]
    pub fn with_beginning() -> Self {
        Self::new(Vec::new(), Some(Beginning { empties: SmallVec::new(), applications: Vec::new() }))
    }

    /// The preconditions of a requirement.
    #[inline]
    pub fn of(&mut self, requirement: usize) -> &mut Preconditions<I::Event> {
        self.each.get_mut(requirement).unwrap_or(&mut self.together)
    }

    /// All preconditions: one list for all requirements, or one for each.
    pub fn after(&self) -> &[Preconditions<I::Event>] {
        if self.each.is_empty() { std::slice::from_ref(&self.together) } else { &self.each }
    }

    /// The preconditions of an operation that uses no data before all of it is there.
    pub fn after_mut(&mut self) -> &mut Preconditions<I::Event> {
        debug_assert!(self.each.is_empty(), "each requirement has its own");
        &mut self.together
    }

    /// Whether the operation does some of the work itself.
    pub(super) fn has_beginning(&self) -> bool {
        self.beginning.is_some()
    }

    /// Has the operation empty a buffer. False if another operation has to do it.
    pub fn empty(&mut self, buffer: &Arc<I>) -> bool {
        let Some(beginning) = &mut self.beginning else { return false };
        beginning.empties.push(Arc::clone(buffer));
        true
    }

    /// How many buffers the operation empties.
    pub fn empties(&self) -> usize {
        self.beginning.as_ref().map_or(0, |beginning| beginning.empties.len())
    }

    /// The operation need not empty more buffers than the first few, after all.
    pub fn keep_empties(&mut self, first: usize) {
        if let Some(beginning) = &mut self.beginning {
            beginning.empties.truncate(first);
        }
    }

    /// Has the operation apply contributions that were pending.
    pub(super) fn apply(&mut self, application: Application<I>, pending: PendingReduction<I>) {
        if let Some(beginning) = &mut self.beginning {
            beginning.applications.push(application);
            self.applied.push(pending);
        }
    }

    /// Takes the work that the operation does itself, unless there is none. The operation owns it from now on.
    pub fn take_beginning(&mut self) -> Option<Box<Beginning<I>>> {
        let is_something = |one: &Beginning<I>| !one.empties.is_empty() || !one.applications.is_empty();
        self.beginning.take().filter(is_something).map(Box::new)
    }

    /// The operation ends with this event: then the buffers of what it applies are free. To be called while the state
    /// that they belong to is not used by others.
    pub fn ends_with(self, event: I::Event) {
        self.applied.into_iter().for_each(|reduction| reduction.applied_by(event));
    }
}
