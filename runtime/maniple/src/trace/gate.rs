//! Gates: what keeps the nodes of a launch that is replayed from running before what the launch takes is there.

use std::sync::{Arc, Weak};

use maniple_realm::Fault;
use maniple_realm::graph::GraphRuns;

/// The gate of a stage in a run.
pub(crate) struct Gate<'a> {
    pub(super) runs: &'a Arc<GraphRuns>,
    pub(super) run: u64,
    pub(super) stage: u32,
    /// The end of the stage is to be told.
    pub(super) is_watched: bool,
}

/// A gate that is opened later, by who does not keep the replay.
pub(crate) struct LaterGate {
    runs: Weak<GraphRuns>,
    run: u64,
    stage: u32,
    is_watched: bool,
}

impl Gate<'_> {
    pub(crate) fn open(&self) {
        match self.is_watched {
            true => self.runs.open(self.run, self.stage),
            false => self.runs.open_unwatched(self.run, self.stage),
        }
    }

    /// What the launch takes will never be there.
    pub(crate) fn fail(&self, fault: &Arc<Fault>) {
        self.runs.fail(self.run, self.stage, fault);
    }

    pub(crate) fn later(&self) -> LaterGate {
        LaterGate { runs: Arc::downgrade(self.runs), run: self.run, stage: self.stage, is_watched: self.is_watched }
    }
}

impl LaterGate {
    /// The gate, if the replay is still there.
    pub(crate) fn now(&self, then: impl FnOnce(Gate<'_>)) {
        if let Some(runs) = &self.runs.upgrade() {
            then(Gate { runs, run: self.run, stage: self.stage, is_watched: self.is_watched });
        }
    }
}
