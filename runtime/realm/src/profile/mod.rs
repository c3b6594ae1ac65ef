//! Profiles: what every worker did, when, for which operation, and what came after what.
//!
//! A [`Profiler`] that is given to [`RealmBuilder::profile`](crate::RealmBuilder::profile) records into a file, which
//! [`Recording`] reads. How records travel from the threads to the file, and what a crash costs, is described in the
//! folder's `README.md`. In reading order: `label` and `record` (what is recorded), `buffer` (a thread's own records),
//! `names` (numbers for names), `output` and `format` (the file), `recording` (reading it).
//!
//! ```
//! use maniple_realm::profile::{Kind, Profiler, Record, Recording, Tag};
//! use maniple_realm::{Realm, Spawn};
//!
//! let file = std::env::temp_dir().join(format!("profile-of-realm-{}.mprof", std::process::id()));
//! let profiler = Profiler::create(&file)?;
//! let realm = Realm::builder().workers(2).profile(profiler.clone()).build()?;
//! let tag = Tag::of(profiler.label(Kind::Task, "greet", None));
//! realm.wait(realm.spawn(Spawn { tag, ..Spawn::ANYWHERE }, || println!("hello")))?;
//! drop(realm);
//! profiler.outcome()?;
//!
//! let recording = Recording::read(&file)?;
//! let greets = |record: &&Record| matches!(record, Record::Span { tag: found, .. } if *found == tag);
//! assert_eq!(recording.threads.iter().flat_map(|thread| &thread.records).filter(greets).count(), 1);
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use maniple_space::AnyRect;

use crate::clock::{FineClock, unix_ns};
use crate::machine::{Machine, NodeId, ProcessorId};

mod activity;
mod buffer;
mod format;
mod header;
mod label;
mod names;
mod output;
mod record;
mod recording;
#[cfg(test)]
mod tests;

pub use activity::Activity;
pub(crate) use buffer::Records;
pub use header::{Header, Memory, Processor, Thread};
pub use label::{Domain, Kind, Label, LabelId, Tag};
pub use names::common;
pub use output::ProfileError;
pub use record::{Graph, GraphId, OperationId, Record};
pub use recording::{Completeness, Recording, RecordingError, ThreadRecording};

use names::NameTable;
use output::Output;

/// Records a realm's profile. Clones record the same profile.
///
/// Each thread has a buffer of its own, and what it records costs it some ten nanoseconds. What is recorded after the
/// realm has ended is dropped.
#[derive(Clone)]
pub struct Profiler(Arc<SharedProfiler>);

/// The state that all threads share.
struct SharedProfiler {
    clock: FineClock,
    /// The reading of another clock, which all processes can read, at the origin of this one.
    began: u64,
    node: OnceLock<NodeId>,
    names: NameTable,
    output: Output,
    next_operation: AtomicU64,
}

impl Profiler {
    /// Records into a file, which is made, or emptied if it is an earlier profile.
    ///
    /// # Errors
    /// [`ProfileError::Create`], and [`ProfileError::Foreign`] for a file that is something else.
    pub fn create(path: &Path) -> Result<Self, ProfileError> {
        Ok(Self::writing_to(output::create(path)?))
    }

    /// Records into anything. It is given chunks of some ten kilobytes.
    pub fn writing_to(sink: impl Write + Send + 'static) -> Self {
        let (clock, began) = (FineClock::start(), unix_ns());
        Self(Arc::new(SharedProfiler {
            clock,
            began,
            node: OnceLock::new(),
            names: NameTable::new(),
            output: Output::new(Box::new(sink)),
            next_operation: AtomicU64::new(OperationId::FIRST_FRESH),
        }))
    }

    /// Of one process of a job, which all others know by this number. To be said before the realm is built; what was
    /// said first holds.
    #[must_use]
    pub fn of_node(self, node: NodeId) -> Self {
        let _ = self.0.node.set(node);
        self
    }

    /// Begins the profile of a realm on this machine. False if it has begun.
    pub(crate) fn begin(&self, machine: &Machine) -> bool {
        self.0.output.begin(Header::of(machine, self.0.node.get().copied(), self.0.began))
    }

    /// Ends the profile.
    pub(crate) fn end(&self) {
        self.0.output.end(&self.0.names);
    }

    /// How writing has gone.
    ///
    /// # Errors
    /// [`ProfileError::Write`] if something could not be written. Recording has ended there.
    pub fn outcome(&self) -> Result<(), ProfileError> {
        self.0.output.outcome()
    }

    /// Nanoseconds since the profile began.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.0.clock.now_ns()
    }

    /// The number of a label, the same for the same label; `domain` is that of an index launch. If this thread has
    /// asked before, it takes some thirty nanoseconds.
    #[must_use]
    pub fn label(&self, kind: Kind, name: &str, domain: Option<&AnyRect>) -> LabelId {
        self.label_of_launch(kind, name, domain, None)
    }

    /// The same of what was launched at a place of the program.
    #[must_use]
    pub fn label_of_launch(&self, kind: Kind, name: &str, domain: Option<&AnyRect>, launched: Option<&str>) -> LabelId {
        let label = || Label::of(kind, name, domain, launched);
        let known = buffer::with(&self.0, |buffer| buffer.label(kind, name, domain, launched));
        known.unwrap_or_else(|| self.0.names.label(label()))
    }

    /// Makes a graph known that will be [replayed](Self::replay).
    #[must_use]
    pub fn graph(&self, graph: Graph) -> GraphId {
        self.0.names.graph(graph)
    }

    /// Records that the operation that this thread works for has a graph of so many nodes run. Node `k` is the
    /// operation `first + k`, where `first` is returned; the thread that runs a node records its spans, by
    /// [`activity`](Self::activity) or [`record`](Self::record).
    #[must_use]
    pub fn replay(&self, graph: GraphId, nodes: u64) -> OperationId {
        let (first, time) = (self.new_operations(nodes), self.now_ns());
        buffer::with(&self.0, |buffer| {
            let by = buffer.current;
            buffer.push(Record::Replayed { graph, first, by, time });
        });
        first
    }

    /// Records that an operation comes after others.
    #[cold]
    pub fn came_after(&self, operation: OperationId, earlier: impl IntoIterator<Item = OperationId>) {
        buffer::with(&self.0, |buffer| push_after(buffer, operation, earlier.into_iter()));
    }

    /// The first of so many names of operations that are no operations of the realm.
    #[must_use]
    pub fn new_operations(&self, count: u64) -> OperationId {
        OperationId(self.0.next_operation.fetch_add(count, Ordering::Relaxed))
    }

    /// Records something. Times must be this profile's.
    #[inline]
    pub fn record(&self, record: Record) {
        buffer::with(&self.0, |buffer| buffer.push(record));
    }

    /// Records what this thread did from `start` until now.
    #[inline]
    pub fn span(&self, tag: Tag, operation: OperationId, start: u64) {
        let end = self.now_ns();
        self.record(Record::Span { tag, operation, start, end });
    }

    /// Whose work this thread is doing.
    #[must_use]
    pub fn current(&self) -> OperationId {
        buffer::with(&self.0, |buffer| buffer.current).unwrap_or_default()
    }

    /// This thread begins to do an operation's work. See [`Activity`].
    #[inline]
    pub fn activity(&self, operation: OperationId, tag: Tag) -> Activity<'_> {
        Activity::begin(self, operation, tag)
    }

    /// This thread is a worker's.
    pub(crate) fn introduce_worker(&self, processor: ProcessorId) {
        buffer::with_thread(&self.0, || Thread::worker(processor), |_| ());
    }

    /// Has this thread record what another one does, whose records these are; gives its own.
    pub(crate) fn exchange(records: Records) -> Records {
        buffer::exchange(records)
    }

    /// Has the records of this thread written. Those of the realm's workers are when it ends; a thread outside that
    /// goes on after the realm may use this.
    pub fn write_thread(&self) {
        buffer::with(&self.0, |buffer| buffer.write());
    }

    /// An operation was launched by the operation whose work this thread is doing.
    #[cold]
    pub(crate) fn launched(&self, operation: OperationId, after: impl IntoIterator<Item = OperationId>) {
        let time = self.now_ns();
        buffer::with(&self.0, |buffer| {
            buffer.push(Record::Launched { operation, by: buffer.current, time });
            push_after(buffer, operation, after.into_iter());
        });
    }

    #[cold]
    pub(crate) fn ready(&self, operation: OperationId) {
        self.record(Record::Ready { operation, time: self.now_ns() });
    }

    /// Records that the operation that this thread works for has made something happen.
    #[cold]
    pub(crate) fn triggered(&self, event: OperationId) {
        let time = self.now_ns();
        buffer::with(&self.0, |buffer| buffer.push(Record::Triggered { event, by: buffer.current, time }));
    }

    /// Records that the operation that this thread works for goes on only after `event`.
    #[cold]
    pub(crate) fn awaited(&self, event: OperationId) {
        let time = self.now_ns();
        buffer::with(&self.0, |buffer| buffer.push(Record::Awaited { operation: buffer.current, event, time }));
    }

    /// Calls `wait`, in which the operation whose work this thread is doing waits.
    pub fn while_waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.around(common::WAITING, self.current(), wait)
    }

    /// Calls `sleep`, in which this worker sleeps.
    pub(crate) fn while_asleep(&self, sleep: impl FnOnce()) {
        self.around(common::ASLEEP, OperationId::NONE, sleep);
    }

    fn around<R>(&self, label: LabelId, operation: OperationId, call: impl FnOnce() -> R) -> R {
        let start = self.now_ns();
        buffer::with(&self.0, |buffer| buffer.rest(start));
        let result = call();
        self.span(Tag::of(label), operation, start);
        result
    }
}

fn push_after(buffer: &mut buffer::Buffer, operation: OperationId, earlier: impl Iterator<Item = OperationId>) {
    let mut earlier = earlier.filter(|earlier| !earlier.is_none());
    while let Some(first) = earlier.next() {
        let mut next = || earlier.next().unwrap_or_default();
        buffer.push(Record::After { operation, after: [first, next(), next(), next()] });
    }
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler").field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}
