//! Awaiting an event.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// There once the event was subscribed to.
    waiter: Option<Arc<Waiter>>,
}

/// An operation that waits for an event to wake the task of a future.
struct Waiter(Mutex<Waiting>);

struct Waiting {
    /// Whom to wake.
    waker: Option<Waker>,
    /// Whether the event has triggered.
    is_over: bool,
    /// Whether the future was dropped before: the waiter is among the [`IdleWaiters`].
    is_idle: bool,
}

/// Waiters whose futures were dropped before the event: an operation cannot be taken out of an event's list, so the next
/// future of the event takes it over. A program that polls and drops futures of one event, as a `select` with a time limit
/// does in a loop, so has one operation pending, not one for each.
///
/// Locks are taken in this order: this one, then a waiter's.
#[derive(Default)]
pub(crate) struct IdleWaiters {
    /// How many there are, for those who look without the lock.
    count: AtomicUsize,
    of_events: Mutex<HashMap<Event, Vec<Arc<Waiter>>>>,
}

impl IdleWaiters {
    /// Keeps the waiter of a future that is dropped, unless its event has triggered.
    fn put(&self, event: Event, waiter: &Arc<Waiter>) {
        let mut of_events = self.of_events.lock();
        let waker = {
            let mut waiting = waiter.0.lock();
            if !waiting.is_over {
                waiting.is_idle = true;
                of_events.entry(event).or_default().push(Arc::clone(waiter));
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            waiting.waker.take()
        };
        drop(of_events);
        // Somebody else's code, so without the locks.
        drop(waker);
    }

    /// One for the event, which from now on wakes this waker. If the event has triggered meanwhile it wakes nobody.
    fn take(&self, event: Event, waker: &Waker) -> Option<Arc<Waiter>> {
        // Whoever misses one makes another.
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let waker = waker.clone();
        let mut of_events = self.of_events.lock();
        let idle = of_events.get_mut(&event)?;
        let waiter = idle.pop()?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        if idle.is_empty() {
            of_events.remove(&event);
        }
        {
            let mut waiting = waiter.0.lock();
            waiting.is_idle = false;
            waiting.waker = Some(waker);
        }
        Some(waiter)
    }

    /// Forgets those of an event that has triggered.
    #[cold]
    fn forget(&self, event: Event) {
        let forgotten = self.of_events.lock().remove(&event);
        self.count.fetch_sub(forgotten.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
    }
}

struct Wake {
    event: Event,
    waiter: Arc<Waiter>,
}

impl Wake {
    /// Gives whether the waiter was idle.
    fn wake(&self) -> bool {
        let (waker, is_idle) = {
            let mut waiting = self.waiter.0.lock();
            waiting.is_over = true;
            (waiting.waker.take(), waiting.is_idle)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        is_idle
    }
}

impl Body for Wake {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        // The waker may be anybody's.
        let woken = call.core.unheard(|| "the waker of a future that awaits an event".to_owned(), || self.wake());
        if woken == Some(true) {
            call.core.idle_waiters.forget(self.event);
        }
        Ok(())
    }

    fn abandon(self, _: &Arc<Fault>) {
        self.wake();
    }
}

impl EventFuture {
    pub(crate) fn new(core: Arc<Core>, event: Event) -> Self {
        Self { core, event, waiter: None }
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
        if self.waiter.is_none() {
            self.waiter = self.core.idle_waiters.take(self.event, context.waker());
        } else if let Some(waiter) = &self.waiter {
            let waker = context.waker().clone();
            let old = waiter.0.lock().waker.replace(waker);
            drop(old);
        }
        // The trigger may have come for the old waker before the new one was there. The event says so.
        if self.waiter.is_some()
            && let Some(result) = self.result()
        {
            return Poll::Ready(result);
        }
        let core = Arc::clone(&self.core);
        // The future does not keep the realm up, so it may find it going down. A waker that is called with the gate held may
        // poll in place: it must not wait for whoever wants to close the gate, who waits for us.
        let _gate = core.gate.read_recursive();
        if core.is_stopping() {
            return Poll::Ready(Err(Arc::new(Fault::new(Abandoned))));
        }
        if self.waiter.is_none() {
            let waker = Some(context.waker().clone());
            let waiter = Arc::new(Waiter(Mutex::new(Waiting { waker, is_over: false, is_idle: false })));
            if let Some(profiler) = &core.profiler {
                profiler.awaited(self.event.into());
            }
            let wake = Wake { event: self.event, waiter: Arc::clone(&waiter) };
            core.spawn_inline(After::follows(&[self.event]), wake);
            self.waiter = Some(waiter);
        }
        Poll::Pending
    }
}

impl Drop for EventFuture {
    /// Lets go of the waker: the event may be long in coming.
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            if self.core.is_pending(self.event) {
                self.core.idle_waiters.put(self.event, waiter);
            } else {
                // Nobody is woken any more, or just now.
                let waker = waiter.0.lock().waker.take();
                drop(waker);
            }
        }
    }
}
