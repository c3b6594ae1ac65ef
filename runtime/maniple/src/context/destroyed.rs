//! Deletions that count for a task: its own, and those by tasks above it before they launched it.

use std::sync::Arc;

use maniple_region::deletion::{Deletions, Tombstone};
use maniple_region::{FieldId, RegionError, endings};

use super::ContextState;
use crate::operation::deletions::{ALWAYS, Inherited, Log, Name};
use crate::support::error::Result;

impl ContextState {
    /// The deletions that count for a task which this one has launched as its launch with this number.
    #[inline]
    pub(crate) fn bequeath(&self, launch: u64) -> Option<Arc<Inherited>> {
        match self.own_deletions().filter(|log| log.is_used()) {
            None => self.inherited.clone(),
            Some(log) => Some(Arc::new(Inherited { log: Arc::clone(log), launch, above: self.inherited.clone() })),
        }
    }

    /// The task has ended: its launcher comes to know what it has destroyed.
    pub(crate) fn hand_up_deletions(&self, parent: &Self) {
        self.hand_up_field_spaces(parent);
        if let (Some(log), Some(first)) = (self.own_deletions().filter(|log| log.is_used()), self.first_made()) {
            parent.deletions().absorb(log, first);
        }
    }

    fn times_destroyed(&self, name: Name) -> u32 {
        let own = self.own_deletions().map_or(0, |log| log.times(name, ALWAYS));
        self.inherited.as_ref().map_or(own, |inherited| own.max(inherited.times(name)))
    }

    /// The place in the program of something that the task does now, which tasks are to [come after](Self::comes_after)
    /// that it launches later.
    pub(crate) fn place_for_files(&self) -> (Arc<Log>, u64) {
        let log = self.deletions();
        log.use_it();
        (Arc::clone(log), self.number_launch())
    }

    /// Whether what the task does now comes in the program after something at such a place, which was done before: by
    /// itself, or by one above it before that launched it.
    pub(crate) fn comes_after(&self, log: &Arc<Log>, number: u64) -> bool {
        self.own_deletions().is_some_and(|own| Arc::ptr_eq(own, log))
            || self.inherited.as_ref().is_some_and(|inherited| inherited.comes_after(log, number))
    }

    /// The task destroys something.
    pub(crate) fn note_deletion(&self, name: Name, tombstone: Tombstone, times: u32) {
        let number = self.number_deletion();
        self.deletions().add(name, tombstone, number, times, self.in_flight.count() == 0);
        endings::count();
    }

    /// Refuses to destroy what is destroyed for this task.
    pub(crate) fn check_not_destroyed(&self, number: u64, what: &dyn ToString) -> Result<()> {
        if self.is_destroyed(number) {
            return Err(RegionError::Destroyed { what: what.to_string() }.into());
        }
        Ok(())
    }
}

impl Deletions for ContextState {
    fn is_destroyed(&self, number: u64) -> bool {
        self.times_destroyed((number, None)) > 0
    }

    fn times_freed(&self, fields: u64, field: FieldId) -> u32 {
        self.times_destroyed((fields, Some(field)))
    }
}
