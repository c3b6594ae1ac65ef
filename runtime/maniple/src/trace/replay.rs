//! Replays: a template's graph at work, fed with the launches that arrive.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use maniple_cluster::ParcelFuture;
use maniple_mapper::TaskProfile;
use maniple_realm::graph::{Gate, GraphPlace, GraphRuns, GraphWork};
use maniple_realm::profile::OperationId;
use maniple_realm::{
    After, EventStatus, Fault, UserEvent, WorkerContext, fault, prefetch_for_reading, prefetch_for_writing,
};
use maniple_record::LaunchNumber;
use maniple_region::Provenance;
use smallvec::SmallVec;

use super::invalidated::Invalidated;
use super::nodes::{TaskNode, TraceNode};
use super::profiled::Profiled;
use super::recorded::Recorded;
use super::staged::Staged;
use super::template::Template;
use crate::context::{ContextState, FillNumbers};
use crate::launch::{TaskLaunch, TaskLauncher};
use crate::results::completion::{Completion, ReplayedStage};
use crate::results::{Input, Origin, Results, Sources};
use crate::support::error::Error;
use crate::task::arguments::Arguments;
use crate::task::call::LeafCall;
use crate::task::taken::Taken;

/// The session that launches runs, as the replay knows it.
pub(super) trait Wake: Send + Sync {
    /// Something has happened.
    fn wake(&self, what: Happened);
}

/// An event that the session which launches runs is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// The end of what the session waits for: of a replay, all runs have ended. It is told once for each wait.
    End,
    /// There may be a slot for a run. It may be told when the session waits for something else already.
    Slot,
}

/// The runs of one template, one after the other.
pub(super) struct Replay {
    pub(super) template: Arc<Template>,
    context: Arc<ContextState>,
    /// Launches by run and stage: those of run `r` are in `slots[r & mask]`.
    slots: Box<[Box<[LaunchSlot]>]>,
    /// Runs that have begun and not ended, and one more while others may come.
    outstanding: AtomicUsize,
    /// The run that is not completed, and how many launches it has.
    partial: (AtomicU64, AtomicUsize),
    /// Launches count as ended when their run has; for a task that may have but few in flight, when they have.
    ends_by_run: bool,
    /// The points of all launches before each stage.
    points: Box<[u64]>,
    has_failed: AtomicBool,
    invalidated: Invalidated,
    profiled: Option<Profiled>,
    recorded: Option<Recorded>,
    /// A launch waits for a slot.
    is_full: AtomicBool,
    /// For each slot, one more than the last run in it that has ended.
    ended: Box<[AtomicU64]>,
    /// The first run whose launches count as in flight.
    next_to_retire: AtomicU64,
    wake: Box<dyn Wake>,
}

/// A launch that is being replayed. In a line of its own, which goes from the launching core to the workers' and back.
#[derive(Default)]
#[repr(align(64))]
struct LaunchSlot {
    launched: UnsafeCell<Option<Launched>>,
    /// The address of the arguments, for prefetches, which may look at nothing else yet.
    arguments: AtomicPtr<u8>,
    has_failed: AtomicBool,
}

struct Launched {
    arguments: Arguments,
    results: Arc<Results>,
    /// The end that was promised before it was known that the launch would be replayed.
    promised: Option<UserEvent>,
    /// Each point takes a result of its own, which may be a failure.
    takes_per_point: bool,
    /// The place in the program that has launched it.
    launched: Option<Provenance>,
}

// SAFETY: a slot is written by the thread that issues the launch, before the stage's gate is opened and after the
// slot's last run has ended; in between workers only read it, until all points of the stage have ended: then the thread
// that saw that tidies it up. Gate, counters and end order the accesses.
unsafe impl Sync for LaunchSlot {}

impl Replay {
    /// Starts the graph of a template that was [taken up](Template::take_up).
    pub(super) fn start(
        context: &Arc<ContextState>,
        template: &Arc<Template>,
        fence: Option<LaunchNumber>,
        wake: Box<dyn Wake>,
    ) -> (Arc<Self>, Arc<GraphRuns>) {
        let stages = template.stages.len();
        let depth = (LAUNCHES_AHEAD.min(context.window) / stages.max(1)).max(4).next_power_of_two();
        let points =
            template.stages.iter().scan(0, |sum, stage| Some(std::mem::replace(sum, *sum + stage.site.tasks())));
        let all = template.stages.iter().map(|stage| stage.site.tasks()).sum();
        let points = points.chain([all]).collect();
        let slots = (0..depth).map(|_| (0..stages).map(|_| LaunchSlot::default()).collect()).collect();
        let replay = Arc::new(Self {
            template: Arc::clone(template),
            context: Arc::clone(context),
            slots,
            outstanding: AtomicUsize::new(1),
            partial: (AtomicU64::new(u64::MAX), AtomicUsize::new(0)),
            ends_by_run: context.window >= 2 * stages,
            points,
            has_failed: AtomicBool::new(false),
            invalidated: Invalidated::default(),
            profiled: context.core.profiler().map(|profiler| Profiled::new(profiler, template, depth)),
            recorded: Recorded::begin(context, template, fence),
            is_full: AtomicBool::new(false),
            ended: (0..depth).map(|_| AtomicU64::new(0)).collect(),
            next_to_retire: AtomicU64::new(0),
            wake,
        });
        let realm = context.core.realm();
        let runs = realm.start_graph(&template.graph, Arc::clone(&replay) as Arc<dyn GraphWork>, depth);
        (replay, Arc::new(runs))
    }

    /// How many launches may be in flight without waiting for slots.
    pub(super) fn window(&self) -> usize {
        (self.slots.len() - 2) * self.template.stages.len()
    }

    /// Whether a run's launches may be issued. If not, the session is woken when that may have changed.
    pub(super) fn has_slot(&self, runs: &GraphRuns, run: u64) -> bool {
        if runs.is_armed(run) {
            return true;
        }
        self.is_full.store(true, Ordering::Relaxed);
        // Against the fence in `run_ended`: either we see the armed slot, or it sees that a session waits.
        fence(Ordering::SeqCst);
        runs.is_armed(run)
    }

    /// Issues a launch, as a stage of a run that has a slot. Memory of the launch that had the slot before is used
    /// again where nothing else refers to it.
    pub(super) fn launch(
        &self,
        runs: &Arc<GraphRuns>,
        run: u64,
        stage: usize,
        launcher: &mut TaskLauncher,
    ) -> Arc<Results> {
        self.prefetch(run, stage);
        if self.recorded.is_some() || !launcher.sources().is_empty() {
            launcher.wait_by_event(self.context.core.realm());
        }
        // Something is to be done at its end in any case, not only for a caller that asks later.
        let is_watched = !launcher.sources().is_empty() || self.recorded.is_some() || !self.ends_by_run;
        let takes_per_point = takes_per_point(launcher.sources());
        let slot = self.slot(run, stage);
        let replayed = || ReplayedStage { runs: Arc::downgrade(runs), run, stage: stage as u32, is_watched };
        let new = || {
            let (origin, sources) = (Origin::of(launcher.definition()), launcher.sources().iter().cloned());
            let domain = self.template.stages[stage].site.points;
            let completion = Completion::of_stage(replayed());
            Results::new(self.context.core.realm(), origin, domain, completion, sources.collect())
        };
        // SAFETY: the slot's last run has ended, and the stage of this one is not open.
        let launched = unsafe { &mut *slot.launched.get() };
        let results = match launched {
            Some(old) => {
                match Arc::get_mut(&mut old.results) {
                    Some(results) => results.renew(run, is_watched, replayed, launcher.sources()),
                    None => old.results = new(),
                }
                (old.promised, old.takes_per_point) = (None, takes_per_point);
                old.launched = launcher.provenance().cloned();
                // What was there goes with the launcher, or to the next one.
                std::mem::swap(&mut old.arguments, launcher.arguments_mut());
                Arc::clone(&old.results)
            }
            None => {
                let results = new();
                let arguments = std::mem::replace(launcher.arguments_mut(), Arguments::none());
                let (shared, promised, at) = (Arc::clone(&results), None, launcher.provenance().cloned());
                *launched = Some(Launched { arguments, results: shared, promised, takes_per_point, launched: at });
                results
            }
        };
        if let Some(launched) = launched {
            slot.arguments.store(launched.arguments.address().cast_mut(), Ordering::Relaxed);
        }
        let number = self.recorded.as_ref().map(|recorded| {
            results.recorded_by(self.context.core.store.recorder.as_ref());
            recorded.launch(&self.template, stage, launcher.provenance(), results.completion())
        });
        self.prepare_stage(run, stage, launcher.sources(), number);
        let gate = Gate::new(runs, run, stage as u32, is_watched);
        match launcher.take_parcels() {
            Some(parcels) => self.open_with_parcels(&gate, &parcels),
            None => self.open(&gate, launcher.sources(), &results),
        }
        results
    }

    /// Issues an internal launch, as a stage of a run that has a slot: with arguments that `complete` makes of those of
    /// an earlier run. It gives the parcels for which the launch waits.
    pub(super) fn launch_internal(
        &self,
        runs: &Arc<GraphRuns>,
        run: u64,
        stage: usize,
        complete: &mut dyn FnMut(&mut Arguments) -> Option<Arc<ParcelFuture>>,
    ) {
        self.prefetch(run, stage);
        let is_watched = !self.ends_by_run;
        let slot = self.slot(run, stage);
        let replayed = || ReplayedStage { runs: Arc::downgrade(runs), run, stage: stage as u32, is_watched };
        let new = || {
            let site = &self.template.stages[stage].site;
            let origin = Origin::of(&site.definition);
            Results::new(
                self.context.core.realm(),
                origin,
                site.points,
                Completion::of_stage(replayed()),
                Sources::new(),
            )
        };
        // SAFETY: as in `launch`.
        let launched = unsafe { &mut *slot.launched.get() };
        let launched = match launched {
            Some(old) => {
                match Arc::get_mut(&mut old.results) {
                    Some(results) => results.renew(run, is_watched, replayed, &[]),
                    None => old.results = new(),
                }
                (old.promised, old.takes_per_point) = (None, false);
                old
            }
            None => {
                let (arguments, results) = (Arguments::none(), new());
                launched.insert(Launched { arguments, results, promised: None, takes_per_point: false, launched: None })
            }
        };
        let parcels = complete(&mut launched.arguments);
        slot.arguments.store(launched.arguments.address().cast_mut(), Ordering::Relaxed);
        self.prepare_stage(run, stage, &[], None);
        let gate = Gate::new(runs, run, stage as u32, is_watched);
        match parcels {
            Some(parcels) => self.open_with_parcels(&gate, &parcels),
            None => gate.open(),
        }
    }

    /// A fill of the template is passed.
    pub(super) fn fill(&self, number: usize, recorded: Option<LaunchNumber>) {
        self.context.core.store.counters.launches.add(1);
        if let Some(on_record) = &self.recorded {
            on_record.fill(&self.template, number, recorded, self.context.core.realm());
        }
    }

    /// All of a run has been issued.
    pub(super) fn issued_run(&self) {
        if let Some(recorded) = &self.recorded {
            recorded.end_of_run(&self.template);
        }
    }

    /// Whether a record is kept of it.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// The same launch of the next runs will be put where workers were at work: what is there is far away.
    fn prefetch(&self, run: u64, stage: usize) {
        prefetch_for_writing(self.slot(run + 2, stage).launched.get());
        prefetch_for_writing(self.slot(run + 1, stage).arguments.load(Ordering::Relaxed));
    }

    /// As [`launch`](Self::launch), for a launch that has its results already.
    pub(super) fn launch_staged(&self, runs: &Arc<GraphRuns>, run: u64, stage: usize, staged: Staged) {
        let TaskLaunch { arguments, sources, launched, .. } = staged.launch;
        let (results, takes_per_point) = (staged.results, takes_per_point(&sources));
        let promised = Some(staged.completion);
        let launched = Launched { arguments, results: Arc::clone(&results), promised, takes_per_point, launched };
        // SAFETY: as in `launch`.
        unsafe { *self.slot(run, stage).launched.get() = Some(launched) };
        self.prepare_stage(run, stage, &sources, staged.recorded);
        self.open(&Gate::new(runs, run, stage as u32, true), &sources, &results);
    }

    /// A stage is about to be opened, when these results are there.
    fn prepare_stage(&self, run: u64, stage: usize, sources: &[Input], number: Option<LaunchNumber>) {
        self.slot(run, stage).has_failed.store(false, Ordering::Relaxed);
        if let (Some(recorded), Some(number)) = (&self.recorded, number) {
            recorded.stage(&self.template, stage, number, sources);
        }
        if stage == 0 {
            self.outstanding.fetch_add(1, Ordering::Relaxed);
            if let Some(profiled) = &self.profiled {
                profiled.begin(&self.template, run);
            }
        }
    }

    /// Opens a stage when all parcels have come.
    fn open_with_parcels(&self, gate: &Gate<'_>, parcels: &ParcelFuture) {
        if let Some(profiled) = &self.profiled {
            let (run, stage) = gate.place();
            profiled.opens_after(run, stage as usize, &[parcels.all_arrived()]);
        }
        parcels.open(gate, self.context.core.realm());
    }

    /// Opens a stage when the results that it takes are there. A result that a point takes for itself concerns no other
    /// point: points ask whether such a result is a failure.
    fn open(&self, gate: &Gate<'_>, sources: &[Input], results: &Arc<Results>) {
        if sources.is_empty() {
            return gate.open();
        }
        let realm = self.context.core.realm();
        let (mut waiting, mut follows) = (SmallVec::<[_; 4]>::new(), SmallVec::<[_; 4]>::new());
        for source in sources {
            let (end, is_per_point) = (source.end(), source.is_per_point());
            match realm.status(end) {
                EventStatus::Pending if is_per_point => follows.push(end),
                EventStatus::Pending => waiting.push(end),
                EventStatus::Poisoned(fault) if !is_per_point => return gate.fail(&fault),
                EventStatus::Poisoned(_) | EventStatus::Triggered => {}
            }
        }
        let results = takes_per_point(sources).then(|| Arc::clone(results));
        if waiting.is_empty() && follows.is_empty() {
            results.iter().for_each(|results| results.inputs_are_there());
            return gate.open();
        }
        let (runs, (run, stage), is_watched) = (Arc::clone(gate.runs()), gate.place(), gate.is_watched());
        if let Some(profiled) = &self.profiled {
            let all = waiting.iter().chain(&follows);
            let waiting: SmallVec<[OperationId; 4]> = all.map(|&event| event.into()).collect();
            profiled.opens_after(run, stage as usize, &waiting);
        }
        realm.when(After { needs: &waiting, follows: &follows }, move |outcome| {
            let gate = Gate::new(&runs, run, stage, is_watched);
            match outcome {
                Ok(()) => {
                    // Before the launch can end, which leaves the memory to another.
                    results.into_iter().for_each(|results| results.inputs_are_there());
                    gate.open();
                }
                Err(fault) => gate.fail(fault),
            }
        });
    }

    /// No more launches come: the last run ends after so many. The session is woken when all have ended.
    pub(super) fn settle(&self, runs: &GraphRuns, run: u64, stages: usize) {
        if stages > 0 {
            self.partial.1.store(stages, Ordering::Relaxed);
            self.partial.0.store(run, Ordering::Release);
            (stages..self.template.stages.len()).for_each(|stage| runs.skip(run, stage as u32));
        }
        self.run_is_over();
    }

    /// All runs have ended: so it is on record, if one is kept, and these are their launches, and what their last fills
    /// were.
    pub(super) fn record_end(&self) -> Option<(Vec<LaunchNumber>, [Vec<FillNumbers>; 2])> {
        self.recorded.as_ref().map(Recorded::end)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    fn slot(&self, run: u64, stage: usize) -> &LaunchSlot {
        &self.slots[run as usize & (self.slots.len() - 1)][stage]
    }

    /// The launch that a node belongs to.
    fn launched(&self, run: u64, stage: u32) -> &Launched {
        let launched = self.slot(run, stage as usize).launched.get();
        // SAFETY: the stage is open, so the slot is not written.
        unsafe { &*launched }.as_ref().expect(IN_PLACE)
    }

    /// How many launches a run has.
    fn launches_of(&self, run: u64) -> usize {
        let is_partial = self.partial.0.load(Ordering::Acquire) == run;
        if is_partial { self.partial.1.load(Ordering::Relaxed) } else { self.template.stages.len() }
    }

    /// A run has ended: its launches are in flight no more when those of all runs before are not either. Else a worker
    /// that loses its core between the end of a run and this would leave the launching task without a slot that it has
    /// been promised.
    fn retire_in_order(&self, run: u64) {
        let ended = |run: u64| &self.ended[run as usize & (self.slots.len() - 1)];
        ended(run).fetch_max(run + 1, Ordering::Relaxed);
        // Two that end at the same time: one of them sees the other.
        fence(Ordering::SeqCst);
        let mut launches = 0;
        loop {
            let next = self.next_to_retire.load(Ordering::Relaxed);
            if ended(next).load(Ordering::Relaxed) <= next {
                break;
            }
            if self.next_to_retire.compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                launches += self.launches_of(next);
            }
        }
        if launches > 0 {
            self.context.operations_retired(launches);
        }
    }

    fn run_is_over(&self) {
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake.wake(Happened::End);
        }
    }

    fn run_task(&self, run: u64, task: &TaskNode, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        let core = &self.context.core;
        let launched = self.launched(run, task.stage);
        let name = &*task.name;
        let started = task.profile.then(|| core.now_ns());
        let call = LeafCall {
            task: name,
            point: &task.point,
            domain: &task.domain,
            over: self.template.stages[task.stage as usize].site.over.as_ref(),
            processor: context.processor(),
            realm: context.realm(),
            regions: &task.regions,
            arguments: &launched.arguments,
            taken: Taken::default(),
        };
        let shown = || self.template.stages[task.stage as usize].site.shown_point(task.point);
        if launched.takes_per_point
            && let Some(error) = launched.results.failed_input(task.point)
        {
            let fault = Arc::<Fault>::from(error);
            self.fail(run, task, Error::of_fault(&fault, name, shown()));
            return Err(fault);
        }
        // Most tasks end well, and errors take room: they are not handed on unless there is one.
        let (mut failure, mut is_awaited) = (None, false);
        let ended = fault::catch(|| match (task.body)(&call) {
            Ok(value) => is_awaited = launched.results.set_replayed(task.index, value),
            Err(error) => failure = Some(error),
        });
        if let Some(started) = started {
            let (processor, point, ended) = (context.processor(), task.point, core.now_ns());
            let profile = TaskProfile { processor, point, started, ended, finished: ended };
            let mapper = self.template.stages[task.stage as usize].site.mapper;
            self.context.report(mapper, name, &profile);
        }
        let error = match (ended, failure) {
            (Ok(()), None) => {
                if is_awaited {
                    launched.results.tell_ended_points();
                }
                return Ok(());
            }
            (Ok(()), Some(error)) => error,
            (Err(fault), _) => Error::of_fault_in(&fault, name, shown(), launched.launched.as_ref()),
        };
        let error = error.of_task(name, shown(), launched.launched.as_ref());
        self.fail(run, task, error.clone());
        Err(error.into())
    }

    #[cold]
    fn fail(&self, run: u64, task: &TaskNode, error: Error) {
        let results = &self.launched(run, task.stage).results;
        results.set(task.index, Err(error));
        results.tell_ended_points();
        self.slot(run, task.stage as usize).has_failed.store(true, Ordering::Release);
        self.has_failed.store(true, Ordering::Release);
    }

    fn carry_out(&self, place: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        let Some(profiled) = &self.profiled else { return self.run_node(place, context) };
        let activity = profiled.activity(place.run, place.node);
        let result = self.run_node(place, context);
        activity.end();
        result
    }

    fn run_node(&self, GraphPlace { node, run }: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        match &self.template.nodes[node as usize] {
            TraceNode::Task(task) => self.run_task(run, task, context),
            TraceNode::Transfers(transfers) => {
                for transfer in transfers {
                    // SAFETY: as when it was recorded: the graph orders every use of the fields and points concerned
                    // before or after this one.
                    let moved = unsafe { transfer.execute() };
                    moved.map_err(|error| {
                        self.has_failed.store(true, Ordering::Release);
                        Arc::<Fault>::from(Error::of_transfer(&error))
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Why values that a node needs are invalidated since an earlier run, if they are.
    #[cold]
    fn invalidated_before(&self, GraphPlace { node, run }: GraphPlace) -> Option<Arc<Fault>> {
        self.invalidated.before(run, self.template.changers.get(&node)?)
    }
}

impl GraphWork for Replay {
    fn run(&self, place: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        if self.has_failed()
            && let Some(fault) = self.invalidated_before(place)
        {
            self.poisoned(place, &fault);
            return Err(fault);
        }
        let result = self.carry_out(place, context);
        if let Err(fault) = &result {
            self.invalidated.note(place, fault);
        }
        result
    }

    fn panicked(&self, _: GraphPlace, fault: &Arc<Fault>) {
        // Not the program's: its bodies are caught by themselves.
        self.context.core.realm().break_down("a replayed task or copy", fault);
    }

    fn expect(&self, GraphPlace { node, run }: GraphPlace) {
        if let TraceNode::Task(task) = &self.template.nodes[node as usize] {
            prefetch_for_reading(self.slot(run, task.stage as usize).arguments.load(Ordering::Relaxed));
            // Likely the one after that.
            let next = task.stage as usize + 1;
            let (run, next) = if next < self.template.stages.len() { (run, next) } else { (run + 1, 0) };
            prefetch_for_reading(self.slot(run, next));
        }
    }

    fn poisoned(&self, place: GraphPlace, fault: &Arc<Fault>) {
        self.invalidated.note(place, fault);
        let GraphPlace { node, run } = place;
        if let TraceNode::Task(task) = &self.template.nodes[node as usize] {
            let site = &self.template.stages[task.stage as usize].site;
            let error = Error::of_fault(fault, site.name(), site.shown_point(task.point));
            self.fail(run, task, error);
        }
    }

    fn stage_ended(&self, run: u64, stage: u32) {
        let _catch_up = self.profiled.as_ref().map(|profiled| profiled.catch_up(run));
        // SAFETY: as in `launched`; and no point of the stage looks at it any more.
        let launched = unsafe { &mut *self.slot(run, stage as usize).launched.get() };
        let Launched { arguments, results, promised, .. } = launched.as_mut().expect(IN_PLACE);
        let has_failed = self.slot(run, stage as usize).has_failed.load(Ordering::Acquire);
        let failure = has_failed.then(|| results.first_error()).flatten();
        if failure.is_some() {
            // The results may never be looked at, and then the launching task fails.
            self.context.watch(results);
        }
        results.forget_sources();
        match promised {
            None => {
                let on_failure = self.template.stages[stage as usize].site.definition.on_failure();
                if let Some(call) = on_failure.filter(|_| failure.is_some()) {
                    call(arguments, results);
                }
                results.end(failure);
            }
            Some(promised) => self.context.keep(*promised, failure),
        }
        // Or they would keep results whose memory the next runs need.
        arguments.let_futures_go();
        if !self.ends_by_run {
            self.context.operations_retired(1);
        }
    }

    fn run_ended(&self, run: u64) {
        let _catch_up = self.profiled.as_ref().map(|profiled| profiled.catch_up(run));
        let launches = self.launches_of(run);
        let counters = &self.context.core.store.counters;
        counters.launches.add(launches as u64);
        counters.tasks.add(self.points[launches]);
        if self.ends_by_run {
            self.retire_in_order(run);
        }
        fence(Ordering::SeqCst);
        if self.is_full.load(Ordering::Relaxed) && self.is_full.swap(false, Ordering::Relaxed) {
            self.wake.wake(Happened::Slot);
        }
        self.run_is_over();
    }
}

/// Whether each point of a launch that takes these takes a result of its own.
fn takes_per_point(sources: &[Input]) -> bool {
    sources.iter().any(Input::is_per_point)
}

const IN_PLACE: &str = "a stage is opened after its launch was put in place";

/// How many launches are in flight at a time, unless four runs have more or the task may have fewer: enough for workers
/// that find something to do while the launching task is held up, and few enough that what a launch leaves for the
/// workers is still in a core's second cache when its slot comes round again.
const LAUNCHES_AHEAD: usize = 256;
