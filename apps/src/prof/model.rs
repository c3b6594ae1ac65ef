//! A profile as it is looked at: lanes of nested spans, operations and their order, memories, channels.

use maniple::profile::{Completeness, Header, Kind, Label, Record, Recording};

use rustc_hash::FxHashSet;

use super::lanes::{Lane, Slice, Span, is_runtime, lanes};
use super::operations::{Operations, ProfiledOperation};

/// A profile as it is looked at. Times are in nanoseconds since it began.
#[derive(Debug)]
pub struct Profile {
    /// The process.
    pub header: Header,
    /// How much of the profile is there.
    pub completeness: Completeness,
    /// The labels of spans.
    pub labels: Vec<Label>,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The operations.
    pub operations: Operations,
    /// The memories.
    pub memories: Vec<MemoryUse>,
    /// When the first span began.
    pub began: u64,
    /// When the last span ended.
    pub ended: u64,
    /// The slices of each lane.
    slices: Vec<Vec<Slice>>,
    /// The bodies of each operation, by operation and time.
    places: Vec<(ProfiledOperation, SpanPlace)>,
    /// Notes on the profile for its reader.
    notes: Vec<String>,
}

/// The place of a span: ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanPlace {
    start: u64,
    /// The lane.
    pub lane: u32,
    /// The span among the lane's.
    pub span: u32,
}

/// The bytes in use of a memory over time.
#[derive(Clone, Debug)]
pub struct MemoryUse {
    /// The memory's number.
    pub memory: u32,
    /// The kind of the memory.
    pub kind: String,
    /// The bytes that it can hold.
    pub capacity: u64,
    /// From when on how many bytes were in use, by time.
    pub used: Vec<(u64, u64)>,
}

impl Profile {
    /// A recording, sorted out.
    #[must_use]
    pub fn of(mut recording: Recording) -> Self {
        recording.threads.iter_mut().flat_map(|thread| &mut thread.records).for_each(limit_times);
        let operations = Operations::of(&recording);
        let lanes = lanes(&recording, &operations);
        let spans = || lanes.iter().flat_map(|lane| &lane.spans);
        let began = spans().map(|span| span.start).min().unwrap_or(0);
        let ended = spans().map(|span| span.end).max().unwrap_or(0);
        let memories = memories(&recording);
        let slices = lanes.iter().map(|lane| lane.slices(began, ended)).collect();
        let places = places(&lanes);
        let Recording { header, labels, completeness, .. } = recording;
        let notes = Vec::new();
        Self { header, completeness, labels, lanes, operations, memories, began, ended, slices, places, notes }
    }

    /// With something to be said of it.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// The label of a span.
    #[must_use]
    pub fn label(&self, span: &Span) -> &Label {
        &self.labels[span.label as usize]
    }

    /// The span at a place.
    #[must_use]
    pub fn span(&self, place: SpanPlace) -> &Span {
        &self.lanes[place.lane as usize].spans[place.span as usize]
    }

    /// The kind of a span.
    #[must_use]
    pub fn kind(&self, place: SpanPlace) -> Kind {
        self.label(self.span(place)).kind
    }

    /// The slices of a lane.
    #[must_use]
    pub fn slices(&self, lane: usize) -> &[Slice] {
        &self.slices[lane]
    }

    /// Returns the slices of a lane between two moments: from when until when, and the innermost span.
    pub fn slices_within(&self, lane: u32, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, Option<&Span>)> {
        let slices = &self.slices[lane as usize];
        let first = slices.partition_point(|slice| slice.end <= start);
        let within = slices[first..].iter().take_while(move |slice| slice.start < end);
        let span = move |place: u32| &self.lanes[lane as usize].spans[place as usize];
        within.map(move |slice| (slice.start.max(start), slice.end.min(end), slice.span.map(span)))
    }

    /// The spans of an operation that are within no other span of its own, by time: its work, and its waits in between.
    pub fn bodies(&self, operation: ProfiledOperation) -> impl DoubleEndedIterator<Item = SpanPlace> {
        let first = self.places.partition_point(|&(earlier, _)| earlier < operation);
        let last = self.places.partition_point(|&(earlier, _)| earlier <= operation);
        self.places[first..last].iter().map(|&(_, place)| place)
    }

    /// The first body of an operation that is no wait.
    #[must_use]
    pub fn body(&self, operation: ProfiledOperation) -> Option<&Span> {
        self.bodies(operation).map(|place| self.span(place)).find(|span| self.label(span).kind != Kind::Waiting)
    }

    /// When the last of what an operation waited for had happened, if that was after its launch: as the profile tells;
    /// or, as it does not tell for what is replayed, when the last of those that the operation came after had ended.
    #[must_use]
    pub fn ready(&self, operation: ProfiledOperation) -> Option<u64> {
        self.operations.ready(operation).or_else(|| {
            let launched = self.operations.launched(operation)?.time;
            // What a message made happen is there before its thread has ended with it.
            let began = self.bodies(operation).next().map_or(u64::MAX, |place| place.start);
            let ended = |earlier| self.bodies(earlier).map(|place| self.span(place).end).max();
            let last = self.operations.after(operation).filter_map(ended).max()?.min(began);
            (last > launched).then_some(last)
        })
    }

    /// The operations with spans that an operation came after, also through merges and events; no more than some.
    #[must_use]
    pub fn before(&self, operation: ProfiledOperation) -> Vec<ProfiledOperation> {
        let (mut seen, mut open, mut found) = (FxHashSet::from_iter([operation]), vec![operation], Vec::new());
        while let Some(next) = open.pop()
            && seen.len() < MOST_BEFORE
        {
            let made_by = self.operations.triggered(next).and_then(|cause| self.had_ended(cause.by?, cause.time));
            for earlier in self.operations.after(next).chain(made_by) {
                if !seen.insert(earlier) {
                    continue;
                }
                if self.body(earlier).is_some() {
                    found.push(earlier);
                } else {
                    open.push(earlier);
                }
            }
        }
        found
    }

    /// Pairs of an event and the operation that triggered it, for operations that had ended by then: an operation that
    /// triggers an event while it goes on is not waited for.
    pub fn triggers(&self) -> impl Iterator<Item = (ProfiledOperation, ProfiledOperation)> {
        self.operations.triggers().filter(|&(event, by)| {
            self.operations.triggered(event).is_some_and(|cause| self.had_ended(by, cause.time).is_some())
        })
    }

    /// The operation, if it had ended by then, or is a message: that makes happen what it came for, and then its thread
    /// goes on.
    fn had_ended(&self, operation: ProfiledOperation, time: u64) -> Option<ProfiledOperation> {
        let ended = self.bodies(operation).map(|place| self.span(place).end).max();
        let had_ended = ended.is_none_or(|ended| ended <= time) || self.operations.is_message(operation);
        had_ended.then_some(operation)
    }

    /// A span in words, such as `update_voltages[3]`.
    #[must_use]
    pub fn name(&self, span: &Span) -> String {
        let label = self.label(span);
        let point = label.domain.as_ref().and_then(|domain| domain.point(span.index));
        let name = match label.kind {
            Kind::Analysis => format!("analysis of {}", label.name),
            Kind::Mapping if label.name != "mapping" => format!("mapping of {}", label.name),
            Kind::Mapper => format!("mapper: {}", label.name),
            _ => label.name.clone(),
        };
        match point {
            Some(point) => {
                let point: Vec<String> = point.iter().map(i64::to_string).collect();
                format!("{name}[{}]", point.join(","))
            }
            None => name,
        }
    }

    /// How many spans there are.
    #[must_use]
    pub fn span_count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.spans.len()).sum()
    }

    /// Returns a warning of missing or doubtful parts of the profile, in words.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let all: Vec<String> = warning(self.completeness).into_iter().chain(self.notes.iter().cloned()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Whether a span is work of the runtime.
    #[must_use]
    pub fn is_runtime(&self, span: &Span) -> bool {
        is_runtime(self.label(span).kind)
    }
}

/// Returns a warning of missing parts of a profile, in words.
#[must_use]
pub fn warning(completeness: Completeness) -> Option<String> {
    match completeness {
        Completeness::Whole => None,
        Completeness::Unended => Some(
            "the profile has no end: the program was ended from outside, or still runs; its last moments are missing"
                .to_owned(),
        ),
        Completeness::Damaged { at } => {
            Some(format!("the profile is damaged after {at} bytes; what was recorded until then is shown"))
        }
    }
}

/// So many events are looked at to find out what an operation came after.
const MOST_BEFORE: usize = 1000;

fn places(lanes: &[Lane]) -> Vec<(ProfiledOperation, SpanPlace)> {
    let mut places = Vec::new();
    for (lane, Lane { spans, .. }) in lanes.iter().enumerate() {
        for (number, span) in spans.iter().enumerate().filter(|(_, span)| span.is_body) {
            let place = SpanPlace { start: span.start, lane: lane as u32, span: number as u32 };
            places.extend(span.operation.map(|operation| (operation, place)));
        }
    }
    places.sort_unstable();
    places
}

/// Times are less than this, about a hundred days: sums of them can be counted on, and the page can tell them exactly.
const LATEST: u64 = 1 << 53;

/// No profile is so long, but a file may say anything.
fn limit_times(record: &mut Record) {
    match record {
        Record::Span { start, end, .. } => {
            *start = LATEST.min(*start);
            *end = LATEST.min(*end);
        }
        Record::Launched { time, .. }
        | Record::Ready { time, .. }
        | Record::Triggered { time, .. }
        | Record::Awaited { time, .. }
        | Record::Memory { time, .. }
        | Record::Replayed { time, .. }
        | Record::Sent { time, .. }
        | Record::Received { time, .. } => *time = LATEST.min(*time),
        Record::After { .. } | Record::Transfer { .. } => {}
    }
}

fn memories(recording: &Recording) -> Vec<MemoryUse> {
    let described = recording.header.memories.iter();
    let mut memories: Vec<MemoryUse> = described
        .map(|found| MemoryUse {
            memory: found.id,
            kind: found.kind.clone(),
            capacity: found.capacity,
            used: Vec::new(),
        })
        .collect();
    for record in recording.threads.iter().flat_map(|thread| &thread.records) {
        if let Record::Memory { memory, used, time } = *record
            && let Some(known) = memories.iter_mut().find(|known| known.memory == memory)
        {
            known.used.push((time, used));
        }
    }
    memories.iter_mut().for_each(|memory| memory.used.sort_by_key(|&(time, _)| time));
    memories
}

#[cfg(test)]
mod tests {
    use maniple::profile::{Graph, GraphId, OperationId};

    use super::super::script::Script;
    use super::*;

    #[test]
    fn what_is_replayed_is_ready_when_the_last_of_what_it_came_after_has_ended() {
        let mut script = Script::new(1);
        let label = script.label(Kind::Task, "task");
        script.0.graphs.push(Graph { nodes: vec![vec![], vec![0], vec![0, 1]] });
        script.record(0, Record::Replayed { graph: GraphId(0), first: OperationId(100), by: OperationId(7), time: 25 });
        for (operation, start, end) in [(100, 3, 20), (101, 30, 40), (102, 55, 60)] {
            script.span(0, label, operation, start..end);
        }
        let profile = Profile::of(script.0);
        let ready = |id| profile.ready(profile.operations.find(OperationId(id)).expect("it was named"));
        // The first came after nothing, and what the second came after had ended when it was launched.
        assert_eq!([100, 101, 102].map(ready), [None, None, Some(40)]);
    }

    #[test]
    fn who_makes_something_happen_and_goes_on_is_not_waited_for() {
        let mut script = Script::new(2);
        let label = script.label(Kind::Task, "task");
        for (operation, event, thread, ended) in [(1, 10, 0, 20), (2, 11, 1, 30)] {
            script.span(thread, label, operation, 1..ended);
            script.record(0, Record::Triggered { event: OperationId(event), by: OperationId(operation), time: 25 });
        }
        script.span(2, label, 3, 26..40);
        script.after(3, &[10, 11]);
        let profile = Profile::of(script.0);
        let find = |id| profile.operations.find(OperationId(id)).expect("it was named");
        assert_eq!(profile.before(find(3)), [find(1)]);
    }
}
