//! Programs that are not inside of a function: a top-level task that is open for as long as its owner likes.

mod interrupt;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

pub use self::interrupt::Interrupt;
use self::interrupt::Interruptible;
use crate::context::Context;
use crate::program::top_level::TopLevel;
use crate::support::error::{Error, Result};

/// A top-level task without a function: it launches what is called on it, until it is [finished](Self::finish). For
/// host programs with a loop of their own, interpreters, and libraries that are called again and again;
/// [`Runtime::run`](crate::Runtime::run) is the same for a program that is a function.
///
/// It dereferences to the [`Context`] of the task. Regions and futures that come from it can be used as long as it is
/// open; futures that are there, for ever.
///
/// A session can be moved to other threads, and several may use it at a time. Launches take effect in the order in
/// which they are called; where threads call at the same time, in the one in which they come, and what other threads
/// launch while one is within a trace that it has named is no part of that: it ends the replay of the run. On several
/// nodes every process begins one, and all must call the same in the same order, as what is checked is what
/// [`run`](crate::Runtime::run) checks: there, threads take turns.
///
/// ```
/// use maniple::prelude::*;
///
/// #[task]
/// fn double(number: i64) -> i64 {
///     2 * number
/// }
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let session = runtime.begin()?;
/// let four = session.launch(double(2));
/// let eight = session.launch(double(four));
/// assert_eq!(session.wait(eight)?, 8);
/// session.finish()?;
/// # Ok::<(), maniple::Error>(())
/// ```
///
/// Dropping a session finishes it too, and logs what went wrong and was not seen (target `maniple::session`, level
/// `WARN`); during a panic, the job's other nodes are told of that, as after a panic in [`run`](crate::Runtime::run).
#[must_use = "a session that is dropped is finished"]
pub struct Session {
    /// None once it has ended.
    top_level: Option<TopLevel>,
    /// The runtime, which must not end before.
    runtime: Arc<dyn Any + Send + Sync>,
}

impl Session {
    pub(crate) fn new(top_level: TopLevel, runtime: Arc<dyn Any + Send + Sync>) -> Self {
        Self { top_level: Some(top_level), runtime }
    }

    fn top_level(&self) -> &TopLevel {
        self.top_level.as_ref().expect("a session has its task until it is finished or dropped")
    }

    /// Refuses to wait where nothing would end that, or a worker would be blocked.
    fn check_place(&self) -> Result<()> {
        let realm = self.state.core.realm();
        if realm.is_forked() {
            return Err(Error::Forked);
        }
        if realm.current_processor().is_none() {
            return Ok(());
        }
        let problem = "a task of the same runtime would wait for it; wait on a thread of the program's own";
        Err(Error::launch(self.task(), problem))
    }

    /// Waits on this thread for a future, an inline mapping, or any other code that is `async`.
    ///
    /// # Errors
    /// The error with which the future ends. [`Error::Stranded`] if nothing can wake it; [`Error::Launch`] in a task of
    /// the same runtime; [`Error::BrokenDown`], [`Error::NodeLost`] and [`Error::Forked`] if it cannot end any more.
    pub fn wait<T>(&self, future: impl IntoFuture<Output = Result<T>>) -> Result<T> {
        self.check_place()?;
        self.top_level().wait(future.into_future(), None)
    }

    /// The same until an interrupt is set: gives nothing then. What was waited for goes on, and can be waited for
    /// again; future and session are as they were. A value that is there already is given whatever the interrupt says.
    ///
    /// On several nodes an interrupt must not have the nodes do different things: decide by
    /// [`per_node`](Context::per_node) what follows.
    ///
    /// ```
    /// use maniple::prelude::*;
    /// use maniple::Interrupt;
    ///
    /// #[task]
    /// fn answer() -> i32 {
    ///     42
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let session = runtime.begin()?;
    /// let (future, interrupt) = (session.launch(answer()), Interrupt::new());
    /// interrupt.set();
    /// // Too late or not: a wait without the interrupt gives the answer.
    /// assert!(matches!(session.wait_until(future.clone(), &interrupt)?, None | Some(42)));
    /// assert_eq!(session.wait(future)?, 42);
    /// session.finish()?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_until<T>(
        &self,
        future: impl IntoFuture<Output = Result<T>>,
        interrupt: &Interrupt,
    ) -> Result<Option<T>> {
        self.check_place()?;
        let future = pin!(future.into_future());
        self.top_level().wait(Interruptible::new(future, interrupt), None)
    }

    /// The same for so long at most: gives nothing when the time is over.
    ///
    /// On several nodes each waits for so long, and then for the others: what it waits for is given on all nodes if it
    /// was there in time on all, and otherwise on none, so that programs go on alike.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for<T>(&self, future: impl IntoFuture<Output = Result<T>>, time: Duration) -> Result<Option<T>> {
        self.check_place()?;
        let future = future.into_future();
        let found = self.top_level().wait(async { future.await.map(Some) }, Some((time, None)));
        if self.nodes() == 1 {
            return found;
        }
        // A failure is there too, and is found again by a later wait.
        let is_there = !matches!(found, Ok(None));
        let are_there = self.wait(self.per_node(is_there).all())?;
        if are_there.into_iter().all(|is_there| is_there) { found } else { Ok(None) }
    }

    /// Waits for all that was launched, on all nodes, and ends the task: regions that it has made are gone, and copies
    /// of its context launch nothing more ([`Error::Ended`]).
    ///
    /// # Errors
    /// The first failure among the operations that it launched and whose result was not looked at;
    /// [`Error::StillMapped`] if data is still mapped. [`Error::Launch`] in a task of the same runtime: then the
    /// session stays open for ever, as no handle to it is left.
    pub fn finish(mut self) -> Result<()> {
        self.end_by(|top_level| top_level.end(Ok(())))
    }

    /// Ends the task by this, unless it cannot be waited for here: then it stays, with all that it has, as what runs
    /// may still need that.
    fn end_by(&mut self, end: impl FnOnce(TopLevel) -> Result<()>) -> Result<()> {
        if self.top_level.is_none() {
            return Ok(());
        }
        let refused = self.check_place();
        let Some(top_level) = self.top_level.take() else { return Ok(()) };
        if refused.is_err() {
            std::mem::forget((top_level, Arc::clone(&self.runtime)));
            return refused;
        }
        end(top_level)
    }
}

impl Deref for Session {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.top_level().context()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let end = |top_level: TopLevel| match std::thread::panicking() {
            false => top_level.end(Ok(())),
            true => {
                top_level.end_by_panic("a session was dropped by a panic".to_owned());
                Ok(())
            }
        };
        if let Err(error) = self.end_by(end) {
            tracing::warn!(target: "maniple::session", %error, "a session that was dropped, not finished, has failed");
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&**self).finish()
    }
}
