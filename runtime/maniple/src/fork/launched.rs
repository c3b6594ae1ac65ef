//! The body of a task without regions in a launch that is no fork.
//!
//! It is the same compiled code that a fork runs. The compiler puts a body into the function that polls it if that is
//! the only one; with a second one, each poll of a fork would be a call.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

use maniple_space::AnyPoint;

use super::body::{ForkBody, ForkCall, Free, FreeResult, Typed};
use crate::support::error::Result;
use crate::task::{BoxFuture, ContextCall, Value};

/// The future of a body that an ordinary launch calls.
pub(crate) fn run<B, C, F>(call: ContextCall, start: C) -> BoxFuture
where
    B: Free,
    C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = FreeResult<B::Value>> + Send + 'static,
{
    match call.arguments::<B::Arguments>() {
        Ok(arguments) => {
            let body = Box::new(Typed::<B, C, F>::new(start, arguments.clone()));
            Box::pin(Launched { body, point: Box::new(call.point()), call, has_begun: false })
        }
        Err(error) => Box::pin(ready(Err(error))),
    }
}

/// A body in an ordinary launch. It is dropped before what it borrows.
struct Launched {
    body: Box<dyn ForkBody + Send>,
    point: Box<AnyPoint>,
    call: ContextCall,
    has_begun: bool,
}

impl Future for Launched {
    type Output = Result<Value>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { body, point, call, has_begun } = &mut *self;
        if !*has_begun {
            *has_begun = true;
            // SAFETY: the body is the first field, so the call and the point outlive it.
            body.begin(unsafe { ForkCall::new(Some(&call.context().state), Some(point)) });
        }
        body.poll(context).map(|ended| match ended {
            Ok(()) => Ok(body.take_value().expect("a body that has ended well has a value")),
            Err(error) => Err(*error),
        })
    }
}
