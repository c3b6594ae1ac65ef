//! Awaiting an event.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::locks::Mutex;

use super::{After, Event};
use crate::fault::{Abandoned, Fault};
use crate::operation::body::{Body, Call};
use crate::realm::Core;

/// Becomes ready when an event has triggered: see [`Realm::event_future`](crate::Realm::event_future).
pub struct EventFuture {
    core: Arc<Core>,
    event: Event,
    /// Whom to wake; there once the event was subscribed to.
    waker: Option<Arc<Mutex<Option<Waker>>>>,
}

struct Wake(Arc<Mutex<Option<Waker>>>);

impl Wake {
    fn wake(&self) {
        let waker = self.0.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Body for Wake {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        // The waker may be anybody's.
        call.core.unheard(|| "the waker of a future that awaits an event".to_owned(), || self.wake());
        Ok(())
    }

    fn abandon(self, _: &Arc<Fault>) {
        self.wake();
    }
}

impl EventFuture {
    pub(crate) fn new(core: Arc<Core>, event: Event) -> Self {
        Self { core, event, waker: None }
    }

    fn result(&self) -> Option<Result<(), Arc<Fault>>> {
        self.core.result(self.event)
    }
}

impl Future for EventFuture {
    type Output = Result<(), Arc<Fault>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.result() {
            return Poll::Ready(result);
        }
        if let Some(waker) = &self.waker {
            let old = waker.lock().replace(context.waker().clone());
            drop(old);
            // The trigger may have come for the old waker before the new one was there. The event says so.
            if let Some(result) = self.result() {
                return Poll::Ready(result);
            }
        }
        let core = Arc::clone(&self.core);
        // The future does not keep the realm up, so it may find it going down.
        let _gate = core.gate.read();
        if core.is_stopping() {
            return Poll::Ready(Err(Arc::new(Fault::new(Abandoned))));
        }
        if self.waker.is_none() {
            let waker = Arc::new(Mutex::new(Some(context.waker().clone())));
            if let Some(profiler) = &core.profiler {
                profiler.awaited(self.event.into());
            }
            core.spawn_inline(After::follows(&[self.event]), Wake(Arc::clone(&waker)));
            self.waker = Some(waker);
        }
        Poll::Pending
    }
}

impl Drop for EventFuture {
    /// Lets go of the waker: the event may be long in coming.
    fn drop(&mut self) {
        if let Some(waker) = &self.waker {
            let waker = waker.lock().take();
            drop(waker);
        }
    }
}
