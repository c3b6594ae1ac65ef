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
//! A waker of a task that is queued or notified already changes nothing, and yet writes the state, which the next poll
//! reads: so the poll sees what was done before the wake.
//!
//! Wakers are counted, but for the one that a poll is lent. A task that is pending while there are none can never be
//! woken: it is *stranded*. As only a poll can make wakers then, the poller notices; and the thread that drops the last
//! waker wakes the task, so that there is a poller. A stranded task is polled once more, so that its future may do
//! something about it ([`is_stranded`]), and fails if it is stranded still.

use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::operations::{BodyTable, Call, Finish, Operations};
use super::{Outcome, Spawn};
use crate::events::Event;
use crate::events::slot::BodyBytes;
use crate::fault::{self, Fault};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;
const DONE: u8 = 4;
/// Queued, and not known to any thread that could wake it.
const NEW: u8 = 5;

/// An async body is pending, but nothing has kept its waker: it would wait for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the body waits for something, but its waker has been dropped: what it awaits has to keep its waker until then"
)]
pub struct Stranded;

thread_local! {
    static STRANDED: Cell<bool> = const { Cell::new(false) };
}

/// Sets what [`is_stranded`] says on this thread, and gives what it said: see [`crate::simulation`].
pub(crate) fn exchange_stranded(is_stranded: bool) -> bool {
    STRANDED.replace(is_stranded)
}

/// Whether the body that is being polled on this thread was pending while its waker has been dropped. A future that is
/// made of others, and has something left to do if one of them never ends, ends that one as a failure: if nothing else
/// is awaited now, the operation fails as [`Stranded`].
#[must_use]
pub fn is_stranded() -> bool {
    STRANDED.get()
}

struct Task<F> {
    operations: Arc<Operations>,
    /// The operation's event, hence its slot.
    event: Event,
    state: AtomicU8,
    wakers: AtomicUsize,
    /// `None` once it is done. Touched only by the thread that took the state from `QUEUED` to `RUNNING`, or by the
    /// realm's end.
    future: UnsafeCell<Option<F>>,
}

// SAFETY: the future is touched by one thread at a time, as the state says, and may move between threads.
unsafe impl<F: Send> Sync for Task<F> {}
// SAFETY: as above; the other fields are `Send`.
unsafe impl<F: Send> Send for Task<F> {}

impl Operations {
    pub(crate) fn spawn_async<F>(&self, spawn: Spawn<'_>, future: F) -> Event
    where
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        let operations = self.weak().upgrade().expect("a realm in use exists");
        self.spawn_body(spawn, |event, storage| {
            let task = Task {
                operations,
                event,
                state: AtomicU8::new(NEW),
                wakers: AtomicUsize::new(0),
                future: UnsafeCell::new(Some(future)),
            };
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
        // SAFETY: the caller was polling the task, or is the realm's end: nothing else touches the future.
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
        let polled = self.poll_future(false);
        let polled = match polled {
            Ok(Poll::Pending) if self.cannot_go_on() => self.poll_future(true),
            other => other,
        };
        match polled {
            Ok(Poll::Ready(output)) => Some(output.into_result()),
            Err(panic) => Some(Err(panic)),
            Ok(Poll::Pending) if self.cannot_go_on() => Some(Err(Arc::new(Fault::new(Stranded)))),
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

    fn poll_future(self: &Arc<Self>, stranded: bool) -> Result<Poll<F::Output>, Arc<Fault>> {
        // SAFETY: the vtable is that of this type. The reference is lent: it is neither counted nor dropped, and the
        // caller's lives longer.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker::<F>(Arc::as_ptr(self))) });
        // SAFETY: the state is `RUNNING` and made so by this thread. The future does not move: it stays in its `Arc`
        // until dropped.
        let future = unsafe { Pin::new_unchecked((*self.future.get()).as_mut().expect("a queued task is not done")) };
        // Bodies may be polled on top of one another.
        let outer = STRANDED.replace(stranded);
        let polled = fault::catch(|| future.poll(&mut Context::from_waker(&waker)));
        STRANDED.set(outer);
        polled
    }

    /// The future is pending, and this thread polls it. Whether nothing will ever wake it.
    fn cannot_go_on(&self) -> bool {
        // In this order: wakers wake first, and then go.
        self.wakers.load(Ordering::Acquire) == 0 && self.state.load(Ordering::Acquire) == RUNNING
    }
}

impl<F> Task<F> {
    fn queue(&self) {
        let index = self.event.slot();
        self.operations.enqueue(index, self.operations.table.slot(index));
    }
}

fn raw_waker<F: Send + 'static>(task: *const Task<F>) -> RawWaker {
    let table =
        const { &RawWakerVTable::new(clone_waker::<F>, wake_by_value::<F>, wake_by_reference::<F>, drop_waker::<F>) };
    RawWaker::new(task.cast(), table)
}

/// # Safety
/// As of all functions here: it is called for a waker of a `Task<F>`, which has a reference to it, or was lent one.
unsafe fn clone_waker<F: Send + 'static>(data: *const ()) -> RawWaker {
    let task: *const Task<F> = data.cast();
    // SAFETY: the waker's reference keeps the task; the new waker gets one of its own.
    unsafe {
        Arc::increment_strong_count(task);
        (*task).wakers.fetch_add(1, Ordering::Relaxed);
    }
    raw_waker(task)
}

unsafe fn wake_by_value<F: Send + 'static>(data: *const ()) {
    // SAFETY: the waker has a reference.
    unsafe { &*data.cast::<Task<F>>() }.wake();
    // The task may have been polled since, and have found this waker.
    // SAFETY: the waker goes.
    unsafe { drop_waker::<F>(data) };
}

unsafe fn wake_by_reference<F: Send + 'static>(data: *const ()) {
    // SAFETY: the waker has a reference, or was lent one.
    unsafe { &*data.cast::<Task<F>>() }.wake();
}

unsafe fn drop_waker<F: Send + 'static>(data: *const ()) {
    // SAFETY: the waker's reference is given up here.
    let task = unsafe { Arc::from_raw(data.cast::<Task<F>>()) };
    if task.wakers.fetch_sub(1, Ordering::AcqRel) == 1 {
        // Nothing else will: it is polled once more, to see whether it can go on.
        task.wake();
    }
}

impl<F: Send + 'static> Task<F> {
    fn wake(&self) {
        // A waker does not keep the realm up, so it may find it going down. The thread that wakes may be in the gate
        // already.
        let _gate = self.operations.gate.read_recursive();
        if self.operations.is_stopping() {
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
