//! Counts of a run: a sign of life while the run is watched, and evidence that it was worth running.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a run that is under way. Relaxed: they order nothing.
#[derive(Default, Debug)]
pub struct Tally {
    statements: AtomicU64,
    tasks: AtomicU64,
    running: AtomicU64,
    most_at_once: AtomicU64,
    results: AtomicU64,
    cells: AtomicU64,
    refusals: AtomicU64,
    failures: AtomicU64,
}

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Statements begun, in all tasks.
    pub statements: u64,
    /// Tasks begun: one a point.
    pub tasks: u64,
    /// The most leaf tasks that ran at one time.
    pub most_at_once: u64,
    /// Results of tasks and copies that were waited for and equal to the oracle's.
    pub results: u64,
    /// Values of regions that were equal to the oracle's at the end.
    pub cells: u64,
    /// Statements that were refused, as they had to be.
    pub refusals: u64,
    /// Waits, inline mappings and looks at the final values that gave an error, as they had to or were free to.
    pub failures: u64,
}

/// A leaf task at work, until it is dropped.
pub(super) struct AtWork<'a>(&'a Tally);

impl Tally {
    /// The counts up to now.
    #[must_use]
    pub fn read(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            statements: get(&self.statements),
            tasks: get(&self.tasks),
            most_at_once: get(&self.most_at_once),
            results: get(&self.results),
            cells: get(&self.cells),
            refusals: get(&self.refusals),
            failures: get(&self.failures),
        }
    }

    pub(super) fn statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn task(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leaf(&self) -> AtWork<'_> {
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        self.most_at_once.fetch_max(others + 1, Ordering::Relaxed);
        AtWork(self)
    }

    pub(super) fn right_results(&self, count: usize) {
        self.results.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn right_cell(&self) {
        self.cells.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
