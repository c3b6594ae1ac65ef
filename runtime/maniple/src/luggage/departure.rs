//! A leaf task that could begin, and perhaps goes away instead.

use std::sync::Arc;

use maniple_mapper::TaskMapping;
use maniple_realm::machine::{NodeId, ProcessorKind};
use maniple_realm::{Class, Event, Fault, Spawn, UserEvent, Work, WorkerContext};

use super::batch::Member;
use super::description::{Description, Points};
use super::homecoming::{Departed, conclude};
use super::values;
use crate::error::Result;
use crate::mapping::decisions::MappedPoint;
use crate::point_task::{LeafTask, PointTask};
use crate::replicate::Node;
use crate::task::Value;

/// A leaf task that may go to another node. Its end is an event of its own, as it may come long after this node's worker has done with it.
pub(crate) struct MobileTask {
    pub(super) task: LeafTask,
    pub(super) done: UserEvent,
    pub(super) stays: bool,
}

impl MobileTask {
    /// Hands the task to the machine. The event is its end, wherever it runs.
    pub(crate) fn issue(task: LeafTask, spawn: Spawn<'_>) -> Event {
        let realm = task.core().realm().clone();
        let done = realm.user_event();
        // What goes in any case is not kept waiting by what runs here.
        let class = if task.point_task().mapped.batch.is_some() { Class::Runtime } else { spawn.class };
        let spawn = Spawn { class, ..spawn };
        realm.spawn(spawn, Self { task, done, stays: false });
        done.event()
    }

    /// Where the task goes, if anywhere, and what is said of it there.
    fn destination(&self, worker: &WorkerContext<'_>) -> Option<(Arc<Node>, NodeId, Description)> {
        let PointTask { state, mapped, .. } = self.task.point_task();
        let core = self.task.core();
        let node = core.node().filter(|_| !self.stays)?;
        let may_steal = || !mapped.mapping.pinned && node.takes_leaves() && can_spare(node, worker);
        if mapped.node == Some(node.id()) || (mapped.node.is_none() && !may_steal()) {
            return None;
        }
        let description = describe(self.task.point_task())?;
        let bytes = values::bytes(&mapped.physical) + description.arguments.len() as u64;
        let permits = |thief| core.permits_steal_with_data((state.name(), state.context.processor), thief, bytes);
        let to = mapped.node.or_else(|| node.take_hungry(permits))?;
        Some((Arc::clone(node), to, description))
    }

    /// Sends the task away; gives it back if it stays.
    fn leave(mut self, worker: &WorkerContext<'_>) -> Option<Self> {
        let Some((node, to, description)) = self.destination(worker) else { return Some(self) };
        let was_asked_for = self.task.point_task().mapped.node.is_none();
        match self.take_out() {
            Ok(values) => {
                let (core, batch) = (self.task.core().clone(), self.task.point_task().mapped.batch.clone());
                let departed = Departed::new(self.task, self.done);
                if let Some(batch) = batch {
                    batch.join(&core, Member { departed, description, values });
                    return None;
                }
                let returned = node.send_task(to, (&description, values, was_asked_for), departed);
                returned.map(Departed::stay)
            }
            Err(error) => {
                if was_asked_for {
                    node.put_back_hungry(to);
                }
                conclude(self.task, self.done, Err(error));
                None
            }
        }
    }

    /// The values that the task uses, as they are when its body would begin.
    fn take_out(&mut self) -> Result<Vec<u8>> {
        self.task.begin_before_leaving()?;
        let PointTask { state, mapped, .. } = self.task.point_task();
        // SAFETY: the task could begin: the analysis gives it only what it comes after all earlier writers of, and has all later ones come after the task.
        unsafe { values::pack_used(&mapped.physical) }.map_err(|error| state.blame(error, mapped.point))
    }

    fn run_here(self, worker: &WorkerContext<'_>) {
        let value: Result<Value> = self.task.call_and_report(worker);
        conclude(self.task, self.done, value);
    }
}

impl Work for MobileTask {
    fn run(self, worker: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        worker.realm().unheard(
            || "a task that may be sent to another node".to_owned(),
            || {
                if let Some(stays) = self.leave(worker) {
                    stays.run_here(worker);
                }
            },
        );
        Ok(())
    }

    fn poisoned(self, worker: &WorkerContext<'_>, fault: &Arc<Fault>) {
        worker.realm().unheard(
            || "the end of a task that could not run".to_owned(),
            || {
                self.task.end_poisoned(fault);
                worker.realm().poison(self.done, Arc::clone(fault));
            },
        );
    }
}

/// Whether there is something else to do here for the worker that is about to run a task.
#[cold]
fn can_spare(node: &Node, worker: &WorkerContext<'_>) -> bool {
    let can_spare = worker.realm().has_queued_work();
    if !can_spare {
        node.backlog_is_over();
    }
    can_spare
}

/// What another node is told of a task. None if it can't be told everything, or would understand something else.
fn describe(task: &PointTask) -> Option<Description> {
    let PointTask { state, mapped, .. } = task;
    let MappedPoint { point, mapping: TaskMapping { variant, priority, .. }, physical, .. } = &**mapped;
    let definition = &state.site.definition;
    definition.result_codec()?;
    let (path, luggage) = definition.luggage()?;
    let runs_there = definition.variants()[*variant].processor == ProcessorKind::Cpu;
    if !runs_there || !luggage.fits(physical) {
        return None;
    }
    Some(Description {
        path: path.to_owned(),
        variant: *variant,
        point: point.coords().to_vec(),
        domain: Points::of_rect(state.site.domain),
        is_index_launch: state.site.index_launch,
        priority: *priority,
        arguments: luggage.encode(&state.arguments)?,
        regions: physical.iter().map(|region| Points::of(region.space())).collect(),
    })
}
