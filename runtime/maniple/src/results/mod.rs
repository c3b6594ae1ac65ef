//! Results of launches that are still to come: what a launch leaves behind, and what futures are handles to.
//!
//! - [`completion`]: the end of a launch, as others wait for it; `ends`: the ends of its single points;
//! - `values`: what the points have returned, each in a place that is [set once](once);
//! - `input`: what is taken of the results of a launch; `promise`: results that are computed from others.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, Fault, Realm, UserEvent};
use maniple_space::{AnyPoint, AnyRect, PointSet};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::data::value::{Codec, Value};
use crate::operation::lifecycle::Operation;
use crate::support::error::{Error, Result};
use crate::support::recorder::Recorder;

pub(crate) mod completion;
mod ends;
mod input;
mod once;
pub(crate) mod promise;
mod renewed;
mod values;
pub(crate) mod watched;

use completion::Completion;
use ends::{Ends, Wait};

pub(crate) use completion::{Local, SharedLaunch};
pub(crate) use input::Input;
pub(crate) use values::PointResults;

/// The results from which others are computed.
pub(crate) type Sources = SmallVec<[Input; 2]>;

/// The operations that give results which are still to come.
#[derive(Default)]
pub(crate) struct Producers {
    pub(crate) here: Vec<Arc<Operation>>,
    /// And operations of other nodes.
    pub(crate) are_afar: bool,
}

/// A task, as its results know it.
pub(crate) trait Task: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// How its results go to other nodes, if they can.
    fn result_codec(&self) -> Option<Codec>;
}

/// A stand-in that gives a result once it has ended well, of a launch that ends later.
pub(crate) trait StandIn: Send + Sync {
    /// The result, once it is there.
    fn value(&self) -> Option<&dyn Any>;
}

/// The origin of results: the task or the function that gives them.
#[derive(Clone)]
pub(crate) enum Origin {
    Task(Arc<dyn Task>),
    /// A task that `#[task]` declares: naming it counts no references.
    Declared(&'static dyn Task),
    BuiltIn(&'static str),
}

impl Origin {
    pub(crate) fn of<T: Task + 'static>(task: &Arc<T>) -> Self {
        Self::Task(Arc::<T>::clone(task))
    }

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
    pub(crate) realm: Realm,
    origin: Origin,
    pub(crate) domain: AnyRect,
    completion: Completion,
    /// Unless several nodes share the launch: then those are where the others' arrive.
    values: PointResults,
    ends: Ends,
    /// The program has looked at how the launch ended, so its failure is not lost.
    observed: AtomicBool,
    /// Of what the launch takes point by point, some is a failure. Only for one that is replayed: points of others wait
    /// for their own.
    takes_failure: AtomicBool,
    /// Results that these were computed from: a reader that sees these fail has seen those fail. Forgotten when these
    /// are there, so that a chain of futures is not kept by its end.
    sources: Mutex<Sources>,
    /// The forked task whose value is the result, once it has ended well.
    fork: OnceLock<Box<dyn StandIn>>,
    /// The launch that gives them, unless they are a function of others.
    producer: OnceLock<Weak<Operation>>,
    /// The points of a launch over a set, of which the domain is the numbers.
    over: OnceLock<PointSet>,
    /// They come from other nodes.
    is_from_afar: bool,
    /// The recorder of the operations that the completion comes after, while a record is kept.
    recorder: OnceLock<Arc<Recorder>>,
    /// The latest results that were computed from these, of values that own nothing: memory for the next ones, when
    /// these are renewed.
    computed: Mutex<Option<Arc<Results>>>,
    /// So many generations of results computed from these keep their memory.
    generations: u8,
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
        Arc::new(Self {
            realm,
            origin,
            domain,
            completion,
            values: PointResults::default(),
            ends: Ends::default(),
            observed,
            takes_failure: AtomicBool::new(false),
            sources,
            fork,
            producer,
            over: OnceLock::new(),
            is_from_afar: false,
            recorder,
            computed: Mutex::new(None),
            generations: 0,
        })
    }

    /// One result that is there.
    pub(crate) fn ready<T: Send + Sync + 'static>(realm: &Realm, name: &'static str, value: T) -> Arc<Self> {
        let results = Self::new(realm, Origin::BuiltIn(name), one_point(), Event::NONE, Sources::new());
        results.set(0, Ok(Value::new(value)));
        results
    }

    /// Results that come from other nodes, at least in part.
    pub(crate) fn from_afar(
        realm: &Realm,
        origin: Origin,
        domain: AnyRect,
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
    pub(crate) fn shared(&self) -> Option<&Arc<dyn SharedLaunch>> {
        self.completion.shared()
    }

    /// The task, or whatever else gave them.
    pub(crate) fn task(&self) -> &str {
        self.name()
    }

    /// The task, if they are one's.
    pub(crate) fn definition(&self) -> Option<&dyn Task> {
        match &self.origin {
            Origin::Task(definition) => Some(&**definition),
            Origin::Declared(definition) => Some(*definition),
            Origin::BuiltIn(_) => None,
        }
    }

    /// The result of a point, if it is there and not `()`. Of a forked task that is another.
    pub(crate) fn value(&self, index: usize) -> Option<Result<&dyn Any, &Error>> {
        if let Some(fork) = self.fork.get() {
            return fork.value().map(Ok);
        }
        self.values().get(index)
    }

    fn values(&self) -> &PointResults {
        self.shared().map_or(&self.values, |shared| shared.values())
    }

    /// The results of a forked task. They end when that does: [`end_as`](Self::end_as) or
    /// [`fail_fork`](Self::fail_fork).
    pub(crate) fn of_fork(realm: &Realm, definition: &'static dyn Task) -> Arc<Self> {
        Self::new(realm, Origin::Declared(definition), one_point(), Completion::on_demand(), Sources::new())
    }

    /// The results of a forked task whose value was never looked at, and could not be dropped.
    pub(crate) fn of_lost_value(realm: &Realm, definition: &'static dyn Task, fault: &Fault) -> Arc<Self> {
        let error = Error::of_fault(fault, definition.name(), None);
        Self::failed(realm, Origin::Declared(definition), one_point(), &error)
    }

    /// The forked task has ended well: the result is its value.
    pub(crate) fn end_as(&self, fork: impl StandIn + 'static) {
        let _ = self.fork.set(Box::new(fork));
        self.end(None);
    }

    /// The forked task, which was given results of these, has failed, and is about to end.
    pub(crate) fn fail_fork(&self, error: &Error, sources: Sources) {
        *self.sources.lock() = sources;
        self.set(0, Err(error.clone()));
    }

    pub(crate) fn name(&self) -> &str {
        self.origin.name()
    }

    /// Whether they are those of a launch that went straight into a replay.
    pub(crate) fn are_replayed(&self) -> bool {
        self.completion.is_of_stage()
    }

    /// Calls a function when the launch has failed.
    pub(crate) fn when_failed(self: &Arc<Self>, call: impl FnOnce(&Self) + Send + 'static) {
        let results = Arc::clone(self);
        self.realm.when(After::follows(&[self.completion()]), move |_| {
            if results.error().is_some() {
                call(&results);
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
        // Set once, by the thread that launches the operation.
        let _ = self.producer.set(Arc::downgrade(operation));
        self.recorded_by(operation.scope.store().recorder.as_ref());
    }

    /// Says where it is recorded what these come after.
    pub(crate) fn recorded_by(&self, recorder: Option<&Arc<Recorder>>) {
        if let Some(recorder) = recorder {
            let _ = self.recorder.set(Arc::clone(recorder));
        }
    }

    /// The launches in flight that results come from. Functions of functions may be many deep and meet again, so
    /// without recursion, and each is asked once.
    pub(crate) fn producers(of: &[Input]) -> Producers {
        let (mut open, mut seen, mut producers) = (of.to_vec(), FxHashSet::default(), Producers::default());
        while let Some(results) = open.pop().map(Input::into_results) {
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

    /// The points are those of a set, or like those of other results.
    pub(crate) fn are_over(&self, points: Option<&PointSet>) {
        if let Some(points) = points {
            // Of results that are used again, it is the same one.
            let _ = self.over.set(points.clone());
        }
    }

    /// The points of a launch over a set.
    pub(crate) fn over(&self) -> Option<&PointSet> {
        self.over.get()
    }

    /// All results are there: the launch has ended.
    pub(crate) fn end(&self, failure: Option<&Error>) {
        self.completion.end(&self.realm, failure.map(|error| Arc::<Fault>::from(error.clone())));
    }

    pub(crate) fn set(&self, index: usize, value: Result<Value>) {
        self.values.set(self.points(), index, value);
    }

    /// A point of a replay has ended well. Whether single points may be waited for: then [`Self::tell_ended_points`].
    ///
    /// Results that are `()` are not kept, and a waiter for one of a replay waits for all. To end a point costs no
    /// fence, so a waiter that begins to wait at this very time may be told only when the next point ends.
    #[inline]
    pub(crate) fn set_replayed(&self, index: usize, value: Value) -> bool {
        self.values.set_good(|| self.points(), index, value) && self.ends.may_be_watched()
    }

    /// Keeps the result of a point of an index launch, and tells its waiters.
    pub(crate) fn point_ended(&self, index: usize, value: Result<Value>) {
        self.set(index, value);
        if self.ends.mark(|| self.points(), index)
            && let Some(waiting) = self.ends.take(index)
        {
            self.tell(waiting, index);
        }
    }

    /// Tells the waiters for points that have ended.
    #[cold]
    pub(crate) fn tell_ended_points(&self) {
        for (index, waiting) in self.ends.take_all_that(|index| self.values().get(index).is_some()) {
            self.tell(waiting, index);
        }
    }

    fn tell(&self, waiting: UserEvent, index: usize) {
        completion::tell(&self.realm, waiting, self.error_of(index).map(Arc::<Fault>::from));
    }

    /// Triggers when the result of a point is there, poisoned if that is a failure.
    pub(crate) fn end_of(self: &Arc<Self>, index: usize) -> Event {
        if self.points() == 1 {
            return self.completion();
        }
        if !self.point_has_ended(index)
            && let Wait::For { event, is_first } = self.ends.watch(&self.realm, index, || self.point_has_ended(index))
        {
            if is_first {
                let results = Arc::clone(self);
                self.realm.when(After::follows(&[self.completion()]), move |_| {
                    for (index, waiting) in results.ends.take_all_that(|_| true) {
                        results.tell(waiting, index);
                    }
                });
            }
            return event;
        }
        self.error_of(index).map_or(Event::NONE, |error| {
            let failed = self.realm.user_event();
            self.realm.poison(failed, Arc::<Fault>::from(error));
            failed.event()
        })
    }

    /// Whether the result of a point is there.
    pub(crate) fn point_has_ended(&self, index: usize) -> bool {
        let is_known = || self.ends.has(index) || self.values().get(index).is_some();
        (self.points() > 1 && is_known()) || self.has_ended()
    }

    /// Why the result of a point that has ended is a failure, if it is.
    pub(crate) fn error_of(&self, index: usize) -> Option<Error> {
        match self.value(index) {
            Some(Err(error)) => Some(error.clone()),
            Some(Ok(_)) => None,
            None if self.ends.has(index) => None,
            None => self.launch_failure(),
        }
    }

    /// The number of a point, if it is one of these.
    pub(crate) fn index_of(&self, point: AnyPoint) -> Option<usize> {
        let is_one = point.dim() == self.domain.dim() && self.domain.contains(point);
        is_one.then(|| self.domain.linear(point) as usize)
    }

    /// Notes that the inputs which the launch takes point by point are there. If one of them is a failure, points have
    /// to ask: [`Self::failed_input`].
    pub(crate) fn inputs_are_there(&self) {
        let has_failed = self.sources.lock().iter().any(|source| source.is_per_point() && !source.is_settled());
        if has_failed {
            self.takes_failure.store(true, Ordering::Release);
        }
    }

    /// The failure that a point of the launch takes, if it takes one.
    pub(crate) fn failed_input(&self, point: AnyPoint) -> Option<Error> {
        if !self.takes_failure.load(Ordering::Acquire) {
            return None;
        }
        self.sources.lock().iter().find_map(|source| source.error_at(point))
    }

    /// How many points there are.
    pub(crate) fn points(&self) -> usize {
        self.domain.volume() as usize
    }

    /// The first failure in the order of points.
    pub(crate) fn first_error(&self) -> Option<&Error> {
        self.values().errors().next()
    }

    /// All failures of points, and that of the launch as a whole, which may be one of them.
    pub(crate) fn errors(&self) -> impl Iterator<Item = Error> {
        self.values().errors().cloned().chain(self.failure())
    }

    /// Why the launch failed, if it has.
    pub(crate) fn error(&self) -> Option<Error> {
        self.first_error().cloned().or_else(|| self.failure())
    }

    /// Why the launch failed as a whole, and not at some points.
    pub(crate) fn launch_failure(&self) -> Option<Error> {
        if self.first_error().is_some() { None } else { self.failure() }
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Acquire)
    }

    /// All results are there, and none is a failure.
    pub(crate) fn forget_sources(&self) {
        let sources = std::mem::take(&mut *self.sources.lock());
        drop(sources);
    }

    /// Notes that the program has seen these fail, and so how those ended that they were computed from. Chains may be
    /// long, so without recursion.
    pub(crate) fn observe(&self) {
        let look = |results: &Self| match results.observed.swap(true, Ordering::AcqRel) {
            true => Sources::new(),
            false => results.sources.lock().clone(),
        };
        let mut sources = look(self);
        while let Some(source) = sources.pop() {
            // Others of its launch may have failed, which does not matter to these.
            if !source.is_settled() {
                sources.append(&mut look(source.results()));
            }
        }
    }

    pub(crate) fn get<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        let of_fork = || self.fork.get().and_then(|fork| fork.value());
        match self.values().get(index) {
            Some(Ok(value)) => typed(value, self.name()),
            Some(Err(error)) => Err(error.clone()),
            None if index == 0
                && let Some(value) = of_fork() =>
            {
                typed(value, self.name())
            }
            None => self.nothing(index),
        }
    }

    /// The result of a point for which there is none: it was `()`, unless the launch as a whole failed.
    fn nothing<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        let (mut failure, mut is_there) = (None, self.ends.has(index));
        if !is_there {
            failure = self.failure();
            is_there = self.has_ended() && (failure.is_none() || self.first_error().is_some());
        }
        match (&() as &dyn Any).downcast_ref::<T>().filter(|_| is_there) {
            Some(nothing) => Ok(nothing.clone()),
            None => {
                Err(failure.unwrap_or_else(|| Error::launch(self.name(), "its result was asked for before its end")))
            }
        }
    }

    /// Why the launch as a whole failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        let of_fault = |fault: &Arc<Fault>| Error::of_fault(fault, self.name(), None);
        if let Some(fault) = self.completion.unheard_failure() {
            return Some(of_fault(&fault));
        }
        let status = self.realm.status(self.completion());
        status.fault().map(of_fault)
    }

    pub(crate) async fn seen_to_end(&self) {
        self.completed().await;
        // What they came from may have failed and they not, as a launch of no points: that has not been seen.
        if self.error().is_some() {
            self.observe();
        }
    }

    /// One result, looked at.
    pub(crate) fn seen<T: Clone + 'static>(&self, index: usize) -> Result<T> {
        let value = self.get(index);
        if value.is_err() {
            self.observe();
        }
        value
    }

    pub(crate) async fn completed(&self) {
        // How it ended is in the values; that the realm goes down meanwhile shows as a value that is not there.
        let _ = self.realm.event_future(self.completion()).await;
    }
}

/// A copy of a result, if it has the type.
pub(crate) fn typed<T: Clone + 'static>(value: &dyn Any, name: &str) -> Result<T> {
    let wrong = || Error::launch(name, format!("its result is not a {}", std::any::type_name::<T>()));
    value.downcast_ref::<T>().cloned().ok_or_else(wrong)
}

impl Drop for Results {
    /// Lets a chain of failed sources go link by link, without recursion.
    fn drop(&mut self) {
        self.values.drop_caught(self.origin.name());
        let mut sources = std::mem::take(self.sources.get_mut());
        while let Some(source) = sources.pop() {
            if let Some(mut source) = Arc::into_inner(source.into_results()) {
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

pub(crate) fn one_point() -> AnyRect {
    maniple_space::Rect::<1>::from(0..1).into()
}
