//! Wakers of a forked task, which are counted. A task that waits while there are none waits for ever, so it has failed.
//!
//! The worker that runs the task notices, as only that worker can make wakers when there are none: the wakers that it
//! is asked for are clones of the one that the task is run with, which is not counted. If the last waker goes while the
//! task is suspended, or may be about to be, the thread that drops it wakes the task: it is run once more, and the
//! worker that runs it finds that it still waits and has no wakers.

use super::schedule::Schedule;
use super::word::Word;

/// The body waits, and the caller runs it. Whether nothing will ever wake it.
pub(super) fn cannot_go_on(schedule: &Schedule, word: &Word) -> bool {
    // In this order: wakers wake first and then go.
    word.has_no_waker() && !schedule.is_notified()
}

/// A waker goes without having been used. True if the caller must queue the task; the waker's reference then stays with
/// the caller.
#[must_use]
pub(super) fn drop_waker(schedule: &Schedule, word: &Word) -> bool {
    word.remove_waker() && schedule.wake()
}

/// A waker is used, and goes. True if the caller must queue the task; the waker's reference then stays with the caller.
#[must_use]
pub(super) fn wake_and_drop(schedule: &Schedule, word: &Word) -> bool {
    let must_queue = schedule.wake();
    let was_last = word.remove_waker();
    // The task may have been run since the wake, and have found this waker.
    must_queue || (was_last && schedule.wake())
}
