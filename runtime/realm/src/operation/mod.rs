//! Operations: work that waits for events, runs once on a worker, and whose end is an event.
//!
//! [`Spawn`] says where, when and how urgently, [`Work`] what. Read on in `operations` (what all of them share), `body`
//! (how a closure lives in a slot), `spawn` and `arming` (how one comes to wait), `trigger` and `settle` (what a
//! trigger sets off), `local` (where ready ones are queued), `context` (what they know of their worker), `future`
//! (awaiting an event), [`task`] (async bodies), [`job`] (work without events) and `breakdown` (failures of which would
//! be reported to no thread).

use std::sync::Arc;

use crate::events::After;
use crate::fault::Fault;
use crate::machine::ProcessorId;
use crate::profile::Tag;
pub use crate::scheduler::{Class, GroupId};

mod arming;
pub(crate) mod body;
pub(crate) mod breakdown;
mod context;
mod error;
mod future;
pub mod job;
pub(crate) mod local;
pub(crate) mod operations;
pub(crate) mod settle;
mod spawn;
pub mod task;
mod trigger;

pub use breakdown::{Breakdown, BreakdownWatch};
pub(crate) use context::Worker;
pub use context::WorkerContext;
pub(crate) use error::MOST_WORKERS;
pub use error::RealmError;
pub use future::EventFuture;

/// The workers that may run an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Any worker.
    #[default]
    Any,
    /// Handed to this processor's worker, but others may steal it.
    Near(ProcessorId),
    /// This processor's worker and no other.
    On(ProcessorId),
    /// Any processor of the group and no other.
    Group(GroupId),
}

/// The terms on which an operation runs: where, when and how urgently.
///
/// ```
/// use maniple_realm::{Class, Event, Spawn};
///
/// let ready = Event::NONE;
/// let spawn = Spawn { class: Class::Runtime, priority: 3, ..Spawn::after(&ready) };
/// # let _ = spawn;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawn<'a> {
    /// The workers that may run it.
    pub target: Target,
    /// Among ready operations of one class that a worker may run, higher priorities go first. 0 is the fast path:
    /// work-stealing deques; other priorities go through a heap. Preferring is not a promise: two workers may start two
    /// operations in any order.
    pub priority: i32,
    /// Whose work.
    pub class: Class,
    /// The events that must have triggered before.
    pub after: After<'a>,
    /// The description of the operation in a profile.
    pub tag: Tag,
}

impl<'a> Spawn<'a> {
    /// On any worker, at once.
    pub const ANYWHERE: Spawn<'static> =
        Spawn { target: Target::Any, priority: 0, class: Class::Task, after: After::NOTHING, tag: Tag::NONE };

    /// On any worker, once these have triggered.
    pub fn after(after: impl Into<After<'a>>) -> Self {
        Self { after: after.into(), ..Spawn::ANYWHERE }
    }

    /// On this processor's worker alone, at once.
    pub fn on(processor: ProcessorId) -> Self {
        Self { target: Target::On(processor), ..Spawn::ANYWHERE }
    }
}

impl<'a, A: Into<After<'a>>> From<A> for Spawn<'a> {
    fn from(after: A) -> Self {
        Self::after(after)
    }
}

/// The work of an operation. Closures are work: they return nothing, or a `Result` whose error is a fault.
///
/// A panic is caught and becomes the operation's fault, a [`Panic`](crate::fault::Panic).
pub trait Work: Send + 'static {
    /// Does it. An error poisons the operation's event.
    fn run(self, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>>;

    /// Called instead of [`run`](Self::run) when a needed precondition was poisoned. The operation's event is poisoned
    /// with the same fault once this returns.
    fn poisoned(self, context: &WorkerContext<'_>, fault: &Arc<Fault>)
    where
        Self: Sized,
    {
        let _ = (context, fault);
    }
}

/// The return value of a closure that is [`Work`].
pub trait Outcome {
    /// The outcome as the operation's.
    fn into_result(self) -> Result<(), Arc<Fault>>;
}

impl Outcome for () {
    fn into_result(self) -> Result<(), Arc<Fault>> {
        Ok(())
    }
}

impl<E: Into<Arc<Fault>>> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), Arc<Fault>> {
        self.map_err(Into::into)
    }
}

impl<F, R> Work for F
where
    F: FnOnce() -> R + Send + 'static,
    R: Outcome,
{
    fn run(self, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        self().into_result()
    }
}

/// Work from a closure that wants to know its worker: see [`with_context`].
pub struct WithContext<F>(F);

/// Makes a closure that takes the [`WorkerContext`] into [`Work`].
///
/// ```
/// use maniple_realm::{Realm, Spawn, operation::with_context};
///
/// let realm = Realm::builder().workers(1).build()?;
/// let done = realm.spawn(Spawn::ANYWHERE, with_context(|cx| assert_eq!(cx.processor().0, 0)));
/// realm.wait(done)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_context<F, R>(body: F) -> WithContext<F>
where
    F: FnOnce(&WorkerContext<'_>) -> R + Send + 'static,
    R: Outcome,
{
    WithContext(body)
}

impl<F, R> Work for WithContext<F>
where
    F: FnOnce(&WorkerContext<'_>) -> R + Send + 'static,
    R: Outcome,
{
    fn run(self, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        (self.0)(context).into_result()
    }
}
