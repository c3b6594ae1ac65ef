//! The end of a launch, as others wait for it.

use std::any::Any;
use std::sync::{Arc, Weak};

use maniple_realm::graph::GraphRuns;
use maniple_realm::locks::Mutex;
use maniple_realm::{Event, Fault, Realm, UserEvent};
use maniple_space::AnyRect;
use smallvec::SmallVec;

use super::{PointResults, Results};
use crate::data::value::Value;
use crate::support::error::Result;

/// The points of a launch that run here, with their results.
pub(crate) type Local = SmallVec<[(AnyRect, Arc<Results>); 1]>;

/// A launch that several nodes share, as its results know it.
pub(crate) trait SharedLaunch: Send + Sync {
    /// The event that [`ask`](Self::ask) has given, once it was asked for.
    fn asked(&self) -> Option<Event>;

    /// Triggers when all results are here. From now on they are on their way.
    fn ask(self: Arc<Self>) -> Event;

    /// The results of all points, once they are here.
    fn values(&self) -> &PointResults;

    /// Makes it that of another launch of the same task over the same points. This one is not looked at any more.
    fn renew(&mut self, operation: u64, local: Local);

    /// The points that run here, with their results.
    fn local(&self) -> &Local;

    /// The measures of each result, found out on the node that has the result: results that all nodes get, which need
    /// not be able to send the measured ones.
    fn measured(self: Arc<Self>, name: &'static str, measure: Measure) -> Arc<Results>;

    /// All results folded: a result that all nodes get.
    fn reduce(self: Arc<Self>, folding: Folding) -> Arc<Results>;

    /// The fold of each result with those before it, itself included or not: on the node that has the result.
    fn scan(self: Arc<Self>, folding: Folding, inclusive: bool) -> Arc<Results>;
}

/// Finds out something of a result: two numbers.
pub(crate) type Measure = Arc<dyn Fn(&dyn Any) -> Result<(u64, u64)> + Send + Sync>;

/// How values of one type are folded.
#[derive(Clone)]
pub(crate) struct Folding(Arc<Fold>);

/// Folds values, if they are of the type that it knows.
type Fold = dyn Fn(&mut dyn Iterator<Item = &dyn Any>) -> Option<Value> + Send + Sync;

impl Folding {
    pub(crate) fn new<T: Clone + Send + Sync + 'static>(identity: T, fold: fn(&mut T, T)) -> Self {
        Self(Arc::new(move |values| {
            let mut folded = identity.clone();
            for value in values {
                fold(&mut folded, value.downcast_ref::<T>()?.clone());
            }
            Some(Value::new(folded))
        }))
    }

    /// The values folded, from the first to the last; none if they are of another type.
    pub(crate) fn fold<'a>(&self, mut values: impl Iterator<Item = &'a dyn Any>) -> Option<Value> {
        (self.0)(&mut values)
    }
}

/// Asks for the results of a launch that several nodes share.
fn end_of(shared: &Arc<dyn SharedLaunch>) -> Event {
    shared.asked().unwrap_or_else(|| Arc::clone(shared).ask())
}

/// When a launch has ended.
pub(crate) enum Completion {
    /// When this event has triggered.
    Event(Event),
    /// When the launch's operation says so. There is an event only if it is asked for: for most launches that are
    /// replayed it is not.
    OnDemand {
        ending: Mutex<Ending>,
        /// The launch is replayed: then it is not announced unless it was asked for.
        stage: Option<ReplayedStage>,
    },
    /// When several nodes say so. They exchange it if it is asked for.
    Shared(Arc<dyn SharedLaunch>),
}

pub(crate) enum Ending {
    /// Its end was not announced. This event may be waited for.
    Pending(Option<UserEvent>),
    /// It has ended well, or with a failure for which this event is poisoned.
    Ended(Event),
    /// It has failed, and no event was asked for. A program that goes on after failures rarely asks for one, and a
    /// poisoned event is known for ever.
    Failed(Arc<Fault>),
}

/// A stage of a graph, which knows by itself whether it has ended.
pub(crate) struct ReplayedStage {
    pub(crate) runs: Weak<GraphRuns>,
    pub(crate) run: u64,
    pub(crate) stage: u32,
    /// Its end will be told in any case.
    pub(crate) is_watched: bool,
}

impl ReplayedStage {
    fn has_ended(&self) -> bool {
        // A graph that is gone has ended.
        !self.is_watched && self.runs.upgrade().is_none_or(|runs| runs.has_ended(self.run, self.stage))
    }

    /// Has the end told. False if it has ended.
    fn watch(&self) -> bool {
        self.is_watched || self.runs.upgrade().is_some_and(|runs| runs.watch(self.run, self.stage))
    }
}

impl From<Arc<dyn SharedLaunch>> for Completion {
    fn from(shared: Arc<dyn SharedLaunch>) -> Self {
        Self::Shared(shared)
    }
}

impl From<Event> for Completion {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl Completion {
    pub(crate) fn on_demand() -> Self {
        Self::OnDemand { ending: Mutex::new(Ending::Pending(None)), stage: None }
    }

    pub(crate) fn of_stage(stage: ReplayedStage) -> Self {
        Self::OnDemand { ending: Mutex::new(Ending::Pending(None)), stage: Some(stage) }
    }

    /// Makes it that of a stage. Of the same one, in a later run, it costs little.
    pub(crate) fn renew(&mut self, run: u64, is_watched: bool, stage: impl FnOnce() -> ReplayedStage) {
        match self {
            Self::OnDemand { ending, stage: Some(stage) } => {
                *ending.get_mut() = Ending::Pending(None);
                (stage.run, stage.is_watched) = (run, is_watched);
            }
            _ => *self = Self::of_stage(stage()),
        }
    }

    /// An event that triggers when the launch has ended, poisoned if it failed. Of one that is replayed, `failure` says
    /// why it did, if it has ended.
    pub(crate) fn event(&self, realm: &Realm, failure: impl FnOnce() -> Option<Arc<Fault>>) -> Event {
        let (ending, stage) = match self {
            Self::Event(event) => return *event,
            Self::Shared(shared) => return end_of(shared),
            Self::OnDemand { ending, stage } => (ending, stage),
        };
        let mut ending = ending.lock();
        let event = match &mut *ending {
            Ending::Pending(Some(event)) => return event.event(),
            Ending::Ended(event) => return *event,
            Ending::Pending(none) => none.insert(realm.user_event()).event(),
            Ending::Failed(fault) => {
                let (fault, failed) = (Arc::clone(fault), realm.user_event());
                *ending = Ending::Ended(failed.event());
                drop(ending);
                realm.poison(failed, fault);
                return failed.event();
            }
        };
        drop(ending);
        if let Some(stage) = stage
            && !stage.watch()
        {
            self.end(realm, failure());
        }
        event
    }

    /// Whether it is that of a stage of a replay.
    pub(crate) fn is_of_stage(&self) -> bool {
        matches!(self, Self::OnDemand { stage: Some(_), .. })
    }

    /// How several nodes share the launch, if they do.
    pub(crate) fn shared(&self) -> Option<&Arc<dyn SharedLaunch>> {
        match self {
            Self::Shared(shared) => Some(shared),
            _ => None,
        }
    }

    pub(crate) fn has_ended(&self, realm: &Realm) -> bool {
        match self {
            Self::Event(event) => realm.has_triggered(*event),
            Self::Shared(shared) => realm.has_triggered(end_of(shared)),
            Self::OnDemand { ending, stage } => {
                !matches!(*ending.lock(), Ending::Pending(_)) || stage.as_ref().is_some_and(ReplayedStage::has_ended)
            }
        }
    }

    /// Why a launch that is not replayed failed, if it has and no event was asked for.
    pub(crate) fn unheard_failure(&self) -> Option<Arc<Fault>> {
        let Self::OnDemand { ending, stage: None } = self else { return None };
        match &*ending.lock() {
            Ending::Failed(fault) => Some(Arc::clone(fault)),
            Ending::Pending(_) | Ending::Ended(_) => None,
        }
    }

    /// The launch has ended: tells the waiters. Only for one that ends when it is told to, once.
    pub(crate) fn end(&self, realm: &Realm, failure: Option<Arc<Fault>>) {
        if let Some(waiting) = self.end_unheard(failure.as_ref()) {
            tell(realm, waiting, failure);
        }
    }

    /// As [`end`](Self::end), but leaves it to the caller to [`tell`] the waiters.
    pub(crate) fn end_unheard(&self, failure: Option<&Arc<Fault>>) -> Option<UserEvent> {
        let Self::OnDemand { ending, .. } = self else { return None };
        let mut ending = ending.lock();
        let Ending::Pending(waiting) = *ending else { return None };
        // The same event as before, by which a record knows the launch.
        *ending = match (waiting, failure) {
            (Some(waiting), _) => Ending::Ended(waiting.event()),
            (None, Some(fault)) => Ending::Failed(Arc::clone(fault)),
            (None, None) => Ending::Ended(Event::NONE),
        };
        waiting
    }
}

/// Tells the waiters for an event that it has come, or why not.
pub(crate) fn tell(realm: &Realm, waiting: UserEvent, failure: Option<Arc<Fault>>) {
    match failure {
        None => realm.trigger(waiting),
        Some(fault) => realm.poison(waiting, fault),
    }
}
