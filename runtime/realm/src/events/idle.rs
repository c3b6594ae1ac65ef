//! The wakers of events that are awaited, and what becomes of a waker when its future is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use super::Event;
use crate::locks::Mutex;

/// An operation that waits for an event to wake the task of a future.
pub(crate) struct Waiter(Mutex<Waiting>);

struct Waiting {
    /// The waker of the future, until it is called or the future is dropped.
    waker: Option<Waker>,
    /// Whether the event has triggered.
    is_over: bool,
    /// Whether the future was dropped before: the waiter is among the [`IdleWaiters`].
    is_idle: bool,
}

/// Waiters whose futures were dropped before the event: an operation cannot be taken out of an event's list, so the
/// next future of the event takes it over. A program that polls and drops futures of one event, as a `select` with a
/// time limit does in a loop, so has one operation pending, not one for each.
///
/// Locks are taken in this order: this one, then a waiter's.
#[derive(Default)]
pub(crate) struct IdleWaiters {
    /// How many there are, for threads that look without the lock.
    count: AtomicUsize,
    of_events: Mutex<HashMap<Event, Vec<Arc<Waiter>>>>,
}

impl IdleWaiters {
    /// Keeps the waiter of a future that is dropped, unless its event has triggered.
    pub(crate) fn put(&self, event: Event, waiter: &Arc<Waiter>) {
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
        // Code of the program, so without the locks.
        drop(waker);
    }

    /// One for the event, which from now on wakes this waker. If the event has triggered meanwhile it wakes none.
    pub(crate) fn take(&self, event: Event, waker: &Waker) -> Option<Arc<Waiter>> {
        // A future that misses one makes another.
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
    pub(crate) fn forget(&self, event: Event) {
        let forgotten = self.of_events.lock().remove(&event);
        self.count.fetch_sub(forgotten.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
    }
}

impl Waiter {
    /// One that wakes this waker.
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting { waker: Some(waker), is_over: false, is_idle: false })))
    }

    /// Has it wake another waker.
    pub(crate) fn replace(&self, waker: Waker) {
        let old = self.0.lock().waker.replace(waker);
        drop(old);
    }

    /// Drops the waker, if no thread is calling it at this moment.
    pub(crate) fn drop_waker(&self) {
        let waker = self.0.lock().waker.take();
        drop(waker);
    }

    /// The event has triggered. Gives whether the waiter was idle.
    pub(crate) fn wake(&self) -> bool {
        let (waker, is_idle) = {
            let mut waiting = self.0.lock();
            waiting.is_over = true;
            (waiting.waker.take(), waiting.is_idle)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        is_idle
    }
}
