//! Work under way on a thread.

use std::sync::Arc;

use super::label::Tag;
use super::record::{OperationId, Record};
use super::{Profiler, SharedProfiler, buffer};

/// A thread at an operation's work. What it records until this is dropped is the operation's doing; [`end`](Self::end)
/// records a span.
///
/// Activities of one thread are nested: drop the last first.
#[must_use = "the activity ends when it is dropped"]
pub struct Activity<'a> {
    shared: &'a Arc<SharedProfiler>,
    tag: Tag,
    operation: OperationId,
    outer: OperationId,
    start: u64,
}

impl<'a> Activity<'a> {
    pub(super) fn begin(profiler: &'a Profiler, operation: OperationId, tag: Tag) -> Self {
        let shared = &profiler.0;
        let outer = buffer::with(shared, |buffer| std::mem::replace(&mut buffer.current, operation));
        let start = shared.clock.now_ns();
        Self { shared, tag, operation, outer: outer.unwrap_or_default(), start }
    }

    /// The work is done, and recorded. What follows from it may still be recorded as the operation's doing.
    pub fn end(&self) {
        let &Self { tag, operation, start, .. } = self;
        let end = self.shared.clock.now_ns();
        buffer::with(self.shared, |buffer| buffer.push(Record::Span { tag, operation, start, end }));
    }
}

impl Drop for Activity<'_> {
    fn drop(&mut self) {
        buffer::with(self.shared, |buffer| buffer.current = self.outer);
    }
}
