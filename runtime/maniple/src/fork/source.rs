//! Sources of results that are still to come: launches and forks.

use std::sync::Arc;
use std::task::{Poll, Waker};

use maniple_realm::{After, Realm};
use maniple_space::AnyPoint;

use super::cell::Fork;
use super::sources::ResultSource;
use super::word::ForkOutcome;
use crate::results::{Input, Results, typed};
use crate::support::error::{Error, Result};

/// The source of a result.
#[derive(Clone)]
pub(crate) enum ForkSource {
    /// A launch that goes through the stream of its context, or a function of others.
    Launch(Input),
    /// A forked task.
    Fork(Fork),
}

impl ForkSource {
    pub(crate) fn results(&self) -> Arc<Results> {
        match self {
            Self::Launch(input) => Arc::clone(input.results()),
            Self::Fork(fork) => fork.results(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Launch(input) => input.results().name(),
            Self::Fork(fork) => fork.head().name(),
        }
    }

    pub(crate) fn realm(&self) -> &Realm {
        match self {
            Self::Launch(input) => &input.results().realm,
            Self::Fork(fork) => fork.head().core().realm(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Launch(input) => input.has_ended(),
            Self::Fork(fork) => fork.head().outcome().is_some(),
        }
    }

    /// The one result.
    pub(crate) fn get<T: Clone + 'static>(&self) -> Result<T> {
        match self {
            Self::Fork(fork) if let Some(value) = fork.value() => typed(value, self.name()),
            Self::Fork(fork) => fork.results().get(0),
            Self::Launch(input) => input.results().get(input.index()),
        }
    }

    /// The one result, looked at.
    pub(crate) fn seen<T: Clone + 'static>(&self) -> Result<T> {
        match self {
            Self::Fork(fork) if let Some(value) = fork.value() => typed(value, self.name()),
            Self::Fork(fork) => fork.results().seen(0),
            Self::Launch(input) => input.results().seen(input.index()),
        }
    }
}

impl ResultSource for ForkSource {
    fn is_of(&self, realm: &Realm) -> bool {
        self.realm().is_same(realm)
    }

    fn poll_ended_at(&self, point: AnyPoint, waker: &Waker) -> Poll<()> {
        match self {
            Self::Fork(fork) if fork.head().outcome().is_some() => Poll::Ready(()),
            Self::Fork(fork) => fork.head().poll(waker).map(drop),
            Self::Launch(input) if input.has_ended_at(point) => Poll::Ready(()),
            Self::Launch(input) => {
                let waker = waker.clone();
                self.realm().when(After::follows(&[input.end_at(point)]), move |_| waker.wake());
                Poll::Pending
            }
        }
    }

    fn error_at(&self, point: AnyPoint) -> Option<Error> {
        match self {
            Self::Launch(input) => input.error_at(point),
            Self::Fork(fork) if fork.head().outcome() == Some(ForkOutcome::Good) => None,
            Self::Fork(fork) => fork.results().error(),
        }
    }

    fn input(&self) -> Input {
        match self {
            Self::Launch(input) => input.clone(),
            Self::Fork(fork) => Input::one(fork.results(), 0),
        }
    }
}
