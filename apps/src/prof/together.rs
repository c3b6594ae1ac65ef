//! Several profiles as one: those of the nodes of a job.
//!
//! Each process of a job records for itself. Put together, what has a number gets one that nothing else has, whichever
//! process it was recorded by; times count from when the first process began, on its [`timeline`](super::timelines);
//! and what [`messages`](super::messages) brought about comes after what sent them.

use maniple::profile::{Completeness, Header, OperationId, Record, Recording, Thread, ThreadRecording};
use rustc_hash::{FxHashMap, FxHashSet};

use super::messages::{ProfiledMessage, messages, node_of};
use super::summary::time;
use super::timelines::{Timeline, timelines};

/// Recordings as one.
pub struct Together {
    /// All of them.
    pub recording: Recording,
    /// Notes on the recording for the reader of the profile.
    pub notes: Vec<String>,
}

/// All of them as one: in the order of their nodes, or, if they do not say of which nodes they are, in that in which
/// they are given. A single one stays as it is; of none nothing is left.
#[must_use]
pub fn together(mut recordings: Vec<Recording>) -> Option<Together> {
    if recordings.len() < 2 {
        return recordings.pop().map(|recording| Together { recording, notes: Vec::new() });
    }
    let nodes: FxHashSet<u16> = recordings.iter().map(node_of).collect();
    let strangers = strangers(&recordings);
    let mut messages = if nodes.len() == recordings.len() {
        recordings.sort_by_key(node_of);
        messages(&recordings)
    } else {
        (0..).zip(&mut recordings).for_each(|(node, recording)| set_node(recording, node));
        // It is unknown which recording the number of a node means.
        Vec::new()
    };
    let (timelines, mut notes) = timelines(&recordings, &messages);
    notes.splice(0..0, strangers);
    let began = recordings.iter().map(|recording| recording.header.began).min().unwrap_or_default();
    let mut whole = empty(began, &recordings);
    let mut operations = Operations { next: 1, ..Operations::default() };
    for (number, (recording, timeline)) in recordings.into_iter().zip(&timelines).enumerate() {
        operations.begin(&recording);
        let ends = messages.iter_mut().flat_map(|ProfiledMessage { sent, received }| [sent, received]);
        for end in ends.filter(|end| end.recording == number) {
            operations.name(&mut end.operation);
            end.time = timeline.at(end.time);
        }
        add(&mut whole, recording, &mut operations, timeline);
    }
    tie(&mut whole, &messages, &mut operations);
    Some(Together { recording: whole, notes })
}

/// Returns a note if these can hardly be the processes of one job: some are of the same node, or one began when another
/// had ended.
fn strangers(recordings: &[Recording]) -> Option<String> {
    let mut nodes = FxHashSet::default();
    if let Some(twice) = recordings.iter().map(node_of).find(|&node| !nodes.insert(node)) {
        return Some(format!(
            "several of these profiles are of a node {twice}, so they are of different runs: each is shown as a node of its own; give all profiles of one job to see what its processes sent each other"
        ));
    }
    let last = recordings.iter().max_by_key(|recording| recording.header.began)?;
    let first = recordings.iter().min_by_key(|recording| ended(recording))?;
    let apart = last.header.began.checked_sub(ended(first)).filter(|&apart| apart > 0)?;
    let (last, first, apart) = (node_of(last), node_of(first), time(apart));
    Some(format!(
        "node {last} began {apart} after node {first} had ended: these are profiles of different runs, or the clock of one machine is wrong"
    ))
}

/// When the last thing ended that was recorded: nanoseconds since 1970.
fn ended(recording: &Recording) -> u64 {
    let records = recording.threads.iter().flat_map(|thread| &thread.records);
    let ends = records.filter_map(|record| match record {
        Record::Span { end, .. } => Some(*end),
        _ => None,
    });
    recording.header.began.saturating_add(ends.max().unwrap_or_default())
}

fn set_node(recording: &mut Recording, node: u16) {
    recording.header.processors.iter_mut().for_each(|processor| processor.node = node);
    recording.header.memories.iter_mut().for_each(|memory| memory.node = node);
    recording.threads.iter_mut().for_each(|thread| thread.node = node);
}

/// Has what messages brought about come after what sent them.
fn tie(whole: &mut Recording, messages: &[ProfiledMessage], operations: &mut Operations) {
    let ties = messages.iter().flat_map(|ProfiledMessage { sent, received }| {
        // The operation that sent it may have gone on with other things: what counts is when it left.
        let (event, by, time) = (operations.fresh(), sent.operation, sent.time.min(received.time));
        let after = [event, by, OperationId::NONE, OperationId::NONE];
        [Record::Triggered { event, by, time }, Record::After { operation: received.operation, after }]
    });
    let thread = Thread { name: "between processes".to_owned(), processor: None };
    let records: Vec<Record> = ties.collect();
    whole.threads.push(ThreadRecording { thread, node: 0, records });
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

fn add(whole: &mut Recording, mut recording: Recording, operations: &mut Operations, timeline: &Timeline) {
    let node = node_of(&recording);
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
            tell_time(record, timeline);
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

fn tell_time(record: &mut Record, timeline: &Timeline) {
    match record {
        Record::Span { start, end, .. } => (*start, *end) = (timeline.at(*start), timeline.at(*end)),
        Record::Launched { time, .. }
        | Record::Ready { time, .. }
        | Record::Triggered { time, .. }
        | Record::Awaited { time, .. }
        | Record::Memory { time, .. }
        | Record::Replayed { time, .. }
        | Record::Sent { time, .. }
        | Record::Received { time, .. } => *time = timeline.at(*time),
        Record::After { .. } | Record::Transfer { .. } => {}
    }
}

/// The names of operations that one recording has, and what they are called in all of them.
#[derive(Default)]
struct Operations {
    /// Runs of graphs, whose nodes have names in a row: the first, how many, and what the first is called. By the
    /// first.
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
            Record::Span { operation, .. }
            | Record::Ready { operation, .. }
            | Record::Transfer { operation, .. }
            | Record::Sent { by: operation, .. }
            | Record::Received { message: operation, .. } => self.name(operation),
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

    /// A name that nothing has.
    fn fresh(&mut self) -> OperationId {
        self.next += 1;
        OperationId(self.next - 1)
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
        script.span(0, label, 7, 0..10);
        script.launched(7, 0, 0);
        script.record(0, Record::Replayed { graph: GraphId(0), first: OperationId(50), by: OperationId(7), time: 9 });
        script.after(50, &[7]);
        script.span(0, label, 50, 10..20);
        script.span(0, label, 51, 20..30);
        script.record(0, Record::Memory { memory: 0, used: u64::from(node) + 1, time: 5 });
        script.0
    }

    fn profile(recordings: Vec<Recording>) -> Profile {
        let Together { recording, notes } = together(recordings).expect("there are some");
        Profile::of(recording).with_notes(notes)
    }

    /// A task on node 0 sends a message within itself; what it brings on node 1 has a task there begin, which sends one
    /// back, for another task here. Node 1's clock is off by so much.
    fn exchange(off: i64) -> [Recording; 2] {
        let (mut zero, mut one) = (Script::of_node(0), Script::of_node(1));
        let there = |time: u64| 1_000_000_000u64.saturating_add_signed(off) + time;
        let (make, uses) = (zero.label(Kind::Task, "make"), zero.label(Kind::Task, "use"));
        let message = zero.label(Kind::Runtime, "parcel from node");
        let (answer, brought) = (one.label(Kind::Task, "answer"), one.label(Kind::Runtime, "parcel from node"));
        zero.span(0, make, 1, 0..100);
        zero.sent(1, 1, 0, 90);
        one.received(5, 0, 0, there(110));
        one.span(0, brought, 5, there(110)..there(112));
        one.span(0, answer, 6, there(120)..there(200));
        one.after(6, &[5]);
        one.sent(6, 0, 0, there(190));
        zero.received(7, 1, 0, 210);
        zero.span(0, message, 7, 210..212);
        zero.span(0, uses, 8, 220..300);
        zero.after(8, &[7]);
        (zero.0.header.began, one.0.header.began) = (1_000_000_000, 0);
        [zero.0, one.0]
    }

    /// Steps as names of what was done, where, and their beginnings and ends.
    fn path(profile: &Profile) -> Vec<(String, u16, u64, u64)> {
        let steps = CriticalPath::of(profile).steps;
        let named = steps.iter().map(|step| match step.work {
            Some((_, place)) => {
                let node = profile.lanes[place.lane as usize].node;
                (profile.name(profile.span(place)), node, step.start, step.end)
            }
            None => (String::new(), 0, step.start, step.end),
        });
        named.filter(|(name, ..)| !name.is_empty()).collect()
    }

    #[test]
    fn the_critical_path_follows_messages_from_process_to_process() {
        let profile = profile(exchange(0).to_vec());
        assert_eq!(profile.warning(), None);
        // The message left before its task ended, and was received afterwards: until then it was under way.
        let expected = [
            ("make", 0, 0, 100),
            ("parcel from node", 1, 110, 112),
            ("answer", 1, 120, 200),
            ("parcel from node", 0, 210, 212),
            ("use", 0, 220, 300),
        ];
        let began = profile.began;
        let found = path(&profile).into_iter().map(|(name, node, start, end)| (name, node, start - began, end - began));
        assert_eq!(
            found.collect::<Vec<_>>(),
            expected.map(|(name, node, start, end)| (name.to_owned(), node, start, end))
        );
    }

    #[test]
    fn what_a_message_brought_about_depends_on_what_sent_it() {
        let profile = profile(exchange(0).to_vec());
        let of = |name: &str, node: u16| {
            let lane = profile.lanes.iter().find(|lane| lane.node == node).expect("each node has a worker");
            let span = lane.spans.iter().find(|span| profile.name(span) == name).expect("it ran there");
            span.operation.expect("it has a name")
        };
        assert_eq!(profile.before(of("answer", 1)), [of("parcel from node", 1)]);
        assert_eq!(profile.before(of("parcel from node", 1)), [of("make", 0)]);
        assert_eq!(profile.before(of("parcel from node", 0)), [of("answer", 1)]);
    }

    #[test]
    fn a_clock_that_is_wrong_is_set_by_the_messages_and_that_is_told() {
        for (off, how) in [(-10_000_000, "forward"), (700_000, "back")] {
            let profile = profile(exchange(off).to_vec());
            let told = profile.warning().expect("it is told");
            assert!(told.contains(&format!("the clock of node 1 was put {how} by")), "{told}");
            // Both messages take the same time: as long as they do by clocks that agree.
            let starts = path(&profile).into_iter().map(|(.., start, _)| start - profile.began);
            assert_eq!(starts.collect::<Vec<_>>(), [0, 110, 120, 210, 220]);
        }
    }

    #[test]
    fn messages_that_come_before_they_were_sent_whatever_the_clocks_are_told_of_and_followed() {
        let [zero, mut one] = exchange(0);
        for record in &mut one.threads[0].records {
            if let Record::Sent { time, .. } = record {
                *time += 80;
            }
        }
        let profile = profile(vec![zero, one]);
        let told = profile.warning().expect("it is told");
        assert!(told.contains("of 2 messages seem to have come before they were sent, by up to"), "{told}");
        assert_eq!(path(&profile).len(), 5);
    }

    #[test]
    fn one_stays_as_it_is_and_none_gives_none() {
        let one = together(vec![process(5, 3, "alone")]).expect("there is one").recording;
        assert_eq!((one.threads[0].thread.name.as_str(), one.header.program.as_str()), ("processor 0", "test"));
        assert!(together(Vec::new()).is_none());
    }

    #[test]
    fn processes_stand_beside_each_other_in_the_order_of_their_nodes_and_by_one_clock() {
        let whole =
            together(vec![process(1_100, 1, "late"), process(1_000, 0, "early")]).expect("there are two").recording;
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
        let profile = profile(vec![process(0, 0, "a"), process(0, 0, "b")]);
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
    fn profiles_of_different_runs_are_told_from_those_of_one_job() {
        let told = |recordings| together(recordings).expect("there are some").notes;
        assert_eq!(told(vec![process(1_000, 0, "a"), process(1_029, 1, "b")]), [""; 0]);
        let later = told(vec![process(5_000_001_030, 1, "b"), process(1_000, 0, "a")]);
        assert!(
            later[0].starts_with("node 1 began 5.000 s after node 0 had ended: these are profiles of different runs"),
            "{later:?}"
        );
        let twice = told(vec![process(1_000, 0, "a"), process(1_000, 0, "b")]);
        assert!(
            twice[0].starts_with("several of these profiles are of a node 0, so they are of different runs"),
            "{twice:?}"
        );
    }

    #[test]
    fn a_label_that_is_missing_does_not_become_anothers() {
        let mut broken = process(0, 0, "a");
        broken.labels.clear();
        let profile = profile(vec![broken, process(0, 1, "b")]);
        assert_eq!(profile.span_count(), 3);
    }
}
