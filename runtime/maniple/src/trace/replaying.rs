//! Where a session stands in the replay of a template.

use std::sync::Arc;

use super::replay::Replay;
use super::staged::Staged;
use super::whole::Whole;
use crate::context::ContextState;
use crate::launch::Launching;
use crate::results::Results;
use maniple_realm::graph::GraphRuns;

pub(super) struct Replaying {
    pub(super) replay: Arc<Replay>,
    pub(super) runs: Arc<GraphRuns>,
    pub(super) run: u64,
    pub(super) stage: usize,
}

impl Replaying {
    /// Whether nothing more can be replayed without a look at the state of the data.
    pub(super) fn has_to_end(&self) -> bool {
        let Self { replay, run, stage, .. } = self;
        *stage == 0 && (replay.has_failed() || (*run > 0 && !replay.template.is_idempotent))
    }

    #[inline]
    pub(super) fn expects(&self, launching: &Launching<'_>, context: &ContextState) -> bool {
        let stage = self.replay.template.stages.get(self.stage);
        stage.is_some_and(|stage| stage.site.is_same_and_allowed(launching, context))
    }

    /// Whether the next launches were found to be the parts of this one before, and all that they name is there.
    pub(super) fn expects_whole(&self, whole: &Whole<'_>, context: &ContextState) -> bool {
        let stages = self.replay.template.stages.get(self.stage..self.stage + whole.parts());
        !self.replay.is_recorded()
            && stages.is_some_and(|stages| {
                let mut stages = stages.iter().enumerate();
                stages.all(|(number, stage)| {
                    let part = whole.number.part(number, whole.internal);
                    part.is_some_and(|part| stage.mark.is(part)) && stage.site.is_there(context)
                })
            })
    }

    pub(super) fn expects_staged(&self, staged: &Staged) -> bool {
        let stage = self.replay.template.stages.get(self.stage);
        stage.is_some_and(|stage| stage.site.is_like(&staged.launch.site))
    }

    /// Whether there is a slot for the launch that is expected. If not, the session is woken when there may be one.
    pub(super) fn has_slot(&self) -> bool {
        self.stage > 0 || self.replay.has_slot(&self.runs, self.run)
    }

    pub(super) fn can_issue(&self) -> bool {
        !self.has_to_end() && self.has_slot()
    }

    /// Issues the launch that is expected.
    pub(super) fn issue(&mut self, launching: &mut Launching<'_>) -> Arc<Results> {
        if let Some(part) = launching.part {
            self.replay.template.stages[self.stage].mark.set(part);
        }
        let results = self.replay.launch(&self.runs, self.run, self.stage, launching.launcher);
        self.step();
        results
    }

    /// Issues all of a launch of the program, which is expected.
    pub(super) fn issue_whole(&mut self, whole: &mut Whole<'_>) -> Arc<Results> {
        for _ in 0..whole.internal {
            self.replay.launch_internal(&self.runs, self.run, self.stage, whole.complete);
            self.step();
        }
        let results = self.replay.launch(&self.runs, self.run, self.stage, whole.launcher);
        self.step();
        results
    }

    pub(super) fn issue_staged(&mut self, staged: Staged) {
        self.replay.launch_staged(&self.runs, self.run, self.stage, staged);
        self.step();
    }

    pub(super) fn step(&mut self) {
        self.stage += 1;
        if self.stage == self.replay.template.stages.len() {
            (self.run, self.stage) = (self.run + 1, 0);
        }
    }
}
