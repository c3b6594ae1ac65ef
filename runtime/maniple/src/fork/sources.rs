//! The results that a forked task is given and that may not be there yet.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use maniple_realm::Realm;
use maniple_space::AnyPoint;

use crate::results::{self, Input};
use crate::support::error::Error;

/// A result that a task may have to wait for, whatever gives it.
pub(crate) trait ResultSource: Send + Sync {
    /// Whether it is a result of the runtime on this machine.
    fn is_of(&self, realm: &Realm) -> bool;

    /// Whether what a point takes is there; if not, the waker is told when it is.
    fn poll_ended_at(&self, point: AnyPoint, waker: &Waker) -> Poll<()>;

    /// Why what a point takes is a failure, if it is.
    fn error_at(&self, point: AnyPoint) -> Option<Error>;

    /// The result as an input of a launch.
    fn input(&self) -> Input;
}

/// A list that most tasks have no need for: one pointer wide.
#[derive(Clone, Default)]
#[allow(clippy::box_collection)] // for the one pointer
pub(crate) struct Sources(Option<Box<Vec<Arc<dyn ResultSource>>>>);

impl Sources {
    /// One more, if there is one.
    pub(crate) fn add(&mut self, source: Option<impl ResultSource + 'static>) {
        if let Some(source) = source {
            self.0.get_or_insert_default().push(Arc::new(source));
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn ResultSource> {
        self.0.iter().flat_map(|list| list.iter().map(|source| &**source))
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Waits for all; then tells which failure of theirs is also the task's. Those of which none has failed are
    /// forgotten, so that a chain of tasks is not kept by its end.
    pub(super) fn poll(&mut self, waker: &Waker) -> Poll<Option<Error>> {
        let point = AnyPoint::from(0);
        for source in self.iter() {
            ready!(source.poll_ended_at(point, waker));
        }
        let failure = self.iter().find_map(|source| source.error_at(point));
        if failure.is_none() {
            self.0 = None;
        }
        Poll::Ready(failure)
    }

    /// As others know them.
    pub(super) fn inputs(&self) -> results::Sources {
        self.iter().map(|source| source.input()).collect()
    }
}
