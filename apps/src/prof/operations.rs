//! Operations of a profile, numbered without gaps, and what came after what.

use maniple::profile::{OperationId, Record, Recording};
use rustc_hash::{FxHashMap, FxHashSet};

/// An operation of a profile, or something that happened and that operations wait for: its place in [`Operations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfiledOperation(pub u32);

impl ProfiledOperation {
    /// Its place as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The cause of an event: the operation that did something, if it was one, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The operation; `None` if a thread outside the runtime did it.
    pub by: Option<ProfiledOperation>,
    /// When.
    pub time: u64,
}

/// Bytes that an operation moved from one memory to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The memory read.
    pub from: u32,
    /// The memory written.
    pub to: u32,
    /// How many.
    pub bytes: u64,
}

/// Operations, and what came after what.
#[derive(Debug, Default)]
pub struct Operations {
    numbers: FxHashMap<OperationId, ProfiledOperation>,
    launched: FxHashMap<ProfiledOperation, Cause>,
    ready: FxHashMap<ProfiledOperation, u64>,
    triggered: FxHashMap<ProfiledOperation, Cause>,
    moved: FxHashMap<ProfiledOperation, Moved>,
    /// Operations that are done because a message has come from another process.
    messages: FxHashSet<ProfiledOperation>,
    /// Operation, when it began to wait, and for what; sorted.
    awaited: Vec<(ProfiledOperation, u64, ProfiledOperation)>,
    /// Pairs of an operation and one that it came after; sorted, each once.
    after: Vec<(ProfiledOperation, ProfiledOperation)>,
}

impl Operations {
    /// The operations of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let mut operations = Self::default();
        for record in recording.threads.iter().flat_map(|thread| &thread.records) {
            operations.add(record, recording);
        }
        operations.awaited.sort_unstable();
        operations.after.sort_unstable();
        operations.after.dedup();
        operations
    }

    fn add(&mut self, record: &Record, recording: &Recording) {
        match *record {
            Record::Span { operation, .. } => {
                self.number(operation);
            }
            Record::Launched { operation, by, time } => self.caused(operation, by, time, |all| &mut all.launched),
            Record::Triggered { event, by, time } => self.caused(event, by, time, |all| &mut all.triggered),
            Record::Ready { operation, time } => {
                if let Some(operation) = self.number(operation) {
                    self.ready.insert(operation, time);
                }
            }
            Record::After { operation, after } => {
                after.into_iter().for_each(|earlier| self.came_after(operation, earlier));
            }
            Record::Awaited { operation, event, time } => {
                if let (Some(operation), Some(event)) = (self.number(operation), self.number(event)) {
                    self.awaited.push((operation, time, event));
                }
            }
            Record::Transfer { operation, from, to, bytes } => {
                if let Some(operation) = self.number(operation) {
                    self.moved.insert(operation, Moved { from, to, bytes });
                }
            }
            Record::Replayed { graph, first, by, time } => {
                let node = |number: usize| OperationId(first.0.wrapping_add(number as u64));
                for (number, earlier) in recording.graph(graph).iter().flat_map(|graph| graph.nodes.iter().enumerate())
                {
                    self.caused(node(number), by, time, |all| &mut all.launched);
                    earlier.iter().for_each(|&earlier| self.came_after(node(number), node(earlier as usize)));
                }
            }
            Record::Received { message, .. } => {
                let message = self.number(message);
                self.messages.extend(message);
            }
            Record::Sent { .. } | Record::Memory { .. } => {}
        }
    }

    fn caused(
        &mut self,
        operation: OperationId,
        by: OperationId,
        time: u64,
        causes: impl Fn(&mut Self) -> &mut FxHashMap<ProfiledOperation, Cause>,
    ) {
        if let Some(operation) = self.number(operation) {
            let by = self.number(by);
            causes(self).insert(operation, Cause { by, time });
        }
    }

    fn came_after(&mut self, operation: OperationId, earlier: OperationId) {
        if let (Some(operation), Some(earlier)) = (self.number(operation), self.number(earlier)) {
            self.after.push((operation, earlier));
        }
    }

    fn number(&mut self, id: OperationId) -> Option<ProfiledOperation> {
        let next = ProfiledOperation(self.numbers.len() as u32);
        (!id.is_none()).then(|| *self.numbers.entry(id).or_insert(next))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The operation of this name.
    #[must_use]
    pub fn find(&self, id: OperationId) -> Option<ProfiledOperation> {
        self.numbers.get(&id).copied()
    }

    /// The operation that launched an operation, and when.
    #[must_use]
    pub fn launched(&self, operation: ProfiledOperation) -> Option<Cause> {
        self.launched.get(&operation).copied()
    }

    /// When the last of what an operation waited for had happened, if that was after its launch.
    #[must_use]
    pub fn ready(&self, operation: ProfiledOperation) -> Option<u64> {
        self.ready.get(&operation).copied()
    }

    /// The operation that triggered an event, which is no operation's end, and when.
    #[must_use]
    pub fn triggered(&self, event: ProfiledOperation) -> Option<Cause> {
        self.triggered.get(&event).copied()
    }

    /// The bytes that an operation moved.
    #[must_use]
    pub fn moved(&self, operation: ProfiledOperation) -> Option<Moved> {
        self.moved.get(&operation).copied()
    }

    /// Whether an operation is done because a message has come from another process.
    #[must_use]
    pub fn is_message(&self, operation: ProfiledOperation) -> bool {
        self.messages.contains(&operation)
    }

    /// The waits of an operation after it had begun: when it began to wait, and for which operation or event.
    pub fn awaited(&self, operation: ProfiledOperation) -> impl Iterator<Item = (u64, ProfiledOperation)> {
        let first = self.awaited.partition_point(|&(earlier, ..)| earlier < operation);
        let own = self.awaited[first..].iter().take_while(move |&&(found, ..)| found == operation);
        own.map(|&(_, time, event)| (time, event))
    }

    /// All that was waited for by what had begun: the operation, when it began to wait, and for what.
    pub fn all_awaited(&self) -> impl Iterator<Item = (ProfiledOperation, u64, ProfiledOperation)> {
        self.awaited.iter().copied()
    }

    /// The operations that an operation came after.
    pub fn after(&self, operation: ProfiledOperation) -> impl Iterator<Item = ProfiledOperation> {
        let first = self.after.partition_point(|&(earlier, _)| earlier < operation);
        let own = self.after[first..].iter().take_while(move |&&(found, _)| found == operation);
        own.map(|&(_, earlier)| earlier)
    }

    /// All pairs of an operation and one that it came after.
    #[must_use]
    pub fn pairs(&self) -> &[(ProfiledOperation, ProfiledOperation)] {
        &self.after
    }

    /// All pairs of an event and the operation that triggered it while it ran.
    pub fn triggers(&self) -> impl Iterator<Item = (ProfiledOperation, ProfiledOperation)> {
        self.triggered.iter().filter_map(|(&event, cause)| Some((event, cause.by?)))
    }

    /// All bytes that were moved, each with the operation that moved them.
    pub fn moves(&self) -> impl Iterator<Item = (ProfiledOperation, Moved)> {
        self.moved.iter().map(|(&operation, &moved)| (operation, moved))
    }
}

#[cfg(test)]
mod tests {
    use maniple::profile::{Graph, GraphId, Kind};

    use super::super::script::Script;
    use super::*;

    fn earlier(operations: &Operations, id: u64) -> Vec<Option<ProfiledOperation>> {
        let operation = operations.find(OperationId(id)).expect("it was named");
        operations.after(operation).map(Some).collect()
    }

    #[test]
    fn an_order_that_is_told_twice_counts_once() {
        let mut script = Script::new(1);
        script.after(3, &[1, 2, 1]);
        let operations = Operations::of(&script.0);
        assert_eq!(operations.len(), 3);
        assert_eq!(earlier(&operations, 3), [operations.find(OperationId(1)), operations.find(OperationId(2))]);
        assert!(earlier(&operations, 1).is_empty() && operations.find(OperationId(9)).is_none());
    }

    #[test]
    fn each_run_of_a_graph_has_the_order_of_its_nodes() {
        let mut script = Script::new(1);
        script.0.graphs.push(Graph { nodes: vec![vec![], vec![0], vec![0, 1]] });
        for (first, time) in [(100, 5), (200, 9)] {
            let (first, by) = (OperationId(first), OperationId(7));
            script.record(0, Record::Replayed { graph: GraphId(0), first, by, time });
        }
        let operations = Operations::of(&script.0);
        let find = |id: u64| operations.find(OperationId(id));
        for first in [100, 200] {
            assert_eq!(earlier(&operations, first + 1), [find(first)]);
            assert_eq!(earlier(&operations, first + 2), [find(first), find(first + 1)]);
        }
        let launched = operations.launched(find(202).expect("it was named"));
        assert_eq!(launched, Some(Cause { by: find(7), time: 9 }));
    }

    #[test]
    fn nobody_is_no_operation() {
        let mut script = Script::new(1);
        let label = script.label(Kind::Task, "task");
        script.span(0, label, 0, 0..1);
        script.launched(1, 0, 5);
        script.after(1, &[0]);
        let operations = Operations::of(&script.0);
        let one = operations.find(OperationId(1)).expect("it was named");
        assert_eq!((operations.len(), operations.launched(one)), (1, Some(Cause { by: None, time: 5 })));
        assert!(earlier(&operations, 1).is_empty());
    }
}
