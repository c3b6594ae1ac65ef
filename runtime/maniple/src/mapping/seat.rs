//! A mapper object and the operations that wait for its decision.

use std::cell::RefCell;
use std::sync::Arc;

use maniple_mapper::{Mapper, MappingFailure, ReadyOperation, TaskInfo, TaskProfile, Validity};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorId;
use maniple_realm::profile::{Kind, Tag};
use maniple_realm::{Class, Spawn, fault};
use maniple_region::FieldMask;
use maniple_space::{AnyRect, Rect};

use super::answer::checked;
use super::lookup::Lookup;
use super::point::LockedStates;
use super::regions::Regions;
use crate::core::{Chance, RuntimeCore};
use crate::error::{Error, Result};
use crate::fork::ForkDecisions;
use crate::operation::Operation;
use crate::physical::instance::PhysicalInstance;
use crate::profiling::MAPPING;
use crate::replicate::distributed::without_waiting;
use crate::task::TaskDefinition;

/// A mapper object: called by one thread at a time.
pub(crate) struct MapperSeat {
    mapper: Mutex<Box<dyn Mapper>>,
    queue: Mutex<Queue>,
    forks: ForkDecisions,
    /// The calls of which an answer was disregarded, and logged.
    disregarded: Mutex<Vec<&'static str>>,
}

#[derive(Default)]
struct Queue {
    ready: Vec<Arc<Operation>>,
    /// Somebody is asking the mapper, or will.
    is_attended: bool,
}

impl MapperSeat {
    pub(crate) fn new(mapper: Box<dyn Mapper>) -> Self {
        Self {
            mapper: Mutex::new(mapper),
            queue: Mutex::default(),
            forks: ForkDecisions::default(),
            disregarded: Mutex::default(),
        }
    }

    /// Calls the mapper. A panic becomes an error; the mapper stays in use.
    pub(crate) fn call<R>(
        &self,
        core: &RuntimeCore,
        name: &'static str,
        call: impl FnOnce(&mut dyn Mapper) -> R,
    ) -> Result<R> {
        core.store.counters.mapper_calls.add(1);
        let mut mapper = self.mapper.lock();
        let recorded = core.profiler().map(|profiler| (profiler, profiler.now_ns()));
        // Others may be waiting for the mapper, or for the data that it is asked about.
        let outcome = fault::catch(|| without_waiting(|| call(&mut **mapper)));
        if let Some((profiler, start)) = recorded {
            profiler.span(Tag::of(profiler.label(Kind::Mapper, name, None)), profiler.current(), start);
        }
        outcome.map_err(|fault| {
            let said = fault.panic().map_or_else(|| fault.to_string(), |panic| panic.message.clone());
            let mapper =
                fault::catch(|| mapper.name().to_owned()).unwrap_or_else(|_| "whose name panics too".to_owned());
            Error::mapper(name, format!("of mapper `{mapper}` panicked: {said}"))
        })
    }

    /// Calls the mapper where the program goes on whatever it does. A panic is logged the first time.
    pub(crate) fn try_call<R>(
        &self,
        core: &RuntimeCore,
        name: &'static str,
        call: impl FnOnce(&mut dyn Mapper) -> R,
    ) -> Option<R> {
        let outcome = self.call(core, name, call);
        outcome.map_err(|error| self.disregard(name, || error.to_string())).ok()
    }

    /// Logs that an answer is disregarded, if it is the first one to this call.
    fn disregard(&self, call: &'static str, problem: impl FnOnce() -> String) {
        let mut disregarded = self.disregarded.lock();
        if disregarded.contains(&call) {
            return;
        }
        disregarded.push(call);
        drop(disregarded);
        let problem = problem();
        tracing::warn!(
            call,
            problem,
            "a mapper's answer is disregarded, as will be others of its kind without a word; mend the mapper"
        );
    }

    /// Logs that numbers which a mapper has given are no indices of a list with so many entries, or stand there twice, unless all are right.
    fn check_indices(&self, call: &'static str, given: &[usize], entries: usize) {
        let is_wrong = |&(at, index): &(usize, &usize)| *index >= entries || given[..at].contains(index);
        if let Some((_, wrong)) = given.iter().enumerate().find(is_wrong) {
            let problem = || {
                format!(
                    "mapper call `{call}` gave index {wrong}; expected some of 0 to {entries} (exclusive), each once at most"
                )
            };
            self.disregard(call, problem);
        }
    }

    /// Tells the mapper that what it has chosen did not work.
    pub(crate) fn tell_failure(&self, core: &RuntimeCore, info: &TaskInfo<'_>, failure: &MappingFailure) {
        // A mapper that panics over the news will be asked again all the same.
        self.try_call(core, "mapping_failed", |mapper| mapper.mapping_failed(info, failure));
    }

    /// Tells the mapper when and where a task ran.
    pub(crate) fn tell_profile(&self, core: &RuntimeCore, task: &str, profile: &TaskProfile) {
        // The task has run; what the mapper makes of the news can't change that.
        self.try_call(core, "task_profiled", |mapper| mapper.task_profiled(task, profile));
    }

    pub(crate) fn tunable(&self, core: &RuntimeCore, name: &str) -> Result<Option<i64>> {
        self.call(core, "tunable", |mapper| mapper.tunable(name, core.machine()))
    }

    /// Whether single launches of a task without regions may be forked, for as long as the mapper lives: it has them run where they are launched,
    /// by the implementation that was launched, and would say so again. A task on this processor is about to launch the task at this depth.
    #[inline]
    pub(crate) fn lets_fork(
        &self,
        core: &RuntimeCore,
        task: &'static Arc<TaskDefinition>,
        (origin, depth): (ProcessorId, usize),
    ) -> bool {
        self.forks.get_or_decide(task, || self.ask_about_forks(core, task, (origin, depth)))
    }

    #[cold]
    fn ask_about_forks(
        &self,
        core: &RuntimeCore,
        task: &TaskDefinition,
        (origin, depth): (ProcessorId, usize),
    ) -> bool {
        let domain = AnyRect::from(Rect::<1>::from(0..1));
        let info = TaskInfo {
            name: task.name(),
            point: domain.lo(),
            domain,
            is_index_launch: false,
            requirements: &[],
            variants: task.variants(),
            origin,
            depth,
            tag: 0,
        };
        let mut no_states = LockedStates::lock(&[]);
        let states = RefCell::new(&mut no_states);
        let lookup = Lookup { core, bounds: &[], regions: Regions::Asked(&[]), states: &states };
        let mapping = self.call(core, "map_task", |mapper| mapper.map_task(&info, &lookup));
        // An answer that is none is for the launch to tell of.
        mapping.and_then(|mapping| checked(mapping, &info, core.machine())).is_ok_and(|mapping| {
            mapping.validity == Validity::WhileUnchanged
                && mapping.processor == origin
                && (mapping.variant, mapping.priority) == (0, 0)
                && !mapping.pinned
                && !mapping.profile
        })
    }

    /// Ranks instances that data may come from. A mapper that panics or answers nonsense leaves them as they are.
    pub(crate) fn rank(
        &self,
        core: &RuntimeCore,
        sources: &[(Arc<PhysicalInstance>, FieldMask)],
        destination: &PhysicalInstance,
    ) -> Vec<usize> {
        const NAME: &str = "rank_sources";
        let infos: Vec<_> = sources.iter().map(|(source, valid)| source.info(valid.clone())).collect();
        let destination = destination.info(FieldMask::new());
        let order = self.try_call(core, NAME, |mapper| mapper.rank_sources(&infos, &destination, core.machine()));
        let order = order.unwrap_or_default();
        self.check_indices(NAME, &order, infos.len());
        order
    }

    /// An operation may be mapped: it joins the queue, and the mapper is asked soon.
    pub(crate) fn enqueue(&self, core: &Arc<RuntimeCore>, operation: Arc<Operation>) {
        let processor = operation.context.processor;
        let must_attend = {
            let mut queue = self.queue.lock();
            queue.ready.push(operation);
            !std::mem::replace(&mut queue.is_attended, true)
        };
        if must_attend {
            attend_soon(core, processor);
        }
    }

    /// Nothing is mapped any more.
    pub(crate) fn forget_waiting(&self) {
        let ready = std::mem::take(&mut self.queue.lock().ready);
        drop(ready);
    }

    /// Asks the mapper which operations to map now, until none is left or all that are left shall wait.
    fn attend(&self, core: &Arc<RuntimeCore>, processor: ProcessorId, mut chance: Chance) {
        loop {
            let ready = {
                let mut queue = self.queue.lock();
                if queue.ready.is_empty() {
                    queue.is_attended = false;
                    return;
                }
                std::mem::take(&mut queue.ready)
            };
            let (mut chosen, mut left) = self.select(core, ready);
            if chosen.is_empty() && chance == Chance::Last {
                // The mapper wants to wait, but there is nothing to wait for: it has to take the oldest.
                chosen.push(left.remove(0));
            }
            if !left.is_empty() {
                let mut queue = self.queue.lock();
                left.append(&mut queue.ready);
                queue.ready = left;
            }
            if chosen.is_empty() {
                let later = Arc::clone(core);
                core.starve(Box::new(move |chance| later.seat(processor).attend(&later, processor, chance)));
                return;
            }
            chance = Chance::Another;
            map_all(core, chosen);
        }
    }

    /// Splits operations, oldest first, into those that the mapper wants mapped now, in its order, and the others.
    fn select(&self, core: &RuntimeCore, mut ready: Vec<Arc<Operation>>) -> (Vec<Arc<Operation>>, Vec<Arc<Operation>>) {
        ready.sort_by_key(|operation| operation.sequence);
        let ready: Vec<_> = ready.into_iter().filter_map(|operation| Some((operation.body()?, operation))).collect();
        let infos: Vec<_> = (ready.iter())
            .map(|(body, operation)| ReadyOperation {
                name: body.name(),
                sequence: operation.sequence,
                points: body.points(),
            })
            .collect();
        const NAME: &str = "select_operations_to_map";
        let answer = self.try_call(core, NAME, |mapper| mapper.select_operations_to_map(&infos));
        // A mapper that panics here can't be asked what it wants: everything is mapped.
        let order = answer.unwrap_or_else(|| (0..ready.len()).collect());
        let mut slots: Vec<Option<Arc<Operation>>> = ready.into_iter().map(|(_, operation)| Some(operation)).collect();
        let chosen: Vec<_> = order.iter().filter_map(|&index| slots.get_mut(index).and_then(Option::take)).collect();
        if chosen.len() < order.len() {
            self.check_indices(NAME, &order, slots.len());
        }
        (chosen, slots.into_iter().flatten().collect())
    }
}

fn attend_soon(core: &Arc<RuntimeCore>, processor: ProcessorId) {
    let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE };
    let later = Arc::clone(core);
    let attend = move || later.seat(processor).attend(&later, processor, Chance::Another);
    core.spawn_own("choosing what to map", spawn, attend);
}

/// Maps operations: the last here, the others wherever a worker is free.
fn map_all(core: &Arc<RuntimeCore>, mut operations: Vec<Arc<Operation>>) {
    let last = operations.pop();
    for operation in operations {
        let spawn = Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE };
        core.spawn_own("mapping", spawn, move || map_one(&operation));
    }
    if let Some(operation) = last {
        map_one(&operation);
    }
}

/// Maps an operation.
fn map_one(operation: &Arc<Operation>) {
    let Some(body) = operation.body() else { return };
    let during = || format!("mapping `{}`", body.name());
    operation.context.core.realm().unheard(during, || body.map(operation));
}
