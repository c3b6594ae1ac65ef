//! One point of a launch on its way through the machine.

use std::sync::Arc;

use maniple_analysis::validity::{Access, Mode, Places};
use maniple_mapper::TaskProfile;
use maniple_realm::machine::ProcessorId;
use maniple_realm::operation::task::{Stranded, is_stranded};
use maniple_realm::profile::Tag;
use maniple_realm::{After, Class, Event, Fault, Spawn, Target, UserEvent, Work, WorkerContext, fault};
use maniple_record::{LaunchNumber, OperationNumber, Place};
use maniple_region::{LogicalRegion, Privilege};
use smallvec::SmallVec;

use super::state::TaskState;
use crate::context::{Context, ContextState, HeldRegion, Owned, TaskIdentity};
use crate::core::RuntimeCore;
use crate::instances::effects::{self, Analysis, OperationMachine};
use crate::instances::issuing::Issuing;
use crate::instances::placement::{PhysicalRegion, Placement};
use crate::instances::state::RegionState;
use crate::instances::validity::{self, Beginning, Preconditions, Preparation};
use crate::mapping::decisions::MappedPoint;
use crate::operation::lifecycle::{MapperNumber, Operation};
use crate::results::Origin;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};
use crate::task::call::{ContextCall, LeafCall};
use crate::task::taken::Taken;
use crate::task::{Body, Value};

/// A point with its data, about to run.
pub(crate) struct PointTask {
    pub(crate) state: Arc<TaskState>,
    pub(crate) operation: Arc<Operation>,
    pub(crate) mapped: Arc<MappedPoint>,
    /// The transfers that a leaf task carries out itself before its body.
    pub(crate) beginning: Option<Box<Beginning>>,
}

impl PointTask {
    /// The tag of the task in a profile.
    pub(crate) fn tag(&self) -> Tag {
        self.state.labels.map_or(Tag::NONE, |labels| labels.task(self.mapped.index))
    }

    fn body(&self) -> &Body {
        self.state.site.definition.body(self.mapped.mapping.variant)
    }
}

/// A point whose body launches nothing.
pub(crate) struct LeafTask(PointTask);

impl LeafTask {
    pub(super) fn new(task: PointTask) -> Self {
        Self(task)
    }

    pub(crate) fn point_task(&self) -> &PointTask {
        &self.0
    }

    pub(crate) fn core(&self) -> &Arc<RuntimeCore> {
        &self.0.state.context.core
    }

    /// Does what comes before its body, which is to run elsewhere: only once, even if the task stays after all.
    pub(crate) fn begin_before_leaving(&mut self) -> Result<()> {
        let outcome = fault::catch(|| self.begin());
        self.0.beginning = None;
        let PointTask { state, mapped, .. } = &self.0;
        let outcome = outcome.map_err(|fault| state.blame_fault(&fault, mapped.point));
        outcome.flatten().map_err(|error| state.blame(error, mapped.point))
    }

    fn call(&self, processor: ProcessorId) -> Result<Value> {
        let PointTask { state, mapped, .. } = &self.0;
        let Body::Leaf(body) = self.0.body() else {
            return Err(Error::launch(state.name(), "its variant is no leaf"));
        };
        let call = LeafCall {
            task: state.name(),
            point: &mapped.point,
            domain: &state.site.domain,
            over: state.site.over.as_ref(),
            processor,
            realm: state.context.core.realm(),
            regions: &mapped.physical,
            arguments: &state.arguments,
            taken: Taken::default(),
        };
        // An operator's identity is the program's code too.
        let outcome = fault::catch(|| self.begin().and_then(|()| body(&call)));
        let outcome = outcome.map_err(|fault| state.blame_fault(&fault, mapped.point));
        outcome.flatten().map_err(|error| state.blame(error, mapped.point))
    }

    fn begin(&self) -> Result<()> {
        let PointTask { state, beginning, .. } = &self.0;
        let Some(beginning) = beginning else { return Ok(()) };
        // SAFETY: the analysis gives a task only what it comes after all earlier users of, and has all later ones come
        // after the task.
        unsafe { effects::begin(beginning, state.context.core.profiler()) }
    }

    /// Has run to its end, or has failed. The event of the end is the caller's to trigger.
    pub(crate) fn end(self, value: Result<Value>) {
        let PointTask { state, operation, mapped, .. } = self.0;
        let index = mapped.index;
        // Instances go before any other thread hears of the end: an operation that waits for room finds it.
        drop(mapped);
        state.context.core.task_ended();
        state.point_ended(&operation, index, value);
    }
}

impl Work for LeafTask {
    fn run(self, worker: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        // What the body does is caught by itself, so whatever panics is the runtime's.
        worker.realm().unheard(|| "the end of a task".to_owned(), || self.run_to_end(worker)).unwrap_or(Ok(()))
    }

    fn poisoned(self, worker: &WorkerContext<'_>, fault: &Arc<Fault>) {
        worker.realm().unheard(|| "the end of a task that could not run".to_owned(), || self.end_poisoned(fault));
    }
}

impl LeafTask {
    /// Ends without having run.
    pub(crate) fn end_poisoned(self, fault: &Fault) {
        let error = self.0.state.blame_fault(fault, self.0.mapped.point);
        self.end(Err(error));
    }

    /// Runs the body, and tells the mapper of it if that wants to know.
    pub(crate) fn call_and_report(&self, worker: &WorkerContext<'_>) -> Result<Value> {
        let core = self.core();
        let started = self.0.mapped.mapping.profile.then(|| core.now_ns());
        let value = self.call(worker.processor());
        if let Some(started) = started {
            let (processor, point, ended) = (worker.processor(), self.0.mapped.point, core.now_ns());
            let profile = TaskProfile { processor, point, started, ended, finished: ended };
            self.0.state.report(&profile);
        }
        value
    }

    fn run_to_end(self, worker: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        let value = self.call_and_report(worker);
        let outcome = value.as_ref().map_or_else(|error| Err(Arc::<Fault>::from(error.clone())), |_| Ok(()));
        self.end(value);
        outcome
    }
}

/// A point whose body launches, and may wait.
pub(crate) struct ContextTask;

impl ContextTask {
    /// Hands the point to the machine. The event is the end of the body and of everything that it launched, with its
    /// data where its parent wants it.
    pub(crate) fn issue(
        task: PointTask,
        target: Target,
        priority: i32,
        start: Preconditions,
        data: &[Preconditions],
        recorded: Option<OperationNumber>,
    ) -> Event {
        let core = Arc::clone(&task.state.context.core);
        let realm = core.realm();
        let done = realm.user_event();
        let inner = task.state.site.definition.info(task.mapped.mapping.variant).is_inner;
        // An inner task does not look at its data: it starts at once, and those that it launches wait instead, each for
        // what it uses.
        let (start, ready): (_, SmallVec<[Event; 4]>) = match inner {
            true => (start, data.iter().map(|after| core.store.merged(validity::after(after))).collect()),
            false => (start.and(&Preconditions::all(data)), data.iter().map(|_| Event::NONE).collect()),
        };
        let (state, operation) = (Arc::clone(&task.state), Arc::clone(&task.operation));
        let (index, point) = (task.mapped.index, task.mapped.point);
        let is_virtual = task.mapped.chosen.is_virtual();
        core.store.record_end_after(recorded, &ready);
        let borrowed: Vec<PhysicalRegion> =
            task.mapped.physical.iter().filter(|region| region.is_borrowed()).cloned().collect();
        let slot = Arc::new(maniple_realm::locks::Mutex::new(None));
        let filled = Arc::clone(&slot);
        let spawn = Spawn { target, priority, tag: task.tag(), ..Spawn::after(validity::after(&start)) };
        let everything = ready.clone();
        let body = realm.spawn_async(spawn, async move {
            let value = run_in_context(task, &ready, recorded).await;
            *filled.lock() = Some(value);
        });
        // The operation that uses the data next follows this task only: its end must not come before what it follows
        // itself, even if it never began.
        let body = realm.merge(After { needs: &[body], follows: &everything });
        let ended = Arc::clone(&core);
        realm.when(&body, move |outcome| {
            ended.store.record_whole(recorded);
            let value = match outcome {
                Ok(()) => {
                    slot.lock().take().unwrap_or_else(|| Err(Error::launch(state.name(), "its body gave no result")))
                }
                Err(fault) => {
                    // Not the program's: its body is caught by itself.
                    if fault.panic().is_some() {
                        ended.realm().break_down(format!("the end of task `{}`", state.name()), fault);
                    }
                    Err(state.blame_fault(fault, point))
                }
            };
            match &value {
                Err(error) if !borrowed.is_empty() => {
                    let error = error.clone();
                    // This thread may have states locked, so elsewhere.
                    let (core, spawn) = (Arc::clone(&ended), Spawn { class: Class::Runtime, ..Spawn::ANYWHERE });
                    ended.spawn_own("the end of a task that failed", spawn, move || {
                        lose(&core, operation.place(index as u64), &borrowed, error);
                        finish(&state, &operation, index, done, value, is_virtual);
                    });
                }
                _ => finish(&state, &operation, index, done, value, is_virtual),
            }
        });
        done.event()
    }
}

/// Marks data of the parent's state as lost that a task which failed should have changed: it is unknown how far the
/// task came.
fn lose(core: &crate::core::RuntimeCore, place: Option<Place>, borrowed: &[PhysicalRegion], error: Error) {
    let event = core.store.poisoned(error);
    core.store.record_loss(place, borrowed.iter().map(PhysicalRegion::usage).collect());
    for PhysicalRegion { region, place, .. } in borrowed {
        if let Placement::Virtual(parts) = place {
            parts.iter().for_each(|(fields, state)| state.lock().validity.lose(region, fields, event));
        }
    }
}

/// Triggers the event of the end of a point with a context, and ends the point.
fn finish(
    state: &TaskState,
    operation: &Arc<Operation>,
    index: usize,
    done: UserEvent,
    value: Result<Value>,
    is_virtual: bool,
) {
    match &value {
        Ok(_) => state.context.core.realm().trigger(done),
        Err(error) => state.context.core.realm().poison(done, error.clone()),
    }
    if is_virtual {
        state.virtual_point_ended(operation);
    }
    state.point_ended(operation, index, value);
}

/// Runs a body with a context of its own, waits for all that it launched, and puts its data where its parent wants it.
async fn run_in_context(task: PointTask, ready: &[Event], recorded: Option<OperationNumber>) -> Result<Value> {
    let (point, mut regions) = (task.mapped.point, task.mapped.physical.clone());
    PhysicalRegion::lend_all(&mut regions);
    let parent = Arc::clone(&task.state.context);
    let core = Arc::clone(&parent.core);
    let Body::Context(body) = task.body() else {
        return Err(Error::launch(task.state.name(), "its variant is a leaf"));
    };
    let held = regions.iter().zip(ready).flat_map(|(physical, ready)| held(physical, *ready)).collect::<Vec<_>>();
    for state in &held {
        core.store.register(&state.state);
    }
    let identity = TaskIdentity {
        task: Origin::of(&task.state.site.definition),
        point: task.state.site.shown_point(point),
        recorded,
        processor: task.mapped.mapping.processor,
        depth: parent.depth + 1,
    };
    let mut context = ContextState::new(&core, identity, held);
    if let Some(context) = Arc::get_mut(&mut context) {
        context.inherited = parent.bequeath(task.state.number);
        context.window = task.mapped.mapping.window.map_or(core.window, |window| window.clamp(1, core.window));
    }
    let context = Owned::new(context);
    let regions: Arc<[LogicalRegion]> = regions.iter().map(|physical| physical.region.clone()).collect();
    let call = ContextCall {
        context: Context::of(Arc::clone(&context)),
        point: task.state.site.outer_point(point),
        domain: task.state.site.outer_domain(),
        regions,
        arguments: task.state.arguments.clone(),
    };
    let reported = task.mapped.mapping.profile.then(|| (core.processor_here(), core.now_ns()));
    // A panic in the body must not skip what comes after it.
    let value = match fault::catch(|| body(call)) {
        Ok(running) => CatchUnwind(running).await,
        Err(fault) => Err(fault),
    };
    let value = value.map_err(|fault| task.state.blame_fault(&fault, point)).flatten();
    let ended = reported.map(|_| core.now_ns());
    let value = context.close(value.map_err(|error| task.state.blame(error, point)));
    context.give_up_if_mapped();
    let _ = core.realm().event_future(context.drained()).await;
    let value = context.conclude(value);
    // Even of a task that failed: what it did launch and change is brought home.
    let home = bring_home(&context, task.state.site.mapper, task.operation.recorded);
    let moved = core.realm().event_future(home).await;
    if let (Some((processor, started)), Some(ended)) = (reported, ended) {
        task.state.report(&TaskProfile { processor, point, started, ended, finished: core.now_ns() });
    }
    context.hand_up_deletions(&parent);
    let created = context.take_created();
    if !created.is_empty() {
        // Where they were used last need not be known of them, if that was in a replay: but all of it has ended.
        core.store.record_return(context.recorded, parent.recorded);
        parent.adopt(created);
    }
    match (value, moved) {
        (Ok(value), Ok(())) => Ok(value),
        (Ok(value), Err(fault)) => {
            drop_caught("a result", task.state.name(), value);
            Err(task.state.blame_fault(&fault, point))
        }
        (Err(error), _) => Err(error),
    }
}

/// The regions that a task holds through one requirement.
fn held(physical: &PhysicalRegion, ready: Event) -> SmallVec<[HeldRegion; 1]> {
    let PhysicalRegion { region, fields, privilege, place, .. } = physical;
    let one = |fields: &maniple_region::FieldMask, state, home| HeldRegion {
        region: region.clone(),
        fields: fields.clone(),
        privilege: *privilege,
        state,
        home,
    };
    let instances = match place {
        Placement::Instances(instances) => instances,
        Placement::Virtual(parts) => {
            return parts.iter().map(|(fields, state)| one(fields, Arc::clone(state), None)).collect();
        }
    };
    let state = match privilege {
        Privilege::Reduce(_) => RegionState::contributing(region.clone(), instances.clone(), ready),
        _ => RegionState::inherited(region.clone(), instances, ready),
    };
    SmallVec::from_iter([one(fields, state, Some(instances.clone()))])
}

/// Puts current values of everything that a task may have changed into the instances that it was mapped to (Bauer 2014,
/// section 5.2.4).
fn bring_home(context: &ContextState, mapper: MapperNumber, launch: Option<LaunchNumber>) -> Event {
    let core = &context.core;
    let issuer = context.recorded.zip(launch).map(|(parent, launch)| Place { parent, launch, index: 0 });
    let seat = core.seat(context.whom(mapper));
    let mut rank = |sources: &[_], destination: &_| seat.rank(&core.store, sources, destination);
    let (store, issuing, priority) = (&core.store, Issuing::Live, 0);
    let mut machine = OperationMachine { store, rank: &mut rank, issuing, issuer, priority, keeps_apart: false };
    let (mut before, shapes) = (Preparation::together(), core.store.forest.shapes());
    for held in context.held() {
        let Some(instances) = &held.home else { continue };
        let mut data = held.state.lock();
        let mut analysis = Analysis::new(&mut data.validity, shapes, &mut machine);
        match held.privilege {
            Privilege::Read => {}
            Privilege::ReadWrite | Privilege::Discard => {
                let (number, order) = ((0, 0), (u64::MAX, 0));
                let access = Access { number, region: &held.region, mode: Mode::Read, instances, homes: &[], order };
                let mut places = Places::new();
                analysis.locate(&access, &mut places, 0);
                analysis.prepare(&access, &places, &mut before);
            }
            Privilege::Reduce(_) => analysis.drain(before.after_mut()),
        }
    }
    let needs = &before.after_mut().needs;
    core.store.record_end_after(context.recorded, needs);
    core.realm().merge(After::needs(needs))
}

/// Turns a panic of a future into a fault, and its being pending for ever too.
struct CatchUnwind<F>(F);

impl<F: Future + Unpin> Future for CatchUnwind<F> {
    type Output = Result<F::Output, Arc<Fault>>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        if is_stranded() {
            return std::task::Poll::Ready(Err(Arc::new(Fault::new(Stranded))));
        }
        match fault::catch(|| std::pin::Pin::new(&mut self.0).poll(context)) {
            Ok(poll) => poll.map(Ok),
            Err(fault) => std::task::Poll::Ready(Err(fault)),
        }
    }
}
