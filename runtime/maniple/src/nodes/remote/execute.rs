//! Packets of other nodes: their points are launched here, or run in instances made for them, or forwarded.

use std::any::Any;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::TaskInfo;
use maniple_realm::machine::NodeId;
use maniple_realm::{After, Class, Spawn};
use maniple_space::AnyRect;

use super::instances::{self, unknown};
use crate::context::{Arrived, Context, ContextState, Owned, TaskIdentity};
use crate::core::RuntimeCore;
use crate::execution::ask;
use crate::fork;
use crate::launch::TaskLauncher;
use crate::mapping::Whom;
use crate::migration::{Done, Executor, Gathered, Letter, PacketPart, Remote, TaskPacket, TaskResult, split};
use crate::operation::lifecycle::MapperNumber;
use crate::results::{Origin, Results, Sources};
use crate::support::error::{Error, Result};
use crate::support::profiling::MAPPING;
use crate::support::statistics::Counters;
use crate::task::registry::find;

/// The name of the origin of results that are computed for other nodes.
const MIGRATED: &str = "tasks of another node";

impl Executor for RuntimeCore {
    fn execute(self: Arc<Self>, packet: TaskPacket, values: Bytes, done: Done) {
        if packet.leaves.is_empty() {
            return launch(&self, &packet, done);
        }
        let gathered = Gathered::new(packet.tasks(), done);
        if !packet.is_sliced_again() {
            let all = (0..packet.tasks()).collect();
            return run(&self, &packet, values, all, &gathered);
        }
        let (core, spawn) = (Arc::clone(&self), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
        self.spawn_own("slicing again what has come from another node", spawn, move || {
            match divide(&core, &packet, &values) {
                Ok(parts) => parts.into_iter().for_each(|part| go(&core, part, &gathered)),
                Err(error) => {
                    (0..packet.tasks()).for_each(|task| gathered.end(task, TaskResult::Failed(error.clone())));
                }
            }
        });
    }

    fn steal(&self, thief: NodeId, at_least: usize) -> Option<(TaskPacket, Box<dyn Remote>)> {
        fork::steal(self, thief, at_least)
    }

    fn memory_may_be_free(&self) {
        self.task_ended();
    }

    fn deliver(self: Arc<Self>, from: NodeId, letter: Letter, text: Bytes) {
        self.deliver_letter(from, letter, text);
    }

    fn letters_heard(&self, by: NodeId, bytes: u64) {
        self.note_letters_heard(by, bytes);
    }

    fn counters(&self) -> &Counters {
        &self.store.counters
    }
}

/// Launches the points of a packet, in a context that launches nothing else; calls with what has come of each when all
/// have ended.
fn launch(core: &Arc<RuntimeCore>, packet: &TaskPacket, done: Done) {
    let Some((launcher, domain, points)) = understand(packet) else {
        let failed = || TaskResult::Failed(unknown(packet));
        return done((0..packet.tasks()).map(|_| failed()).collect());
    };
    let (is_index_launch, hops) = (packet.is_index_launch, packet.hops);
    let arrived = Some(Arrived { recurse: packet.is_sliced_again(), hops });
    let core = Arc::clone(core);
    let realm = core.realm().clone();
    realm.spawn_async(After::default(), async move {
        let (task, processor) = (Origin::BuiltIn(MIGRATED), core.processor_here());
        let identity = TaskIdentity { task, point: None, recorded: None, processor, depth: 0 };
        let mut state = ContextState::new(&core, identity, Vec::new());
        if let Some(state) = Arc::get_mut(&mut state) {
            state.arrived = arrived;
        }
        let context = Context::of(Arc::clone(&state));
        let owned = Owned::new(state);
        let results = context.submit_local(launcher, domain, Some(points), is_index_launch);
        let closed = owned.close(Ok(()));
        poll_fn(|cx| owned.poll_drained(cx.waker())).await;
        let outcomes = outcomes(&results, points);
        // Failures are sent back point by point; nothing else could have failed.
        let _ = owned.conclude(closed);
        done(outcomes);
    });
}

/// The launch: all points, and those of the packet. None if it means nothing here.
fn understand(packet: &TaskPacket) -> Option<(TaskLauncher, AnyRect, AnyRect)> {
    let definition = find(&packet.path)?;
    let (_, migratable) = definition.migratable()?;
    let (domain, points) = packet.rects()?;
    let arguments = migratable.decode(&packet.arguments)?;
    let launcher = TaskLauncher::of_free(definition, arguments, Sources::new()).tag(packet.tag);
    let launcher = launcher.for_mapper(MapperNumber(packet.mapper));
    migratable.requirements().is_empty().then_some((launcher, domain, points))
}

/// The outcome of each point of a launch that has ended.
fn outcomes(results: &Results, points: AnyRect) -> Vec<TaskResult> {
    let not_sendable = || Error::NotSendable { task: results.task().to_owned() };
    let codec = results.definition().and_then(|definition| definition.result_codec());
    let encode = |value: &dyn Any| match codec.and_then(|codec| codec.encode(value)) {
        Some(value) => TaskResult::Ended { value, values: Bytes::new() },
        None => TaskResult::Failed(not_sendable()),
    };
    let whole = results.launch_failure();
    let outcome = |index: usize| match results.value(index) {
        Some(Ok(value)) => encode(value),
        Some(Err(error)) => TaskResult::Failed(error.clone()),
        // What is not kept is `()`.
        None => whole.clone().map_or_else(|| encode(&()), TaskResult::Failed),
    };
    (0..points.volume() as usize).map(outcome).collect()
}

/// Runs the leaf tasks of a packet here, which have these numbers among those whose results are gathered.
fn run(core: &Arc<RuntimeCore>, packet: &TaskPacket, values: Bytes, tasks: Vec<usize>, gathered: &Arc<Gathered>) {
    let Some(leaves) = packet.leaf_values(values) else {
        let error = Error::launch(&packet.path, "another node has sent fewer values than this task uses");
        return tasks.into_iter().for_each(|task| gathered.end(task, TaskResult::Failed(error.clone())));
    };
    for (task, (leaf, values)) in tasks.into_iter().zip(leaves) {
        let gathered = Arc::clone(gathered);
        instances::execute(core, packet, leaf, values, move |result| gathered.end(task, result));
    }
}

/// Runs a part of a packet where its slice goes.
fn go(core: &Arc<RuntimeCore>, PacketPart { to, packet, values, tasks }: PacketPart, gathered: &Arc<Gathered>) {
    match core.migration().filter(|migration| migration.node() != to) {
        Some(migration) => migration.send(to, &packet, values, gathered.forwarded(tasks)),
        None => run(core, &packet, values.into(), tasks, gathered),
    }
}

/// Has the mapper slice a packet of leaf tasks that has come here.
fn divide(core: &Arc<RuntimeCore>, packet: &TaskPacket, values: &Bytes) -> Result<Vec<PacketPart>> {
    let problem = |problem| move || Error::launch(&packet.path, problem);
    let no_sense = problem(
        "another node has sent a slice of this task that makes no sense here; start the same program on all nodes",
    );
    let migration = core.migration().ok_or_else(problem("a slice has come to a job of one node"))?;
    let (definition, domain) = find(&packet.path).zip(packet.points.rect()).ok_or_else(&no_sense)?;
    let origin = core.processor_here();
    let info = TaskInfo {
        name: definition.name(),
        point: domain.lo(),
        domain,
        is_index_launch: true,
        requirements: &[],
        variants: definition.variants(),
        origin,
        depth: 1,
        tag: packet.tag,
    };
    let whom = Whom { processor: origin, mapper: MapperNumber(packet.mapper) };
    let slices = ask(core, migration, whom, &info, packet.hops)?;
    split(packet, values, &slices).ok_or_else(no_sense)
}
