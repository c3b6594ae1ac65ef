//! The records of one thread, until there are enough of them to be written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use maniple_space::AnyRect;

use super::SharedProfiler;
use super::header::Thread;
use super::label::{Kind, Label, LabelId, Tag};
use super::names::common;
use super::record::{OperationId, Record};

/// Records are written so many at a time, about a hundred kilobytes.
const CHUNK: usize = 2048;

/// Records are written at the latest after so long, if the thread records more: what a crash may cost.
const LONGEST_UNWRITTEN_NS: u64 = 1_000_000_000;

/// A thread that is about to sleep writes records older than this.
const LONGEST_ASLEEP_NS: u64 = 50_000_000;

/// The records of a thread that does another's work, or has another do its own.
#[derive(Default)]
pub(crate) struct Records(Option<Buffer>);

/// The buffer of one thread: its records, and the labels that it knows.
pub(super) struct Buffer {
    shared: Arc<SharedProfiler>,
    thread: u32,
    /// Whose work the thread is doing.
    pub(super) current: OperationId,
    records: Vec<Record>,
    /// The time of the first record that has one.
    since: Option<u64>,
    scratch: Vec<u8>,
    /// Labels that the thread has asked for, by their hash, so that finding them again takes neither lock nor memory.
    labels: HashMap<u64, Vec<(Label, LabelId)>>,
}

thread_local! {
    /// The buffer for the profile that this thread recorded for last.
    static BUFFER: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Uses this thread's buffer; `None` if the thread is ending.
#[inline]
pub(super) fn with<R>(shared: &Arc<SharedProfiler>, using: impl FnOnce(&mut Buffer) -> R) -> Option<R> {
    with_thread(shared, Thread::outside, using)
}

/// [`with`], for a thread that is described like this.
#[inline]
pub(super) fn with_thread<R>(
    shared: &Arc<SharedProfiler>,
    thread: impl FnOnce() -> Thread,
    using: impl FnOnce(&mut Buffer) -> R,
) -> Option<R> {
    let used = BUFFER.try_with(|buffer| {
        let mut buffer = buffer.try_borrow_mut().ok()?;
        if let Some(buffer) = buffer.as_mut().filter(|buffer| Arc::ptr_eq(&buffer.shared, shared)) {
            return Some(using(buffer));
        }
        // That of another profile, if there is one, is written first.
        *buffer = None;
        Some(using(buffer.insert(Buffer::new(shared, thread()))))
    });
    used.ok().flatten()
}

/// Has this thread go on with other records than those that it has: gives these.
pub(super) fn exchange(records: Records) -> Records {
    let mut given = Some(records);
    let exchanged = BUFFER.try_with(|buffer| Records(buffer.replace(given.take().unwrap_or_default().0)));
    // A thread that is ending has none.
    exchanged.ok().or(given).unwrap_or_default()
}

impl Buffer {
    #[cold]
    fn new(shared: &Arc<SharedProfiler>, thread: Thread) -> Self {
        Self {
            shared: Arc::clone(shared),
            thread: shared.names.thread(thread),
            current: OperationId::NONE,
            records: Vec::with_capacity(CHUNK),
            since: None,
            scratch: Vec::new(),
            labels: HashMap::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, record: Record) {
        self.records.push(record);
        if self.records.len() >= CHUNK || self.is_older_than(LONGEST_UNWRITTEN_NS, record.time()) {
            self.write_and_tell();
        }
    }

    /// Whether the first record is older than that, now that it is this late.
    #[inline]
    fn is_older_than(&mut self, age: u64, now: Option<u64>) -> bool {
        match (self.since, now) {
            (Some(since), Some(now)) => now.saturating_sub(since) > age,
            _ => {
                self.since = now;
                false
            }
        }
    }

    /// The number of a label.
    pub(super) fn label(
        &mut self,
        kind: Kind,
        name: &str,
        domain: Option<&AnyRect>,
        launched: Option<&str>,
    ) -> LabelId {
        let mut hasher = DefaultHasher::new();
        (kind, name, domain, launched).hash(&mut hasher);
        let alike = self.labels.entry(hasher.finish()).or_default();
        if let Some((_, id)) = alike.iter().find(|(label, _)| label.is(kind, name, domain, launched)) {
            return *id;
        }
        let label = Label::of(kind, name, domain, launched);
        let id = self.shared.names.label(label.clone());
        alike.push((label, id));
        id
    }

    /// Writes what is old, as the thread is about to sleep.
    pub(super) fn rest(&mut self, now: u64) {
        if !self.records.is_empty() && self.is_older_than(LONGEST_ASLEEP_NS, Some(now)) {
            self.write();
        }
    }

    /// Writes the records, and records that.
    #[cold]
    fn write_and_tell(&mut self) {
        let start = self.shared.clock.now_ns();
        self.write();
        let end = self.shared.clock.now_ns();
        self.records.push(Record::Span { tag: Tag::of(common::PROFILE), operation: OperationId::NONE, start, end });
    }

    /// Writes the records.
    pub(super) fn write(&mut self) {
        if !self.records.is_empty() {
            self.shared.output.write(&self.shared.names, self.thread, &self.records, &mut self.scratch);
            self.records.clear();
        }
        self.since = None;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.write();
    }
}
