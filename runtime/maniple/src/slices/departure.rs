//! A slice of a launch that leaves for another node.

use std::sync::Arc;

use maniple_mapper::NodeSlice;
use maniple_realm::{Class, Fault, Spawn, UserEvent, Work, WorkerContext};
use maniple_record::{Kind, Task};
use maniple_space::AnyPoint;

use super::{Arrived, DepartedSlice, Description};
use crate::error::Error;
use crate::operation::Operation;
use crate::physical::movement::Preconditions;
use crate::profiling::MAPPING;
use crate::replicate::Node;
use crate::task_operation::TaskState;

/// A slice that leaves as soon as what its tasks are given is there.
struct Leaving {
    state: Arc<TaskState>,
    operation: Arc<Operation>,
    slice: NodeSlice,
    start: Preconditions,
}

impl TaskState {
    /// Has a slice go to its node. Its points count as mapped once it has gone.
    pub(crate) fn send_slice(self: &Arc<Self>, operation: &Arc<Operation>, slice: NodeSlice) {
        let start = self.start();
        let leaving =
            Leaving { state: Arc::clone(self), operation: Arc::clone(operation), slice, start: start.clone() };
        let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::after(start.after()) };
        self.context.core.realm().spawn(spawn, leaving);
    }
}

impl Leaving {
    fn leave(self) {
        let core = Arc::clone(&self.state.context.core);
        let described = core.node().and_then(|node| Some((node, self.describe()?)));
        let Some((node, description)) = described else { return self.stay() };
        let done = self.record();
        let Self { state, operation, slice: NodeSlice { domain, .. }, .. } = &self;
        state.points_mapped(operation, domain.volume() as usize);
        let departed = DepartedSlice::new((state, operation), *domain, done);
        send(node, self.slice, &description, departed);
    }

    /// What the other node is told. None if it can't be told the arguments: those may be results of another launch, one for each point.
    fn describe(&self) -> Option<Description> {
        let Self { state, slice: NodeSlice { domain, recurse, .. }, .. } = self;
        let (path, luggage) = state.site.definition.luggage()?;
        let arguments = luggage.encode(&state.arguments)?;
        let arrived = Arrived { recurse: *recurse, hops: state.hops() + 1 };
        Some(Description::new(path, (state.site.domain, *domain), (arguments, state.site.tag), arrived))
    }

    /// It can't go: its points are mapped here.
    fn stay(self) {
        let Self { state, operation, slice: NodeSlice { domain, node, .. }, .. } = self;
        tracing::debug!(
            task = state.name(), points = %domain, %node,
            "a slice stays where it is, as its arguments cannot be sent"
        );
        state.map_all(&operation, domain);
    }

    /// Records the tasks of the slice, if a record is kept. The event is to be their end.
    fn record(&self) -> Option<UserEvent> {
        let Self { state, operation, slice, start } = self;
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

    fn fail(self, fault: &Fault) {
        let Self { state, operation, slice, .. } = self;
        let failed = |point: AnyPoint| (point, state.blame_fault(fault, point));
        let failed: Vec<(AnyPoint, Error)> = slice.domain.points().map(failed).collect();
        state.fail_points(&operation, failed);
    }
}

fn send(node: &Arc<Node>, slice: NodeSlice, description: &Description, departed: DepartedSlice) {
    if let Some((departed, error)) = node.send_slice(slice.node, description, departed) {
        departed.give_up(&error);
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
