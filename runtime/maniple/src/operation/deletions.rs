//! Deletion in program order: what is destroyed for a task.
//!
//! A task that destroys something notes it in a [`Log`] of its own, with the number that the deletion has among its
//! launches. For that task it is destroyed from then on. A task that it launches comes after those deletions that have
//! lower numbers than its launch, and after all that its launcher comes after itself: see [`Inherited`]. So what a task
//! may use depends on its place in the program alone, and not on when it runs.
//!
//! When a task ends, its launcher comes to know what it has destroyed of what it had made itself: no operation before
//! its end in the program can name that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_realm::locks::Mutex;
use maniple_region::FieldId;
use maniple_region::deletion::Tombstone;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A name, by its number, or a field of the field space with that number.
pub(crate) type Name = (u64, Option<FieldId>);

/// The names that one task has destroyed.
#[derive(Default)]
pub(crate) struct Log {
    is_used: AtomicBool,
    entries: Mutex<DeletionEntries>,
}

#[derive(Default)]
struct DeletionEntries {
    by_name: FxHashMap<Name, DeletionEntry>,
    sweep_at: usize,
}

struct DeletionEntry {
    tombstone: Tombstone,
    /// The numbers of the deletions, which rise, and how often a field with this id had been freed then.
    deletions: SmallVec<[(u64, u32); 1]>,
}

/// So many deletions of a field with one id are kept when all tasks that were launched before the latest have ended:
/// only threads that launch at this very moment may ask for more than that one.
const FEW_DELETIONS: usize = 32;

/// A number that no launch reaches.
pub(crate) const ALWAYS: u64 = u64::MAX;

impl Log {
    /// Notes a deletion. If nothing is in flight that was launched before, no task asks for what was deleted before
    /// that launch.
    pub(crate) fn add(&self, name: Name, tombstone: Tombstone, number: u64, times: u32, nothing_in_flight: bool) {
        let mut entries = self.entries.lock();
        if entries.by_name.len() >= entries.sweep_at {
            entries.by_name.retain(|_, entry| !entry.tombstone.is_forgotten());
            entries.sweep_at = 64.max(2 * entries.by_name.len());
        }
        let deletions = SmallVec::new();
        let entry = entries.by_name.entry(name).or_insert(DeletionEntry { tombstone, deletions });
        entry.deletions.push((number, times));
        if nothing_in_flight && entry.deletions.len() >= 2 * FEW_DELETIONS {
            let old = entry.deletions.len() - FEW_DELETIONS;
            entry.deletions.drain(..old);
        }
        drop(entries);
        self.is_used.store(true, Ordering::Release);
    }

    /// How often the name had been destroyed before a launch with this number: of what is no field, at most once.
    pub(crate) fn times(&self, name: Name, launch: u64) -> u32 {
        let entries = self.entries.lock();
        let Some(entry) = entries.by_name.get(&name) else { return 0 };
        // The latest one tells, as the times rise.
        let earlier = entry.deletions.iter().rev().find(|(number, _)| *number < launch);
        earlier.map_or(0, |(_, times)| *times)
    }

    /// Has tasks that are launched from now on know that they come after what the task has done so far, though it has
    /// destroyed nothing: it has used a file.
    pub(crate) fn use_it(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Adds what another task, which has ended, has destroyed, of names with this number and above: for all that comes
    /// later.
    pub(crate) fn absorb(&self, other: &Self, first: u64) {
        let other = std::mem::take(&mut other.entries.lock().by_name);
        for (name, DeletionEntry { tombstone, deletions }) in
            other.into_iter().filter(|((number, _), _)| *number >= first)
        {
            let times = deletions.iter().map(|(_, times)| *times).max().unwrap_or(0);
            self.add(name, tombstone, 0, times, false);
        }
    }
}

/// The deletions that precede a task in the program, by tasks above it.
pub(crate) struct Inherited {
    /// The log of its launcher.
    pub(crate) log: Arc<Log>,
    /// The number of the launch, which comes after what has lower ones.
    pub(crate) launch: u64,
    /// The deletions that precede its launcher.
    pub(crate) above: Option<Arc<Self>>,
}

impl Inherited {
    /// The deletions of earlier runs, for a top-level task.
    pub(crate) fn of_earlier_runs(log: &Arc<Log>) -> Option<Arc<Self>> {
        log.is_used().then(|| Arc::new(Self { log: Arc::clone(log), launch: ALWAYS, above: None }))
    }

    /// Whether the task comes after what another one, which has this log, has done when it had launched so much.
    pub(crate) fn comes_after(&self, log: &Arc<Log>, number: u64) -> bool {
        let mut above = std::iter::successors(Some(self), |inherited| inherited.above.as_deref());
        above.any(|inherited| Arc::ptr_eq(&inherited.log, log) && number < inherited.launch)
    }

    /// How often the name had been destroyed before the task begins.
    pub(crate) fn times(&self, name: Name) -> u32 {
        let above = std::iter::successors(Some(self), |inherited| inherited.above.as_deref());
        above.map(|inherited| inherited.log.times(name, inherited.launch)).max().unwrap_or(0)
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
            log.add(name, fields.mark_destroyed(), 2 * turn, turn as u32 + 1, nothing_in_flight);
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
