//! The end of a task: what was launched ends, and what went wrong is told.

use maniple_realm::Fault;

use super::ContextState;
use crate::results::watched::Watched;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

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
        self.interrupt("the end of the task");
        self.in_flight.close();
        self.free_local_fields();
        match result {
            Ok(value) if self.mappings_in_use() > 0 => {
                drop_caught("a result", self.name(), value);
                Err(Error::StillMapped { task: self.name().to_owned() })
            }
            other => other,
        }
    }

    /// Gives up the machine if the body has ended but data is still mapped, for ever if that was leaked: operations
    /// that come next must not use the data, and would wait for ever.
    pub(crate) fn give_up_if_mapped(&self) {
        if self.stream.get().is_some() && self.mappings_in_use() > 0 {
            self.core.realm().give_up(Fault::new(Error::StillMapped { task: self.name().to_owned() }));
        }
    }

    /// The top-level task has ended with this result: waits for what it launched.
    pub(crate) fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = self.close(result);
        // A mapping that was leaked never ends; nothing else will use what this task has made.
        let leaked = self.mappings_in_use();
        let ended = self.core.realm().wait(self.fewer_than(1 + leaked));
        let result = self.conclude(result);
        if let Some(created) = self.created.get() {
            created.end_with_run(&self.core.deletions);
        }
        ended.map_err(|fault| Error::of_fault(&fault, self.name(), None))?;
        self.core.check_whole()?;
        self.core.store.record_whole(self.recorded);
        result
    }

    /// Operations know their context, and its stream knows them: lets go of them, or neither would ever be freed. The
    /// state that modules above keep goes too. Returns a failure that the task was not told of.
    pub(super) fn forget_operations(&self) -> Option<Error> {
        let untold = self.parts.iter().fold(None, |untold, part| untold.or(part.end()));
        if let Some(stream) = self.stream.get() {
            let stream = std::mem::take(&mut *stream.lock());
            drop(stream);
        }
        untold
    }

    /// Something that is no launch is about to enter the stream.
    pub(crate) fn interrupt(&self, what: &str) {
        self.parts.iter().for_each(|part| part.interrupt(self, what));
    }

    /// The result of the task, once everything that it launched has ended: a failure that was not seen becomes the
    /// task's own.
    pub(crate) fn conclude<T>(&self, result: Result<T>) -> Result<T> {
        let untold = self.forget_operations();
        let watched = self.watched.get().map(|watched| std::mem::take(&mut *watched.lock()));
        let result = result?;
        match watched.and_then(Watched::unseen_failure).or(untold) {
            None => Ok(result),
            Some(error) => {
                drop_caught("a result", self.name(), result);
                Err(error)
            }
        }
    }
}
