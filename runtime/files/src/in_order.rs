//! Texts of parts, made by several threads, and written in the order of the parts.
//!
//! Each thread takes the next part, makes its text, and adds it to the finished ones. If no other thread is writing
//! then, it writes the finished texts that are next in order, while the others go on. A thread waits before it takes a
//! part that is far beyond those that are written, so that few texts are in memory.
//!
//! No thread waits in vain. Take the first part that is not written: a thread is making its text, or the text is
//! finished. In the latter case a thread is writing, and looks for the next text before it stops, under the lock under
//! which texts are added. An error, or a panic in a thread, ends the work of all.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::parallel::Parallel;

/// So many parts for each thread may be taken beyond those that are written.
const AHEAD: usize = 4;

struct InOrder<W, M> {
    state: Mutex<InOrderState<W, M>>,
    /// Signalled when a text is written, and when the work ends early.
    progress: Condvar,
    parts: usize,
    ahead: usize,
}

struct InOrderState<W, M> {
    /// None while a thread writes.
    into: Option<W>,
    /// The parts that threads have taken: the first ones.
    taken: usize,
    /// The parts that are written: the first ones.
    written: usize,
    /// Texts that are not written yet, by their parts.
    finished: BTreeMap<usize, M>,
    /// Memory of texts that are written.
    spare: Vec<M>,
    error: Option<io::Error>,
    /// Set by an error or a panic: nothing more is taken or written.
    has_ended: bool,
}

/// Writes the texts that `make` adds to memory, which is empty or was [used](Vec::clear) for another part: one for each
/// part, by all threads, in their order.
///
/// # Errors
/// As of `into`.
pub(crate) fn write<M: Default + Send + AsRef<[u8]>>(
    into: &mut (impl Write + Send),
    parts: usize,
    parallel: &dyn Parallel,
    make: impl Fn(usize, &mut M) + Sync,
) -> io::Result<()> {
    let threads = parallel.parts().clamp(1, parts.max(1));
    let state = InOrderState {
        into: Some(into),
        taken: 0,
        written: 0,
        finished: BTreeMap::new(),
        spare: Vec::new(),
        error: None,
        has_ended: false,
    };
    let in_order = InOrder { state: Mutex::new(state), progress: Condvar::new(), parts, ahead: AHEAD * threads };
    parallel.run(threads, &|_| in_order.work(&make));
    // If nothing has run.
    in_order.work(&make);
    let state = in_order.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.error {
        Some(error) => Err(error),
        None if state.written < parts => Err(io::Error::other("the text of a part was not made")),
        None => Ok(()),
    }
}

impl<W: Write, M: Default + AsRef<[u8]>> InOrder<W, M> {
    fn work(&self, make: &impl Fn(usize, &mut M)) {
        let _panics = EndOnPanic(self);
        while let Some((part, mut text)) = self.take() {
            make(part, &mut text);
            self.finish(part, text);
        }
    }

    fn state(&self) -> MutexGuard<'_, InOrderState<W, M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part, and memory for its text; none if there is nothing more to do.
    fn take(&self) -> Option<(usize, M)> {
        let mut state = self.state();
        while !state.has_ended && state.taken < self.parts && state.taken >= state.written + self.ahead {
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_ended || state.taken == self.parts {
            return None;
        }
        state.taken += 1;
        Some((state.taken - 1, state.spare.pop().unwrap_or_default()))
    }

    /// Adds a text, and writes what is next in order, unless another thread does.
    fn finish(&self, part: usize, text: M) {
        let mut state = self.state();
        state.finished.insert(part, text);
        let Some(mut into) = state.into.take() else { return };
        while !state.has_ended {
            let next = state.written;
            let Some(text) = state.finished.remove(&next) else { break };
            drop(state);
            let result = into.write_all(text.as_ref());
            state = self.state();
            state.written += usize::from(result.is_ok());
            state.has_ended |= result.is_err();
            state.error = result.err();
            state.spare.push(text);
            self.progress.notify_all();
        }
        state.into = Some(into);
    }
}

/// Ends the work of all threads if this one panics.
struct EndOnPanic<'a, W: Write, M: Default + AsRef<[u8]>>(&'a InOrder<W, M>);

impl<W: Write, M: Default + AsRef<[u8]>> Drop for EndOnPanic<'_, W, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().has_ended = true;
            self.0.progress.notify_all();
        }
    }
}
