//! A leaf task that could begin, and perhaps migrates with its data instead.

use std::sync::Arc;

use maniple_mapper::{TaskInfo, TaskMapping, TaskProfile};
use maniple_realm::machine::{NodeId, ProcessorKind};
use maniple_realm::{Class, Event, Fault, Realm, Spawn, Target, UserEvent, Work, WorkerContext};

use super::point::{LeafTask, PointTask};
use super::state::TaskState;
use crate::instances::placement::values;
use crate::instances::validity::{self, Preconditions};
use crate::mapping::decisions::MappedPoint;
use crate::migration::{LeafPoint, Member, Migration, Points, Reason, Remote, Route, TaskPacket, TaskResult};
use crate::support::error::{Error, Result};
use crate::task::Value;

/// A leaf task that may go to another node. Its end is an event of its own, as it may come long after this node's
/// worker has done with it.
struct MobileTask {
    task: LeafTask,
    done: UserEvent,
    stays: bool,
}

/// Hands a leaf task to the machine. The event is the end of its body.
pub(super) fn issue_leaf(
    task: PointTask,
    realm: &Realm,
    target: Target,
    priority: i32,
    after: &Preconditions,
) -> Event {
    let spawn = Spawn { target, priority, tag: task.tag(), ..Spawn::after(validity::after(after)) };
    match task.state.is_mobile {
        false => realm.spawn(spawn, LeafTask::new(task)),
        true => MobileTask::issue(LeafTask::new(task), spawn),
    }
}

impl MobileTask {
    /// Hands the task to the machine. The event is its end, wherever it runs.
    fn issue(task: LeafTask, spawn: Spawn<'_>) -> Event {
        let realm = task.core().realm().clone();
        let done = realm.user_event();
        // What goes in any case is not kept waiting by what runs here.
        let class = if task.point_task().mapped.batch.is_some() { Class::Runtime } else { spawn.class };
        let spawn = Spawn { class, ..spawn };
        realm.spawn(spawn, Self { task, done, stays: false });
        done.event()
    }

    /// The route of the task to another node, and the packet that describes it there; none if the task stays.
    fn destination(&self, worker: &WorkerContext<'_>) -> Option<(Route, TaskPacket)> {
        let PointTask { state, mapped, .. } = self.task.point_task();
        let core = self.task.core();
        let migration = core.migration().filter(|_| !self.stays)?;
        let may_steal = || !mapped.is_bound && migration.has_thieves_of_leaves() && can_spare(state, migration, worker);
        if mapped.node == Some(migration.node()) || (mapped.node.is_none() && !may_steal()) {
            return None;
        }
        let packet = describe(self.task.point_task())?;
        let bytes = values::bytes(&mapped.physical) + packet.arguments.len() as u64;
        let route = match (&mapped.batch, mapped.node) {
            (Some(batch), _) => Route::With(Arc::clone(batch)),
            (None, Some(node)) => Route::Alone(node),
            (None, None) => {
                let (task, whom) = (state.name(), state.whom());
                let permits = |thief, bytes| core.permits_steal_with_data(task, whom, thief, bytes);
                state.share.give(migration, state.site.points, state.unfinished(), bytes, permits)?
            }
        };
        Some((route, packet))
    }

    /// Sends the task away; gives it back if it stays.
    fn leave(mut self, worker: &WorkerContext<'_>) -> Option<Self> {
        let Some((route, mut packet)) = self.destination(worker) else { return Some(self) };
        let core = Arc::clone(self.task.core());
        let Some(migration) = core.migration() else { return Some(self) };
        match (self.take_out(), route) {
            (Ok(values), route) => {
                packet.leaves.iter_mut().for_each(|leaf| leaf.bytes = values.len());
                let remote = Box::new(RemoteLeaf { task: self.task, done: self.done, sent: core.now_ns() });
                match route {
                    Route::With(batch) => batch.join(Member { remote, packet, values }),
                    Route::Alone(to) => migration.send(to, &packet, values, remote),
                }
            }
            (Err(error), route) => {
                match route {
                    Route::With(batch) => batch.expect_fewer(1),
                    // It does not ask again by itself.
                    Route::Alone(to) if packet.reason == Reason::Stolen => migration.put_back_thief(to),
                    Route::Alone(_) => {}
                }
                conclude(self.task, self.done, Err(error));
            }
        }
        None
    }

    /// The values that the task uses, as they are when its body would begin.
    fn take_out(&mut self) -> Result<Vec<u8>> {
        self.task.begin_before_leaving()?;
        let PointTask { state, mapped, .. } = self.task.point_task();
        // SAFETY: the task could begin: the analysis gives it only what it comes after all earlier writers of, and has
        // all later ones come after the task.
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

/// Whether there is something else to do here for the worker that is about to run a task, and a thief that may get the
/// task.
#[cold]
fn can_spare(state: &TaskState, migration: &Migration, worker: &WorkerContext<'_>) -> bool {
    let can_spare = worker.realm().has_queued_work();
    if !can_spare {
        migration.backlog_is_over();
        state.share.close();
    }
    can_spare && state.share.may_give(migration)
}

/// The packet that describes a task to another node. None if not everything can be sent, or would mean something else
/// there.
fn describe(task: &PointTask) -> Option<TaskPacket> {
    let PointTask { state, mapped, .. } = task;
    let MappedPoint { point, mapping: TaskMapping { variant, priority, .. }, physical, .. } = &**mapped;
    let definition = &state.site.definition;
    definition.result_codec()?;
    let (path, migratable) = definition.migratable()?;
    let known = definition.variants().get(*variant);
    let runs_there = known.is_some_and(|variant| variant.processor == ProcessorKind::Cpu);
    if !runs_there || !migratable.fits(physical) {
        return None;
    }
    let leaf = LeafPoint {
        variant: *variant,
        priority: *priority,
        point: point.coords().to_vec(),
        regions: physical.iter().map(|region| Points::of(region.space())).collect(),
        bytes: 0,
    };
    Some(TaskPacket {
        path: path.to_owned(),
        domain: Points::of_rect(state.site.domain),
        points: Points::of_rect(state.site.domain),
        is_index_launch: state.site.index_launch,
        tag: state.site.tag,
        mapper: state.site.mapper.0,
        arguments: migratable.encode(state.arguments.as_any()?)?,
        reason: if mapped.node.is_some() { Reason::Selected } else { Reason::Stolen },
        hops: 1,
        leaves: vec![leaf],
    })
}

/// A leaf task that was sent away.
struct RemoteLeaf {
    task: LeafTask,
    done: UserEvent,
    /// When it was sent.
    sent: u64,
}

impl Remote for RemoteLeaf {
    fn complete(self: Box<Self>, results: Vec<TaskResult>) {
        let (PointTask { state, mapped, .. }, core) = (self.task.point_task(), self.task.core());
        let value = match results.into_iter().next() {
            Some(TaskResult::Ended { value, values }) => self.take_in(&value, &values),
            Some(TaskResult::Failed(error)) => Err(error),
            Some(TaskResult::Refused(why)) => return self.run_here(&why),
            None => Err(state.not_sendable()),
        };
        if mapped.mapping.profile {
            let (processor, ended) = (mapped.mapping.processor, core.now_ns());
            let point = mapped.point;
            state.report(&TaskProfile { processor, point, started: self.sent, ended, finished: ended });
        }
        state.ran_elsewhere();
        let value = value.map_err(|error| state.blame(error, mapped.point));
        conclude(self.task, self.done, value);
    }
}

impl RemoteLeaf {
    /// Puts what the task has made where it would have made it. Gives its value.
    fn take_in(&self, value: &[u8], values: &[u8]) -> Result<Value> {
        let PointTask { state, mapped, .. } = self.task.point_task();
        let value = state.decode(value)?;
        // SAFETY: the task has not ended, so what it may use is still its own. The other node, which runs the same
        // program, was told which task it is.
        unsafe { values::unpack_made(&mapped.physical, values) }?;
        Ok(value)
    }

    /// The other node would not have it. What comes before its body is done.
    fn run_here(self, why: &str) {
        let PointTask { state, mapped, .. } = self.task.point_task();
        tracing::warn!(task = state.name(), point = %mapped.point, why, "a task was not run on another node, and runs here");
        let (target, priority) = (mapped.target, mapped.mapping.priority);
        let spawn = Spawn { target, priority, tag: self.task.point_task().tag(), ..Spawn::ANYWHERE };
        let realm = self.task.core().realm().clone();
        realm.spawn(spawn, MobileTask { task: self.task, done: self.done, stays: true });
    }
}

/// A task has ended, here or elsewhere.
fn conclude(task: LeafTask, done: UserEvent, value: Result<Value>) {
    let realm = task.core().realm().clone();
    let failure = value.as_ref().err().cloned();
    task.end(value);
    match failure {
        None => realm.trigger(done),
        Some(error) => realm.poison(done, error),
    }
}

impl TaskState {
    /// The value that another node has sent.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Value> {
        let codec = self.site.definition.result_codec();
        codec.and_then(|codec| codec.decode(bytes)).ok_or_else(|| self.not_sendable())
    }

    pub(super) fn not_sendable(&self) -> Error {
        Error::NotSendable { task: self.name().to_owned() }
    }

    /// The node that the mapper selects for a leaf task, if it is to be asked, and wants a certain one.
    pub(crate) fn ask_for_node(&self, info: &TaskInfo<'_>, variant: usize) -> Result<Option<NodeId>> {
        let core = &self.context.core;
        // One that was made here, no other node has.
        let may_go = self.is_mobile && info.variants.get(variant).is_some_and(|variant| variant.is_leaf);
        let Some(migration) = core.migration().filter(|_| may_go) else { return Ok(None) };
        let (seat, nodes) = (core.seat(self.whom()), migration.nodes());
        let selected =
            seat.call(&core.store, "select_node", |mapper| mapper.select_node(info, migration.node(), nodes))?;
        match selected {
            Some(selected) if usize::from(selected.0) >= nodes => {
                let problem = format!("for `{}` chose {selected}, but the job has {nodes} nodes", info.name);
                Err(Error::mapper("select_node", problem))
            }
            selected => Ok(selected),
        }
    }
}

impl PointTask {
    /// Whether the mapper has selected another node for it.
    pub(crate) fn migrates(&self) -> bool {
        let here = self.state.context.core.migration().map(|migration| migration.node());
        self.mapped.node.is_some_and(|node| Some(node) != here)
    }
}
