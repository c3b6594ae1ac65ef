//! What must be done before an operation can use its instances.

use std::sync::Arc;

use maniple_realm::Event;

use super::application::Application;
use super::beginning::Beginning;
use super::instance::PhysicalInstance;
use super::movement::Preconditions;
use super::set::PendingReduction;

/// What comes before the use of the data of one point of an operation.
#[derive(Default)]
pub(crate) struct Preparation {
    /// What must have ended, whichever requirement wants that.
    together: Preconditions,
    /// What must have ended for each requirement, if the operation may use some of its data before the rest is there.
    each: Vec<Preconditions>,
    /// What a leaf task does itself when it begins. Nothing if others have to do it.
    beginning: Option<Beginning>,
    /// The contributions that it applies then, which keep their buffers until its end is known.
    applied: Vec<PendingReduction>,
}

impl Preparation {
    /// Of an operation that uses no data before all of it is there.
    pub(crate) fn together() -> Self {
        Self::default()
    }

    /// Of one that may use some before the rest is there.
    pub(crate) fn each(requirements: usize) -> Self {
        Self { each: vec![Preconditions::default(); requirements], ..Self::default() }
    }

    /// Of a leaf task, which can do some of the work itself.
    pub(crate) fn of_leaf() -> Self {
        Self { beginning: Some(Beginning::default()), ..Self::default() }
    }

    /// The preconditions of a requirement.
    pub(crate) fn of(&mut self, requirement: usize) -> &mut Preconditions {
        self.each.get_mut(requirement).unwrap_or(&mut self.together)
    }

    /// All preconditions: one list for all requirements, or one for each.
    pub(crate) fn after(&self) -> &[Preconditions] {
        if self.each.is_empty() { std::slice::from_ref(&self.together) } else { &self.each }
    }

    /// The preconditions of an operation that uses no data before all of it is there.
    pub(crate) fn after_mut(&mut self) -> &mut Preconditions {
        debug_assert!(self.each.is_empty(), "each requirement has its own");
        &mut self.together
    }

    /// Whether it is of a task that does some of the work itself.
    pub(crate) fn is_of_leaf(&self) -> bool {
        self.beginning.is_some()
    }

    /// Has the task empty a buffer. False if somebody else has to do it.
    pub(crate) fn empty(&mut self, buffer: &Arc<PhysicalInstance>) -> bool {
        let Some(beginning) = &mut self.beginning else { return false };
        beginning.empties.push(Arc::clone(buffer));
        true
    }

    /// How many buffers the task empties.
    pub(crate) fn empties(&self) -> usize {
        self.beginning.as_ref().map_or(0, |beginning| beginning.empties.len())
    }

    /// The task need not empty more buffers than the first few, after all.
    pub(crate) fn keep_empties(&mut self, first: usize) {
        if let Some(beginning) = &mut self.beginning {
            beginning.empties.truncate(first);
        }
    }

    /// Has a leaf task apply contributions that were pending.
    pub(crate) fn apply(&mut self, application: Application, pending: PendingReduction) {
        if let Some(beginning) = &mut self.beginning {
            beginning.applications.push(application);
            self.applied.push(pending);
        }
    }

    /// What the task does itself, unless that is nothing: it is the task's from now on.
    pub(crate) fn take_beginning(&mut self) -> Option<Box<Beginning>> {
        self.beginning.take().filter(|beginning| !beginning.is_empty()).map(Box::new)
    }

    /// The task ends with this event: then the buffers of what it applies are free. Under the lock of the state that they belong to.
    pub(crate) fn ends_with(self, event: Event) {
        self.applied.into_iter().for_each(|reduction| reduction.applied_by(event));
    }
}
