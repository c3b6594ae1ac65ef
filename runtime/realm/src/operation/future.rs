//! Awaiting an event.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::body::OperationBody;
use super::operations::{Call, Operations};
use crate::events::idle::Waiter;
use crate::events::{After, Event};
use crate::fault::{Abandoned, Fault};

/// Becomes ready when an event has triggered: see [`Realm::event_future`](crate::Realm::event_future).
pub struct EventFuture {
    operations: Arc<Operations>,
    event: Event,
    /// There once the event was subscribed to.
    waiter: Option<Arc<Waiter>>,
}

struct Wake {
    event: Event,
    waiter: Arc<Waiter>,
}

impl OperationBody for Wake {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        // The waker may be any code of the program.
        let woken =
            call.operations.unheard(|| "the waker of a future that awaits an event".to_owned(), || self.waiter.wake());
        if woken == Some(true) {
            call.operations.idle_waiters.forget(self.event);
        }
        Ok(())
    }

    fn abandon(self, _: &Arc<Fault>) {
        self.waiter.wake();
    }
}

impl EventFuture {
    pub(crate) fn new(operations: Arc<Operations>, event: Event) -> Self {
        Self { operations, event, waiter: None }
    }

    fn result(&self) -> Option<Result<(), Arc<Fault>>> {
        self.operations.result(self.event)
    }
}

impl Future for EventFuture {
    type Output = Result<(), Arc<Fault>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.result() {
            return Poll::Ready(result);
        }
        if self.waiter.is_none() {
            self.waiter = self.operations.idle_waiters.take(self.event, context.waker());
        } else if let Some(waiter) = &self.waiter {
            waiter.replace(context.waker().clone());
        }
        // The trigger may have come for the old waker before the new one was there. The event says so.
        if self.waiter.is_some()
            && let Some(result) = self.result()
        {
            return Poll::Ready(result);
        }
        let operations = Arc::clone(&self.operations);
        // The future does not keep the realm up, so it may find it going down. A waker that is called with the gate
        // held may poll in place: it must not wait for the thread that wants to close the gate, which waits for us.
        let _gate = operations.gate.read_recursive();
        if operations.is_stopping() {
            return Poll::Ready(Err(Arc::new(Fault::new(Abandoned))));
        }
        if self.waiter.is_none() {
            let waiter = Waiter::new(context.waker().clone());
            if let Some(profiler) = &operations.profiler {
                profiler.awaited(self.event.into());
            }
            let wake = Wake { event: self.event, waiter: Arc::clone(&waiter) };
            operations.spawn_inline(After::follows(&[self.event]), wake);
            self.waiter = Some(waiter);
        }
        Poll::Pending
    }
}

impl Drop for EventFuture {
    /// Lets go of the waker: the event may be long in coming.
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            if self.operations.is_pending(self.event) {
                self.operations.idle_waiters.put(self.event, waiter);
            } else {
                waiter.drop_waker();
            }
        }
    }
}
