//! Deletion in program order: what is destroyed for a task.
//!
//! A task that destroys something notes it in a [`Log`] of its own, with the number that the deletion has among its launches. For that task it is destroyed from then on.
//! A task that it launches comes after those deletions that have lower numbers than its launch, and after all that its launcher comes after itself: see [`Inherited`]. So
//! what a task may use depends on its place in the program alone, and not on when it runs.
//!
//! When a task ends, its launcher comes to know what it has destroyed of what it had made itself: nobody who comes before its end in the program can name that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_realm::locks::Mutex;
use maniple_region::deletion::{Deletions, Tombstone};
use maniple_region::{FieldId, FieldSpace, IndexSpaceNode, LogicalRegion, Partitioning, RegionError, endings};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::context::{Context, ContextState};
use crate::error::Result;

/// A name, by its number, or a field of the field space with that number.
type Name = (u64, Option<FieldId>);

/// What one task has destroyed.
#[derive(Default)]
pub(crate) struct Log {
    is_used: AtomicBool,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_name: FxHashMap<Name, Entry>,
    sweep_at: usize,
}

struct Entry {
    tombstone: Tombstone,
    /// The numbers of the deletions, which rise, and how often a field with this id had been freed then.
    deletions: SmallVec<[(u64, u32); 1]>,
}

/// So many deletions of a field with one id are kept when all tasks that were launched before the latest have ended: only threads that launch at this very moment may ask for more
/// than that one.
const FEW_DELETIONS: usize = 32;

/// A number that no launch reaches.
const ALWAYS: u64 = u64::MAX;

impl Log {
    /// Notes a deletion. If nothing is in flight that was launched before, no task asks for what was deleted before that launch.
    fn add(&self, name: Name, tombstone: Tombstone, (number, times): (u64, u32), nothing_in_flight: bool) {
        let mut entries = self.entries.lock();
        if entries.by_name.len() >= entries.sweep_at {
            entries.by_name.retain(|_, entry| !entry.tombstone.is_forgotten());
            entries.sweep_at = 64.max(2 * entries.by_name.len());
        }
        let deletions = SmallVec::new();
        let entry = entries.by_name.entry(name).or_insert(Entry { tombstone, deletions });
        entry.deletions.push((number, times));
        if nothing_in_flight && entry.deletions.len() >= 2 * FEW_DELETIONS {
            let old = entry.deletions.len() - FEW_DELETIONS;
            entry.deletions.drain(..old);
        }
        drop(entries);
        self.is_used.store(true, Ordering::Release);
    }

    /// How often the name had been destroyed before a launch with this number: of what is no field, at most once.
    fn times(&self, name: Name, launch: u64) -> u32 {
        let entries = self.entries.lock();
        let Some(entry) = entries.by_name.get(&name) else { return 0 };
        // The latest one tells, as the times rise.
        let earlier = entry.deletions.iter().rev().find(|(number, _)| *number < launch);
        earlier.map_or(0, |(_, times)| *times)
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Adds what another has destroyed who has ended, of names with this number and above: for all that comes later.
    pub(crate) fn absorb(&self, other: &Self, first: u64) {
        let other = std::mem::take(&mut other.entries.lock().by_name);
        for (name, Entry { tombstone, deletions }) in other.into_iter().filter(|((number, _), _)| *number >= first) {
            let times = deletions.iter().map(|(_, times)| *times).max().unwrap_or(0);
            self.add(name, tombstone, (0, times), false);
        }
    }
}

/// What is destroyed for a task before it begins.
pub(crate) struct Inherited {
    /// What its launcher has destroyed.
    log: Arc<Log>,
    /// The number of the launch, which comes after what has lower ones.
    launch: u64,
    above: Option<Arc<Self>>,
}

impl Inherited {
    /// What earlier runs have destroyed, for a top-level task.
    pub(crate) fn of_earlier_runs(log: &Arc<Log>) -> Option<Arc<Self>> {
        log.is_used().then(|| Arc::new(Self { log: Arc::clone(log), launch: ALWAYS, above: None }))
    }
}

impl ContextState {
    /// What is destroyed for a task that this one has launched as its launch with this number.
    #[inline]
    pub(crate) fn bequeath(&self, launch: u64) -> Option<Arc<Inherited>> {
        match self.own_deletions().filter(|log| log.is_used()) {
            None => self.inherited.clone(),
            Some(log) => Some(Arc::new(Inherited { log: Arc::clone(log), launch, above: self.inherited.clone() })),
        }
    }

    /// The task has ended: its launcher comes to know what it has destroyed.
    pub(crate) fn hand_up_deletions(&self, parent: &Self) {
        if let (Some(log), Some(first)) = (self.own_deletions().filter(|log| log.is_used()), self.first_made()) {
            parent.deletions().absorb(log, first);
        }
    }

    fn times_destroyed(&self, name: Name) -> u32 {
        let own = self.own_deletions().map_or(0, |log| log.times(name, ALWAYS));
        let above = std::iter::successors(self.inherited.as_deref(), |inherited| inherited.above.as_deref());
        above.map(|inherited| inherited.log.times(name, inherited.launch)).fold(own, u32::max)
    }

    fn note_deletion(&self, name: Name, (tombstone, times): (Tombstone, u32)) {
        let number = self.number_launch();
        self.deletions().add(name, tombstone, (number, times), self.in_flight.count() == 0);
        endings::count();
    }

    /// Refuses to destroy what is destroyed for this task.
    fn check_not_destroyed(&self, number: u64, what: &dyn ToString) -> Result<()> {
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

/// Deletions take place in the order of the program, as launches do: tasks that were launched before, and those that they launch, go on undisturbed, whenever they run; the task itself
/// cannot use the name from then on, nor can those that it launches later.
impl Context {
    /// Destroys a region with everything below it. Operations launched before are not disturbed; its memory goes when they have ended. In a program on several nodes
    /// all have to destroy the same regions in the same order.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, or ended with an earlier run; [`crate::Error::NotTheMaker`] if another task made it.
    pub fn destroy_region(&self, region: impl AsRef<LogicalRegion>) -> Result<()> {
        let region = region.as_ref();
        self.state.check_created(region)?;
        self.state.note_deletion((region.tree().id().0, None), (region.tree().mark_destroyed(), 1));
        self.state.forget(region);
        Ok(())
    }

    /// Destroys a partition with everything below it: this task, and those that it launches from now on, cannot launch anything on it. Operations launched
    /// before are not disturbed.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_partition(&self, partition: impl AsRef<Partitioning>) -> Result<()> {
        let partition = partition.as_ref();
        self.state.core.forest().check_own(partition.parent())?;
        self.state.check_not_destroyed(partition.id().0, partition)?;
        self.state.note_deletion((partition.id().0, None), (partition.mark_destroyed(), 1));
        Ok(())
    }

    /// Destroys an index space with everything below it: this task, and those that it launches from now on, cannot make anything of it, nor launch on what was made of
    /// it. Operations launched before are not disturbed.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before, or is a piece of a partition.
    pub fn destroy_index_space(&self, space: &IndexSpaceNode) -> Result<()> {
        self.state.core.forest().check_own(space)?;
        self.state.check_not_destroyed(space.id().0, space)?;
        self.state.note_deletion((space.id().0, None), (space.mark_destroyed()?, 1));
        Ok(())
    }

    /// Destroys a field space: this task, and those that it launches from now on, cannot make a region of it. Regions that exist keep working.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if it was destroyed before.
    pub fn destroy_field_space(&self, fields: &FieldSpace) -> Result<()> {
        fields.check_alive(&*self.state)?;
        self.state.note_deletion((fields.id(), None), (fields.mark_destroyed(), 1));
        Ok(())
    }

    /// Frees a field: this task, and those that it launches from now on, cannot use it, and its id may be given to a new field. Operations launched before are not
    /// disturbed. The fields of a field space should be freed by one task, the one that made it.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # use maniple::FieldType;
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let fields = cx.field_space(1);
    /// let old = fields.allocate("old", FieldType::of::<f64>())?;
    /// cx.free_field(&fields, old)?;
    /// assert_eq!(fields.allocate("new", FieldType::of::<f64>())?, old);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Region`] if there is no such field, or it was freed before.
    pub fn free_field(&self, fields: &FieldSpace, field: FieldId) -> Result<()> {
        if !fields.has(field, &*self.state) {
            return Err(RegionError::NoSuchField { field }.into());
        }
        self.state.note_deletion((fields.id(), Some(field)), fields.mark_freed(field)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_are_kept_as_long_as_tasks_that_were_launched_before_are_in_flight() {
        let (fields, log) = (maniple_region::Forest::new().field_space(1), Log::default());
        let name = (fields.id(), Some(FieldId(0)));
        let free = |turn: u64, nothing_in_flight| {
            log.add(name, fields.mark_destroyed(), (2 * turn, turn as u32 + 1), nothing_in_flight);
        };
        let kept = || log.entries.lock().by_name[&name].deletions.len();
        (0..1_000).for_each(|turn| free(turn, false));
        assert!((0..1_000).all(|turn| log.times(name, 2 * turn + 1) == turn as u32 + 1));
        assert_eq!(log.times(name, 0), 0);
        for turn in 1_000..100_000 {
            free(turn, true);
            assert_eq!(log.times(name, 2 * turn + 1), turn as u32 + 1);
            assert!(kept() < 2 * FEW_DELETIONS, "{} are kept", kept());
        }
    }
}
