//! Async bodies: polled on workers, holding none while they are pending.
//!
//! The slot keeps its body, an `Arc` of the task, until the future is ready; its wakers queue the slot again. The
//! task's state makes sure that it is queued at most once at a time, and polled by one worker at a time:
//!
//! ```text
//! NEW, QUEUED --poll--> RUNNING --pending--> IDLE --wake--> QUEUED
//!                          |  \--wake--> NOTIFIED --pending--> QUEUED
//!                          \--ready, panic--> DONE
//! ```
//!
//! Whoever wakes a task that is queued or notified already changes nothing, and yet writes the state, which the next poll reads: so that
//! sees what was done before the wake.

use std::cell::UnsafeCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::body::{BodyTable, Call, Finish};
use super::{Outcome, Spawn};
use crate::event::Event;
use crate::event::slot::BodyBytes;
use crate::fault::{self, Fault};
use crate::realm::Core;

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;
const DONE: u8 = 4;
/// Queued, and not known to anybody who could wake it.
const NEW: u8 = 5;

struct Task<F> {
    core: Arc<Core>,
    /// The operation's event, hence its slot.
    event: Event,
    state: AtomicU8,
    /// `None` once it is done. Touched only by whoever took the state from `QUEUED` to `RUNNING`, or by the realm's
    /// end.
    future: UnsafeCell<Option<F>>,
}

// SAFETY: the future is touched by one thread at a time, as the state says, and may move between threads.
unsafe impl<F: Send> Sync for Task<F> {}
// SAFETY: as above; the other fields are `Send`.
unsafe impl<F: Send> Send for Task<F> {}

impl Core {
    pub(crate) fn spawn_async<F>(&self, spawn: Spawn<'_>, future: F) -> Event
    where
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        let core = self.weak().upgrade().expect("a realm in use exists");
        self.spawn_body(spawn, |event, storage| {
            let task = Task { core, event, state: AtomicU8::new(NEW), future: UnsafeCell::new(Some(future)) };
            // SAFETY: the storage is the new slot's, and an `Arc` fits.
            unsafe { storage.cast::<Arc<Task<F>>>().write(Arc::new(task)) };
            const { &BodyTable { call: call::<F>, abandon: abandon::<F> } }
        })
    }
}

unsafe fn call<F>(storage: *mut BodyBytes, call: Call<'_>) -> Finish
where
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    // SAFETY: `spawn_async` put it there. The clone outlives the slot's, which another worker may take once the task is
    // idle.
    let task = unsafe { Arc::clone(&*storage.cast::<Arc<Task<F>>>()) };
    let result = match call.fault {
        None => match task.poll() {
            Some(result) => result,
            None => return Finish::Suspended,
        },
        Some(_) => Ok(()),
    };
    // SAFETY: the task was not suspended, so its body is still this call's.
    drop(unsafe { storage.cast::<Arc<Task<F>>>().read() });
    let dropped = task.finish();
    Finish::Done(result.and(dropped))
}

unsafe fn abandon<F: Send + 'static>(storage: *mut BodyBytes, _: &Arc<Fault>) {
    // SAFETY: `spawn_async` put it there, and it is taken out once.
    let task = unsafe { storage.cast::<Arc<Task<F>>>().read() };
    let _ = task.finish();
}

impl<F> Task<F> {
    /// Ends the task and drops the future; a panic in doing so is a fault.
    fn finish(&self) -> Result<(), Arc<Fault>> {
        self.state.store(DONE, Ordering::Release);
        // SAFETY: the caller was polling the task, or is the realm's end: nobody else touches the future.
        let future = unsafe { &mut *self.future.get() };
        fault::catch(|| *future = None)
    }
}

impl<F> Task<F>
where
    F: Future + Send + 'static,
    F::Output: Outcome,
{
    /// Polls once; `None` if the future is pending, when the task is no longer the caller's.
    fn poll(self: &Arc<Self>) -> Option<Result<(), Arc<Fault>>> {
        if self.state.load(Ordering::Relaxed) == NEW {
            self.state.store(RUNNING, Ordering::Relaxed);
        } else {
            self.state.swap(RUNNING, Ordering::Acquire);
        }
        let waker = Waker::from(Arc::clone(self));
        // SAFETY: the state is `RUNNING` and made so by this thread. The future does not move: it stays in its `Arc`
        // until dropped.
        let future = unsafe { Pin::new_unchecked((*self.future.get()).as_mut().expect("a queued task is not done")) };
        let polled = fault::catch(|| future.poll(&mut Context::from_waker(&waker)));
        match polled {
            Ok(Poll::Ready(output)) => Some(output.into_result()),
            Err(panic) => Some(Err(panic)),
            Ok(Poll::Pending) => {
                // Release: the next poll, on any worker, sees what this one left.
                let idle = self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
                if idle.is_err() {
                    self.state.swap(QUEUED, Ordering::AcqRel);
                    self.queue();
                }
                None
            }
        }
    }
}

impl<F> Task<F> {
    fn queue(&self) {
        let index = self.event.slot();
        self.core.enqueue(index, self.core.table.slot(index));
    }
}

impl<F: Send + 'static> Wake for Task<F> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A waker does not keep the realm up, so it may find it going down.
        let _gate = self.core.gate.read();
        if self.core.is_stopping() {
            return;
        }
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = match state {
                IDLE | QUEUED => QUEUED,
                RUNNING | NOTIFIED => NOTIFIED,
                _ => return,
            };
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(IDLE) => return self.queue(),
                Ok(_) => return,
                Err(changed) => state = changed,
            }
        }
    }
}
