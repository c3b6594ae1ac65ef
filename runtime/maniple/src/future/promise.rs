//! Results that are computed from others, without a task.

use std::sync::Arc;

use maniple_realm::{After, Event, Fault, UserEvent, fault};
use maniple_space::AnyRect;
use smallvec::SmallVec;

use super::{Future, Origin, Results, Sources, one_point};
use crate::error::{Error, Result};
use crate::let_go::let_go;
use crate::task::Value;

/// Runs a short function once its sources are there, on the thread that brings the last, and gives its result as a future.
pub(super) fn compute<T: Clone + Send + Sync + 'static>(
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
pub(super) struct Promise {
    pub(super) results: Arc<Results>,
    done: UserEvent,
}

impl Promise {
    pub(super) fn new(name: &'static str, domain: AnyRect, sources: Sources) -> Self {
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
    pub(super) fn keep<T: Send + Sync + 'static>(
        self,
        values: impl IntoIterator<Item = Result<T>>,
        failure: Option<Error>,
    ) {
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
