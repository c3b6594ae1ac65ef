//! Ending a wait from outside.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use maniple_realm::locks::Mutex;

/// Ends waits of [`Session::wait_until`](crate::Session::wait_until), from any thread: one that hears of Ctrl-C, for
/// instance. What was waited for goes on.
///
/// Not to be called in a signal handler itself, where no lock may be taken.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<InterruptState>);

#[derive(Debug, Default)]
struct InterruptState {
    is_set: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// The wakers of the waits, by the numbers of the waits.
#[derive(Debug, Default)]
struct Waiting {
    begun: u64,
    wakers: Vec<(u64, Waker)>,
}

impl Interrupt {
    /// One that has not been set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all waits that watch for it, those under way and those to come, until it is [cleared](Self::clear).
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        let wakers = std::mem::take(&mut self.0.waiting.lock().wakers);
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Waits that come watch for it anew.
    pub fn clear(&self) {
        self.0.is_set.store(false, Ordering::SeqCst);
    }

    /// Whether it has been set, and not cleared since.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }
}

/// A future that ends with another, or without a value when an interrupt is set; whichever comes first. What is there
/// already is not interrupted.
pub(super) struct Interruptible<'a, F> {
    future: Pin<&'a mut F>,
    interrupt: &'a Interrupt,
    number: u64,
}

impl<'a, F> Interruptible<'a, F> {
    pub(super) fn new(future: Pin<&'a mut F>, interrupt: &'a Interrupt) -> Self {
        let mut waiting = interrupt.0.waiting.lock();
        waiting.begun += 1;
        Self { future, interrupt, number: waiting.begun }
    }

    /// Takes the waker out, if it is there.
    fn leave(&self, waiting: &mut Waiting) {
        waiting.wakers.retain(|(number, _)| *number != self.number);
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for Interruptible<'_, F> {
    type Output = Result<Option<T>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(value) = self.future.as_mut().poll(context) {
            return Poll::Ready(value.map(Some));
        }
        let state = &self.interrupt.0;
        let mut waiting = state.waiting.lock();
        self.leave(&mut waiting);
        // A thread that sets the interrupt afterwards finds the waker; one that has set it before is seen here.
        waiting.wakers.push((self.number, context.waker().clone()));
        if state.is_set.load(Ordering::SeqCst) { Poll::Ready(Ok(None)) } else { Poll::Pending }
    }
}

impl<F> Drop for Interruptible<'_, F> {
    fn drop(&mut self) {
        self.leave(&mut self.interrupt.0.waiting.lock());
    }
}
