//! The future of one result.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use maniple_realm::Event;
use maniple_realm::event::future::EventFuture;

use crate::fork::{Fork, ForkSource, ResultSource};
use crate::results::promise::compute;
use crate::results::{Input, Origin, Results, Sources, one_point};
use crate::support::error::{Error, Result};

/// A result that is still to come. Await it, or pass it to another launch without waiting.
///
/// Dropping it does not cancel anything. If the task fails and the future is not awaited, the task that launched it
/// fails too.
pub struct Future<T> {
    source: ForkSource,
    marker: PhantomData<fn() -> T>,
}

impl<T> Future<T> {
    pub(crate) fn new(results: Arc<Results>, index: usize) -> Self {
        Self { source: ForkSource::Launch(Input::one(results, index)), marker: PhantomData }
    }

    pub(crate) fn of_fork(fork: Fork) -> Self {
        Self { source: ForkSource::Fork(fork), marker: PhantomData }
    }

    /// Triggers when the result is there, poisoned if the task failed.
    #[must_use]
    pub fn event(&self) -> Event {
        self.source.input().end()
    }

    pub(crate) fn source(&self) -> &ForkSource {
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
        self.source.get()
    }

    /// Waits for the result, in code that is not `async`: outside of tasks, or at top level.
    ///
    /// # Errors
    /// The failure of the task, or of anything that it needed. [`Error::Launch`] in a task, if the result is not there
    /// yet: what it waits for may need the worker that it would block. Tasks `.await`. [`Error::Forked`] in a copy of
    /// the process.
    pub fn wait(&self) -> Result<T> {
        let realm = self.source.realm();
        if !self.is_ready() && realm.current_processor().is_some() {
            return Err(Error::launch(
                self.source.name(),
                "a task waits for its result by `wait`, which would block a worker: use `.await`",
            ));
        }
        if !self.is_ready() && realm.is_forked() {
            return Err(Error::Forked);
        }
        let outcome = realm.wait(self.event());
        if !self.is_ready() {
            outcome.map_err(|fault| Error::of_fault(&fault, self.source.name(), None))?;
        }
        self.source.seen()
    }

    /// A future of a function of the result, computed where the result comes in. The function must be short.
    pub fn map<U: Clone + Send + Sync + 'static>(&self, function: impl FnOnce(T) -> U + Send + 'static) -> Future<U> {
        let source = self.clone();
        Future::new(compute("map", Sources::from_iter([self.source.input()]), move || source.value().map(function)), 0)
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
        let sources = Sources::from_iter([self.source.input(), other.source.input()]);
        Future::new(compute("zip_with", sources, move || Ok(function(left.value()?, right.value()?))), 0)
    }
}

impl<T> Clone for Future<T> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), marker: PhantomData }
    }
}

impl<T> fmt::Debug for Future<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            ForkSource::Launch(input) => write!(f, "Future({:?}, #{})", input.results(), input.index()),
            ForkSource::Fork(fork) => write!(f, "Future({fork:?})"),
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
        if let ForkSource::Fork(fork) = &self.future.source {
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
        if let ForkSource::Launch(input) = &future.source
            && !input.has_ended()
        {
            let wait = || Box::new(input.results().realm.event_future(input.end()));
            // How it ended is in the values; that the realm goes down meanwhile shows as a value that is not there.
            let _ = ready!(Pin::new(event.get_or_insert_with(wait)).poll(context));
        }
        // Waiting for one point of many does not tell how the others ended.
        Poll::Ready(future.source.seen())
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Awaited({:?})", self.future)
    }
}
