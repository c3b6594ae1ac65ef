//! Several profiles as one: those of the nodes of a job.
//!
//! Each process of a job records for itself. Put together, what has a number gets one that nothing else has, whichever process it was recorded by; and times
//! count from when the first process began, by the clocks of the machines.

use maniple::profile::{Completeness, Header, OperationId, Record, Recording};
use rustc_hash::{FxHashMap, FxHashSet};

/// All of them as one: in the order of their nodes, or, if they do not say of which nodes they are, in that in which they are given. A single one stays as it
/// is; of none nothing is left.
#[must_use]
pub fn together(mut recordings: Vec<Recording>) -> Option<Recording> {
    if recordings.len() < 2 {
        return recordings.pop();
    }
    let nodes: FxHashSet<u16> = recordings.iter().map(node).collect();
    if nodes.len() == recordings.len() {
        recordings.sort_by_key(node);
    } else {
        (0..).zip(&mut recordings).for_each(|(node, recording)| set_node(recording, node));
    }
    let began = recordings.iter().map(|recording| recording.header.began).min().unwrap_or_default();
    let mut whole = empty(began, &recordings);
    let mut operations = Operations { next: 1, ..Operations::default() };
    for recording in recordings {
        operations.begin(&recording);
        add(&mut whole, recording, &mut operations);
    }
    Some(whole)
}

/// The node that recorded.
fn node(recording: &Recording) -> u16 {
    recording.header.processors.first().map_or(0, |processor| processor.node)
}

fn set_node(recording: &mut Recording, node: u16) {
    recording.header.processors.iter_mut().for_each(|processor| processor.node = node);
    recording.header.memories.iter_mut().for_each(|memory| memory.node = node);
}

/// Of all of them, with nothing in it yet.
fn empty(began: u64, all: &[Recording]) -> Recording {
    let program = format!("{}  ({} processes)", all[0].header.program, all.len());
    let is_less = |completeness: &Completeness| match completeness {
        Completeness::Whole => 0,
        Completeness::Unended => 1,
        Completeness::Damaged { .. } => 2,
    };
    let completeness = all.iter().map(|recording| recording.completeness).max_by_key(is_less);
    Recording {
        header: Header { program, began, processors: Vec::new(), memories: Vec::new() },
        labels: Vec::new(),
        graphs: Vec::new(),
        threads: Vec::new(),
        completeness: completeness.unwrap_or(Completeness::Whole),
    }
}

fn add(whole: &mut Recording, mut recording: Recording, operations: &mut Operations) {
    let late = recording.header.began - whole.header.began;
    let node = node(&recording);
    let (labels, graphs) = (whole.labels.len() as u32, whole.graphs.len() as u32);
    let own_labels = recording.labels.len() as u32;
    let processors = after_all(whole.header.processors.iter().map(|processor| processor.id));
    let memories = after_all(whole.header.memories.iter().map(|memory| memory.id));
    recording.header.processors.iter_mut().for_each(|processor| processor.id = processor.id.saturating_add(processors));
    recording.header.memories.iter_mut().for_each(|memory| memory.id = memory.id.saturating_add(memories));
    for thread in &mut recording.threads {
        thread.thread.name = format!("node {node}, {}", thread.thread.name);
        thread.thread.processor = thread.thread.processor.map(|processor| processor.saturating_add(processors));
        for record in &mut thread.records {
            operations.rename(record);
            delay(record, late);
            match record {
                // A label that is missing must not become another's.
                Record::Span { tag, .. } if tag.label.0 >= own_labels => tag.label.0 = u32::MAX,
                Record::Span { tag, .. } => tag.label.0 += labels,
                Record::Replayed { graph, .. } => graph.0 = graph.0.saturating_add(graphs),
                Record::Memory { memory, .. } => *memory = memory.saturating_add(memories),
                Record::Transfer { from, to, .. } => {
                    (*from, *to) = (from.saturating_add(memories), to.saturating_add(memories));
                }
                _ => {}
            }
        }
    }
    let Recording { header, labels, graphs, threads, .. } = recording;
    whole.header.processors.extend(header.processors);
    whole.header.memories.extend(header.memories);
    whole.labels.extend(labels);
    whole.graphs.extend(graphs);
    whole.threads.extend(threads);
}

/// The first number after some.
fn after_all(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.max().map_or(0, |last| last.saturating_add(1))
}

fn delay(record: &mut Record, by: u64) {
    match record {
        Record::Span { start, end, .. } => {
            (*start, *end) = (start.saturating_add(by), end.saturating_add(by));
        }
        Record::Launched { time, .. }
        | Record::Ready { time, .. }
        | Record::Triggered { time, .. }
        | Record::Awaited { time, .. }
        | Record::Memory { time, .. }
        | Record::Replayed { time, .. } => *time = time.saturating_add(by),
        Record::After { .. } | Record::Transfer { .. } => {}
    }
}

/// The names of operations that one recording has, and what they are called in all of them.
#[derive(Default)]
struct Operations {
    /// Runs of graphs, whose nodes have names in a row: the first, how many, and what the first is called. By the first.
    runs: Vec<(u64, u64, u64)>,
    others: FxHashMap<OperationId, OperationId>,
    next: u64,
}

impl Operations {
    /// Names are those of this recording from now on.
    fn begin(&mut self, recording: &Recording) {
        self.others.clear();
        self.runs.clear();
        for record in recording.threads.iter().flat_map(|thread| &thread.records) {
            if let Record::Replayed { graph, first, .. } = *record {
                let nodes = recording.graph(graph).map_or(0, |graph| graph.nodes.len() as u64);
                self.runs.push((first.0, nodes, self.next));
                self.next += nodes;
            }
        }
        self.runs.sort_unstable();
    }

    fn rename(&mut self, record: &mut Record) {
        match record {
            Record::Span { operation, .. } | Record::Ready { operation, .. } | Record::Transfer { operation, .. } => {
                self.name(operation);
            }
            Record::Launched { operation: one, by: other, .. }
            | Record::Triggered { event: one, by: other, .. }
            | Record::Awaited { operation: one, event: other, .. }
            | Record::Replayed { first: one, by: other, .. } => {
                self.name(one);
                self.name(other);
            }
            Record::After { operation, after } => {
                self.name(operation);
                after.iter_mut().for_each(|earlier| self.name(earlier));
            }
            Record::Memory { .. } => {}
        }
    }

    fn name(&mut self, operation: &mut OperationId) {
        if operation.is_none() {
            return;
        }
        let before = self.runs.partition_point(|&(first, ..)| first <= operation.0);
        let run = before.checked_sub(1).map(|run| self.runs[run]);
        *operation = match run {
            Some((first, nodes, named)) if operation.0 - first < nodes => OperationId(named + (operation.0 - first)),
            _ => *self.others.entry(*operation).or_insert_with(|| {
                self.next += 1;
                OperationId(self.next - 1)
            }),
        };
    }
}

#[cfg(test)]
mod tests {
    use maniple::profile::{Graph, GraphId, Kind, Memory, Processor};

    use super::super::critical_path::CriticalPath;
    use super::super::model::Profile;
    use super::super::script::Script;
    use super::*;

    /// A process that began at a time, with a task, and a run of a graph of two after it.
    fn process(began: u64, node: u16, name: &str) -> Recording {
        let mut script = Script::new(1);
        script.0.header.began = began;
        set_node(&mut script.0, node);
        let label = script.label(Kind::Task, name);
        script.0.graphs.push(Graph { nodes: vec![vec![], vec![0]] });
        script.span(0, label, 7, (0, 10));
        script.launched(7, 0, 0);
        script.record(0, Record::Replayed { graph: GraphId(0), first: OperationId(50), by: OperationId(7), time: 9 });
        script.after(50, &[7]);
        script.span(0, label, 50, (10, 20));
        script.span(0, label, 51, (20, 30));
        script.record(0, Record::Memory { memory: 0, used: u64::from(node) + 1, time: 5 });
        script.0
    }

    #[test]
    fn one_stays_as_it_is_and_none_gives_none() {
        let one = together(vec![process(5, 3, "alone")]).expect("there is one");
        assert_eq!((one.threads[0].thread.name.as_str(), one.header.program.as_str()), ("processor 0", "test"));
        assert!(together(Vec::new()).is_none());
    }

    #[test]
    fn processes_stand_beside_each_other_in_the_order_of_their_nodes_and_by_one_clock() {
        let whole = together(vec![process(1_100, 1, "late"), process(1_000, 0, "early")]).expect("there are two");
        let [first, second]: [Processor; 2] = whole.header.processors.clone().try_into().expect("one each");
        assert_eq!([(first.id, first.node), (second.id, second.node)], [(0, 0), (1, 1)]);
        let [first, second]: [Memory; 2] = whole.header.memories.clone().try_into().expect("one each");
        assert_eq!([(first.id, first.node), (second.id, second.node)], [(0, 0), (1, 1)]);
        let profile = Profile::of(whole);
        let lanes: Vec<_> = profile.lanes.iter().map(|lane| (lane.name.as_str(), lane.node)).collect();
        assert_eq!(lanes, [("node 0, processor 0", 0), ("node 1, processor 0", 1)]);
        let spans = |lane: usize| {
            let spans = profile.lanes[lane].spans.iter();
            spans.map(|span| (profile.label(span).name.as_str(), span.start, span.end)).collect::<Vec<_>>()
        };
        assert_eq!(spans(0), [("early", 0, 10), ("early", 10, 20), ("early", 20, 30)]);
        assert_eq!(spans(1), [("late", 100, 110), ("late", 110, 120), ("late", 120, 130)]);
        let memories: Vec<_> = profile.memories.iter().map(|memory| memory.used.clone()).collect();
        assert_eq!(memories, [vec![(5, 1)], vec![(105, 2)]]);
    }

    #[test]
    fn operations_of_different_processes_do_not_meet_and_keep_their_order() {
        let profile = Profile::of(together(vec![process(0, 0, "a"), process(0, 0, "b")]).expect("there are two"));
        assert_eq!(profile.operations.len(), 6);
        assert_eq!(profile.operations.pairs().len(), 4);
        for lane in &profile.lanes {
            let operations: Vec<_> = lane.spans.iter().filter_map(|span| span.operation).collect();
            let [task, first, second] = operations[..] else { panic!("three spans: {operations:?}") };
            assert_eq!(profile.operations.after(first).collect::<Vec<_>>(), [task]);
            assert_eq!(profile.operations.after(second).collect::<Vec<_>>(), [first]);
            let by = profile.operations.launched(second).and_then(|cause| cause.by);
            assert_eq!(by, Some(task));
        }
        assert_eq!(CriticalPath::of(&profile).duration(), 30);
    }

    #[test]
    fn a_label_that_is_missing_does_not_become_anothers() {
        let mut broken = process(0, 0, "a");
        broken.labels.clear();
        let profile = Profile::of(together(vec![broken, process(0, 1, "b")]).expect("there are two"));
        assert_eq!(profile.span_count(), 3);
    }
}
