//! What is done when the results of a slice come home.

use std::sync::Arc;

use maniple_realm::{Class, Fault, Spawn, UserEvent};
use maniple_space::{AnyPoint, AnyRect};

use super::Outcome;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::task::Value;
use crate::task_operation::TaskState;

/// A slice that is away.
pub(crate) struct DepartedSlice {
    state: Arc<TaskState>,
    operation: Arc<Operation>,
    points: AnyRect,
    /// What ends its tasks on record.
    recorded: Option<UserEvent>,
}

impl DepartedSlice {
    pub(super) fn new(
        (state, operation): (&Arc<TaskState>, &Arc<Operation>),
        points: AnyRect,
        recorded: Option<UserEvent>,
    ) -> Self {
        Self { state: Arc::clone(state), operation: Arc::clone(operation), points, recorded }
    }

    /// The other node has answered, in the order of the points. A worker does the rest, which may be much: the thread that calls may be the network's.
    pub(crate) fn come_back(self, outcomes: Vec<Outcome>) {
        let core = Arc::clone(&self.state.context.core);
        let spawn = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };
        core.spawn_own("the return of a slice of a launch", spawn, move || self.settle(outcomes));
    }

    /// Nobody will answer: the job has ended.
    pub(crate) fn give_up(self, error: &Error) {
        let failed = |_: AnyPoint| Err(error.clone());
        let outcomes = self.points.points().map(failed).collect();
        self.settle(outcomes);
    }

    fn settle(self, outcomes: Vec<Outcome>) {
        let Self { state, operation, points, recorded } = self;
        let failure = outcomes.iter().find_map(|outcome| outcome.as_ref().err().cloned());
        state.slice_ran_elsewhere(points.volume());
        // One for each point: the other node was told which they are. Without an answer there is a failure, so that nobody waits for ever.
        let mut outcomes = outcomes.into_iter();
        for point in points.points() {
            let outcome = outcomes.next().unwrap_or_else(|| Err(state.not_sendable()));
            let value = outcome.and_then(|bytes| decode(&state, &bytes));
            state.point_ended(&operation, state.index(point), value.map_err(|error| state.blame(error, point)));
        }
        let realm = state.context.core.realm();
        match (recorded, failure) {
            (None, _) => {}
            (Some(done), None) => realm.trigger(done),
            (Some(done), Some(error)) => realm.poison(done, Arc::<Fault>::from(error)),
        }
    }
}

fn decode(state: &TaskState, bytes: &[u8]) -> Result<Value> {
    let codec = state.site.definition.result_codec();
    codec.and_then(|codec| codec.decode(bytes)).ok_or_else(|| state.not_sendable())
}

impl TaskState {
    fn not_sendable(&self) -> Error {
        Error::NotSendable { task: self.name().to_owned() }
    }
}
