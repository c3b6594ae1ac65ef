//! Gates: what keeps the nodes of a stage from running before what the stage takes is there.

use std::sync::{Arc, Weak};

use super::GraphRuns;
use crate::fault::Fault;

/// The gate of a stage in a run.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    runs: &'a Arc<GraphRuns>,
    run: u64,
    stage: u32,
    is_watched: bool,
}

/// A gate that does not keep the graph running, for a holder that opens it later.
pub struct WeakGate {
    runs: Weak<GraphRuns>,
    run: u64,
    stage: u32,
    is_watched: bool,
}

impl<'a> Gate<'a> {
    /// The gate of a stage, which is [watched](GraphRuns::open) or [not](GraphRuns::open_unwatched).
    #[must_use]
    pub fn new(runs: &'a Arc<GraphRuns>, run: u64, stage: u32, is_watched: bool) -> Self {
        Self { runs, run, stage, is_watched }
    }

    /// The graph that runs.
    #[must_use]
    pub fn runs(&self) -> &'a Arc<GraphRuns> {
        self.runs
    }

    /// Whether the end of the stage is to be told.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The run and the stage.
    #[must_use]
    pub fn place(&self) -> (u64, u32) {
        (self.run, self.stage)
    }

    /// Lets the nodes of the stage run.
    pub fn open(&self) {
        match self.is_watched {
            true => self.runs.open(self.run, self.stage),
            false => self.runs.open_unwatched(self.run, self.stage),
        }
    }

    /// Fails the nodes that take what the stage is opened with: see [`GraphRuns::fail`].
    pub fn fail(&self, fault: &Arc<Fault>) {
        self.runs.fail(self.run, self.stage, fault);
    }

    /// The same gate, for later.
    #[must_use]
    pub fn downgrade(&self) -> WeakGate {
        WeakGate { runs: Arc::downgrade(self.runs), run: self.run, stage: self.stage, is_watched: self.is_watched }
    }
}

impl WeakGate {
    /// Calls with the gate, if the graph is still there.
    pub fn with(&self, then: impl FnOnce(Gate<'_>)) {
        if let Some(runs) = &self.runs.upgrade() {
            then(Gate { runs, run: self.run, stage: self.stage, is_watched: self.is_watched });
        }
    }
}
