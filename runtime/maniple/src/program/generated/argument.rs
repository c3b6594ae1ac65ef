//! Arguments for the by-value parameters of a task.

use super::Builder;
use crate::future::{Argument, Future, FutureMap};

/// An argument for a by-value parameter of type `T`: a `T`, a [`Future<T>`], or a [`FutureMap<T>`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a parameter of type `{T}`",
    label = "expected `{T}`, or a future of it",
    note = "an argument is a `{T}`, a `Future<{T}>` or a `FutureMap<{T}>`, and `{T}` must be `Clone + Send + Sync + 'static`"
)]
pub trait IntoArgument<T> {
    /// The argument. The launch under way learns what it has to wait for.
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T>;
}

impl<T: Clone + Send + Sync + 'static> IntoArgument<T> for T {
    #[inline]
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T> {
        launch.value::<T>();
        Argument::Value(self)
    }
}

impl<T: Clone + Send + Sync + 'static> IntoArgument<T> for Future<T> {
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T> {
        launch.wait_for(Argument::Future(self))
    }
}

impl<T: Clone + Send + Sync + 'static> IntoArgument<T> for &Future<T> {
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T> {
        launch.wait_for(Argument::Future(self.clone()))
    }
}

impl<T: Clone + Send + Sync + 'static> IntoArgument<T> for FutureMap<T> {
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T> {
        launch.wait_for(Argument::PerPoint(self))
    }
}

impl<T: Clone + Send + Sync + 'static> IntoArgument<T> for &FutureMap<T> {
    fn into_argument(self, launch: &mut Builder<'_>) -> Argument<T> {
        launch.wait_for(Argument::PerPoint(self.clone()))
    }
}
