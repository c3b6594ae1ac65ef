//! How a session takes in fills.

use std::sync::Arc;

use maniple_record::Launch;

use super::super::staged::StagedFill;
use super::super::trace::First;
use super::super::traced_fill::TracedFill;
use super::super::why::Why;
use super::{Arrival, Check, Phase, Session};
use crate::context::Promised;
use crate::launch::recording::RecordingProblem;
use crate::launch::{FillSite, Filling};
use crate::results::Producers;

impl Session {
    /// The token of a fill, if it is what a replay expects, which goes on with it at once.
    pub(crate) fn expected_fill(&self, filling: &Filling) -> Option<u64> {
        let Phase::Replaying(replaying) = &self.phase else { return None };
        let goes_on = !self.is_closed && self.line.is_empty() && !replaying.has_to_end();
        goes_on.then(|| replaying.expects_fill(filling, &self.context)).flatten()
    }

    /// Takes in a fill, which was found to be [expected](Self::expected_fill).
    pub(crate) fn take_expected_fill(&mut self) {
        if let Phase::Replaying(replaying) = &mut self.phase {
            replaying.issue_fill(None);
        }
        self.filled();
    }

    /// Takes in the fill that comes next in program order, if it is the one to come next. It was found to be allowed.
    pub(crate) fn take_fill(&mut self, site: &Arc<FillSite>, check: Check) -> bool {
        if self.is_closed || matches!(check, Check::Token(token) if token != site.token) {
            return false;
        }
        let (context, requirement) = (&self.context, &site.bound.requirement);
        context.operation_begins();
        let completion = context.core.realm().user_event();
        let launch = |parent| Launch {
            parent,
            name: site.name.to_owned(),
            launched: None,
            points: 1,
            requirements: vec![requirement.clone()],
            after: Vec::new(),
        };
        let recorded = context.core.store.record_launch(context.recorded, completion.event(), launch);
        let promised = Promised { completion, recorded };
        self.arrive(Arrival::Fill(Box::new(StagedFill { site: Arc::clone(site), promised })));
        self.filled();
        true
    }

    /// A fill has arrived.
    fn filled(&mut self) {
        self.arrived += 1;
        if self.run_length == Some(self.arrived) {
            self.end_run();
        }
    }

    /// Takes the fill that is first in line. Gives it back if it has to wait.
    pub(super) fn fill(&mut self, staged: Box<StagedFill>) -> Option<Box<StagedFill>> {
        if let Phase::Idle = self.phase {
            self.decide(First::Fill(&staged.site));
        }
        match &mut self.phase {
            // The decision waits.
            Phase::Waiting(_) | Phase::Idle => Some(staged),
            Phase::Recording(..) | Phase::Passing => {
                self.analyse_fill(*staged);
                None
            }
            Phase::Replaying(replaying) => {
                if !replaying.expects_staged_fill(&staged) || replaying.has_to_end() {
                    self.settle(&Why::OtherFill(&staged.site));
                    return Some(staged);
                }
                let Promised { completion, recorded } = staged.promised;
                replaying.issue_fill(recorded);
                self.context.keep(completion, None);
                self.context.operations_retired(1);
                None
            }
        }
    }

    /// Sends a fill through the analysis.
    fn analyse_fill(&mut self, StagedFill { site, promised }: StagedFill) {
        let context = Arc::clone(&self.context);
        self.record_analysed(promised.recorded);
        let recording = match &self.phase {
            Phase::Recording(recording, _) => {
                if context.is_borrowed(&site.bound) {
                    recording.fail(RecordingProblem::Borrowed);
                }
                Some((Arc::clone(recording), recording.add_fill(&site)))
            }
            _ => None,
        };
        self.next_sequence += 1;
        self.inner.set_sequence(self.next_sequence);
        let (bounds, producers) = (std::slice::from_ref(&site.bound), Producers::default());
        let operation = context.submit_to(&mut self.inner, bounds, &producers, promised, |_, _| {
            Arc::new(TracedFill::new(&site, recording))
        });
        self.release(&operation);
    }
}
