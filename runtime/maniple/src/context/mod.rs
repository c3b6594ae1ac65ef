//! Contexts: the stream of operations of one running task.

mod created;
mod destroyed;
mod ending;
mod fetch;
mod fill_operation;
mod in_flight;
mod inline_uses;
mod local_fields;
pub(crate) mod mapped;
mod parts;
mod region_key;
mod regions;
mod renewal;
mod scratch;
mod spare;
mod stream;
mod waiting;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64, AtomicUsize, Ordering};

use maniple_mapper::TaskProfile;
use maniple_realm::UserEvent;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::{Machine, ProcessorId};
use maniple_record::OperationNumber;
use maniple_space::AnyPoint;

use crate::core::RuntimeCore;
use crate::mapping::Whom;
use crate::operation::deletions::Inherited;
use crate::operation::lifecycle::MapperNumber;
use crate::results::watched::Watched;
use crate::results::{Origin, Results};
use crate::support::error::{Error, Result};
use crate::support::lazy_box::LazyBox;

pub(crate) use self::fill_operation::{DESTRUCTION, FillNumbers, FillOperation, NEW_FIELDS, Zeroing};
use self::in_flight::InFlight;
pub(crate) use self::local_fields::Local;
pub(crate) use self::parts::{ContextPart, ContextParts, PartSlot};
pub(crate) use self::region_key::{RegionFields, RegionKey, RegionRows};
use self::regions::Made;
pub(crate) use self::regions::{HeldRegion, Renewed};
pub(crate) use self::spare::{forget_spare, keep_spare};
pub(crate) use self::stream::{Promised, Reach, Stream, Submission};
use self::waiting::Waiter;

/// The context of a running task, which makes regions in it, and launches tasks and other operations.
///
/// Everything is deferred: calls return at once, and what they started takes effect in the order of the calls. Cheap to
/// clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) state: Arc<ContextState>,
    /// The mapper of launches that name none.
    pub(crate) mapper: MapperNumber,
    /// The place of the launches, if the program has named one.
    pub(crate) said: Option<Arc<Box<str>>>,
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
    /// The deletions before the task.
    pub(crate) inherited: Option<Arc<Inherited>>,
    stream: LazyBox<Mutex<Stream>>,
    pub(crate) in_flight: InFlight,
    /// The waits for falling numbers in flight.
    waiter: LazyBox<Mutex<Waiter>>,
    watched: LazyBox<Mutex<Watched>>,
    /// How many launches there have been, to tell which failure came first in the program.
    launches: AtomicU64,
    /// How many deletions the task has noted: each is seen by the launches that count it.
    deletions: AtomicU64,
    /// The last execution fence, as the bits of its event, after which nothing can be forked until it has triggered.
    pub(crate) fence: AtomicU64,
    /// The state of the task that modules above keep.
    pub(crate) parts: ContextParts,
    /// The program is within a trace that it has named.
    pub(crate) is_in_trace: AtomicBool,
    /// The task has looked at data by itself, by an inline mapping: others need not be compared with those that it
    /// holds.
    pub(crate) has_mapped: AtomicBool,
    /// It has launched what [may wait](crate::operation::lifecycle::Mappable::may_wait): from then on nothing that it
    /// launches is made to wait for what comes after it in the program. See `execution/README.md`.
    has_waiters: AtomicBool,
    /// The most operations in flight.
    pub(crate) window: usize,
    /// The most operations in flight, if a replay wants fewer than the runtime allows.
    replay_window: AtomicUsize,
    /// Whether several threads launch from it, each launch with a number of its own.
    pub(crate) is_shared: bool,
    /// How the points have come here that it launches, if that is a slice of another node's launch.
    pub(crate) arrived: Option<Arrived>,
}

/// The identity of a task that is about to get a context.
pub(crate) struct TaskIdentity {
    pub(crate) task: Origin,
    pub(crate) point: Option<AnyPoint>,
    /// The number of its beginning, while a record is kept.
    pub(crate) recorded: Option<OperationNumber>,
    pub(crate) processor: ProcessorId,
    pub(crate) depth: usize,
}

/// Numbers of launches have so many bits for those since the last deletion. They may come round again: then which of
/// two failures came first is not known.
const LAUNCH_BITS: u32 = 24;
const LAST_LAUNCH: u64 = (1 << LAUNCH_BITS) - 1;

impl Drop for ContextState {
    fn drop(&mut self) {
        // `Owned` and `conclude` see to it.
        debug_assert_eq!(self.in_flight.forks(), 0, "forks point to the context that they were forked from");
    }
}

impl Context {
    /// The name of the task.
    #[must_use]
    pub fn task(&self) -> &str {
        self.state.name()
    }

    /// The same context, from which launches and inline mappings go to a mapper [of this
    /// name](crate::RuntimeBuilder::mapper_named), unless they or their tasks name one. Tasks that are launched from it
    /// are not bound by it in what they launch.
    ///
    /// # Errors
    /// [`Error::NoSuchMapper`] if there is none.
    pub fn with_mapper(&self, name: &str) -> Result<Self> {
        let mapper = self.state.core.mapper_named(name, self.task())?;
        Ok(Self { mapper, ..self.clone() })
    }

    /// The same context, of whose launches errors, profiles and records say that they were launched here: at a line of
    /// a script, in a step with a name. Without it they name the line of the source in which [`launch`](Self::launch)
    /// or another function of the context is called, which for what a library or a program that was generated launches
    /// is not what its user knows.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[task(leaf)]
    /// fn fail(number: i64) -> Result<i64> {
    ///     Err(Error::application(format!("{number} is too small")))
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let outcome = runtime.run(async |cx: &Context| cx.at("solver.py:42").launch(fail(3)).await);
    /// assert_eq!(outcome.unwrap_err().to_string(), "task `fail` failed: 3 is too small (launched at solver.py:42)");
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[must_use]
    pub fn at(&self, place: &str) -> Self {
        Self { said: Some(Arc::new(place.into())), ..self.clone() }
    }

    /// A context of a task, whose launches go to the usual mapper.
    pub(crate) fn of(state: Arc<ContextState>) -> Self {
        Self { state, mapper: MapperNumber::USUAL, said: None }
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
}

/// How a slice has come to the node that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Whether it is to be sliced again.
    pub(crate) recurse: bool,
    /// How often it, or what it is a part of, was sent.
    pub(crate) hops: u32,
}

/// A context, as the task has it whose it is. A task may go before all that it has launched has ended, when the machine
/// has broken down.
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

impl ContextState {
    pub(crate) fn new(core: &Arc<RuntimeCore>, identity: TaskIdentity, held: Vec<HeldRegion>) -> Arc<Self> {
        let TaskIdentity { task, point, recorded, processor, depth } = identity;
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
            launches: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            fence: AtomicU64::new(0),
            parts: ContextParts::default(),
            is_in_trace: AtomicBool::new(false),
            has_mapped: AtomicBool::new(false),
            has_waiters: AtomicBool::new(false),
            window: core.window,
            replay_window: AtomicUsize::new(usize::MAX),
            is_shared: false,
            arrived: None,
        })
    }

    /// The context of a forked task, in a context that was used before if there is one.
    #[inline]
    pub(crate) fn forked(parent: &Self, launch: u64, task: Origin, processor: ProcessorId) -> Arc<Self> {
        let (depth, inherited) = (parent.depth + 1, parent.bequeath(launch));
        let Some(mut used) = spare::take() else {
            let identity = TaskIdentity { task, point: None, recorded: None, processor, depth };
            let mut context = Self::new(&parent.core, identity, Vec::new());
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
        *context.launches.get_mut() = 0;
        *context.deletions.get_mut() = 0;
        *context.fence.get_mut() = 0;
        *context.has_waiters.get_mut() = false;
        used.into_context()
    }

    /// Whether only its task knows the context, nothing is in flight, and all is as it was: it may be used again.
    #[inline]
    pub(crate) fn is_over(self: &Arc<Self>) -> bool {
        if Arc::strong_count(self) > 1 {
            return false;
        }
        // What others did with the context comes before their letting go of it.
        atomic::fence(Ordering::Acquire);
        let has_nothing = self.created.get().is_none() && self.stream.get().is_none() && self.parts.are_empty();
        self.in_flight.count() == 0 && has_nothing && self.watched.get().is_none()
    }

    /// Whether it is the top-level task of a program that runs on several nodes.
    #[inline]
    pub(crate) fn is_replicated(&self) -> bool {
        !self.parts.program.is_empty()
    }

    /// The name of the task.
    pub(crate) fn name(&self) -> &str {
        self.task.name()
    }

    pub(crate) fn held(&self) -> &[HeldRegion] {
        &self.held
    }

    /// Remembers a launch so that its failure is not lost if no task looks at it.
    pub(crate) fn watch(&self, results: &Arc<Results>) {
        self.watch_launch(self.number_launch(), results);
    }

    /// The number of a launch that is made now: higher than that of each deletion that was noted before. If several
    /// threads launch from a context that is not [shared](Self::is_shared), their launches may have the same one.
    #[inline]
    pub(crate) fn number_launch(&self) -> u64 {
        if self.is_shared {
            return self.number_after_deletions(self.launches.fetch_add(1, Ordering::Relaxed));
        }
        let launch = self.launches.load(Ordering::Relaxed);
        self.launches.store(launch + 1, Ordering::Relaxed);
        self.number_after_deletions(launch)
    }

    /// The number of the launch after this, which is under way.
    #[inline]
    pub(crate) fn place_of_launch(&self) -> u64 {
        self.number_after_deletions(self.launches.load(Ordering::Relaxed))
    }

    #[inline]
    fn number_after_deletions(&self, launch: u64) -> u64 {
        // A thread that launches after another thread has destroyed something counts that.
        self.deletions.load(Ordering::Acquire) << LAUNCH_BITS | launch & LAST_LAUNCH
    }

    /// The number of a deletion that is noted now: higher than those of all launches before, and lower than those of
    /// all after.
    pub(crate) fn number_deletion(&self) -> u64 {
        self.deletions.fetch_add(1, Ordering::AcqRel) << LAUNCH_BITS | LAST_LAUNCH
    }

    /// As [`watch`](Self::watch), for a launch that has a number.
    pub(crate) fn watch_launch(&self, number: u64, results: &Arc<Results>) {
        self.watched.lock().add(number, results);
    }

    /// The task was told of a failure, by something that has no results: it is not the task's own any more.
    pub(crate) fn has_seen(&self, failure: &Error) {
        self.watched.lock().see(failure);
    }

    /// Something is launched that may wait.
    #[inline]
    pub(crate) fn note_waiter(&self) {
        if !self.has_waiters.load(Ordering::Relaxed) {
            self.has_waiters.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something was launched that may wait.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.has_waiters.load(Ordering::Relaxed)
    }

    /// Whether operations may be made to wait for others that they have nothing to do with, such as those that free
    /// their memory: none of these waits for them.
    #[inline]
    pub(crate) fn may_wait_for_any(&self) -> bool {
        self.depth == 0 && !self.has_waiters()
    }

    /// Triggers an event that was promised to those that wait for a launch.
    pub(crate) fn keep(&self, promised: UserEvent, failure: Option<&Error>) {
        match failure {
            None => self.core.realm().trigger(promised),
            Some(error) => self.core.realm().poison(promised, error.clone()),
        }
    }

    /// The mapper of this kind to ask about the operations of the task.
    #[inline]
    pub(crate) fn whom(&self, mapper: MapperNumber) -> Whom {
        Whom { processor: self.processor, mapper }
    }

    /// Tells the mapper when and where a task ran.
    pub(crate) fn report(&self, mapper: MapperNumber, task: &str, profile: &TaskProfile) {
        self.core.seat(self.whom(mapper)).tell_profile(&self.core.store, task, profile);
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
