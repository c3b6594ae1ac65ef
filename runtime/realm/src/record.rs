//! What happened when: one [`Record`] an operation, collected when the realm was built to.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::event::Event;
use crate::machine::ProcessorId;

/// The life of one operation. Times are in nanoseconds since the realm was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What the operation's [`Spawn::tag`](crate::operation::Spawn::tag) said.
    pub tag: u64,
    /// The operation's event.
    pub event: Event,
    /// The processor whose worker ran it.
    pub processor: ProcessorId,
    /// When it was spawned.
    pub created: u64,
    /// When its last precondition had triggered.
    pub ready: u64,
    /// When its body began; for an async body, when it was first polled.
    pub started: u64,
    /// When its body ended.
    pub ended: u64,
}

/// The part of a record that is known while the operation is pending; it hangs on the slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenRecord {
    pub(crate) created: u64,
    pub(crate) ready: u64,
    /// 0 until the body begins.
    pub(crate) started: u64,
}

/// The records of operations that have ended, a buffer a worker.
pub(crate) struct Recorder {
    buffers: Box<[CachePadded<Mutex<Vec<Record>>>]>,
}

impl Recorder {
    pub(crate) fn new(workers: usize) -> Self {
        Self { buffers: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    pub(crate) fn push(&self, worker: usize, record: Record) {
        self.buffers[worker].lock().push(record);
    }

    pub(crate) fn take(&self) -> Vec<Record> {
        self.buffers.iter().flat_map(|buffer| std::mem::take(&mut *buffer.lock())).collect()
    }
}
