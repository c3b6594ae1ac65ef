//! Contexts: the stream of operations of one running task.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{self, AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

use maniple_analysis::order::{InOrderQueue, ProgramOrder};
use maniple_mapper::TaskProfile;
use maniple_realm::fault::Unavailable;
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_realm::machine::{Machine, ProcessorId};
use maniple_realm::{Event, EventStatus, UserEvent};
use maniple_record::{Because, Kind, LaunchNumber, OperationNumber};
use maniple_region::{FieldId, FieldMask, LogicalRegion, Privilege, Requirement, TreeId};
use maniple_space::AnyPoint;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::block_on::block_on;
use crate::core::RuntimeCore;
use crate::deletions::{Inherited, Log};
use crate::drop_caught::drop_caught;
use crate::error::{Error, Result};
use crate::fork::{self, InFlight};
use crate::inline::InlineUses;
use crate::launch::Sites;
use crate::lazy_box::LazyBox;
use crate::operation::{self, Mappable, Operation, Scope};
use crate::physical::bound::Bound;
use crate::physical::instance::Instances;
use crate::physical::movement::Preconditions;
use crate::physical::state::RegionState;
use crate::physical::store::Store;
use crate::profiling;
use crate::remote::Arrived;
use crate::replicate::{Node, Replica};
use crate::results::{Origin, Producers, Results};
use crate::trace::Tracing;
use crate::watched::Watched;

/// What a running task launches from: regions are made here, tasks and other operations launched.
///
/// Everything is deferred: calls return at once, and what they started takes effect in the order of the calls. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) state: Arc<ContextState>,
}

/// A privilege that a task holds, and the state of the data that it is about.
#[derive(Clone)]
pub(crate) struct HeldRegion {
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    pub(crate) privilege: Privilege,
    pub(crate) state: Arc<RegionState>,
    /// Where the parent wants the data when the task ends; nowhere if the state is the parent's own.
    pub(crate) home: Option<Instances>,
}

impl HeldRegion {
    /// Whether the data is in the state of the parent, where others than this task's operations may change it.
    fn is_borrowed(&self) -> bool {
        self.home.is_none() || matches!(self.privilege, Privilege::Reduce(_))
    }
}

/// A region that a task made.
pub(crate) struct Created {
    state: Arc<RegionState>,
    /// What was known of its field space when it was last used: whether ids of fields mean something else by now.
    changes: u64,
    generations: FxHashMap<FieldId, u32>,
}

/// Regions that a task has made, or tasks that it has launched and that have ended.
#[derive(Default)]
struct Regions {
    by_tree: FxHashMap<TreeId, Created>,
    sweep_at: usize,
}

/// What a task has made, and what it has destroyed.
#[derive(Default)]
struct Made {
    regions: Mutex<Regions>,
    /// What the task makes has this number or a higher one; unset, zero, before it makes anything.
    first: AtomicU64,
    deletions: Arc<Log>,
}

impl Created {
    /// Whether nobody can name the region any more. One that is being worked on is in use.
    fn is_nameless(&self) -> bool {
        self.state.try_lock().is_some_and(|state| state.is_nameless())
    }
}

impl Regions {
    /// Those that nobody can name any more.
    fn take_nameless(&mut self) -> Vec<(TreeId, Created)> {
        self.by_tree.extract_if(|_, created| created.is_nameless()).collect()
    }
}

pub(crate) struct ContextState {
    pub(crate) core: Arc<RuntimeCore>,
    pub(crate) task: Origin,
    /// In a box, as few contexts have one and all have room for it.
    point: Option<Box<AnyPoint>>,
    pub(crate) processor: ProcessorId,
    pub(crate) depth: usize,
    /// The number of the task's beginning, while a record is kept.
    pub(crate) recorded: Option<OperationNumber>,
    held: Vec<HeldRegion>,
    created: LazyBox<Made>,
    /// What was destroyed before the task.
    pub(crate) inherited: Option<Arc<Inherited>>,
    stream: LazyBox<Mutex<Stream>>,
    pub(crate) in_flight: InFlight,
    /// What somebody waits for that falling numbers in flight bring.
    waiter: LazyBox<Mutex<Waiter>>,
    watched: LazyBox<Mutex<Watched>>,
    /// What is known of launches that repeat; made with the first one.
    sites: OnceLock<Arc<Sites>>,
    /// The number of the next launch, to tell which failure came first in the program.
    next_launch: AtomicU64,
    /// The last execution fence, as the bits of its event, after which nothing can be forked until it has triggered.
    pub(crate) fence: AtomicU64,
    /// Locked for as long as a launch takes, before the stream.
    pub(crate) tracing: LazyBox<Mutex<Tracing>>,
    /// The task has looked at data by itself, by an inline mapping: others need not be compared with those that it holds.
    pub(crate) has_mapped: AtomicBool,
    /// The most operations in flight, if a replay wants fewer than the runtime allows.
    replay_window: AtomicUsize,
    /// The program that several nodes run, if this is its top-level task.
    pub(crate) replica: Option<Replica>,
    /// How the points have come here that it launches, if that is a slice of another node's launch.
    pub(crate) arrived: Option<Arrived>,
}

impl Drop for ContextState {
    fn drop(&mut self) {
        // `Owned` and `conclude` see to it.
        debug_assert_eq!(self.in_flight.forks(), 0, "forks point to the context that they were forked from");
    }
}

/// Fields that took the ids of freed ones: they are to start as zero.
pub(crate) struct Renewed {
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    pub(crate) state: Arc<RegionState>,
}

/// Who waits for what was launched to end.
#[derive(Default)]
struct Waiter {
    /// For fewer than so many operations in flight.
    fewer: Option<(usize, UserEvent)>,
    /// For no fork in flight.
    no_forks: Option<UserEvent>,
    /// For nothing in flight: the end of a forked task, or of what was launched for another node.
    drained: Option<Waker>,
    /// Triggers when that has come. Poisoned if the machine ends before: what was not mapped then never ends.
    end: Option<UserEvent>,
    /// The context itself, for no fork in flight: its task is gone.
    kept: Option<Arc<ContextState>>,
}

impl Waiter {
    fn is_nobody(&self) -> bool {
        self.fewer.is_none() && self.no_forks.is_none() && self.drained.is_none() && self.kept.is_none()
    }
}

/// The program order of a context.
#[derive(Default)]
pub(crate) struct Stream {
    sequence: u64,
    order: ProgramOrder<Arc<Operation>>,
    /// The last mapping fence.
    fence: Option<Arc<Operation>>,
    /// What every later operation executes after: the last execution fence.
    pub(crate) barrier: Event,
    /// Operations since the last fence that may not have been mapped, or not have ended.
    recent: Vec<Arc<Operation>>,
    sweep_at: usize,
    in_order: InOrderQueue<Arc<Operation>>,
    pub(crate) inline: InlineUses,
}

impl Context {
    /// The name of the task.
    #[must_use]
    pub fn task(&self) -> &str {
        self.state.name()
    }

    /// The processor that the task was mapped to.
    #[must_use]
    pub fn processor(&self) -> ProcessorId {
        self.state.processor
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.state.core.machine()
    }

    /// How many nodes the job has.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.state.core.migration().map_or(1, |migration| migration.nodes())
    }

    /// A number that is left to the mapper, such as `"pieces"`; `default` if the mapper does not know the name.
    ///
    /// On several nodes each asks its own mapper. Where answers may differ, nodes agree by [`per_node`](Self::per_node); should the program differ
    /// instead, the error names the tunables whose answers did.
    ///
    /// # Errors
    /// [`Error::Mapper`] if the mapper panics.
    pub fn tunable(&self, name: &str, default: i64) -> Result<i64> {
        let core = &self.state.core;
        let answer = core.seat(self.state.processor).tunable(&core.store, name)?.unwrap_or(default);
        if let Some(replica) = &self.state.replica {
            replica.note_tunable(name, answer);
        }
        Ok(answer)
    }

    /// Runs a function as the top-level task of a runtime, on this thread.
    pub(crate) fn run_top_level<T>(
        core: &Arc<RuntimeCore>,
        node: Option<&Arc<Node>>,
        body: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let recorded = core.store.record(None, &Preconditions::default(), || Kind::TopLevel);
        let name = Origin::BuiltIn(TOP_LEVEL);
        let mut state = ContextState::new(core, (name, None, recorded), core.first_processor(), 0, Vec::new());
        if let Some(state) = Arc::get_mut(&mut state) {
            state.replica = node.map(Replica::new);
            state.inherited = Inherited::of_earlier_runs(&core.deletions);
        }
        let _owned = Owned::new(Arc::clone(&state));
        let context = Self { state };
        let _running = core.top_level_runs();
        match catch_unwind(AssertUnwindSafe(|| block_on(core, TOP_LEVEL, body(&context)))) {
            Ok(result) => context.state.end_everywhere(context.state.end(result)),
            Err(panic) => {
                // The job was over when it asked for something.
                if let (true, Err(over)) = (panic.is::<Unavailable>(), core.check_whole()) {
                    return context.state.end_everywhere(context.state.end(Err(over)));
                }
                if let Some(node) = node {
                    node.note_panic(maniple_realm::fault::message_of(&*panic));
                }
                // Of what else went wrong the panic is the better witness.
                let _ = context.state.end(Ok(()));
                drop(context);
                resume_unwind(panic)
            }
        }
    }
}

/// A context, as the task has it whose it is. A task may go before all that it has launched has ended, when the machine has broken down.
pub(crate) struct Owned(Arc<ContextState>);

impl Owned {
    pub(crate) fn new(state: Arc<ContextState>) -> Self {
        Self(state)
    }
}

impl Deref for Owned {
    type Target = Arc<ContextState>;

    fn deref(&self) -> &Arc<ContextState> {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.forget_operations();
        self.keep_for_forks();
    }
}

/// A task that has made no more regions than this does not look for those that nobody can name any more.
const MANY_REGIONS: usize = 32;

/// A launching task that has nothing to do goes on when so large a part of its operations have ended, before half of them have: one in so many.
const ROOM: usize = 80;

/// What the task is called that a program begins with.
const TOP_LEVEL: &str = "top level";

impl ContextState {
    pub(crate) fn new(
        core: &Arc<RuntimeCore>,
        (task, point, recorded): (Origin, Option<AnyPoint>, Option<OperationNumber>),
        processor: ProcessorId,
        depth: usize,
        held: Vec<HeldRegion>,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            task,
            point: point.map(Box::new),
            processor,
            depth,
            recorded,
            held,
            created: LazyBox::default(),
            inherited: None,
            stream: LazyBox::default(),
            in_flight: InFlight::default(),
            waiter: LazyBox::default(),
            watched: LazyBox::default(),
            sites: OnceLock::new(),
            next_launch: AtomicU64::new(0),
            fence: AtomicU64::new(0),
            tracing: LazyBox::default(),
            has_mapped: AtomicBool::new(false),
            replay_window: AtomicUsize::new(usize::MAX),
            replica: None,
            arrived: None,
        })
    }

    pub(crate) fn sites(&self) -> &Sites {
        self.sites.get_or_init(|| {
            let sites = Arc::default();
            self.core.store.register_cache(Arc::downgrade(&sites) as _);
            sites
        })
    }

    /// The context of a forked task, in a context that was used before if there is one.
    #[inline]
    pub(crate) fn forked((parent, launch): (&Self, u64), task: Origin, processor: ProcessorId) -> Arc<Self> {
        let (depth, inherited) = (parent.depth + 1, parent.bequeath(launch));
        let Some(mut used) = fork::take_context() else {
            let mut context = Self::new(&parent.core, (task, None, None), processor, depth, Vec::new());
            if let Some(context) = Arc::get_mut(&mut context) {
                context.inherited = inherited;
            }
            return context;
        };
        let context = used.get_mut();
        debug_assert!(Arc::ptr_eq(&context.core, &parent.core));
        (context.task, context.processor, context.depth) = (task, processor, depth);
        context.inherited = inherited;
        context.in_flight.reset();
        *context.next_launch.get_mut() = 0;
        *context.fence.get_mut() = 0;
        used.into_context()
    }

    /// Whether nobody but its task knows the context, nothing is in flight, and all is as it was: it may be used again.
    #[inline]
    pub(crate) fn is_over(self: &Arc<Self>) -> bool {
        if Arc::strong_count(self) > 1 {
            return false;
        }
        // What others did with the context comes before their letting go of it.
        atomic::fence(Ordering::Acquire);
        let has_nothing = self.created.get().is_none() && self.stream.get().is_none() && self.tracing.get().is_none();
        self.in_flight.count() == 0 && has_nothing && self.sites.get().is_none() && self.watched.get().is_none()
    }

    /// The name of the task.
    pub(crate) fn name(&self) -> &str {
        self.task.name()
    }

    pub(crate) fn held(&self) -> &[HeldRegion] {
        &self.held
    }

    /// The task has made a region: it may do everything with it.
    pub(crate) fn add_created(&self, region: &LogicalRegion) {
        if let Some(replica) = &self.replica {
            replica.make(region);
        }
        let state = RegionState::fresh(region.clone());
        self.core.store.register(&state);
        let fields = region.fields();
        let generations = fields.fields().iter().map(|field| (field, fields.generation(field, self))).collect();
        let created = Created { state, changes: fields.changes(), generations };
        let mut regions = self.created.regions.lock();
        regions.by_tree.insert(region.tree().id(), created);
        self.sweep_regions(regions);
    }

    /// Regions that the task made, with what is known of their data: they pass to the parent when the task ends, unless nobody can name them any more.
    pub(crate) fn take_created(&self) -> FxHashMap<TreeId, Created> {
        let mut created = match self.created.get() {
            Some(made) => std::mem::take(&mut made.regions.lock().by_tree),
            None => return FxHashMap::default(),
        };
        created.retain(|_, created| !created.is_nameless());
        created
    }

    /// Lets go of regions that nobody can name any more, when there are many.
    fn sweep_regions(&self, mut regions: MutexGuard<'_, Regions>) {
        if regions.by_tree.len() <= regions.sweep_at.max(MANY_REGIONS) {
            return;
        }
        let mut gone = regions.take_nameless();
        let are_still_many = regions.by_tree.len() > MANY_REGIONS.max(regions.sweep_at / 2);
        regions.sweep_at = 2 * regions.by_tree.len();
        drop(regions);
        // Launches that repeat name what they used. They are found out anew if there are more.
        if are_still_many
            && self.replica.is_none()
            && let Some(sites) = self.sites.get()
        {
            sites.clear();
            let mut regions = self.created.regions.lock();
            gone.extend(regions.take_nameless());
            regions.sweep_at = 2 * regions.by_tree.len();
        }
        if let (Some(stream), false) = (self.stream.get(), gone.is_empty()) {
            let mut stream = stream.lock();
            gone.iter().for_each(|(tree, _)| stream.order.forget(*tree));
        }
        if let Some(replica) = &self.replica {
            gone.iter().for_each(|(tree, _)| replica.forget(*tree));
        }
    }

    /// Takes over regions that a task has made which has ended.
    pub(crate) fn adopt(&self, mut created: FxHashMap<TreeId, Created>) {
        // The task may have come before fields were freed that are for this one.
        created.values_mut().for_each(|created| created.changes = u64::MAX);
        if !created.is_empty() {
            let mut regions = self.created.regions.lock();
            regions.by_tree.extend(created);
            self.sweep_regions(regions);
        }
    }

    /// The task is about to make something.
    pub(crate) fn makes(&self) {
        let first = &self.created.first;
        if first.load(Ordering::Relaxed) == 0 {
            let next = self.core.forest().next_id();
            // Of several threads the first.
            let _ = first.compare_exchange(0, next, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// What the task has made has this number or a higher one.
    pub(crate) fn first_made(&self) -> Option<u64> {
        let first = self.created.get()?.first.load(Ordering::Acquire);
        (first > 0).then_some(first)
    }

    /// What the task has destroyed.
    pub(crate) fn deletions(&self) -> &Arc<Log> {
        &self.created.deletions
    }

    /// What the task has destroyed, unless it has neither made nor destroyed anything.
    #[inline]
    pub(crate) fn own_deletions(&self) -> Option<&Arc<Log>> {
        self.created.get().map(|made| &made.deletions)
    }

    /// Forgets a region that was destroyed: its instances go when the operations that use them have ended.
    pub(crate) fn forget(&self, region: &LogicalRegion) {
        let tree = region.tree().id();
        self.forget_traces_of(tree);
        if let Some(replica) = &self.replica {
            replica.destroy(region);
        }
        if let Some(sites) = self.sites.get() {
            sites.forget_tree(tree);
        }
        let created = self.created.regions.lock().by_tree.remove(&tree);
        drop(created);
        self.stream.lock().order.forget(tree);
    }

    /// Refuses to destroy what another task made.
    pub(crate) fn check_created(&self, region: &LogicalRegion) -> Result<()> {
        self.core.forest().check_own_region(region)?;
        if self.created.regions.lock().by_tree.contains_key(&region.tree().id()) {
            return Ok(());
        }
        region.check_alive(self)?;
        Err(Error::NotTheMaker { task: self.name().to_owned(), region: region.root_region().to_string() })
    }

    /// Checks that the task may launch an operation with this requirement, and finds the state of its data (Bauer 2014, section 4.2). The session
    /// under way has been left: fields may have to be made zero here, in program order.
    pub(crate) fn bind(self: &Arc<Self>, operation: &str, requirement: Requirement) -> Result<Bound> {
        let mut renewed = Vec::new();
        self.bring_pieces(&requirement.target, &[]);
        let bound = self.bind_and(operation, requirement, &mut |zero| renewed.push(zero))?;
        for zero in renewed {
            self.submit_zero(zero)?;
        }
        Ok(bound)
    }

    /// As [`bind`](Self::bind), for a caller who sees to it himself that renewed fields are zero first.
    pub(crate) fn bind_and(
        &self,
        operation: &str,
        requirement: Requirement,
        renew: &mut dyn FnMut(Renewed),
    ) -> Result<Bound> {
        let bound = requirement.target.bound();
        self.core.forest().check_own_region(&bound)?;
        bound.check_place()?;
        if let Err(error) = requirement.target.check_alive(self) {
            self.check_open()?;
            return Err(error.into());
        }
        let fields = requirement.target.tree().fields();
        if let Some(field) = requirement.fields.iter().find(|&field| !fields.has(field, self)) {
            return Err(maniple_region::RegionError::NoSuchField { field }.into());
        }
        if let Privilege::Reduce(operator) = requirement.privilege {
            for field in requirement.fields.iter() {
                let known = operator.reduction_on(fields.type_of(field)?);
                known.ok_or_else(|| Error::no_reduction(operator, &bound, field))?;
            }
        }
        if let Some(state) = self.find_created(&bound, renew) {
            let parts = SmallVec::from_iter([(requirement.fields.clone(), state)]);
            return Ok(Bound { requirement, parts });
        }
        let mut missing = requirement.fields.clone();
        let mut parts = SmallVec::new();
        for held in self.held.iter().filter(|held| bound.is_within(&held.region)) {
            let common = held.fields.intersection(&missing);
            if !common.is_empty() && held.privilege.covers(requirement.privilege) {
                missing = missing.difference(&common);
                parts.push((common, Arc::clone(&held.state)));
            }
        }
        if missing.is_empty() {
            return Ok(Bound { requirement, parts });
        }
        Err(self.not_held(operation, &requirement, &missing))
    }

    /// The state of a region that the task made. Fields that took the ids of freed ones start as zero, at this place in program order.
    fn find_created(&self, region: &LogicalRegion, renew: &mut dyn FnMut(Renewed)) -> Option<Arc<RegionState>> {
        let mut created = self.created.get()?.regions.lock();
        let known = created.by_tree.get_mut(&region.tree().id())?;
        let state = Arc::clone(&known.state);
        let fields = region.fields();
        if known.changes == fields.changes() {
            return Some(state);
        }
        known.changes = fields.changes();
        let generations = &mut known.generations;
        let is_new = |field: &FieldId| {
            let generation = fields.generation(*field, self);
            generations.insert(*field, generation).unwrap_or(0) != generation
        };
        let renewed: FieldMask = fields.fields().iter().filter(is_new).collect();
        drop(created);
        if !renewed.is_empty() {
            renew(Renewed { region: region.root_region(), fields: renewed, state: Arc::clone(&state) });
        }
        Some(state)
    }

    /// Whether data of a requirement is in the state of the parent, where others than this task's operations may change it.
    pub(crate) fn is_borrowed(&self, bound: &Bound) -> bool {
        let is_lent = |state: &Arc<RegionState>| {
            let held = self.held.iter().find(|held| Arc::ptr_eq(&held.state, state));
            held.is_some_and(HeldRegion::is_borrowed)
        };
        bound.parts.iter().any(|(_, state)| is_lent(state))
    }

    /// As [`is_borrowed`](Self::is_borrowed), before the requirement is bound to states.
    pub(crate) fn borrows(&self, requirement: &Requirement) -> bool {
        let mut borrowed = self.held.iter().filter(|held| held.is_borrowed());
        borrowed.any(|held| {
            held.fields.overlaps(&requirement.fields)
                && held.privilege.covers(requirement.privilege)
                && requirement.target.bound().is_within(&held.region)
        })
    }

    fn not_held(&self, operation: &str, requirement: &Requirement, missing: &FieldMask) -> Error {
        let bound = requirement.target.bound();
        let held = self.held.iter().find(|held| bound.is_within(&held.region) && held.fields.overlaps(missing));
        Error::PrivilegeNotHeld {
            operation: operation.to_owned(),
            parent: self.name().to_owned(),
            region: requirement.target.to_string(),
            fields: requirement.target.tree().fields().names_of(missing),
            wanted: requirement.privilege.to_string(),
            held: held.map_or_else(
                || "holds no privilege on them".to_owned(),
                |held| format!("only {} them", held.privilege),
            ),
        }
    }

    /// Launches an operation: gives it its place in program order and finds what must be mapped before it.
    pub(crate) fn submit(
        self: &Arc<Self>,
        requirements: &[Bound],
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        self.leave_session("a fill or an inline mapping");
        let submit = || self.submit_after(requirements, &Producers::default(), body);
        profiling::analysing(self.core.profiler(), "fill, copy or mapping", submit)
    }

    /// As [`submit`](Self::submit), for an operation that also waits for results of others. It is mapped after them: else an operation
    /// between them that does not interfere with it could be mapped behind it and made to wait for it, in a circle.
    pub(crate) fn submit_after(
        self: &Arc<Self>,
        requirements: &[Bound],
        producers: &Producers,
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        let mut stream = self.enter()?;
        let completion = self.core.realm().user_event();
        let promised = Promised { completion, recorded: None };
        let operation = self.submit_to(&mut stream, requirements, (producers, promised), body);
        drop(stream);
        operation.release();
        Ok(operation)
    }

    /// Gives an operation its place in a stream and finds what must be mapped before it. It is to be released.
    pub(crate) fn submit_to(
        self: &Arc<Self>,
        stream: &mut Stream,
        requirements: &[Bound],
        (producers, Promised { completion, recorded }): (&Producers, Promised),
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Arc<Operation> {
        self.core.store.counters.launches.add(1);
        let submission = Submission { sequence: stream.sequence, barrier: stream.barrier, completion };
        stream.sequence += 1;
        let body = body(stream, &submission);
        let launch = |parent| operation::recorded(parent, &*body, requirements);
        let recorded = recorded.or_else(|| self.core.store.record_launch(self.recorded, completion.event(), launch));
        let operation = Operation::new(self.scope(), submission.sequence, (completion, recorded), body);
        let map_after = |earlier: &Arc<Operation>, because: Because| {
            operation.map_after(earlier);
            self.core.store.record_dependence(recorded, earlier.recorded, because);
        };
        if let Some(fence) = &stream.fence {
            map_after(fence, Because::Fence);
        }
        producers.here.iter().for_each(|producer| map_after(producer, Because::Future));
        if self.replica.is_some() {
            stream.in_order.push(&operation, producers.are_afar).for_each(|earlier| map_after(&earlier, Because::Held));
        }
        if operation.is_held {
            // Nothing launched before may find its instances in use by what this task holds, and wait for that.
            stream.recent.iter().for_each(|earlier| map_after(earlier, Because::Held));
        }
        let mut visits = 0;
        for (number, bound) in requirements.iter().enumerate() {
            let mut depend = |earlier: &Arc<Operation>| map_after(earlier, Because::Data(number));
            visits += stream.order.register(&operation, &bound.requirement, &mut depend);
        }
        stream.remember(&operation, self.core.realm());
        self.core.store.counters.logical_visits.add(visits);
        operation
    }

    /// Counts one more operation, and locks the stream for it.
    fn enter(self: &Arc<Self>) -> Result<MutexGuard<'_, Stream>> {
        self.core.realm().take_turn();
        self.throttle()?;
        self.enter_at_once()
    }

    /// As [`enter`](Self::enter), however many operations are in flight.
    fn enter_at_once(self: &Arc<Self>) -> Result<MutexGuard<'_, Stream>> {
        // Counted first: who closes the stream and then waits for what was counted misses nobody.
        self.operation_begins();
        if self.in_flight.is_closed() {
            self.operation_retired();
            return Err(self.ended());
        }
        Ok(self.stream.lock())
    }

    /// Counts one more operation in flight.
    pub(crate) fn operation_begins(&self) {
        self.in_flight.begin_operation();
    }

    /// Counts so many more operations in flight.
    pub(crate) fn operations_begin(&self, operations: usize) {
        self.in_flight.begin_operations(operations);
    }

    /// A replay wants no more operations than this in flight.
    pub(crate) fn set_window(&self, operations: usize) {
        self.replay_window.store(operations, Ordering::Relaxed);
    }

    fn ended(&self) -> Error {
        Error::Ended { task: self.name().to_owned() }
    }

    /// Refuses a task that has ended.
    fn check_open(&self) -> Result<()> {
        if self.in_flight.is_closed() { Err(self.ended()) } else { Ok(()) }
    }

    /// The body has ended with this result: nothing is launched any more. A result that keeps data mapped is dropped.
    pub(crate) fn close<T>(&self, result: Result<T>) -> Result<T> {
        self.leave_session("the end of the task");
        self.in_flight.close();
        match result {
            Ok(value) if self.mappings_in_use() > 0 => {
                drop_caught("a result", self.name(), value);
                Err(Error::StillMapped { task: self.name().to_owned() })
            }
            other => other,
        }
    }

    /// The top-level task has ended with this result: waits for what it launched.
    fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = self.close(result);
        // A mapping that was leaked never ends; nobody else will use what this task has made.
        let leaked = self.mappings_in_use();
        let ended = self.core.realm().wait(self.fewer_than(1 + leaked));
        let result = self.conclude(result);
        if let Some(created) = self.created.get() {
            created.regions.lock().by_tree.values().for_each(|created| created.state.lock().root.tree().end_with_run());
            self.core.deletions.absorb(&created.deletions, 0);
        }
        ended.map_err(|fault| Error::of_fault(&fault, TOP_LEVEL, None))?;
        self.core.check_whole()?;
        self.core.store.record_whole(self.recorded);
        result
    }

    /// The program has ended here with this result: waits for the other nodes. It has failed if it has on any.
    fn end_everywhere<T>(&self, result: Result<T>) -> Result<T> {
        let Some(replica) = &self.replica else { return result };
        // A node that is lost, or does something else than the others, will not come to the end.
        let elsewhere = match self.core.check_whole() {
            Ok(()) => replica.end(result.as_ref().err()),
            Err(_) => None,
        };
        let elsewhere = self.core.check_whole().err().or(elsewhere);
        match (result, elsewhere) {
            (Ok(value), Some(error)) => {
                drop_caught("a result", self.name(), value);
                Err(error)
            }
            // What went wrong here is nearer to the cause than what others say of it.
            (result, _) => result,
        }
    }

    pub(crate) fn mappings_in_use(&self) -> usize {
        self.stream.get().map_or(0, |stream| stream.lock().inline.in_use())
    }

    /// Launches an operation that comes after all earlier ones and before all later ones: in mapping, and if `executes`, in execution. The body is
    /// made from the earlier ones' completions.
    pub(crate) fn submit_fence(
        self: &Arc<Self>,
        executes: bool,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        self.leave_session("a fence");
        let mut stream = self.enter()?;
        self.core.store.counters.launches.add(1);
        let forks = if executes { self.no_forks() } else { Event::NONE };
        let body = |mut earlier: Vec<Event>| {
            earlier.push(forks);
            body(earlier)
        };
        let operation = self.fence_in(&mut stream, executes, completion, body);
        if executes {
            self.fence.store(completion.event().to_bits(), Ordering::Relaxed);
        }
        drop(stream);
        operation.release();
        Ok(operation)
    }

    /// Submits the operation that stands for a session, and leaves room for what is launched in it: in program order, that comes after the
    /// operation's. It counts as in flight only when the session is closed. None if the task has ended, or holds data mapped, of which a session
    /// knows nothing.
    pub(crate) fn submit_session(
        self: &Arc<Self>,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Option<Arc<Operation>> {
        // Without a limit: the launch that begins the session counts already, and would wait for itself.
        let mut stream = self.enter_at_once().ok()?;
        if stream.inline.in_use() > 0 {
            drop(stream);
            self.operation_retired();
            return None;
        }
        let operation = self.fence_in(&mut stream, true, completion, body);
        stream.sequence += ROOM_FOR_A_SESSION;
        drop(stream);
        self.operation_retired();
        operation.release();
        Some(operation)
    }

    fn fence_in(
        self: &Arc<Self>,
        stream: &mut Stream,
        executes: bool,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Arc<Operation> {
        let sequence = stream.sequence;
        stream.sequence += 1;
        let recent = std::mem::take(&mut stream.recent);
        // What the task holds may end after this.
        let holds = stream.inline.in_use() > 0;
        let waited_for = recent.iter().filter(|earlier| !(holds && earlier.is_held));
        let ends = waited_for.map(|earlier| earlier.completion.event()).chain([stream.barrier]);
        let body = body(ends.collect());
        let launch = |parent| operation::recorded(parent, &*body, &[]);
        let recorded = self.core.store.record_launch(self.recorded, completion.event(), launch);
        let operation = Operation::new(self.scope(), sequence, (completion, recorded), body);
        for earlier in recent.iter().chain(stream.fence.replace(Arc::clone(&operation)).as_ref()) {
            operation.map_after(earlier);
            self.core.store.record_dependence(recorded, earlier.recorded, Because::Fence);
        }
        // Later operations are mapped after the fence, and it after all earlier ones: nobody needs to look behind it.
        stream.order.clear();
        if executes {
            stream.barrier = completion.event();
        } else {
            // What has been mapped may still be executing: an execution fence to come must wait for it.
            stream.recent = recent;
        }
        stream.recent.push(Arc::clone(&operation));
        operation
    }

    pub(crate) fn with_stream<R>(&self, body: impl FnOnce(&mut Stream) -> R) -> R {
        body(&mut self.stream.lock())
    }

    /// Remembers a launch so that its failure is not lost if nobody looks at it.
    pub(crate) fn watch(&self, results: &Arc<Results>) {
        self.watch_launch(self.number_launch(), results);
    }

    /// The number of a launch that is made now. If several threads launch from this context, their launches may have the same one.
    #[inline]
    pub(crate) fn number_launch(&self) -> u64 {
        let number = self.next_launch.load(Ordering::Relaxed);
        self.next_launch.store(number + 1, Ordering::Relaxed);
        number
    }

    /// The number of the launch after this, which is under way.
    #[inline]
    pub(crate) fn place_of_launch(&self) -> u64 {
        self.next_launch.load(Ordering::Relaxed)
    }

    /// As [`watch`](Self::watch), for a launch that has a number.
    pub(crate) fn watch_launch(&self, number: u64, results: &Arc<Results>) {
        self.watched.lock().add(number, results);
    }

    /// The task was told of a failure, by something that has no results: it is not the task's own any more.
    pub(crate) fn has_seen(&self, failure: &Error) {
        self.watched.lock().see(failure);
    }

    /// Helps with other work while too many operations are in flight. If this thread has nothing to help with and must not sleep, because
    /// another task waits below this one on its stack, the limit gives way; so it does while the task has data mapped, which it could not
    /// release while it waits.
    ///
    /// # Errors
    /// If the machine has broken down. Then the operation is refused, and with it all that come after it in the task, whether or not there is room for them: a task that
    /// has handled the failure would find values without the effects of an operation that was refused.
    #[inline]
    pub(crate) fn throttle(self: &Arc<Self>) -> Result<()> {
        let window = self.core.window.min(self.replay_window.load(Ordering::Relaxed));
        if self.in_flight.count() >= window && self.mappings_in_use() == 0 {
            let (realm, few) = (self.core.realm(), window - window / 2);
            match self.depth {
                0 => self.core.while_top_level_waits(|| {
                    // While workers have nothing to do, it is time for the next launches.
                    let (is_full, has_room) =
                        (|| self.in_flight.count() >= few, || self.in_flight.count() < window - window / ROOM);
                    realm.work_while(is_full, has_room) || realm.wait_if_safe(self.fewer_than(few))
                }),
                _ => realm.wait_if_safe(self.fewer_than(few)),
            };
        }
        self.core.check_whole()
    }

    /// Triggers when everything that was launched has ended.
    pub(crate) fn drained(&self) -> Event {
        self.fewer_than(1)
    }

    /// Triggers when fewer than so many operations are in flight. One caller at a time: the launching task.
    fn fewer_than(&self, limit: usize) -> Event {
        let mut waiter = self.waiter.lock();
        // Several threads launch from one context: all wait for the strictest.
        let (strictest, event) = waiter.fewer.get_or_insert_with(|| (limit, self.core.realm().user_event()));
        *strictest = (*strictest).min(limit);
        let event = event.event();
        self.waits(waiter);
        event
    }

    /// Triggers when no fork is in flight.
    pub(crate) fn no_forks(&self) -> Event {
        if self.in_flight.forks() == 0 {
            return Event::NONE;
        }
        let mut waiter = self.waiter.lock();
        let event = waiter.no_forks.get_or_insert_with(|| self.core.realm().user_event()).event();
        self.waits(waiter);
        event
    }

    /// Whether everything that was launched has ended; if not, the waker is told when it has. Then nobody who has been in flight touches the context
    /// any more without a reference of his own. So it is when the machine ends after a breakdown and no fork is in flight: operations that were not mapped never end.
    pub(crate) fn poll_drained(&self, waker: &Waker) -> Poll<()> {
        if self.in_flight.count() == 0 {
            return Poll::Ready(());
        }
        let mut waiter = self.waiter.lock();
        if self.has_machine_ended(&waiter) && self.in_flight.forks() == 0 {
            return Poll::Ready(());
        }
        waiter.drained = Some(waker.clone());
        let in_flight = self.in_flight.wait();
        if in_flight == 0 {
            waiter.drained = None;
            let end = waiter.end.take();
            drop(waiter);
            end.into_iter().for_each(|end| self.core.realm().trigger(end));
            return Poll::Ready(());
        }
        // The last one will tell. He must not be overtaken: he may be about to look at the context. Forks end whatever happens.
        if waiter.end.is_none() && in_flight > self.in_flight.forks() {
            let end = *waiter.end.insert(self.core.realm().user_event());
            drop(waiter);
            let waker = waker.clone();
            self.core.realm().when(&end.event(), move |outcome| {
                if outcome.is_err() {
                    waker.wake();
                }
            });
        }
        Poll::Pending
    }

    /// Whether the machine has ended during a wait for nothing to be in flight.
    fn has_machine_ended(&self, waiter: &Waiter) -> bool {
        let status = waiter.end.map(|end| self.core.realm().status(end.event()));
        matches!(status, Some(EventStatus::Poisoned(_)))
    }

    /// Somebody waits now.
    fn waits(&self, waiter: MutexGuard<'_, Waiter>) {
        self.in_flight.wait();
        drop(waiter);
        // The last operation may have ended before we were seen waiting.
        self.wake_waiter();
    }

    pub(crate) fn operations_retired(&self, operations: usize) {
        if self.in_flight.end_operations(operations) {
            self.wake_waiter();
        }
    }

    /// A fork is counted off by somebody who has a reference to the context.
    pub(crate) fn fork_ended(&self) {
        if self.in_flight.end_fork() {
            self.wake_waiter();
        }
    }

    /// Triggers an event that was promised to whoever waits for a launch.
    pub(crate) fn keep(&self, promised: UserEvent, failure: Option<&Error>) {
        match failure {
            None => self.core.realm().trigger(promised),
            Some(error) => self.core.realm().poison(promised, error.clone()),
        }
    }

    fn wake_waiter(&self) {
        let mut waiter = self.waiter.lock();
        let (count, forks) = (self.in_flight.count(), self.in_flight.forks());
        let fewer = waiter.fewer.take_if(|(limit, _)| count < *limit).map(|(_, event)| event);
        let no_forks = waiter.no_forks.take_if(|_| forks == 0);
        let is_over = count == 0 || (forks == 0 && self.has_machine_ended(&waiter));
        let drained = waiter.drained.take_if(|_| is_over);
        let end = waiter.end.take_if(|_| count == 0);
        // Whoever calls this has a reference of his own.
        let _kept = waiter.kept.take_if(|_| forks == 0);
        if waiter.is_nobody() {
            self.in_flight.wait_no_more();
        }
        drop(waiter);
        fewer.into_iter().chain(no_forks).chain(end).for_each(|event| self.core.realm().trigger(event));
        if let Some(waker) = drained {
            waker.wake();
        }
    }

    /// Operations know their context, and its stream knows them: lets go of them, or neither would ever be freed. What was known of traces.
    fn forget_operations(&self) -> Option<Tracing> {
        let tracing = self.tracing.get().map(|tracing| std::mem::take(&mut *tracing.lock()));
        if let Some(sites) = self.sites.get() {
            sites.clear();
        }
        if let Some(stream) = self.stream.get() {
            let stream = std::mem::take(&mut *stream.lock());
            drop(stream);
        }
        tracing
    }

    /// The task is gone. Forks that are in flight point to this context without a reference: the last of them lets go of it.
    fn keep_for_forks(self: &Arc<Self>) {
        if self.in_flight.forks() > 0 {
            let mut waiter = self.waiter.lock();
            waiter.kept = Some(Arc::clone(self));
            self.waits(waiter);
        }
    }

    /// The result of the task, once everything that it launched has ended: a failure that nobody has seen becomes the task's own.
    pub(crate) fn conclude<T>(&self, result: Result<T>) -> Result<T> {
        let refused = self.forget_operations().and_then(|tracing| tracing.strict.untold());
        let watched = self.watched.get().map(|watched| std::mem::take(&mut *watched.lock()));
        let result = result?;
        match watched.and_then(Watched::unseen_failure).or(refused) {
            None => Ok(result),
            Some(error) => {
                drop_caught("a result", self.name(), result);
                Err(error)
            }
        }
    }

    /// Tells the mapper when and where a task ran.
    pub(crate) fn report(&self, task: &str, profile: &TaskProfile) {
        self.core.seat(self.processor).tell_profile(&self.core.store, task, profile);
    }

    fn scope(self: &Arc<Self>) -> Arc<dyn Scope> {
        Arc::<Self>::clone(self)
    }
}

impl Scope for ContextState {
    fn store(&self) -> &Store {
        &self.core.store
    }

    fn recorded(&self) -> Option<OperationNumber> {
        self.recorded
    }

    /// Tells the mapper of this task's processor.
    fn ready_to_map(&self, operation: &Arc<Operation>) {
        self.core.enqueue(self.processor, Arc::clone(operation));
    }

    fn operation_retired(&self) {
        self.operations_retired(1);
    }
}

/// An operation's place in the stream.
pub(crate) struct Submission {
    pub(crate) sequence: u64,
    pub(crate) barrier: Event,
    pub(crate) completion: UserEvent,
}

/// What was promised of an operation before it is submitted.
pub(crate) struct Promised {
    /// Its end.
    pub(crate) completion: UserEvent,
    /// Its number, if it is on record already.
    pub(crate) recorded: Option<LaunchNumber>,
}

/// Operations in one session have numbers between that of the session and the next one's.
const ROOM_FOR_A_SESSION: u64 = 1 << 32;

impl Stream {
    /// Operations that may not have ended.
    pub(crate) fn recent(&self) -> &[Arc<Operation>] {
        &self.recent
    }

    /// The number of the next operation.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    fn remember(&mut self, operation: &Arc<Operation>, realm: &maniple_realm::Realm) {
        self.recent.push(Arc::clone(operation));
        // The record shows also what a fence need not wait for any more.
        if self.recent.len() > self.sweep_at && operation.recorded.is_none() {
            self.recent.retain(|operation| !realm.has_triggered(operation.completion.event()));
            self.sweep_at = 64.max(2 * self.recent.len());
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Context({}{})",
            self.state.name(),
            self.state.point.as_ref().map_or_else(String::new, |point| point.to_string())
        )
    }
}
