//! The part of a forked task that knows its types: arguments, then the body's future, then the value, all in one place.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use maniple_space::AnyPoint;

use super::cell::Fork;
use super::sources::Sources;
use crate::context::{Context, ContextState};
use crate::error::Error;
use crate::task::arguments::{Arguments, Own};
use crate::task::{TaskDefinition, Value};

/// What the body of a task without regions is given besides its arguments.
pub struct ForkCall {
    /// None for a body that launches nothing. The task keeps the context, for longer than its body.
    context: Option<ManuallyDrop<Context>>,
}

impl ForkCall {
    /// A call of a body that is dropped before the context's owner lets go of it.
    ///
    /// # Safety
    /// As said.
    pub(super) unsafe fn new(context: Option<&Arc<ContextState>>) -> Self {
        // SAFETY: this reference is never counted off, and not used after the owner's is.
        let borrow = |state| ManuallyDrop::new(Context::of(unsafe { Arc::from_raw(Arc::as_ptr(state)) }));
        Self { context: context.map(borrow) }
    }

    /// The context to launch in.
    ///
    /// # Panics
    /// In a body that has said that it launches nothing.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.context.as_ref().expect("a body that launches has a context")
    }

    /// The point: that of a single launch.
    #[must_use]
    pub fn point(&self) -> AnyPoint {
        maniple_space::Point::<1>::from(0).into()
    }
}

/// What the body of a task without regions ends with. An error is many times as large as most values, and in a box it is not moved about with them.
pub type FreeResult<T> = std::result::Result<T, Box<Error>>;

/// The body of a task without regions, by its types.
pub trait Free: 'static {
    /// The arguments, a tuple.
    type Arguments: Clone + Send + Sync + 'static;
    /// What the task returns.
    type Value: Send + Sync + 'static;

    /// Whether the body has a context.
    const LAUNCHES: bool;

    /// The body, with these arguments.
    fn start(
        call: ForkCall,
        arguments: Self::Arguments,
    ) -> impl Future<Output = FreeResult<Self::Value>> + Send + 'static;
}

/// A body whose types are forgotten. Its owner sees to it that it is touched by one thread at a time, and after the end only looked at.
pub(super) trait Body {
    /// Whether it needs a context.
    fn launches(&self) -> bool;

    /// Makes the future from the arguments. Once, before [`poll`](Self::poll).
    fn begin(&mut self, call: ForkCall);

    /// Polls the future. When that is ready, it is dropped, and the value is there or the task has failed.
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<(), Box<Error>>>;

    /// Drops whatever is there.
    fn clear(&mut self);

    /// The value, if it is there.
    fn value(&self) -> Option<&dyn Any>;

    /// The arguments, before the beginning.
    fn arguments(&self) -> Option<&dyn Any>;

    /// Ends it with a value that was made elsewhere, before the beginning; false if that has another type.
    fn set_value(&mut self, value: Value) -> bool;

    /// The arguments, taken. Before the beginning.
    fn take_arguments(&mut self, own: Own) -> Arguments;

    /// A task that is about to be launched with the same arguments. Before the beginning.
    fn duplicate(&self, definition: &'static Arc<TaskDefinition>, own: Own, sources: Sources) -> Fork;
}

/// A body `B`, called by `C`, whose future is an `F`.
pub(super) struct Typed<B: Free, C, F> {
    call: C,
    stage: Stage<B, F>,
}

#[allow(clippy::large_enum_variant)] // all are in one place, one after the other
enum Stage<B: Free, F> {
    Waiting(B::Arguments),
    Running(F),
    Ended(B::Value),
    Empty,
}

impl<B: Free, C, F> Typed<B, C, F> {
    #[inline]
    pub(super) fn new(call: C, arguments: B::Arguments) -> Self {
        Self { call, stage: Stage::Waiting(arguments) }
    }
}

impl<B, C, F> Body for Typed<B, C, F>
where
    B: Free,
    C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = FreeResult<B::Value>> + Send + 'static,
{
    fn launches(&self) -> bool {
        B::LAUNCHES
    }

    fn begin(&mut self, call: ForkCall) {
        if let Stage::Waiting(arguments) = std::mem::replace(&mut self.stage, Stage::Empty) {
            let stage = &raw mut self.stage;
            // SAFETY: the empty stage that is there has nothing to be dropped. Told so, the compiler makes the future in its place.
            unsafe { stage.write(Stage::Running((self.call)(call, arguments))) };
        }
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<(), Box<Error>>> {
        let Stage::Running(future) = &mut self.stage else {
            unreachable!("a body is polled between its beginning and its end")
        };
        // SAFETY: the future stays in its place until it is dropped there, by the next assignment.
        let future = unsafe { Pin::new_unchecked(future) };
        match future.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(value)) => {
                self.stage = Stage::Ended(value);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.stage = Stage::Empty;
                Poll::Ready(Err(error))
            }
        }
    }

    fn clear(&mut self) {
        self.stage = Stage::Empty;
    }

    fn value(&self) -> Option<&dyn Any> {
        match &self.stage {
            Stage::Ended(value) => Some(value),
            _ => None,
        }
    }

    fn arguments(&self) -> Option<&dyn Any> {
        match &self.stage {
            Stage::Waiting(arguments) => Some(arguments),
            _ => None,
        }
    }

    fn set_value(&mut self, value: Value) -> bool {
        let Ok(value) = value.downcast::<B::Value>() else { return false };
        self.stage = Stage::Ended(value);
        true
    }

    fn take_arguments(&mut self, own: Own) -> Arguments {
        match std::mem::replace(&mut self.stage, Stage::Empty) {
            Stage::Waiting(arguments) => Arguments::known(arguments, own),
            _ => unreachable!("arguments are taken once, before the launch"),
        }
    }

    fn duplicate(&self, definition: &'static Arc<TaskDefinition>, own: Own, sources: Sources) -> Fork {
        match &self.stage {
            Stage::Waiting(arguments) => Fork::new::<B, C, F>(definition, (arguments.clone(), own), sources, self.call),
            _ => unreachable!("only what has not been launched is duplicated"),
        }
    }
}
