//! Futures: results of tasks that are still to come.
//!
//! Here is what a launch leaves: its [`Results`]. `single` is the future of one of them, `map` that of all points; `promise` computes results from others.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Waker};

use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, Fault, Realm, fault};
use maniple_space::AnyRect;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::completion::{Completion, ReplayedStage};
use crate::error::{Error, Result};
use crate::fork::{Fork, Outcome};
use crate::let_go;
use crate::once::Once;
use crate::operation::Operation;
use crate::recorder::Recorder;
use crate::replicate::Spread;
use crate::runtime::RuntimeCore;
use crate::task::arguments::Arguments;
use crate::task::definition::OnFailure;
use crate::task::{TaskDefinition, Value};

mod map;
mod promise;
mod single;

pub use map::FutureMap;
pub use single::{Awaited, Future};

/// Results that others are computed from.
pub(crate) type Sources = SmallVec<[Arc<Results>; 2]>;

/// What gives results that are still to come.
#[derive(Default)]
pub(crate) struct Producers {
    pub(crate) here: Vec<Arc<Operation>>,
    /// And operations of other nodes.
    pub(crate) are_afar: bool,
}

/// What results are the results of.
#[derive(Clone)]
pub(crate) enum Origin {
    Task(Arc<TaskDefinition>),
    /// A task that `#[task]` declares: naming it counts no references.
    Declared(&'static TaskDefinition),
    BuiltIn(&'static str),
}

impl Origin {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Task(definition) => definition.name(),
            Self::Declared(definition) => definition.name(),
            Self::BuiltIn(name) => name,
        }
    }
}

/// The results of the points of one launch. A single launch has one point.
pub(crate) struct Results {
    realm: Realm,
    origin: Origin,
    domain: AnyRect,
    completion: Completion,
    /// Results of points. One that is `()` is not kept: it is there when the launch has ended well. So most launches need no room for any, and
    /// it is made for the first one: a launch costs the same however many points it has.
    values: OnceLock<Box<[Once<Result<Value>>]>>,
    /// Some of them have been put in place.
    has_values: AtomicBool,
    /// Somebody has looked at how the launch ended, so its failure is not lost.
    observed: AtomicBool,
    /// Results that these were computed from: whoever sees these fail has seen those fail. Forgotten when these are there, so that a chain
    /// of futures is not kept by its end.
    sources: Mutex<Sources>,
    /// The forked task whose value is the result, once it has ended well.
    fork: OnceLock<Fork>,
    /// The launch that gives them, unless they are a function of others.
    producer: OnceLock<Weak<Operation>>,
    /// They come from other nodes.
    is_from_afar: bool,
    /// Where it is recorded what the completion comes after, while a record is kept.
    recorder: OnceLock<Arc<Recorder>>,
}

impl Results {
    pub(crate) fn new(
        realm: &Realm,
        origin: Origin,
        domain: AnyRect,
        completion: impl Into<Completion>,
        sources: Sources,
    ) -> Arc<Self> {
        let completion = completion.into();
        let (observed, sources) = (AtomicBool::new(false), Mutex::new(sources));
        let (realm, fork, producer, recorder) = (realm.clone(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let has_values = AtomicBool::new(false);
        Arc::new(Self {
            realm,
            origin,
            domain,
            completion,
            values: OnceLock::new(),
            has_values,
            observed,
            sources,
            fork,
            producer,
            is_from_afar: false,
            recorder,
        })
    }

    /// One result that is there.
    pub(crate) fn ready<T: Send + Sync + 'static>(realm: &Realm, name: &'static str, value: T) -> Arc<Self> {
        let results = Self::new(realm, Origin::BuiltIn(name), one_point(), Event::NONE, Sources::new());
        results.set(0, Ok(Box::new(value)));
        results
    }

    /// Results that come from other nodes, at least in part.
    pub(crate) fn from_afar(
        realm: &Realm,
        (origin, domain): (Origin, AnyRect),
        completion: impl Into<Completion>,
        sources: Sources,
    ) -> Arc<Self> {
        let mut results = Self::new(realm, origin, domain, completion, sources);
        if let Some(results) = Arc::get_mut(&mut results) {
            results.is_from_afar = true;
        }
        results
    }

    /// How several nodes share the launch, if they do.
    pub(crate) fn spread(&self) -> Option<&Arc<Spread>> {
        self.completion.spread()
    }

    /// The task, or whatever else gave them.
    pub(crate) fn task(&self) -> &str {
        self.name()
    }

    /// A copy of the result of a point.
    pub(crate) fn copy<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        self.get(index)
    }

    /// The result of a point, if it is there and not `()`. Of a forked task that is another.
    pub(crate) fn value(&self, index: usize) -> Option<Result<&dyn Any, &Error>> {
        if let Some(fork) = self.fork.get() {
            return fork.value().map(Ok);
        }
        let value = self.values.get()?.get(index)?.get()?;
        Some(value.as_ref().map(|value| &**value as &dyn Any))
    }

    /// The results of a forked task. They end when that does: [`end_as`](Self::end_as) or [`fail_fork`](Self::fail_fork).
    pub(crate) fn of_fork(core: &RuntimeCore, definition: &'static TaskDefinition) -> Arc<Self> {
        Self::new(core.realm(), Origin::Declared(definition), one_point(), Completion::on_demand(), Sources::new())
    }

    /// The results of a forked task whose value nobody was left to see, and could not be dropped.
    pub(crate) fn of_lost_value(core: &RuntimeCore, definition: &'static TaskDefinition, fault: &Fault) -> Arc<Self> {
        let error = Error::of_fault(fault, definition.name(), None);
        Self::failed(core.realm(), Origin::Declared(definition), one_point(), &error)
    }

    /// The forked task has ended well: the result is its value.
    pub(crate) fn end_as(&self, fork: Fork) {
        let _ = self.fork.set(fork);
        self.end(None);
    }

    /// The forked task, which was given results of these, has failed, and is about to end.
    pub(crate) fn fail_fork(&self, error: &Error, sources: Sources) {
        *self.sources.lock() = sources;
        self.set(0, Err(error.clone()));
    }

    /// Makes results that nobody looks at any more those of another launch of the same task over the same points: of a stage that is replayed.
    pub(crate) fn renew(
        &mut self,
        (run, is_watched): (u64, bool),
        stage: impl FnOnce() -> ReplayedStage,
        sources: &[Arc<Self>],
    ) {
        self.completion.renew(run, is_watched, stage);
        self.drop_values();
        *self.observed.get_mut() = false;
        self.producer.take();
        let mine = self.sources.get_mut();
        mine.clear();
        // Even to extend by nothing takes its time.
        if !sources.is_empty() {
            mine.extend(sources.iter().cloned());
        }
    }

    /// Drops what the points have returned. The destructor of one that panics is logged, and the others go all the same.
    fn drop_values(&mut self) {
        if !std::mem::take(self.has_values.get_mut()) {
            return;
        }
        let mut values = self.values.get_mut().into_iter().flatten();
        while let Err(fault) = fault::catch(|| values.by_ref().for_each(|value| drop(value.take()))) {
            let_go::tell("a result", self.origin.name(), &fault);
        }
    }

    fn name(&self) -> &str {
        self.origin.name()
    }

    /// Whether they are those of a launch that went straight into a replay.
    pub(crate) fn are_replayed(&self) -> bool {
        self.completion.is_of_stage()
    }

    /// Calls a function when the launch has failed, with its arguments.
    pub(crate) fn when_failed(self: &Arc<Self>, call: OnFailure, arguments: Arguments) {
        let results = Arc::clone(self);
        self.realm.when(After::follows(&[self.completion()]), move |_| {
            if results.error().is_some() {
                call(&arguments, &results);
            }
        });
    }

    /// The results of a launch that failed before it began.
    pub(crate) fn failed(realm: &Realm, origin: Origin, domain: AnyRect, error: &Error) -> Arc<Self> {
        let completion = realm.user_event();
        realm.poison(completion, Arc::<Fault>::from(error.clone()));
        Self::new(realm, origin, domain, completion.event(), Sources::new())
    }

    pub(crate) fn produced_by(&self, operation: &Arc<Operation>) {
        // Set once, by whoever launches the operation.
        let _ = self.producer.set(Arc::downgrade(operation));
        self.recorded_by(operation.context.core.recorder.as_ref());
    }

    /// Says where it is recorded what these come after.
    pub(crate) fn recorded_by(&self, recorder: Option<&Arc<Recorder>>) {
        if let Some(recorder) = recorder {
            let _ = self.recorder.set(Arc::clone(recorder));
        }
    }

    /// The launches in flight that results come from. Functions of functions may be many deep and meet again, so without recursion, and
    /// each is asked once.
    pub(crate) fn producers(of: &[Arc<Self>]) -> Producers {
        let (mut open, mut seen, mut producers) = (of.to_vec(), FxHashSet::default(), Producers::default());
        while let Some(results) = open.pop() {
            if results.has_ended() || !seen.insert(Arc::as_ptr(&results)) {
                continue;
            }
            producers.are_afar |= results.is_from_afar;
            match results.producer.get() {
                Some(producer) => producers.here.extend(producer.upgrade()),
                None => open.extend_from_slice(&results.sources.lock()),
            }
        }
        producers
    }

    /// Whether they are results of this realm's: others wait for its events in vain.
    pub(crate) fn is_of(&self, realm: &Realm) -> bool {
        self.realm.is_same(realm)
    }

    /// Triggers when all results are there, poisoned if one is a failure.
    pub(crate) fn completion(&self) -> Event {
        self.completion.event(&self.realm, || self.first_error().map(|error| error.clone().into()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.completion.has_ended(&self.realm)
    }

    /// All results are there: the launch has ended.
    pub(crate) fn end(&self, failure: Option<&Error>) {
        self.completion.end(&self.realm, failure.map(|error| Arc::<Fault>::from(error.clone())));
    }

    pub(crate) fn set(&self, index: usize, value: Result<Value>) {
        match value {
            Ok(value) => self.set_value(index, value),
            Err(error) => self.keep(index, Err(error)),
        }
    }

    /// A point has ended well.
    pub(crate) fn set_value(&self, index: usize, value: Value) {
        // Points that end on several cores would all write to the same lines.
        if !(*value).is::<()>() {
            self.keep(index, Ok(value));
        }
    }

    fn keep(&self, index: usize, value: Result<Value>) {
        if !self.has_values.load(Ordering::Relaxed) {
            self.has_values.store(true, Ordering::Relaxed);
        }
        let values = self.values.get_or_init(|| (0..self.points()).map(|_| Once::new()).collect());
        let first = values[index].set(value);
        debug_assert!(first, "a point has one result");
    }

    /// How many points there are.
    fn points(&self) -> usize {
        self.domain.volume() as usize
    }

    /// The failures of points that have failed, in their order.
    fn errors_of_points(&self) -> impl Iterator<Item = &Error> {
        let values = self.values.get().map_or(&[][..], |values| values);
        values.iter().filter_map(|value| value.get().and_then(|value| value.as_ref().err()))
    }

    /// The first failure in the order of points.
    pub(crate) fn first_error(&self) -> Option<&Error> {
        self.errors_of_points().next()
    }

    /// All failures of points, and that of the launch as a whole.
    pub(crate) fn errors(&self) -> impl Iterator<Item = Error> {
        self.errors_of_points().cloned().chain(self.failure())
    }

    /// Why the launch failed, if it has.
    pub(crate) fn error(&self) -> Option<Error> {
        self.first_error().cloned().or_else(|| self.failure())
    }

    /// The launch has ended well: nobody needs to hear of it.
    pub(crate) fn is_settled(&self) -> bool {
        self.has_ended() && self.error().is_none()
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Acquire)
    }

    /// All results are there, and none is a failure.
    pub(crate) fn forget_sources(&self) {
        let sources = std::mem::take(&mut *self.sources.lock());
        drop(sources);
    }

    /// Notes that somebody has seen these fail, and so how those ended that they were computed from. Chains may be long, so without
    /// recursion.
    fn observe(&self) {
        let look = |results: &Self| match results.observed.swap(true, Ordering::AcqRel) {
            true => Sources::new(),
            false => results.sources.lock().clone(),
        };
        let mut sources = look(self);
        while let Some(source) = sources.pop() {
            sources.append(&mut look(&source));
        }
    }

    fn get<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        let of_fork = || self.fork.get().and_then(Fork::value);
        match self.values.get().and_then(|values| values.get(index)).and_then(Once::get) {
            Some(Ok(value)) => typed(&**value, self.name()),
            Some(Err(error)) => Err(error.clone()),
            None if index == 0
                && let Some(value) = of_fork() =>
            {
                typed(value, self.name())
            }
            None => self.nothing(),
        }
    }

    /// The result of a point for which there is none: it was `()`, unless the launch as a whole failed.
    fn nothing<T: Clone + 'static>(&self) -> Result<T> {
        let failure = self.failure();
        let is_there = self.has_ended() && (failure.is_none() || self.first_error().is_some());
        match (&() as &dyn Any).downcast_ref::<T>().filter(|_| is_there) {
            Some(nothing) => Ok(nothing.clone()),
            None => {
                Err(failure.unwrap_or_else(|| Error::launch(self.name(), "its result was asked for before its end")))
            }
        }
    }

    /// Why the launch as a whole failed.
    fn failure(&self) -> Option<Error> {
        let status = self.realm.status(self.completion());
        status.fault().map(|fault| Error::of_fault(fault, self.name(), None))
    }

    async fn seen_to_end(&self) {
        self.completed().await;
        // What they came from may have failed and they not, as a launch of no points: that has not been seen.
        if self.error().is_some() {
            self.observe();
        }
    }

    /// One result, looked at.
    fn seen<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        let value = self.get(index);
        if value.is_err() {
            self.observe();
        }
        value
    }

    async fn completed(&self) {
        // How it ended is in the values; that the realm goes down meanwhile shows as a value that is not there.
        let _ = self.realm.event_future(self.completion()).await;
    }
}

/// A copy of a result, if it has the type.
fn typed<T: Clone + 'static>(value: &dyn Any, name: &str) -> Result<T> {
    let wrong = || Error::launch(name, format!("its result is not a {}", std::any::type_name::<T>()));
    value.downcast_ref::<T>().cloned().ok_or_else(wrong)
}

impl Drop for Results {
    /// Lets a chain of failed sources go link by link, without recursion.
    fn drop(&mut self) {
        self.drop_values();
        let mut sources = std::mem::take(self.sources.get_mut());
        while let Some(source) = sources.pop() {
            if let Some(mut source) = Arc::into_inner(source) {
                sources.append(source.sources.get_mut());
            }
        }
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "results of {} over {}", self.name(), self.domain)
    }
}

/// What gives a result.
#[derive(Clone)]
pub(crate) enum Source {
    /// A launch that goes through the stream of its context, or a function of others.
    Launch(Arc<Results>),
    /// A forked task.
    Fork(Fork),
}

impl Source {
    pub(crate) fn results(&self) -> Arc<Results> {
        match self {
            Self::Launch(results) => Arc::clone(results),
            Self::Fork(fork) => fork.results(),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Launch(results) => results.name(),
            Self::Fork(fork) => fork.head().name(),
        }
    }

    fn realm(&self) -> &Realm {
        match self {
            Self::Launch(results) => &results.realm,
            Self::Fork(fork) => fork.head().core().realm(),
        }
    }

    /// See [`Results::is_of`].
    pub(crate) fn is_of(&self, realm: &Realm) -> bool {
        self.realm().is_same(realm)
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Launch(results) => results.has_ended(),
            Self::Fork(fork) => fork.head().outcome().is_some(),
        }
    }

    /// Whether all results of the launch are there; if not, the waker is told when they are.
    pub(crate) fn poll_ended(&self, waker: &Waker) -> Poll<()> {
        match self {
            _ if self.has_ended() => Poll::Ready(()),
            Self::Fork(fork) => fork.head().poll(waker).map(drop),
            Self::Launch(results) => {
                let waker = waker.clone();
                results.realm.when(After::follows(&[results.completion()]), move |_| waker.wake());
                Poll::Pending
            }
        }
    }

    /// Why the launch failed, if it has.
    pub(crate) fn error(&self) -> Option<Error> {
        match self {
            Self::Launch(results) => results.error(),
            Self::Fork(fork) if fork.head().outcome() == Some(Outcome::Good) => None,
            Self::Fork(fork) => fork.results().error(),
        }
    }

    fn get<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        match self {
            Self::Fork(fork) if let Some(value) = fork.value() => typed(value, self.name()),
            _ => self.results().get(index),
        }
    }

    /// One result, looked at.
    fn seen<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        match self {
            Self::Fork(fork) if let Some(value) = fork.value() => typed(value, self.name()),
            _ => self.results().seen(index),
        }
    }
}

fn one_point() -> AnyRect {
    maniple_space::Rect::<1>::from(0..1).into()
}
