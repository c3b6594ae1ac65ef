//! Jobs: work that is ready when it is queued, and that nobody waits for by an event.
//!
//! A job has no slot: it is one object of its owner's, which a worker runs when it comes to it. It goes to the deque of the worker that
//! queues it, last in, first out; others steal the oldest. Who waits for a job, and how often it is queued, is its owner's affair.

use std::sync::Arc;

use crate::profile::{OperationId, Tag};
use crate::realm::Core;
use crate::worker::WorkerContext;

/// Work that is ready: see [`Realm::queue_job`](crate::Realm::queue_job).
pub trait Job: Send + Sync + 'static {
    /// Does it, or as much of it as can be done now. Must neither panic nor block.
    fn run(self: Arc<Self>, context: &WorkerContext<'_>);

    /// What a profile calls it. Asked for only if there is one.
    fn recorded(&self) -> (OperationId, Tag) {
        (OperationId::NONE, Tag::NONE)
    }
}

impl Core {
    /// Queues a job with the worker that this thread is, or for any.
    #[inline]
    pub(crate) fn queue_job(&self, job: Arc<dyn Job>) {
        match self.local() {
            Some(local) => local.queue_job(job),
            None if self.is_stopping() => {}
            None => {
                self.queues.push_shared_job(job);
                self.announce_queued();
            }
        }
    }
}
