//! The attendance of an inbox: workers look at it while they have nothing else to do; otherwise it is looked at when
//! the bell rings.
//!
//! While it is *attended*, the bell is off: senders need not ring it. A thread of its own looks now and then meanwhile,
//! since the workers that attend may be at something that takes long. The worker that ends the attendance turns the
//! bell on, and looks once more.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::SharedMemory;
use crate::locks::Mutex;
use crate::threads::give_way;

/// How often to look while others attend.
const TICK: Duration = Duration::from_millis(1);

/// How often to look though no worker attends: for what was sent without a bell.
const IDLE: Duration = Duration::from_secs(1);

/// So many ticks without a worker that attends, and the thread goes to sleep.
const TICKS: usize = 8;

pub(super) struct Attendance {
    state: Arc<AttendanceState>,
    thread: Option<Thread>,
    /// To wait for its end.
    end: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct AttendanceState {
    is_attended: AtomicBool,
    is_ticking: AtomicBool,
    is_over: AtomicBool,
}

impl Attendance {
    pub(super) fn start(shared: &Weak<SharedMemory>) -> Self {
        let state = Arc::new(AttendanceState::default());
        let (watched, watcher) = (Weak::clone(shared), Arc::clone(&state));
        let thread = thread::Builder::new().name("inbox".to_owned()).spawn(move || watch(&watched, &watcher)).ok();
        Self { state, thread: thread.as_ref().map(|thread| thread.thread().clone()), end: Mutex::new(thread) }
    }

    /// Ends the thread, and waits for that, unless it is this one.
    pub(super) fn stop(&self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        let ending = self.end.lock().take();
        if let Some(thread) = ending {
            thread.thread().unpark();
            if thread.thread().id() != thread::current().id() {
                // It panics no more than any other thread that runs handlers.
                let _ = thread.join();
            }
        }
    }

    /// A worker looks from now on. If the bell had to be turned off for that, it is.
    pub(super) fn begin(&self, bell: &AtomicU32) {
        if self.state.is_attended.load(Ordering::Relaxed) || self.thread.is_none() {
            return;
        }
        self.state.is_attended.store(true, Ordering::SeqCst);
        bell.store(0, Ordering::Relaxed);
        if !self.state.is_ticking.load(Ordering::SeqCst) {
            self.thread.as_ref().inspect(|thread| thread.unpark());
        }
    }

    /// No worker looks any more, except once after this.
    pub(super) fn end(&self, bell: &AtomicU32) {
        self.state.is_attended.store(false, Ordering::SeqCst);
        turn_on(bell);
    }

    /// Turns the bell on again after it rang, unless a worker looks; one must look once more after this.
    pub(super) fn rang(&self, bell: &AtomicU32) {
        if !self.state.is_attended.load(Ordering::SeqCst) {
            turn_on(bell);
        }
    }
}

fn turn_on(bell: &AtomicU32) {
    bell.store(1, Ordering::Relaxed);
    // Against the one in `announce`: either the sender sees the bell, or the look that follows sees what was sent.
    fence(Ordering::SeqCst);
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.stop();
    }
}

fn watch(shared: &Weak<SharedMemory>, state: &AttendanceState) {
    give_way();
    loop {
        state.is_ticking.store(true, Ordering::SeqCst);
        let mut idle = 0;
        while idle < TICKS {
            thread::sleep(TICK);
            if state.is_over.load(Ordering::SeqCst) {
                return;
            }
            idle = if state.is_attended.load(Ordering::SeqCst) { 0 } else { idle + 1 };
            // While it is made, and while it goes, there is nothing to look at.
            shared.upgrade().inspect(|shared| shared.look_now_and_then());
        }
        state.is_ticking.store(false, Ordering::SeqCst);
        // A worker that begins to attend now finds no thread ticking, and wakes this one; one that did before is seen.
        if !state.is_attended.load(Ordering::SeqCst) {
            thread::park_timeout(IDLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Making it may take longer than the first tick.
    #[test]
    fn the_thread_stays_until_it_is_stopped_though_there_is_nothing_to_look_at() {
        let attendance = Attendance::start(&Weak::new());
        let is_ticking = || attendance.state.is_ticking.load(Ordering::SeqCst);
        let has_ended = || attendance.end.lock().as_ref().is_none_or(JoinHandle::is_finished);
        while !is_ticking() && !has_ended() {
            thread::yield_now();
        }
        // Until it rests, as no worker attends.
        while is_ticking() && !has_ended() {
            thread::yield_now();
        }
        assert!(!has_ended());
        attendance.stop();
    }
}
