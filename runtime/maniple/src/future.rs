//! Futures: results of tasks that are still to come.

use std::any::Any;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker, ready};

use maniple_realm::event::future::EventFuture;
use maniple_realm::{After, Event, Fault, Realm, UserEvent, fault};
use maniple_region::{FieldValue, ReductionOperator};
use maniple_space::{AnyPoint, AnyRect};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::completion::{Completion, ReplayedStage};
use crate::error::{Error, Result};
use crate::fork::{Fork, Outcome};
use crate::let_go::{self, let_go};
use crate::once::Once;
use crate::operation::Operation;
use crate::recorder::Recorder;
use crate::runtime::RuntimeCore;
use crate::task::{TaskDefinition, Value};

/// Results that others are computed from.
pub(crate) type Sources = SmallVec<[Arc<Results>; 2]>;

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
            recorder,
        })
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
    pub(crate) fn producers(of: &[Arc<Self>]) -> Vec<Arc<Operation>> {
        let (mut open, mut seen, mut producers) = (of.to_vec(), FxHashSet::default(), Vec::new());
        while let Some(results) = open.pop() {
            if results.has_ended() || !seen.insert(Arc::as_ptr(&results)) {
                continue;
            }
            match results.producer.get() {
                Some(producer) => producers.extend(producer.upgrade()),
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
        if let Ok(value) = &value
            && (**value).is::<()>()
        {
            // Points that end on several cores would all write to the same lines.
            return;
        }
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

/// A result that is still to come. Await it, or pass it to another launch without waiting.
///
/// Dropping it does not cancel anything. If the task fails and nobody awaits the future, the task that launched it fails too.
pub struct Future<T> {
    source: Source,
    index: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Future<T> {
    pub(crate) fn new(results: Arc<Results>, index: usize) -> Self {
        Self { source: Source::Launch(results), index, marker: PhantomData }
    }

    pub(crate) fn of_fork(fork: Fork) -> Self {
        Self { source: Source::Fork(fork), index: 0, marker: PhantomData }
    }

    /// Triggers when the result is there, poisoned if the task failed.
    #[must_use]
    pub fn event(&self) -> Event {
        self.source.results().completion()
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the result is there, or the task has failed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.source.has_ended()
    }
}

impl<T: Clone + Send + Sync + 'static> Future<T> {
    pub(crate) fn value(&self) -> Result<T> {
        self.source.get(self.index)
    }

    /// Waits for the result, in code that is not `async`: outside of tasks, or at top level.
    ///
    /// # Errors
    /// The failure of the task, or of anything that it needed. [`Error::Launch`] in a task, if the result is not there yet: what it waits for
    /// may need the worker that it would block. Tasks `.await`.
    pub fn wait(&self) -> Result<T> {
        let realm = self.source.realm();
        if !self.is_ready() && realm.current_processor().is_some() {
            return Err(Error::launch(
                self.source.name(),
                "a task waits for its result by `wait`, which would block a worker: use `.await`",
            ));
        }
        let outcome = realm.wait(self.event());
        if !self.is_ready() {
            outcome.map_err(|fault| Error::of_fault(&fault, self.source.name(), None))?;
        }
        self.source.seen(self.index)
    }

    /// A future of a function of the result, computed where the result comes in. The function must be short.
    pub fn map<U: Clone + Send + Sync + 'static>(&self, function: impl FnOnce(T) -> U + Send + 'static) -> Future<U> {
        let source = self.clone();
        compute("map", Sources::from_iter([self.source.results()]), move || source.value().map(function))
    }

    /// A future of a function of this result and another, of the same runtime.
    pub fn zip_with<U, V>(&self, other: &Future<U>, function: impl FnOnce(T, U) -> V + Send + 'static) -> Future<V>
    where
        U: Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let realm = self.source.realm();
        if !other.source.is_of(realm) {
            let error = Error::launch("zip_with", "it takes results of two runtimes; `.await` one and pass the value");
            return Future::new(Results::failed(realm, Origin::BuiltIn("zip_with"), one_point(), &error), 0);
        }
        let (left, right) = (self.clone(), other.clone());
        let sources = Sources::from_iter([self.source.results(), other.source.results()]);
        compute("zip_with", sources, move || Ok(function(left.value()?, right.value()?)))
    }
}

fn one_point() -> AnyRect {
    maniple_space::Rect::<1>::from(0..1).into()
}

/// Runs a short function once its sources are there, on the thread that brings the last, and gives its result as a future.
fn compute<T: Clone + Send + Sync + 'static>(
    name: &'static str,
    sources: Sources,
    function: impl FnOnce() -> Result<T> + Send + 'static,
) -> Future<T> {
    let events: SmallVec<[Event; 2]> = sources.iter().map(|source| source.completion()).collect();
    let promise = Promise::new(name, one_point(), sources);
    let results = Arc::clone(&promise.results);
    results.realm.when(After::needs(&events), move |outcome| {
        let value = match outcome {
            Ok(()) => fault::catch(function).unwrap_or_else(|fault| Err(Error::of_fault(&fault, name, None))),
            Err(fault) => {
                let_go("a function of a future", name, function);
                Err(Error::of_fault(fault, name, None))
            }
        };
        promise.keep([value], None);
    });
    Future::new(results, 0)
}

/// Results that are computed from others, without a task.
struct Promise {
    results: Arc<Results>,
    done: UserEvent,
}

impl Promise {
    fn new(name: &'static str, domain: AnyRect, sources: Sources) -> Self {
        let realm = sources[0].realm.clone();
        let done = realm.user_event();
        let recorder = sources.iter().find_map(|source| source.recorder.get()).cloned();
        if let Some(recorder) = &recorder {
            recorder.joins(done.event(), sources.iter().map(|source| source.completion()));
        }
        let results = Results::new(&realm, Origin::BuiltIn(name), domain, done.event(), sources);
        results.recorded_by(recorder.as_ref());
        Self { results, done }
    }

    /// Here they are, one for each point, and why all of them together are a failure even if none is.
    fn keep<T: Send + Sync + 'static>(self, values: impl IntoIterator<Item = Result<T>>, failure: Option<Error>) {
        let Self { results, done } = self;
        for (index, value) in values.into_iter().enumerate() {
            results.set(index, value.map(|value| Box::new(value) as Value));
        }
        match results.first_error().cloned().or(failure) {
            None => {
                results.forget_sources();
                results.realm.trigger(done);
            }
            Some(error) => results.realm.poison(done, Arc::<Fault>::from(error)),
        }
    }
}

impl<T> Clone for Future<T> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), ..*self }
    }
}

impl<T> fmt::Debug for Future<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Launch(results) => write!(f, "Future({results:?}, #{})", self.index),
            Source::Fork(fork) => write!(f, "Future({fork:?})"),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> IntoFuture for Future<T> {
    type Output = Result<T>;
    type IntoFuture = Awaited<T>;

    #[inline]
    fn into_future(self) -> Awaited<T> {
        Awaited { future: self, event: None }
    }
}

/// A [`Future`] that is being awaited.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Awaited<T> {
    future: Future<T>,
    /// The end of a launch that is no fork.
    event: Option<Box<EventFuture>>,
}

impl<T: Clone + Send + Sync + 'static> std::future::Future for Awaited<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let Source::Fork(fork) = &self.future.source {
            ready!(fork.head().poll_by_body(context.waker()));
            if let Some(value) = fork.value().and_then(|value| value.downcast_ref::<T>()) {
                return Poll::Ready(Ok(value.clone()));
            }
        }
        self.poll_launch(context)
    }
}

impl<T: Clone + Send + Sync + 'static> Awaited<T> {
    fn poll_launch(&mut self, context: &mut Context<'_>) -> Poll<Result<T>> {
        let Self { future, event } = self;
        if let Source::Launch(results) = &future.source
            && !results.has_ended()
        {
            let wait = || Box::new(results.realm.event_future(results.completion()));
            // How it ended is in the values; that the realm goes down meanwhile shows as a value that is not there.
            let _ = ready!(Pin::new(event.get_or_insert_with(wait)).poll(context));
        }
        // Waiting for one point of many tells nobody how the others ended.
        Poll::Ready(future.source.seen(future.index))
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Awaited({:?})", self.future)
    }
}

/// The results of an index launch, one for each point.
pub struct FutureMap<T> {
    results: Arc<Results>,
    marker: PhantomData<fn() -> T>,
}

impl<T> FutureMap<T> {
    pub(crate) fn new(results: Arc<Results>) -> Self {
        Self { results, marker: PhantomData }
    }

    /// The points.
    #[must_use]
    pub fn domain(&self) -> AnyRect {
        self.results.domain
    }

    /// Triggers when all results are there, poisoned if any point failed.
    #[must_use]
    pub fn event(&self) -> Event {
        self.results.completion()
    }

    pub(crate) fn results(&self) -> &Arc<Results> {
        &self.results
    }

    /// The result of one point.
    ///
    /// # Errors
    /// [`Error::Launch`] for a point that the launch did not have.
    pub fn get(&self, point: impl Into<AnyPoint>) -> Result<Future<T>> {
        Ok(Future::new(Arc::clone(&self.results), self.index(point.into())?))
    }

    fn index(&self, point: AnyPoint) -> Result<usize> {
        let domain = self.results.domain;
        if point.dim() != domain.dim() || !domain.contains(point) {
            return Err(Error::launch(self.results.name(), format!("its domain {domain} has no point {point}")));
        }
        Ok(domain.linear(point) as usize)
    }
}

impl<T: Clone + Send + Sync + 'static> FutureMap<T> {
    pub(crate) fn value(&self, point: AnyPoint) -> Result<T> {
        self.results.get(self.index(point)?)
    }

    /// Waits for all results, in the row-major order of the points.
    ///
    /// # Errors
    /// The first failure in the order of points.
    pub async fn all(&self) -> Result<Vec<T>> {
        self.results.seen_to_end().await;
        (0..self.results.points()).map(|index| self.results.get(index)).collect()
    }

    /// The results of a function of each point's result, computed where the last of these comes in. The function must be short.
    ///
    /// A point whose result is a failure keeps it; the others have theirs.
    pub fn map<U: Clone + Send + Sync + 'static>(&self, function: impl Fn(T) -> U + Send + 'static) -> FutureMap<U> {
        const NAME: &str = "map";
        let source = Arc::clone(&self.results);
        let promise = Promise::new(NAME, source.domain, Sources::from_iter([Arc::clone(&source)]));
        let map = FutureMap::new(Arc::clone(&promise.results));
        source.realm.clone().when(After::follows(&[source.completion()]), move |_| {
            let values = source.domain.points().enumerate().map(|(index, point)| {
                let mapped = fault::catch(|| source.get(index).map(&function));
                mapped.map_err(|fault| Error::of_fault(&fault, NAME, Some(point))).flatten()
            });
            // Of a launch that was refused there may be no points to tell of it.
            promise.keep(values, source.failure());
            let_go("a function of futures", NAME, function);
        });
        map
    }

    /// A future of all results folded with an operator, in the row-major order of the points: the same on every run.
    pub fn reduce<Op>(&self, _operator: Op) -> Future<T>
    where
        T: FieldValue,
        Op: ReductionOperator<T, Rhs = T>,
    {
        self.fold(Op::identity(), |mut folded, value| {
            Op::fold(&mut folded, value);
            folded
        })
    }

    /// A future of all results folded with a function, in the row-major order of the points.
    pub fn fold<U: Clone + Send + Sync + 'static>(
        &self,
        start: U,
        function: impl Fn(U, T) -> U + Send + 'static,
    ) -> Future<U> {
        let results = Arc::clone(&self.results);
        compute("fold", Sources::from_iter([Arc::clone(&self.results)]), move || {
            (0..results.points()).try_fold(start, |folded, index| Ok(function(folded, results.get(index)?)))
        })
    }
}

impl<T> Clone for FutureMap<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.results))
    }
}

impl<T> fmt::Debug for FutureMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FutureMap({:?})", self.results)
    }
}

impl<T: Clone + Send + Sync + 'static> IntoFuture for FutureMap<T> {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn std::future::Future<Output = Result<()>> + Send>>;

    /// Waits for all points, whatever they return.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.results.seen_to_end().await;
            match self.results.error() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }
}
