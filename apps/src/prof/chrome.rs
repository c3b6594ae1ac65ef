//! A profile in the format of Chrome's `chrome://tracing`, which Perfetto (<https://ui.perfetto.dev>) reads too: the
//! "Trace Event Format" of Google's Catapult project.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::model::{Profile, SpanPlace};
use super::operations::ProfiledOperation;
use super::summary::kind_name;

/// Writes a profile.
///
/// # Errors
/// The errors of writing.
pub fn write(profile: &Profile, to: impl Write) -> io::Result<()> {
    let trace = Trace { unit: "ns", events: Events(profile) };
    serde_json::to_writer(to, &trace).map_err(io::Error::from)
}

#[derive(Serialize)]
struct Trace<'a> {
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "traceEvents")]
    events: Events<'a>,
}

struct Events<'a>(&'a Profile);

impl Serialize for Events<'_> {
    /// One at a time: there may be many.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let profile = self.0;
        serializer.collect_seq(names(profile).chain(spans(profile)).chain(flows(profile)).chain(memories(profile)))
    }
}

/// An event. Times are in microseconds.
#[derive(Serialize, Default)]
struct TraceEvent {
    name: String,
    /// The type of the event.
    #[serde(rename = "ph")]
    phase: &'static str,
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    #[serde(rename = "pid")]
    node: u16,
    #[serde(rename = "tid", skip_serializing_if = "Option::is_none")]
    thread: Option<usize>,
    #[serde(rename = "ts", skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    #[serde(rename = "dur", skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    /// Of the two ends of an arrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// That an arrow ends at the span that encloses the moment.
    #[serde(rename = "bp", skip_serializing_if = "Option::is_none")]
    binding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Arguments>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Arguments {
    Name { name: String },
    Order { sort_index: usize },
    Bytes { bytes: u64 },
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Returns the events that give nodes and threads their names and their order.
fn names(profile: &Profile) -> impl Iterator<Item = TraceEvent> {
    let mut nodes: Vec<u16> = profile.lanes.iter().map(|lane| lane.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let about = |what: &str, node, thread, arguments| TraceEvent {
        name: what.to_owned(),
        phase: "M",
        node,
        thread,
        args: Some(arguments),
        ..TraceEvent::default()
    };
    let nodes = nodes.into_iter().map(move |node| {
        let name = Arguments::Name { name: format!("node {node}") };
        about("process_name", node, None, name)
    });
    let lanes = profile.lanes.iter().enumerate().flat_map(move |(thread, lane)| {
        let name = Arguments::Name { name: lane.name.clone() };
        let order = Arguments::Order { sort_index: thread };
        [
            about("thread_name", lane.node, Some(thread), name),
            about("thread_sort_index", lane.node, Some(thread), order),
        ]
    });
    nodes.chain(lanes)
}

fn spans(profile: &Profile) -> impl Iterator<Item = TraceEvent> {
    profile.lanes.iter().enumerate().flat_map(move |(thread, lane)| {
        lane.spans.iter().map(move |span| TraceEvent {
            name: profile.name(span),
            phase: "X",
            category: Some(kind_name(profile.label(span).kind)),
            node: lane.node,
            thread: Some(thread),
            time: Some(microseconds(span.start - profile.began)),
            duration: Some(microseconds(span.duration())),
            ..TraceEvent::default()
        })
    })
}

/// An arrow to each operation from what it came after that ended last.
fn flows(profile: &Profile) -> impl Iterator<Item = TraceEvent> {
    let operations = (0..profile.operations.len() as u32).map(ProfiledOperation);
    let arrows = operations.filter_map(move |operation| {
        let to = profile.bodies(operation).next()?;
        let earlier = profile.before(operation).into_iter();
        let from = earlier.filter_map(|earlier| profile.bodies(earlier).next_back());
        Some((from.max_by_key(|&place| profile.span(place).end)?, to))
    });
    arrows.enumerate().flat_map(move |(number, (from, to))| {
        // An arrow belongs to the span in which its end lies, so it must begin before that ends; and before what it
        // leads to, which may have begun earlier: the sender of a message may go on.
        let end = profile.span(from).end.saturating_sub(1).min(profile.span(to).start).max(profile.span(from).start);
        [flow(profile, number, "s", from, end), flow(profile, number, "f", to, profile.span(to).start)]
    })
}

fn flow(profile: &Profile, number: usize, phase: &'static str, place: SpanPlace, time: u64) -> TraceEvent {
    TraceEvent {
        name: "after".to_owned(),
        phase,
        category: Some("dependence"),
        node: profile.lanes[place.lane as usize].node,
        thread: Some(place.lane as usize),
        time: Some(microseconds(time - profile.began)),
        id: Some(number as u64),
        binding: (phase == "f").then_some("e"),
        ..TraceEvent::default()
    }
}

/// The bytes in use of each memory.
fn memories(profile: &Profile) -> impl Iterator<Item = TraceEvent> {
    profile.memories.iter().flat_map(move |memory| {
        memory.used.iter().map(move |&(time, bytes)| TraceEvent {
            name: format!("memory {} ({})", memory.memory, memory.kind),
            phase: "C",
            node: profile.lanes.first().map_or(0, |lane| lane.node),
            time: Some(microseconds(time.saturating_sub(profile.began))),
            args: Some(Arguments::Bytes { bytes }),
            ..TraceEvent::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use maniple::profile::{Kind, OperationId, Record};
    use serde_json::Value;

    use super::super::script::Script;
    use super::*;

    #[test]
    fn the_trace_has_names_spans_arrows_and_counters() {
        let mut script = Script::new(2);
        let (task, launch) = (script.label(Kind::Task, "a \"quoted\" name"), script.launch("b", 4));
        script.span(0, task, 1, 1_000..2_500);
        script.span(1, launch, 2, 3_000..4_000);
        script.after(2, &[1]);
        script.record(0, Record::Memory { memory: 0, used: 64, time: 2_000 });
        script.record(0, Record::Awaited { operation: OperationId(2), event: OperationId(3), time: 5 });
        let mut json = Vec::new();
        write(&Profile::of(script.0), &mut json).expect("a list takes what is written");
        let trace: Value = serde_json::from_slice(&json).expect("it is JSON");
        let events = trace["traceEvents"].as_array().expect("events are a list");
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).cloned().collect::<Vec<_>>();
        let spans = of("X");
        assert_eq!((spans[0]["name"].as_str(), spans[0]["ts"].as_f64()), (Some("a \"quoted\" name"), Some(0.0)));
        assert_eq!((spans[1]["name"].as_str(), spans[1]["dur"].as_f64()), (Some("b[0]"), Some(1.0)));
        assert_eq!((spans[1]["tid"].as_u64(), spans[1]["pid"].as_u64()), (Some(1), Some(0)));
        let (from, to) = (of("s"), of("f"));
        assert_eq!((from.len(), to.len(), &from[0]["id"]), (1, 1, &to[0]["id"]));
        assert!(from[0]["ts"].as_f64() < Some(1.5) && to[0]["ts"].as_f64() == Some(2.0) && to[0]["bp"] == "e");
        assert_eq!(of("C")[0]["args"]["bytes"].as_u64(), Some(64));
        let names: Vec<_> =
            of("M").iter().filter_map(|event| event["args"]["name"].as_str().map(str::to_owned)).collect();
        assert_eq!(names, ["node 0", "processor 0", "processor 1"]);
    }
}
