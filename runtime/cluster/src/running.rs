//! The program that runs, for the threads that look at it or bring what other nodes show.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use maniple_realm::locks::Mutex;

use crate::error::Error;
use crate::standstill::Standstill;

/// A program that runs, as the job sees it.
pub(crate) trait RunningProgram: Send + Sync {
    /// Returns the [`Standstill`] that it shows its neighbours, encoded: once, when it has come no further since the
    /// last look.
    fn look(&self) -> Option<Bytes>;

    /// A neighbour shows what it has done. If that is something else than here: what this node shows in turn, so that
    /// the neighbour comes to the same, and why the job ends.
    fn compare_with(&self, other: Standstill) -> Option<(Bytes, Error)>;
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Running {
    /// How many programs have begun. Nodes count alike.
    programs: AtomicU64,
    now: Mutex<Option<(u64, Weak<dyn RunningProgram>)>>,
}

impl Running {
    /// The number of a program that is about to begin.
    pub(crate) fn next(&self) -> u64 {
        // Against `Leaves::hear`: one of the two sees the other.
        self.programs.fetch_add(1, Ordering::SeqCst)
    }

    /// How many programs have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.programs.load(Ordering::SeqCst)
    }

    /// The program with this number begins.
    pub(crate) fn begin(&self, number: u64, program: Weak<dyn RunningProgram>) {
        *self.now.lock() = Some((number, program));
    }

    /// The program with this number has ended on all nodes.
    pub(crate) fn end(&self, number: u64) {
        self.now.lock().take_if(|(running, _)| *running == number);
    }

    /// The program that runs.
    pub(crate) fn get(&self) -> Option<Arc<dyn RunningProgram>> {
        self.now.lock().as_ref()?.1.upgrade()
    }
}
