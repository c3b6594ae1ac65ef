//! The interface between a job and the layers above it.

use std::sync::Arc;

use maniple_realm::Fault;

use crate::error::Failure;

/// A layer above a job, which has its own kinds of messages. See [`JobBuilder::layer`](crate::JobBuilder::layer).
pub trait Layer: Send + Sync {
    /// How many of its exchanges with other nodes are not over.
    fn open(&self) -> usize;

    /// Nothing arrives any more, for this reason if the job has failed: whatever waits for a message is to end.
    fn close(&self, why: Option<&Arc<Fault>>);

    /// The fault of which this node has told others by a failure that has come back, if the layer remembers it.
    fn recall(&self, failure: &Failure) -> Option<Fault> {
        let _ = failure;
        None
    }
}
