//! Whose turn it is to read: one thread at a time, and no other waits for it.
//!
//! ```text
//!          begin                      leave
//! FREE -----------> TAKEN ------------------------> LEFT
//!   ^                 | end: nothing more to do       | end: look again, another relies on it
//!   +-----------------+-------------------------------+
//! ```
//!
//! A thread that finds that another has the turn may leave it to that one to read all there is. Both change one word,
//! so either the one that has the turn learns of it when it ends, or the other learns that no thread has it any more,
//! and begins itself.

use crate::sync::{AtomicU32, Ordering};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const LEFT: u32 = 2;

/// Whose turn it is.
#[derive(Default)]
pub(crate) struct Turns(AtomicU32);

/// The turn of the thread that holds this.
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Takes the turn; none if another has it.
    pub(crate) fn begin(&self) -> Option<Turn<'_>> {
        let taken = self.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Turn(self))
    }

    /// Leaves it to the one that has the turn to read all that came before this; false if no thread has it any more.
    pub(crate) fn leave(&self) -> bool {
        // Also if it was left before: what we have seen may be newer than what that one saw.
        let leave = |turn| (turn != FREE).then_some(LEFT);
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, leave).is_ok()
    }
}

impl Turn<'_> {
    /// Gives the turn back; whether another has left it to this thread to read all there is, which it must do then.
    #[must_use]
    pub(crate) fn end(self) -> bool {
        let is_left = self.0.0.swap(FREE, Ordering::AcqRel) == LEFT;
        std::mem::forget(self);
        is_left
    }
}

/// Without this a panic would keep the turn for ever. What was left is read when more comes.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.0.store(FREE, Ordering::Release);
    }
}
