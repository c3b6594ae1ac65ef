//! Handles to memory that is attached, and to memory that is being detached.

use std::any::Any;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use maniple_realm::Event;
use maniple_realm::locks::Mutex;
use maniple_realm::memory::Charge;

use super::claims::Range;
use crate::core::Claim;
use crate::data::value::Value;
use crate::future::Future;
use crate::instances::instance::PhysicalInstance;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

/// Memory of type `M` that is attached to the values of a field of a region, and can be
/// [detached](crate::Context::detach) again.
///
/// Dropping the handle leaves the memory to the region for good: the values stay, and the memory is dropped when they
/// are not needed there any more, at the latest with the runtime.
#[must_use = "a handle that is dropped leaves the memory to the region"]
pub struct Attached<M> {
    pub(super) claim: Arc<Claim>,
    pub(super) instance: Arc<PhysicalInstance>,
    pub(super) give: Give,
    pub(super) flushes: bool,
    pub(super) marker: PhantomData<fn() -> M>,
}

impl<M> Attached<M> {
    /// The same memory, to be detached without bringing the values of the region to it: what it then holds is
    /// unspecified.
    pub fn discard(mut self) -> Self {
        self.flushes = false;
        self
    }
}

impl<M> fmt::Debug for Attached<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attached(field `{}` of {})", self.claim.field_name(), self.claim.region)
    }
}

/// The owner of attached memory, in the hands of the runtime.
pub(super) struct Kept<O> {
    owner: Option<O>,
    range: Option<Range>,
    /// That it counts as in use.
    charge: Option<Charge>,
}

impl<O> Kept<O> {
    pub(super) fn new(owner: O, range: Option<Range>, charge: Option<Charge>) -> Self {
        Self { owner: Some(owner), range, charge }
    }

    /// The owner, which may let others have its addresses from then on.
    pub(super) fn take(&mut self) -> Option<O> {
        drop((self.range.take(), self.charge.take()));
        self.owner.take()
    }
}

impl<O> Drop for Kept<O> {
    fn drop(&mut self) {
        // Its addresses may be another's as soon as it is gone.
        drop(self.range.take());
        drop_caught("the owner of attached memory", "", self.owner.take());
    }
}

/// The function that makes the result of a detachment from the owner of the memory.
pub(super) type Give = fn(Box<dyn Any + Send>) -> Option<Finished>;

/// The end of a detachment.
pub(super) enum Finished {
    /// This is its result.
    Now(Value),
    /// This gives it, and waits for a file meanwhile.
    Later(Box<dyn FnOnce() -> Result<Value> + Send>),
}

/// The owner of memory, as the result of its detachment.
pub(super) fn give<O: Send + 'static>(kept: Box<dyn Any + Send>) -> Option<Finished> {
    let owner = kept.downcast::<Kept<O>>().ok()?.take()?;
    Some(Finished::Now(Value::new(GivenResult::new(owner))))
}

/// The same of memory whose owner was shared with its instance.
pub(super) fn give_shared<O: Send + Sync + 'static>(kept: Box<dyn Any + Send>) -> Option<Finished> {
    let owner = kept.downcast::<Kept<Arc<O>>>().ok()?.take()?;
    Some(Finished::Now(Value::new(GivenResult::new(Arc::into_inner(owner)?))))
}

/// A value that is taken out of a result once.
pub(super) struct GivenResult<O>(Arc<Mutex<Option<O>>>);

impl<O> GivenResult<O> {
    pub(super) fn new(owner: O) -> Self {
        Self(Arc::new(Mutex::new(Some(owner))))
    }

    fn take(&self) -> Result<O> {
        self.0.lock().take().ok_or_else(|| Error::internal(TakenTwice))
    }
}

impl<O> Clone for GivenResult<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A result was taken twice.
#[derive(Debug, thiserror::Error)]
#[error("detached memory was given away twice")]
struct TakenTwice;

/// Memory of type `M` that is being detached from a region: await it to have it back.
///
/// If it is dropped, so is the memory, once nothing uses it any more. If what was to compute its values has failed and
/// the handle is not awaited, the task that detached it fails too.
#[must_use = "the memory is dropped if its detachment is not awaited"]
pub struct Detached<M> {
    future: Future<GivenResult<M>>,
    /// The outcome that all nodes are told of, if all wait for it.
    of_all: Option<Future<()>>,
}

impl<M: Send + 'static> Detached<M> {
    pub(super) fn new(results: Arc<crate::results::Results>) -> Self {
        Self { future: Future::new(results, 0), of_all: None }
    }

    /// The same, which is there when it is on all nodes, or has failed on one: this tells all of them.
    pub(super) fn of_all(self, all: Future<()>) -> Self {
        Self { of_all: Some(all), ..self }
    }

    /// Triggers when the memory is there, poisoned if its values could not be computed.
    #[must_use]
    pub fn event(&self) -> Event {
        self.of_all.as_ref().map_or_else(|| self.future.event(), Future::event)
    }

    /// Whether the memory is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.of_all.as_ref().is_none_or(Future::is_ready) && self.future.is_ready()
    }

    /// Waits for the memory, in code that is not `async`: outside of tasks, or at top level.
    ///
    /// # Errors
    /// As awaiting it; and [`Error::Launch`] in a task, if it is not there yet: see [`Future::wait`].
    pub fn wait(self) -> Result<M> {
        let own = self.future.wait();
        self.of_all.map_or(Ok(()), |all| all.wait())?;
        own?.take()
    }
}

impl<M: Send + 'static> IntoFuture for Detached<M> {
    type Output = Result<M>;
    type IntoFuture = Pin<Box<dyn std::future::Future<Output = Result<M>> + Send>>;

    /// The memory, with the values that the region had where it was detached.
    ///
    /// Fails as what was to compute the values; then the memory is dropped.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            // The failure of this node's own has then been seen.
            let own = self.future.await;
            if let Some(all) = self.of_all {
                all.await?;
            }
            own?.take()
        })
    }
}

impl<M> fmt::Debug for Detached<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detached({:?})", self.future)
    }
}
