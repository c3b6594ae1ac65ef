//! The part of a task without regions that knows its types: arguments, then the body's future, then the value, all in
//! one place.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use maniple_space::AnyPoint;

use crate::context::{Context, ContextState};
use crate::support::error::Error;
use crate::task::Value;
use crate::task::arguments::{Arguments, Own};

/// The call of the body of a task without regions: its context and point, besides the arguments.
pub struct ForkCall {
    /// None for a body that launches nothing. The task keeps the context, for longer than its body.
    context: Option<ManuallyDrop<Context>>,
    /// The point of an index launch, which lives as long as the context. None for a single launch.
    point: Option<&'static AnyPoint>,
}

impl ForkCall {
    /// A call of a body that is dropped before the owner of the context and of the point lets go of them.
    ///
    /// # Safety
    /// As said.
    pub(super) unsafe fn new(context: Option<&Arc<ContextState>>, point: Option<&AnyPoint>) -> Self {
        // SAFETY: this reference is never counted off, and not used after the owner's is.
        let borrow = |state| ManuallyDrop::new(Context::of(unsafe { Arc::from_raw(Arc::as_ptr(state)) }));
        // SAFETY: the body, which alone has this reference, is gone before the point is.
        let point = point.map(|point| unsafe { &*std::ptr::from_ref(point) });
        Self { context: context.map(borrow), point }
    }

    /// The context to launch in.
    ///
    /// # Panics
    /// In a body that has said that it launches nothing.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.context.as_ref().expect("a body that launches has a context")
    }

    /// The point of the index launch; of a single launch, the only point of its domain.
    #[must_use]
    pub fn point(&self) -> AnyPoint {
        self.point.copied().unwrap_or_else(|| maniple_space::Point::<1>::from(0).into())
    }
}

/// The result of the body of a task without regions. An error is many times as large as most values, and in a box it is
/// not moved about with them.
pub type FreeResult<T> = std::result::Result<T, Box<Error>>;

/// The body of a task without regions, by its types.
pub trait Free: 'static {
    /// The arguments, a tuple.
    type Arguments: Clone + Send + Sync + 'static;
    /// The type of the value that the task returns.
    type Value: Send + Sync + 'static;

    /// Whether the body has a context.
    const LAUNCHES: bool;

    /// The body, with these arguments.
    fn start(
        call: ForkCall,
        arguments: Self::Arguments,
    ) -> impl Future<Output = FreeResult<Self::Value>> + Send + 'static;
}

/// A body whose types are forgotten. Its owner sees to it that it is touched by one thread at a time, and after the end
/// only looked at.
pub(super) trait ForkBody {
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

    /// The value, taken, if it is there.
    fn take_value(&mut self) -> Option<Value>;

    /// The arguments, before the beginning.
    fn arguments(&self) -> Option<&dyn Any>;

    /// Ends it with a value that was made elsewhere, before the beginning; false if that has another type.
    fn set_value(&mut self, value: Value) -> bool;

    /// The arguments, taken. Before the beginning.
    fn take_arguments(&mut self, own: Own) -> Arguments;
}

/// A body `B`, called by `C`, whose future is an `F`.
pub(super) struct Typed<B: Free, C, F> {
    call: C,
    stage: Stage,
    place: BodyPlace<B::Arguments, F, B::Value>,
}

/// The stage of a body, and so the content of its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The arguments.
    Waiting,
    /// The future.
    Running,
    /// The value.
    Ended,
    /// Nothing.
    Empty,
}

/// The place that arguments, future and value have one after the other. No `enum`: a future would be made elsewhere and
/// moved there, and they are large.
#[repr(C)]
union BodyPlace<A, F, V> {
    arguments: ManuallyDrop<A>,
    future: ManuallyDrop<F>,
    value: ManuallyDrop<V>,
}

impl<B: Free, C, F> Typed<B, C, F> {
    #[inline]
    pub(super) fn new(call: C, arguments: B::Arguments) -> Self {
        Self { call, stage: Stage::Waiting, place: BodyPlace { arguments: ManuallyDrop::new(arguments) } }
    }

    /// The call of the body.
    pub(super) fn call(&self) -> &C {
        &self.call
    }

    /// The arguments, if they are there.
    pub(super) fn waiting(&self) -> Option<&B::Arguments> {
        // SAFETY: the stage says what is there.
        (self.stage == Stage::Waiting).then(|| unsafe { &*self.place.arguments })
    }

    /// The arguments, taken, if they are there.
    #[inline]
    fn take_waiting(&mut self) -> Option<B::Arguments> {
        if self.stage != Stage::Waiting {
            return None;
        }
        self.stage = Stage::Empty;
        // SAFETY: the stage said that they are there, and says so no more.
        Some(unsafe { ManuallyDrop::take(&mut self.place.arguments) })
    }

    /// Drops whatever is there.
    #[inline]
    fn empty(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Empty);
        // SAFETY: the stage said what is there, and says so no more. A future is dropped where it was polled.
        unsafe {
            match stage {
                Stage::Waiting => ManuallyDrop::drop(&mut self.place.arguments),
                Stage::Running => ManuallyDrop::drop(&mut self.place.future),
                Stage::Ended => ManuallyDrop::drop(&mut self.place.value),
                Stage::Empty => {}
            }
        }
    }

    /// Ends with a value.
    #[inline]
    fn end(&mut self, value: B::Value) {
        self.empty();
        self.place.value = ManuallyDrop::new(value);
        self.stage = Stage::Ended;
    }
}

impl<B: Free, C, F> Drop for Typed<B, C, F> {
    #[inline]
    fn drop(&mut self) {
        self.empty();
    }
}

impl<B, C, F> ForkBody for Typed<B, C, F>
where
    B: Free,
    C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = FreeResult<B::Value>> + Send + 'static,
{
    fn launches(&self) -> bool {
        B::LAUNCHES
    }

    fn begin(&mut self, call: ForkCall) {
        if let Some(arguments) = self.take_waiting() {
            let place = (&raw mut self.place).cast::<F>();
            // SAFETY: a union's members begin where it does, and nothing is there that would have to be dropped.
            unsafe { place.write((self.call)(call, arguments)) };
            self.stage = Stage::Running;
        }
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<(), Box<Error>>> {
        if self.stage != Stage::Running {
            unreachable!("a body is polled between its beginning and its end")
        }
        // SAFETY: the stage says that the future is there; it stays in its place until it is dropped there, by `empty`.
        let future = unsafe { Pin::new_unchecked(&mut *self.place.future) };
        match future.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(value)) => {
                self.end(value);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.empty();
                Poll::Ready(Err(error))
            }
        }
    }

    fn clear(&mut self) {
        self.empty();
    }

    fn value(&self) -> Option<&dyn Any> {
        // SAFETY: the stage says what is there.
        (self.stage == Stage::Ended).then(|| unsafe { &*self.place.value } as &dyn Any)
    }

    fn take_value(&mut self) -> Option<Value> {
        if self.stage != Stage::Ended {
            return None;
        }
        self.stage = Stage::Empty;
        // SAFETY: the stage said that it is there, and says so no more.
        Some(Value::new(unsafe { ManuallyDrop::take(&mut self.place.value) }))
    }

    fn arguments(&self) -> Option<&dyn Any> {
        self.waiting().map(|arguments| arguments as &dyn Any)
    }

    fn set_value(&mut self, value: Value) -> bool {
        let Ok(value) = value.downcast::<B::Value>() else { return false };
        self.end(value);
        true
    }

    fn take_arguments(&mut self, own: Own) -> Arguments {
        let arguments = self.take_waiting().expect("arguments are taken once, before the launch");
        Arguments::known(arguments, own)
    }
}
