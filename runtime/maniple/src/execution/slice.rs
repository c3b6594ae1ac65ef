//! A slice of an index launch without regions that leaves for another node.

use std::sync::Arc;

use maniple_mapper::NodeSlice;
use maniple_realm::{Class, Fault, Spawn, UserEvent, Work, WorkerContext};
use maniple_record::{Kind, Task};
use maniple_space::{AnyPoint, AnyRect};

use super::state::TaskState;
use crate::instances::validity::{self, Preconditions};
use crate::migration::{Points, Reason, Remote, TaskPacket, TaskResult};
use crate::operation::lifecycle::Operation;
use crate::support::error::Error;
use crate::support::profiling::MAPPING;

/// A slice that leaves as soon as what its tasks are given is there.
struct Leaving {
    state: Arc<TaskState>,
    operation: Arc<Operation>,
    slice: NodeSlice,
    reason: Reason,
    start: Preconditions,
}

impl TaskState {
    /// Sends a slice to its node, when its arguments are there. Its points count as mapped once it has gone.
    pub(crate) fn send_slice(self: &Arc<Self>, operation: &Arc<Operation>, slice: NodeSlice, reason: Reason) {
        let start = self.start();
        let (state, operation) = (Arc::clone(self), Arc::clone(operation));
        let leaving = Leaving { state, operation, slice, reason, start: start.clone() };
        let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::after(validity::after(&start)) };
        self.context.core.realm().spawn(spawn, leaving);
    }
}

impl Leaving {
    fn leave(self) {
        let core = Arc::clone(&self.state.context.core);
        let described = core.migration().and_then(|migration| Some((migration, self.describe()?)));
        let Some((migration, packet)) = described else { return self.stay() };
        let recorded = self.record();
        let Self { state, operation, slice: NodeSlice { domain, node, .. }, .. } = self;
        state.points_mapped(&operation, domain.volume() as usize);
        let remote = RemoteSlice { state, operation, points: domain, recorded };
        migration.send(node, &packet, Vec::new(), Box::new(remote));
    }

    /// The packet that describes the slice to the other node. None if the arguments can't be sent: they may be results
    /// of another launch, one for each point.
    fn describe(&self) -> Option<TaskPacket> {
        let Self { state, slice, reason, .. } = self;
        let (path, migratable) = state.site.definition.migratable()?;
        Some(TaskPacket {
            path: path.to_owned(),
            domain: Points::of_rect(state.site.domain),
            points: Points::of_rect(slice.domain),
            is_index_launch: true,
            tag: state.site.tag,
            mapper: state.site.mapper.0,
            arguments: migratable.encode(state.arguments.as_any()?)?,
            reason: *reason,
            hops: state.hops() + 1,
            leaves: Vec::new(),
        })
    }

    /// It can't go: its points are mapped here.
    fn stay(self) {
        self.put_back_thief();
        let Self { state, operation, slice: NodeSlice { domain, node, .. }, .. } = self;
        tracing::debug!(
            task = state.name(), points = %domain, %node,
            "a slice stays where it is, as its arguments cannot be sent"
        );
        state.map_all(&operation, domain);
    }

    /// Records the tasks of the slice, if a record is kept. The event is to be their end.
    fn record(&self) -> Option<UserEvent> {
        let Self { state, operation, slice, start, .. } = self;
        operation.recorded?;
        let core = &state.context.core;
        let done = core.realm().user_event();
        for point in slice.domain.points() {
            let Some(place) = operation.place(state.index(point) as u64) else { continue };
            core.store.record_ended(Some(place.parent), start, done.event(), || {
                let (name, point) = (state.name().to_owned(), state.shown_point(point));
                Kind::Task(Task { place, name, point, is_leaf: true, usages: Vec::new() })
            });
        }
        Some(done)
    }

    /// A thief that gets nothing after all does not ask again by itself.
    fn put_back_thief(&self) {
        if let (Reason::Stolen, Some(migration)) = (self.reason, self.state.context.core.migration()) {
            migration.put_back_thief(self.slice.node);
        }
    }

    fn fail(self, fault: &Fault) {
        self.put_back_thief();
        let Self { state, operation, slice, .. } = self;
        let failed = |point: AnyPoint| (point, state.blame_fault(fault, point));
        let failed: Vec<(AnyPoint, Error)> = slice.domain.points().map(failed).collect();
        state.fail_points(&operation, failed);
    }
}

impl Work for Leaving {
    fn run(self, worker: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        worker.realm().unheard(|| "a slice of a launch that goes to another node".to_owned(), || self.leave());
        Ok(())
    }

    fn poisoned(self, worker: &WorkerContext<'_>, fault: &Arc<Fault>) {
        worker.realm().unheard(|| "the end of a slice that could not go".to_owned(), || self.fail(fault));
    }
}

/// A slice that was sent away.
struct RemoteSlice {
    state: Arc<TaskState>,
    operation: Arc<Operation>,
    points: AnyRect,
    /// The event on record that ends the tasks of the slice.
    recorded: Option<UserEvent>,
}

impl Remote for RemoteSlice {
    fn complete(self: Box<Self>, results: Vec<TaskResult>) {
        let Self { state, operation, points, recorded } = *self;
        let core = Arc::clone(&state.context.core);
        // Its points are mapped already, and can't be mapped again: nodes refuse slices only when the job ends.
        let refused = |why: &str| core.check_whole().err().unwrap_or_else(|| Error::launch(state.name(), why));
        let mut failure = None;
        state.slice_ran_elsewhere(points.volume());
        // One for each point: the other node was told which they are. Without an answer there is a failure, so that no
        // task waits for ever.
        let mut results = results.into_iter();
        for point in points.points() {
            let value = results.next().map_or_else(|| Err(state.not_sendable()), |result| result.value(refused));
            let value = value.and_then(|bytes| state.decode(&bytes)).map_err(|error| state.blame(error, point));
            if failure.is_none() {
                failure = value.as_ref().err().cloned();
            }
            state.point_ended(&operation, state.index(point), value);
        }
        match (recorded, failure) {
            (None, _) => {}
            (Some(done), None) => core.realm().trigger(done),
            (Some(done), Some(error)) => core.realm().poison(done, Arc::<Fault>::from(error)),
        }
    }
}
