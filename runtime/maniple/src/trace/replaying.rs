//! The position of a session in the replay of a template.

use std::sync::Arc;

use maniple_realm::graph::GraphRuns;
use maniple_record::LaunchNumber;

use super::nodes::Stage;
use super::replay::Replay;
use super::staged::{Staged, StagedFill};
use super::whole::Whole;
use crate::context::ContextState;
use crate::launch::recording::recording::RecordingStep;
use crate::launch::{Filling, Launching};
use crate::results::Results;

pub(super) struct Replaying {
    pub(super) replay: Arc<Replay>,
    pub(super) runs: Arc<GraphRuns>,
    pub(super) run: u64,
    /// How many launches and fills of the run have come.
    pub(super) at: usize,
    /// How many launches.
    pub(super) stage: usize,
}

impl Replaying {
    /// Whether nothing more can be replayed without a look at the state of the data.
    pub(super) fn has_to_end(&self) -> bool {
        let Self { replay, run, at, .. } = self;
        *at == 0 && (replay.has_failed() || (*run > 0 && !replay.template.is_idempotent))
    }

    #[inline]
    pub(super) fn expects(&self, launching: &Launching<'_>, context: &ContextState) -> bool {
        self.next_stage().is_some_and(|stage| stage.site.is_renewed_and_allowed(launching, context))
    }

    /// The token of a fill, if it is what comes next.
    #[inline]
    pub(super) fn expects_fill(&self, filling: &Filling, context: &ContextState) -> Option<u64> {
        let (_, site) = self.replay.template.fill_at(self.at)?;
        site.is_same_and_allowed(filling, context).then_some(site.token)
    }

    /// The stage of the next step, if that is a launch.
    fn next_stage(&self) -> Option<&Stage> {
        let template = &self.replay.template;
        matches!(template.steps.get(self.at), Some(RecordingStep::Launch(_))).then(|| &template.stages[self.stage])
    }

    /// Whether the next launches were found to be the parts of this one before, and all that they name is there.
    pub(super) fn expects_whole(&self, whole: &Whole<'_>, context: &ContextState) -> bool {
        let template = &self.replay.template;
        let stages = template.stages.get(self.stage..self.stage + whole.parts());
        let steps = template.steps.get(self.at..self.at + whole.parts());
        !self.replay.is_recorded()
            && steps.is_some_and(|steps| steps.iter().all(|step| matches!(step, RecordingStep::Launch(_))))
            && stages.is_some_and(|stages| {
                let mut stages = stages.iter().enumerate();
                stages.all(|(number, stage)| {
                    let part = whole.number.part(number, whole.internal);
                    part.is_some_and(|part| stage.mark.is(part)) && stage.site.is_there(context)
                })
            })
    }

    pub(super) fn expects_staged(&self, staged: &Staged) -> bool {
        self.next_stage().is_some_and(|stage| stage.site.is_like(&staged.launch.site))
    }

    pub(super) fn expects_staged_fill(&self, staged: &StagedFill) -> bool {
        self.replay.template.fill_at(self.at).is_some_and(|(_, site)| site.is_like(&staged.site))
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

    /// The fill that is expected is replayed: nothing is done, as the nodes that put its value into instances have it.
    /// It has a number on record if it has stood in line.
    pub(super) fn issue_fill(&mut self, recorded: Option<LaunchNumber>) {
        if let Some((number, _)) = self.replay.template.fill_at(self.at) {
            self.replay.fill(number, recorded);
        }
        self.steps();
    }

    fn step(&mut self) {
        self.stage += 1;
        self.steps();
    }

    fn steps(&mut self) {
        self.at += 1;
        if self.at == self.replay.template.steps.len() {
            (self.run, self.at, self.stage) = (self.run + 1, 0, 0);
            self.replay.issued_run();
        }
    }
}
