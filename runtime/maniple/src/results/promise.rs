//! Results that are computed from others, without a task.

use std::sync::Arc;

use maniple_realm::{After, Event, Fault, fault};
use maniple_space::AnyRect;
use smallvec::SmallVec;

use super::completion::Measure;
use super::{Input, Results, Sources, completion, one_point};
use crate::data::value::Value;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

/// Runs a short function once its sources are there, on the thread that brings the last, and gives its result.
pub(crate) fn compute<T: Clone + Send + Sync + 'static>(
    name: &'static str,
    sources: Sources,
    function: impl FnOnce() -> Result<T> + Send + 'static,
) -> Arc<Results> {
    let events: SmallVec<[Event; 2]> = sources.iter().map(Input::end).collect();
    let promise = Promise::new(name, one_point(), sources);
    let results = Arc::clone(&promise.results);
    // What is not kept here, but asked of the results, leaves room for the function, so that it needs no memory of its
    // own.
    results.realm.when(After::needs(&events), move |outcome| {
        let failed = |fault: &Fault| Err(Error::of_fault(fault, promise.results.name(), None));
        let value = match outcome {
            Ok(()) => fault::catch(function).unwrap_or_else(|fault| failed(&fault)),
            Err(fault) => {
                drop_caught("a function of a future", promise.results.name(), function);
                failed(fault)
            }
        };
        promise.keep([value], None);
    });
    results
}

/// The measures of each result of a launch.
pub(crate) fn measured(name: &'static str, source: &Arc<Results>, measure: Measure) -> Arc<Results> {
    let promise = Promise::new(name, source.domain, Sources::from_iter([Input::all(Arc::clone(source))]));
    let (source, results) = (Arc::clone(source), Arc::clone(&promise.results));
    source.realm.clone().when(After::follows(&[source.completion()]), move |_| {
        let one = |index| match (source.value(index), source.error_of(index)) {
            (_, Some(error)) => Err(error),
            (Some(Ok(value)), None) => {
                fault::catch(|| measure(value)).unwrap_or_else(|fault| Err(Error::of_fault(&fault, name, None)))
            }
            (_, None) => Err(Error::launch(name, "a point has no result")),
        };
        promise.keep((0..source.points()).map(one), source.failure());
    });
    results
}

/// Results that are computed from others, without a task.
pub(crate) struct Promise {
    pub(crate) results: Arc<Results>,
}

impl Promise {
    pub(crate) fn new(name: &'static str, domain: AnyRect, sources: Sources) -> Self {
        let recorder = sources.iter().find_map(|source| source.results().recorder.get()).cloned();
        let joined: Sources = if recorder.is_some() { sources.clone() } else { Sources::new() };
        let results = Results::computed(name, domain, sources);
        if let Some(recorder) = &recorder {
            recorder.joins(results.completion(), joined.iter().map(Input::end));
        }
        results.recorded_by(recorder.as_ref());
        Self { results }
    }

    /// Here they are, one for each point, and why all of them together are a failure even if none is.
    pub(crate) fn keep<T: Send + Sync + 'static>(
        self,
        values: impl IntoIterator<Item = Result<T>>,
        failure: Option<Error>,
    ) {
        let Self { results } = self;
        for (index, value) in values.into_iter().enumerate() {
            results.set(index, value.map(Value::new));
        }
        let failure = results.first_error().cloned().or(failure);
        if failure.is_none() {
            results.are_computed(!std::mem::needs_drop::<T>());
        }
        let (realm, failure) = (results.realm.clone(), failure.map(Arc::<Fault>::from));
        let waiting = results.completion.end_unheard(failure.as_ref());
        // A waiter that hears that they are there may want their memory before this call is back.
        drop(results);
        if let Some(waiting) = waiting {
            completion::tell(&realm, waiting, failure);
        }
    }
}
