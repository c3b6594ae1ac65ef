//! Leaf tasks of other nodes, in instances made for them.
//!
//! The regions of such a task are made of what was sent: instances of its own, in which contributions begin as the
//! operator's identity. So its body meets nothing of this node's program, and nothing that it does is seen before it
//! has ended well.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::InstanceChoice;
use maniple_realm::instance::{Instance, InstanceError, InstanceKind};
use maniple_realm::layout::{Layout, LayoutConstraint};
use maniple_realm::machine::{MemoryId, ProcessorId};
use maniple_realm::profile::Tag;
use maniple_realm::{Event, Fault, Spawn, Work, WorkerContext, fault};
use maniple_region::{FieldMask, LogicalRegion, Privilege};
use maniple_space::{AnyPoint, AnyRect, AnySpace};
use smallvec::SmallVec;

use crate::core::RuntimeCore;
use crate::instances::instance::PhysicalInstance;
use crate::instances::placement::{PhysicalRegion, Placement, values};
use crate::instances::selection::{instance_kind, layout};
use crate::migration::{LeafPoint, Points, TaskPacket, TaskResult};
use crate::support::error::Error;
use crate::support::profiling::LaunchLabels;
use crate::task::arguments::Arguments;
use crate::task::call::LeafCall;
use crate::task::migratable::{Migratable, MigratedRequirement};
use crate::task::registry::find;
use crate::task::taken::Taken;
use crate::task::{Body, LeafBody, TaskDefinition};

/// Has a worker run a leaf task of a packet, and calls when that has ended.
pub(super) fn execute(
    core: &Arc<RuntimeCore>,
    packet: &TaskPacket,
    leaf: &LeafPoint,
    values: Bytes,
    done: impl FnOnce(TaskResult) + Send + 'static,
) {
    let Some(task) = MigratedTask::of(packet, leaf, values) else { return done(TaskResult::Failed(unknown(packet))) };
    let shown = task.is_index_launch.then_some(&task.domain);
    let labels = core.profiler().map(|profiler| LaunchLabels::new(profiler, task.definition.name(), shown, None));
    let tag = labels.map_or(Tag::NONE, |labels| labels.task(task.domain.linear(task.point) as usize));
    let work = Execution { core: Arc::clone(core), task, done };
    core.realm().spawn(Spawn { tag, priority: leaf.priority, ..Spawn::ANYWHERE }, work);
}

/// The tasks of a packet mean nothing here.
pub(super) fn unknown(packet: &TaskPacket) -> Error {
    let problem = "another node has sent this task, which is not to be found here; start the same program on all nodes";
    Error::launch(&packet.path, problem)
}

/// A leaf task of another node.
struct MigratedTask {
    definition: &'static Arc<TaskDefinition>,
    migratable: &'static Migratable,
    variant: usize,
    body: LeafBody,
    point: AnyPoint,
    domain: AnyRect,
    is_index_launch: bool,
    arguments: Arguments,
    spaces: Vec<AnySpace>,
    values: Bytes,
}

/// Why a task did not end well.
enum Stop {
    Failed(Error),
    Refused(String),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl MigratedTask {
    /// None if the packet means nothing here.
    fn of(packet: &TaskPacket, leaf: &LeafPoint, values: Bytes) -> Option<Self> {
        let TaskPacket { path, domain, is_index_launch, arguments, .. } = packet;
        let LeafPoint { variant, point, regions, .. } = leaf;
        let definition = find(path)?;
        let (_, migratable) = definition.migratable()?;
        let body = match definition.body_if_any(*variant)? {
            Body::Leaf(body) => Arc::clone(body),
            Body::Context(_) => return None,
        };
        let spaces = regions.iter().map(Points::space).collect::<Option<Vec<_>>>()?;
        let (point, domain) = (AnyPoint::new(point).ok()?, domain.rect()?);
        let is_understood = spaces.len() == migratable.requirements().len() && domain.contains(point);
        is_understood.then_some(())?;
        Some(Self {
            definition,
            migratable,
            variant: *variant,
            body,
            point,
            domain,
            is_index_launch: *is_index_launch,
            arguments: migratable.decode(arguments)?,
            spaces,
            values,
        })
    }

    /// Runs the body: its value, and the values that it has made.
    fn run(&self, core: &Arc<RuntimeCore>, processor: ProcessorId) -> std::result::Result<(Vec<u8>, Vec<u8>), Stop> {
        let requirements = self.migratable.requirements().iter().zip(&self.spaces).enumerate();
        let place = |(number, (requirement, space))| self.place(core, processor, number, requirement, space);
        let regions = requirements.map(place).collect::<std::result::Result<Vec<_>, Stop>>()?;
        // SAFETY: the instances were just made. The other node, which runs the same program, has sent the values of
        // this task.
        unsafe { values::unpack_used(&regions, &self.values) }?;
        let name = self.definition.name();
        let call = LeafCall {
            task: name,
            point: &self.point,
            domain: &self.domain,
            over: None,
            processor,
            realm: core.realm(),
            regions: &regions,
            arguments: &self.arguments,
            taken: Taken::default(),
        };
        let shown = self.is_index_launch.then_some(self.point);
        let outcome = fault::catch(|| (self.body)(&call)).map_err(|fault| Error::of_fault(&fault, name, shown));
        let value = outcome.flatten().map_err(|error| error.of_task(name, shown, None))?;
        let codec = self.definition.result_codec();
        let value = codec.and_then(|codec| codec.encode(value.as_any()));
        let value = value.ok_or_else(|| Error::NotSendable { task: name.to_owned() })?;
        // SAFETY: the body has ended, and nothing else uses the instances.
        Ok((value, unsafe { values::pack_made(&regions) }?))
    }

    /// Makes room for the data of a requirement.
    fn place(
        &self,
        core: &Arc<RuntimeCore>,
        processor: ProcessorId,
        number: usize,
        requirement: &MigratedRequirement,
        space: &AnySpace,
    ) -> std::result::Result<PhysicalRegion, Stop> {
        let region = requirement.region(core.forest(), space)?;
        let columns: SmallVec<[FieldMask; 2]> = match requirement.privilege {
            // Contributions to fields of several types have no place in one instance.
            Privilege::Reduce(_) => requirement.fields.iter().map(FieldMask::of).collect(),
            _ => SmallVec::from_iter([requirement.fields.clone()]),
        };
        let layout = self.definition.variants()[self.variant].layout_of(number);
        let make = |fields: FieldMask| {
            let instance = make(core, processor, &region, &fields, requirement.privilege, layout)?;
            Ok::<_, Stop>((fields, instance))
        };
        let instances = columns.into_iter().map(make).collect::<std::result::Result<_, Stop>>()?;
        let (fields, privilege) = (requirement.fields.clone(), requirement.privilege);
        Ok(PhysicalRegion::new(region, fields, privilege, Placement::Instances(instances)))
    }
}

/// Makes an instance in the best memory that has room.
fn make(
    core: &Arc<RuntimeCore>,
    processor: ProcessorId,
    region: &LogicalRegion,
    fields: &FieldMask,
    privilege: Privilege,
    constraint: LayoutConstraint,
) -> std::result::Result<Arc<PhysicalInstance>, Stop> {
    let operator = match privilege {
        Privilege::Reduce(operator) => Some(operator),
        _ => None,
    };
    let kind = instance_kind(region, fields, operator)?;
    let mut refused = None;
    for visible in core.machine().memories_visible_from(processor) {
        let choice = InstanceChoice { layout: constraint, ..InstanceChoice::in_memory(visible.memory) };
        let spec = layout(region, fields, &choice, operator)?;
        let layout = spec.build().map_err(Error::internal)?;
        match create(core, visible.memory, &layout, kind) {
            Ok((storage, ready)) => {
                return Ok(core.store.new_instance(storage, ready, region.clone(), fields.clone(), operator));
            }
            Err(error) => refused = Some(error),
        }
    }
    let rank = core.migration().map_or(0, |migration| migration.node().0);
    let why = refused.map_or_else(|| "its workers see no memory".to_owned(), |error| error.to_string());
    Err(Stop::Refused(format!("node {rank}: {why}")))
}

/// Makes an instance whose memory is there at once, if need be by freeing instances that are unused.
fn create(
    core: &RuntimeCore,
    memory: MemoryId,
    layout: &Layout,
    kind: InstanceKind,
) -> std::result::Result<(Arc<Instance>, Event), InstanceError> {
    loop {
        let error = match core.realm().create_instance(memory, layout.clone(), kind) {
            Ok((instance, ready)) if !core.realm().has_triggered(ready) => core.store.promised(&instance),
            Ok(storage) => return Ok(storage),
            Err(error) => error,
        };
        if !core.store.make_room(memory, i64::MAX) && !core.store.discard_caches() {
            return Err(error);
        }
    }
}

/// Such a task as work for a worker.
struct Execution<D> {
    core: Arc<RuntimeCore>,
    task: MigratedTask,
    done: D,
}

impl<D: FnOnce(TaskResult) + Send + 'static> Work for Execution<D> {
    fn run(self, worker: &WorkerContext<'_>) -> std::result::Result<(), Arc<Fault>> {
        let Self { core, task, done } = self;
        worker.realm().unheard(
            || format!("task `{}` of another node", task.definition.name()),
            || {
                let outcome = task.run(&core, worker.processor());
                drop(task);
                if !matches!(outcome, Err(Stop::Refused(_))) {
                    core.store.counters.tasks.add(1);
                    core.store.counters.tasks_received.add(1);
                }
                // Its instances are gone: work that waits for room may find it.
                core.task_ended();
                done(match outcome {
                    Ok((value, values)) => TaskResult::Ended { value, values: values.into() },
                    Err(Stop::Failed(error)) => TaskResult::Failed(error),
                    Err(Stop::Refused(why)) => TaskResult::Refused(why),
                });
            },
        );
        Ok(())
    }

    fn poisoned(self, _: &WorkerContext<'_>, fault: &Arc<Fault>) {
        (self.done)(TaskResult::Failed(Error::of_fault(fault, self.task.definition.name(), None)));
    }
}
