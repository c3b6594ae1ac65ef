//! The end of a task: what was launched ends, and what went wrong is told.

use super::{ContextState, TOP_LEVEL};
use crate::drop_caught::drop_caught;
use crate::error::{Error, Result};
use crate::trace::Tracing;
use crate::watched::Watched;

impl ContextState {
    pub(super) fn ended(&self) -> Error {
        Error::Ended { task: self.name().to_owned() }
    }

    /// Refuses a task that has ended.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.in_flight.is_closed() { Err(self.ended()) } else { Ok(()) }
    }

    /// The body has ended with this result: nothing is launched any more. A result that keeps data mapped is dropped.
    pub(crate) fn close<T>(&self, result: Result<T>) -> Result<T> {
        self.leave_session("the end of the task");
        self.in_flight.close();
        match result {
            Ok(value) if self.mappings_in_use() > 0 => {
                drop_caught("a result", self.name(), value);
                Err(Error::StillMapped { task: self.name().to_owned() })
            }
            other => other,
        }
    }

    /// The top-level task has ended with this result: waits for what it launched.
    pub(super) fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = self.close(result);
        // A mapping that was leaked never ends; nobody else will use what this task has made.
        let leaked = self.mappings_in_use();
        let ended = self.core.realm().wait(self.fewer_than(1 + leaked));
        let result = self.conclude(result);
        if let Some(created) = self.created.get() {
            created.end_with_run(&self.core.deletions);
        }
        ended.map_err(|fault| Error::of_fault(&fault, TOP_LEVEL, None))?;
        self.core.check_whole()?;
        self.core.store.record_whole(self.recorded);
        result
    }

    /// The program has ended here with this result: waits for the other nodes. It has failed if it has on any.
    pub(super) fn end_everywhere<T>(&self, result: Result<T>) -> Result<T> {
        let Some(replica) = &self.replica else { return result };
        // A node that is lost, or does something else than the others, will not come to the end.
        let elsewhere = match self.core.check_whole() {
            Ok(()) => replica.end(result.as_ref().err()),
            Err(_) => None,
        };
        let elsewhere = self.core.check_whole().err().or(elsewhere);
        match (result, elsewhere) {
            (Ok(value), Some(error)) => {
                drop_caught("a result", self.name(), value);
                Err(error)
            }
            // What went wrong here is nearer to the cause than what others say of it.
            (result, _) => result,
        }
    }

    /// Operations know their context, and its stream knows them: lets go of them, or neither would ever be freed. What was known of traces.
    pub(super) fn forget_operations(&self) -> Option<Tracing> {
        let tracing = self.tracing.get().map(|tracing| std::mem::take(&mut *tracing.lock()));
        if let Some(sites) = self.sites.get() {
            sites.clear();
        }
        if let Some(stream) = self.stream.get() {
            let stream = std::mem::take(&mut *stream.lock());
            drop(stream);
        }
        tracing
    }

    /// The result of the task, once everything that it launched has ended: a failure that nobody has seen becomes the task's own.
    pub(crate) fn conclude<T>(&self, result: Result<T>) -> Result<T> {
        let refused = self.forget_operations().and_then(|tracing| tracing.strict.untold());
        let watched = self.watched.get().map(|watched| std::mem::take(&mut *watched.lock()));
        let result = result?;
        match watched.and_then(Watched::unseen_failure).or(refused) {
            None => Ok(result),
            Some(error) => {
                drop_caught("a result", self.name(), result);
                Err(error)
            }
        }
    }
}
