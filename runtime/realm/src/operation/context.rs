//! The context of a body: its view of the worker that runs it.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::events::Event;
use crate::machine::ProcessorId;

/// A worker, as bodies see it.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) processor: ProcessorId,
    /// Whether the end of an operation is being settled, so that what becomes ready may be kept aside, to be run next.
    pub(crate) completing: Cell<bool>,
    /// A handle to the worker's realm, which outlives this: a type of a layer above, whence it comes, and which alone
    /// looks at it.
    pub(crate) realm: NonNull<()>,
}

/// The view that a body has of the worker that runs it.
pub struct WorkerContext<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) event: Event,
}

impl WorkerContext<'_> {
    /// The processor that runs the body.
    pub fn processor(&self) -> ProcessorId {
        self.worker.processor
    }

    /// The event of the operation whose body this is.
    pub fn event(&self) -> Event {
        self.event
    }

    /// The number of the worker, from 0.
    pub fn worker(&self) -> usize {
        self.worker.index
    }

    /// Calls `settle`, by which a [`Job`](crate::Job) ends: what that makes ready first is kept aside, and run next,
    /// without a queue.
    pub fn settle<R>(&self, settle: impl FnOnce() -> R) -> R {
        let nested = self.worker.completing.replace(true);
        let result = settle();
        self.worker.completing.set(nested);
        result
    }
}
