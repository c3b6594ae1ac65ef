//! A task of another node is run here.
//!
//! Its regions are made of what was sent: instances of its own, in which contributions begin as the operator's identity. So its body meets nothing of this node's program,
//! and nothing that it does is seen before it has ended well.

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

use super::description::{Description, Points};
use super::homecoming::Answer;
use super::kind::{Carried, Luggage};
use super::values;
use crate::core::RuntimeCore;
use crate::error::Error;
use crate::physical::instance::PhysicalInstance;
use crate::physical::selection::{instance_kind, layout};
use crate::placement::{PhysicalRegion, Placement};
use crate::profiling::LaunchLabels;
use crate::task::arguments::Arguments;
use crate::task::call::LeafCall;
use crate::task::registry::find;
use crate::task::taken::Taken;
use crate::task::{Body, LeafBody, TaskDefinition};

/// Has a worker run a task of another node, and calls when that has ended.
pub(crate) fn host(
    core: &Arc<RuntimeCore>,
    (description, values): (Description, Bytes),
    done: impl FnOnce(Answer) + Send + 'static,
) {
    let Some(guest) = Guest::of(&description, values) else {
        let problem =
            "another node has sent this task, which is not to be found here; start the same program on all nodes";
        return done(Answer::Failed(Error::launch(&description.path, problem)));
    };
    let shown = guest.is_index_launch.then_some(&guest.domain);
    let labels = core.profiler().map(|profiler| LaunchLabels::new(profiler, guest.definition.name(), shown));
    let tag = labels.map_or(Tag::NONE, |labels| labels.task(guest.domain.linear(guest.point) as usize));
    let work = Hosting { core: Arc::clone(core), guest, done };
    core.realm().spawn(Spawn { tag, priority: description.priority, ..Spawn::ANYWHERE }, work);
}

/// A task of another node.
struct Guest {
    definition: &'static Arc<TaskDefinition>,
    luggage: &'static Luggage,
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

impl Guest {
    /// None if the description means nothing here.
    fn of(description: &Description, values: Bytes) -> Option<Self> {
        let Description { path, variant, point, domain, is_index_launch, arguments, regions, priority: _ } =
            description;
        let definition = find(path)?;
        let (_, luggage) = definition.luggage()?;
        let body = match definition.body_if_any(*variant)? {
            Body::Leaf(body) => Arc::clone(body),
            Body::Context(_) => return None,
        };
        let spaces = regions.iter().map(Points::space).collect::<Option<Vec<_>>>()?;
        let (point, domain) = (AnyPoint::new(point).ok()?, domain.rect()?);
        let is_understood = spaces.len() == luggage.requirements().len() && domain.contains(point);
        is_understood.then_some(())?;
        Some(Self {
            definition,
            luggage,
            variant: *variant,
            body,
            point,
            domain,
            is_index_launch: *is_index_launch,
            arguments: luggage.decode(arguments)?,
            spaces,
            values,
        })
    }

    /// Runs the body: its value, and the values that it has made.
    fn run(&self, core: &Arc<RuntimeCore>, processor: ProcessorId) -> std::result::Result<(Vec<u8>, Vec<u8>), Stop> {
        let requirements = self.luggage.requirements().iter().zip(&self.spaces);
        let place = |(carried, space)| self.place(core, processor, (carried, space));
        let regions = requirements.map(place).collect::<std::result::Result<Vec<_>, Stop>>()?;
        // SAFETY: the instances were just made. The other node, which runs the same program, has sent the values of this task.
        unsafe { values::unpack_used(&regions, &self.values) }?;
        let name = self.definition.name();
        let call = LeafCall {
            task: name,
            point: &self.point,
            domain: &self.domain,
            processor,
            realm: core.realm(),
            regions: &regions,
            arguments: &self.arguments,
            taken: Taken::default(),
        };
        let shown = self.is_index_launch.then_some(self.point);
        let outcome = fault::catch(|| (self.body)(&call)).map_err(|fault| Error::of_fault(&fault, name, shown));
        let value = outcome.flatten().map_err(|error| error.of_task(name, shown))?;
        let codec = self.definition.result_codec();
        let value = codec.and_then(|codec| codec.encode(value.as_any()));
        let value = value.ok_or_else(|| Error::NotSendable { task: name.to_owned() })?;
        // SAFETY: the body has ended, and nobody else knows the instances.
        Ok((value, unsafe { values::pack_made(&regions) }?))
    }

    /// Makes room for the data of a requirement.
    fn place(
        &self,
        core: &Arc<RuntimeCore>,
        processor: ProcessorId,
        (carried, space): (&Carried, &AnySpace),
    ) -> std::result::Result<PhysicalRegion, Stop> {
        let region = carried.region(core.forest(), space)?;
        let columns: SmallVec<[FieldMask; 2]> = match carried.privilege {
            // Contributions to fields of several types have no place in one instance.
            Privilege::Reduce(_) => carried.fields.iter().map(FieldMask::of).collect(),
            _ => SmallVec::from_iter([carried.fields.clone()]),
        };
        let layout = self.definition.variants()[self.variant].layout;
        let make = |fields: FieldMask| {
            let instance = make(core, processor, (&region, &fields, carried.privilege), layout)?;
            Ok::<_, Stop>((fields, instance))
        };
        let instances = columns.into_iter().map(make).collect::<std::result::Result<_, Stop>>()?;
        let (fields, privilege) = (carried.fields.clone(), carried.privilege);
        Ok(PhysicalRegion { region, fields, privilege, place: Placement::Instances(instances), located: None })
    }
}

/// Makes an instance in the best memory that has room.
fn make(
    core: &Arc<RuntimeCore>,
    processor: ProcessorId,
    (region, fields, privilege): (&LogicalRegion, &FieldMask, Privilege),
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
            Ok(storage) => return Ok(core.store.new_instance(storage, region.clone(), fields.clone(), operator)),
            Err(error) => refused = Some(error),
        }
    }
    let rank = core.node().map_or(0, |node| node.rank());
    let why = refused.map_or_else(|| "its workers see no memory".to_owned(), |error| error.to_string());
    Err(Stop::Refused(format!("node {rank}: {why}")))
}

/// Makes an instance whose memory is there at once, if need be by letting go of instances that nobody uses.
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
        if !core.store.make_room(memory) && !core.store.discard_caches() {
            return Err(error);
        }
    }
}

/// Such a task as work for a worker.
struct Hosting<D> {
    core: Arc<RuntimeCore>,
    guest: Guest,
    done: D,
}

impl<D: FnOnce(Answer) + Send + 'static> Work for Hosting<D> {
    fn run(self, worker: &WorkerContext<'_>) -> std::result::Result<(), Arc<Fault>> {
        let Self { core, guest, done } = self;
        worker.realm().unheard(
            || format!("task `{}` of another node", guest.definition.name()),
            || {
                let outcome = guest.run(&core, worker.processor());
                drop(guest);
                if !matches!(outcome, Err(Stop::Refused(_))) {
                    core.store.counters.tasks.add(1);
                    core.store.counters.tasks_received.add(1);
                }
                // Its instances are gone: who waits for room may find it.
                core.task_ended();
                done(match outcome {
                    Ok((value, values)) => Answer::Ended { value, values: values.into() },
                    Err(Stop::Failed(error)) => Answer::Failed(error),
                    Err(Stop::Refused(why)) => Answer::Refused(why),
                });
            },
        );
        Ok(())
    }

    fn poisoned(self, _: &WorkerContext<'_>, fault: &Arc<Fault>) {
        (self.done)(Answer::Failed(Error::of_fault(fault, self.guest.definition.name(), None)));
    }
}
