//! Recordings made by hand, for tests.

use std::ops::Range;

use maniple::profile::{
    Completeness, Domain, Header, Kind, Label, LabelId, Memory, OperationId, Processor, Record, Recording, Tag, Thread,
    ThreadRecording,
};

/// A recording in the making.
pub(super) struct Script(pub(super) Recording);

impl Script {
    /// Of workers, and one thread outside, which is the last.
    pub(super) fn new(workers: u32) -> Self {
        let worker = |id: u32| Thread { name: format!("processor {id}"), processor: Some(id) };
        let outside = Thread { name: "thread main".to_owned(), processor: None };
        let threads = (0..workers).map(worker).chain([outside]);
        let processors = (0..workers).map(|id| Processor { id, kind: "cpu".to_owned(), node: 0 });
        let memory = Memory { id: 0, kind: "system".to_owned(), node: 0, capacity: 1 << 20 };
        Self(Recording {
            header: Header {
                program: "test".to_owned(),
                began: 0,
                processors: processors.collect(),
                memories: vec![memory],
            },
            labels: Vec::new(),
            graphs: Vec::new(),
            threads: threads.map(|thread| ThreadRecording { thread, node: 0, records: Vec::new() }).collect(),
            completeness: Completeness::Whole,
        })
    }

    /// Of one worker, and the thread outside, of a node of a job.
    pub(super) fn of_node(node: u16) -> Self {
        let mut script = Self::new(1);
        script.0.header.processors.iter_mut().for_each(|processor| processor.node = node);
        script.0.header.memories.iter_mut().for_each(|memory| memory.node = node);
        script.0.threads.iter_mut().for_each(|thread| thread.node = node);
        script
    }

    /// A message leaves for a node.
    pub(super) fn sent(&mut self, by: u64, to: u16, number: u64, time: u64) {
        self.record(0, Record::Sent { by: OperationId(by), to, number, time });
    }

    /// A message comes from a node.
    pub(super) fn received(&mut self, message: u64, from: u16, number: u64, time: u64) {
        self.record(0, Record::Received { message: OperationId(message), from, number, time });
    }

    pub(super) fn label(&mut self, kind: Kind, name: &str) -> LabelId {
        self.labelled(Label::new(kind, name))
    }

    /// The label of an index launch of so many points.
    pub(super) fn launch(&mut self, name: &str, points: i64) -> LabelId {
        let domain = Some(Domain { lo: vec![0], hi: vec![points - 1] });
        self.labelled(Label { domain, ..Label::new(Kind::Task, name) })
    }

    fn labelled(&mut self, label: Label) -> LabelId {
        let known = self.0.labels.iter().position(|known| *known == label);
        let id = known.unwrap_or_else(|| {
            self.0.labels.push(label);
            self.0.labels.len() - 1
        });
        LabelId(id as u32)
    }

    pub(super) fn record(&mut self, thread: usize, record: Record) {
        self.0.threads[thread].records.push(record);
    }

    /// Records a span of a thread for an operation. Inner spans come first.
    pub(super) fn span(&mut self, thread: usize, label: LabelId, operation: u64, time: Range<u64>) {
        let operation = OperationId(operation);
        self.record(thread, Record::Span { tag: Tag::of(label), operation, start: time.start, end: time.end });
    }

    pub(super) fn launched(&mut self, operation: u64, by: u64, time: u64) {
        self.record(0, Record::Launched { operation: OperationId(operation), by: OperationId(by), time });
    }

    pub(super) fn after(&mut self, operation: u64, earlier: &[u64]) {
        for &earlier in earlier {
            let after = [OperationId(earlier), OperationId::NONE, OperationId::NONE, OperationId::NONE];
            self.record(0, Record::After { operation: OperationId(operation), after });
        }
    }
}
