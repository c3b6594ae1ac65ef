//! Sessions on record: in which order their phases are, of which each begins when the one before has ended.

use std::sync::Arc;

use maniple_realm::Event;
use maniple_record::{Because, LaunchNumber, OperationNumber};

use crate::context::ContextState;
use crate::operation::lifecycle::Operation;
use crate::support::recorder::Recorder;

/// A session that has begun, while a record is kept.
pub(super) struct SessionRecord {
    recorder: Arc<Recorder>,
    /// The task that launches.
    task: OperationNumber,
    /// The launch that stands for the session.
    beginning: LaunchNumber,
    /// The launch that stands for the beginning of the phase.
    fence: LaunchNumber,
    /// The launches of the phase so far.
    launched: Vec<LaunchNumber>,
}

impl SessionRecord {
    /// A session begins, when what these events are the ends of has ended.
    pub(super) fn begin(context: &ContextState, operation: &Operation, earlier: &[Event]) -> Option<Self> {
        let (recorder, task) = (Arc::clone(context.core.store.recorder.as_ref()?), context.recorded?);
        let beginning = operation.recorded?;
        recorder.stand_still(task, recorder.numbers_of(earlier.iter().copied()));
        Some(Self { recorder, task, beginning, fence: beginning, launched: Vec::new() })
    }

    /// The launch that stands for the beginning of the phase.
    pub(super) fn fence(&self) -> LaunchNumber {
        self.fence
    }

    /// A launch is analysed in this phase.
    pub(super) fn analysed(&mut self, launch: LaunchNumber) {
        self.recorder.depends(launch, self.fence, Because::Fence);
        self.launched.push(launch);
    }

    /// A phase has ended, in which launches with these ends were analysed.
    pub(super) fn analysis_ended(&mut self, ends: &[Event]) {
        self.recorder.stand_still(self.task, self.recorder.numbers_of(ends.iter().copied()));
        self.phase_ended();
    }

    /// A phase has ended, in which these launches were replayed.
    pub(super) fn replay_ended(&mut self, launched: Vec<LaunchNumber>) {
        self.launched = launched;
        self.phase_ended();
    }

    fn phase_ended(&mut self) {
        let launched = std::mem::take(&mut self.launched);
        if !launched.is_empty() {
            self.fence = self.recorder.fence(self.task, "trace", launched);
        }
    }

    /// The session has ended, and with it this event comes.
    pub(super) fn end(mut self, completion: Event) {
        self.phase_ended();
        let end = self.recorder.end_of_trace(self.beginning);
        if end != self.fence {
            self.recorder.depends(end, self.fence, Because::Fence);
        }
        self.recorder.ends_with(self.recorder.issued_after(self.task), completion);
    }
}
