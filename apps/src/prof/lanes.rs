//! The work of each thread, as nested spans, and as slices: its innermost span at each moment.

use std::cmp::Reverse;

use maniple::profile::{Kind, Record, Recording, ThreadRecording};

use super::operations::{Operations, ProfiledOperation};

/// A span: work that a thread did for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The place of its label in the recording.
    pub label: u32,
    /// Which point of the label's domain.
    pub index: u32,
    /// Whose work it was.
    pub operation: Option<ProfiledOperation>,
    /// When it began, in nanoseconds.
    pub start: u64,
    /// When it ended; not before.
    pub end: u64,
    /// Within how many others of its thread it is.
    pub depth: u32,
    /// Whether it is within no other span of its operation: the others are parts of this one.
    pub is_body: bool,
}

impl Span {
    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// A time in which a thread did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it began.
    pub start: u64,
    /// When it ended; later.
    pub end: u64,
    /// The innermost span, by its place in the lane; nothing if the thread was in none: a worker that looks for work.
    pub span: Option<u32>,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// The processor, if it is a worker.
    pub processor: Option<u32>,
    /// The node.
    pub node: u16,
    /// Its spans, by when they began; those that contain others before them.
    pub spans: Vec<Span>,
}

impl Lane {
    fn of(thread: &ThreadRecording, recording: &Recording, operations: &Operations) -> Self {
        let mut spans: Vec<Span> = (thread.records.iter())
            .filter_map(|record| match *record {
                Record::Span { tag, operation, start, end } if recording.label(tag.label).is_some() => Some(Span {
                    label: tag.label.0,
                    index: tag.index,
                    operation: operations.find(operation),
                    start,
                    end: end.max(start),
                    depth: 0,
                    is_body: true,
                }),
                _ => None,
            })
            .collect();
        // What contains others was recorded after them.
        spans.reverse();
        nest(&mut spans);
        let ThreadRecording { thread, node, .. } = thread;
        Self { name: thread.name.clone(), processor: thread.processor, node: *node, spans }
    }

    /// Returns the slices of the thread from `began` to `ended`, without gaps.
    #[must_use]
    pub fn slices(&self, began: u64, ended: u64) -> Vec<Slice> {
        let mut slices = Slices { list: Vec::with_capacity(self.spans.len()), now: began };
        let mut open: Vec<u32> = Vec::new();
        for (place, span) in self.spans.iter().enumerate() {
            self.close_until(span.start, &mut open, &mut slices);
            slices.until(span.start, open.last().copied());
            open.push(place as u32);
        }
        self.close_until(u64::MAX, &mut open, &mut slices);
        slices.until(ended, None);
        slices.list
    }

    /// Ends the open spans that end by `time`.
    fn close_until(&self, time: u64, open: &mut Vec<u32>, slices: &mut Slices) {
        while let Some(&inner) = open.last()
            && self.spans[inner as usize].end <= time
        {
            slices.until(self.spans[inner as usize].end, Some(inner));
            open.pop();
        }
    }
}

struct Slices {
    list: Vec<Slice>,
    now: u64,
}

impl Slices {
    /// Goes on to `time` in `span`.
    fn until(&mut self, time: u64, span: Option<u32>) {
        if time > self.now {
            self.list.push(Slice { start: self.now, end: time, span });
            self.now = time;
        }
    }
}

/// Sorts spans, and finds out which are within which. What overlaps without being nested, as in no sound profile, is
/// cut.
fn nest(spans: &mut [Span]) {
    spans.sort_by_key(|span| (span.start, Reverse(span.end)));
    let mut open: Vec<Span> = Vec::new();
    for span in spans {
        while open.last().is_some_and(|outer| outer.end <= span.start) {
            open.pop();
        }
        if let Some(outer) = open.last() {
            span.end = span.end.min(outer.end);
        }
        span.depth = open.len() as u32;
        span.is_body = span.operation.is_none() || open.iter().all(|outer| outer.operation != span.operation);
        open.push(*span);
    }
}

/// The lanes of a recording: workers by node and processor, then the other threads that did something.
#[must_use]
pub fn lanes(recording: &Recording, operations: &Operations) -> Vec<Lane> {
    let lanes = recording.threads.iter().map(|thread| Lane::of(thread, recording, operations));
    let mut lanes: Vec<Lane> = lanes.filter(|lane| lane.processor.is_some() || !lane.spans.is_empty()).collect();
    lanes.sort_by_key(|lane| (lane.processor.is_none(), lane.node, lane.processor));
    lanes
}

/// Whether a kind of span is work of the runtime.
#[must_use]
pub fn is_runtime(kind: Kind) -> bool {
    !matches!(kind, Kind::Task | Kind::Waiting | Kind::Asleep)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use maniple::profile::LabelId;
    use proptest::prelude::*;

    use super::super::script::Script;
    use super::*;

    fn lane(times: &[Range<u64>]) -> Lane {
        let mut script = Script::new(1);
        let label = script.label(Kind::Task, "task");
        let spans = (1..).zip(times);
        spans.for_each(|(operation, time)| script.span(0, label, operation, time.clone()));
        let operations = Operations::of(&script.0);
        lanes(&script.0, &operations).remove(0)
    }

    #[test]
    fn spans_are_nested_by_their_times_and_equal_ones_by_their_order() {
        let lane = lane(&[3..5, 1..9, 9..12, 20..30, 20..30]);
        let found: Vec<_> = lane.spans.iter().map(|span| (span.start, span.end, span.depth)).collect();
        assert_eq!(found, [(1, 9, 0), (3, 5, 1), (9, 12, 0), (20, 30, 0), (20, 30, 1)]);
        // What was recorded last contains the others.
        assert_ne!(lane.spans[3].operation, lane.spans[4].operation);
        assert!(lane.spans[3].operation > lane.spans[4].operation);
    }

    #[test]
    fn the_outermost_spans_of_an_operation_are_its_bodies() {
        let mut script = Script::new(1);
        let (task, mapper) = (script.label(Kind::Task, "task"), script.label(Kind::Mapper, "map_task"));
        script.span(0, mapper, 1, 2..3);
        script.span(0, task, 2, 4..5);
        script.span(0, task, 1, 1..9);
        script.span(0, task, 1, 11..12);
        let lane = lanes(&script.0, &Operations::of(&script.0)).remove(0);
        let bodies: Vec<_> = lane.spans.iter().map(|span| (span.start, span.is_body)).collect();
        assert_eq!(bodies, [(1, true), (2, false), (4, true), (11, true)]);
    }

    #[test]
    fn spans_of_labels_that_are_missing_are_left_out() {
        let mut script = Script::new(1);
        script.span(0, LabelId(7), 1, 1..9);
        assert!(lanes(&script.0, &Operations::of(&script.0))[0].spans.is_empty());
    }

    #[test]
    fn workers_stand_before_other_threads_and_those_that_did_nothing_are_left_out() {
        let mut script = Script::new(2);
        script.0.threads.rotate_right(1);
        let names = |script: &Script| {
            lanes(&script.0, &Operations::of(&script.0)).into_iter().map(|lane| lane.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&script), ["processor 0", "processor 1"]);
        let label = script.label(Kind::Task, "top level");
        script.span(0, label, 1, 0..1);
        assert_eq!(names(&script), ["processor 0", "processor 1", "thread main"]);
    }

    /// The innermost span at a moment, by looking at all.
    fn innermost(lane: &Lane, moment: u64) -> Option<u32> {
        let around = |span: &Span| span.start <= moment && moment < span.end;
        lane.spans.iter().rposition(around).map(|place| place as u32)
    }

    proptest! {
        #[test]
        fn slices_tell_the_innermost_span_of_every_moment(times in prop::collection::vec((0..60u64, 0..20u64), 0..20)) {
            let lane = lane(&times.iter().map(|&(start, long)| start..start + long).collect::<Vec<_>>());
            let slices = lane.slices(0, 100);
            prop_assert!(slices.windows(2).all(|two| two[0].end == two[1].start));
            prop_assert_eq!((slices[0].start, slices[slices.len() - 1].end), (0, 100));
            for slice in &slices {
                prop_assert!(slice.start < slice.end);
                for moment in slice.start..slice.end {
                    prop_assert_eq!(slice.span, innermost(&lane, moment));
                }
            }
        }

        #[test]
        fn spans_are_within_those_that_contain_them(times in prop::collection::vec((0..60u64, 0..20u64), 0..20)) {
            let lane = lane(&times.iter().map(|&(start, long)| start..start + long).collect::<Vec<_>>());
            let mut open: Vec<Span> = Vec::new();
            for span in &lane.spans {
                open.truncate(span.depth as usize);
                prop_assert_eq!(open.len(), span.depth as usize);
                prop_assert!(open.iter().all(|outer| outer.start <= span.start && span.end <= outer.end));
                open.push(*span);
            }
        }
    }
}
