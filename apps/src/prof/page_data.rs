//! The data of the page: names and tables as they are, and long lists as [`Columns`].

use std::collections::BTreeMap;

use maniple::profile::{Domain, Kind};
use serde::Serialize;

use super::columns::{Columns, Packed};
use super::critical_path::{CriticalPath, longest_chain};
use super::lanes::Span;
use super::model::{MemoryUse, Profile, SpanPlace};
use super::operations::ProfiledOperation;
use super::statistics::{Activity, Times, activities, times};
use super::summary::{KINDS, kind_name};

/// A profile for the page. Times are in nanoseconds since the first span.
#[derive(Serialize)]
pub struct PageData<'a> {
    program: &'a str,
    warning: Option<String>,
    /// Until the last span ended.
    duration: u64,
    kinds: [&'static str; KINDS.len()],
    activities: [&'static str; Activity::ALL.len()],
    /// Which of the activities are the runtime's.
    is_runtime: [bool; Activity::ALL.len()],
    labels: Vec<LabelData<'a>>,
    lanes: Vec<LaneData<'a>>,
    memories: Vec<MemoryData>,
    channels: Vec<ChannelData>,
    times: Vec<TimesData>,
    longest_chain: ChainData,
    columns: Packed,
}

#[derive(Serialize)]
struct LabelData<'a> {
    kind: usize,
    name: &'a str,
    domain: Option<&'a Domain>,
    launched: Option<&'a str>,
}

#[derive(Serialize)]
struct LaneData<'a> {
    name: &'a str,
    node: u16,
    is_worker: bool,
    /// How many of the columns' spans are its.
    spans: usize,
    /// How many of the columns' slices are its.
    slices: usize,
    /// How long it spent with each activity.
    times: [u64; Activity::ALL.len()],
}

#[derive(Serialize)]
struct MemoryData {
    name: String,
    capacity: u64,
    /// How many of the columns' changes are its.
    changes: usize,
}

#[derive(Serialize)]
struct ChannelData {
    name: String,
    bytes: u64,
    /// How many of the columns' transfers are its.
    transfers: usize,
}

#[derive(Serialize)]
struct TimesData {
    kind: usize,
    name: String,
    count: u64,
    total: u64,
    mean: u64,
    median: u64,
    percentile_99: u64,
    max: u64,
}

#[derive(Serialize)]
struct ChainData {
    duration: u64,
    operations: usize,
}

impl<'a> PageData<'a> {
    /// A profile's.
    #[must_use]
    pub fn of(profile: &'a Profile) -> Self {
        let (duration, chain) = longest_chain(profile);
        let channels = Channels::of(profile);
        Self {
            program: &profile.header.program,
            warning: profile.warning(),
            duration: profile.ended - profile.began,
            kinds: KINDS.map(kind_name),
            activities: Activity::ALL.map(Activity::name),
            is_runtime: Activity::ALL.map(Activity::is_runtime),
            labels: labels(profile),
            lanes: lanes(profile),
            memories: profile.memories.iter().map(MemoryData::of).collect(),
            times: times(profile).into_iter().map(TimesData::of).collect(),
            longest_chain: ChainData { duration, operations: chain.len() },
            columns: columns(profile, &channels).pack(),
            channels: channels.0.into_iter().map(|(data, _)| data).collect(),
        }
    }
}

fn labels(profile: &Profile) -> Vec<LabelData<'_>> {
    let labels = profile.labels.iter();
    labels
        .map(|label| LabelData {
            kind: label.kind as usize,
            name: &label.name,
            domain: label.domain.as_ref(),
            launched: label.launched.as_deref(),
        })
        .collect()
}

fn lanes(profile: &Profile) -> Vec<LaneData<'_>> {
    let lanes = profile.lanes.iter().enumerate();
    lanes
        .map(|(number, lane)| LaneData {
            name: &lane.name,
            node: lane.node,
            is_worker: lane.processor.is_some(),
            spans: lane.spans.len(),
            slices: profile.slices(number).len(),
            times: activities(profile, number),
        })
        .collect()
}

impl MemoryData {
    fn of(memory: &MemoryUse) -> Self {
        let name = format!("memory {} ({})", memory.memory, memory.kind);
        Self { name, capacity: memory.capacity, changes: memory.used.len() }
    }
}

impl TimesData {
    fn of(times: Times) -> Self {
        let mean = times.mean();
        let Times { kind, name, count, total, median, percentile_99, max } = times;
        Self { kind: kind as usize, name, count, total, mean, median, percentile_99, max }
    }
}

/// Transfers by the memories between which they move data, in the order of their beginning.
struct Channels(Vec<(ChannelData, Vec<SpanPlace>)>);

impl Channels {
    fn of(profile: &Profile) -> Self {
        let mut channels: BTreeMap<(bool, u32, u32), (u64, Vec<SpanPlace>)> = BTreeMap::new();
        for (operation, moved) in profile.operations.moves() {
            let Some(place) = profile.bodies(operation).next() else { continue };
            let is_fill = profile.kind(place) == Kind::Fill;
            let (bytes, places) = channels.entry((is_fill, moved.from, moved.to)).or_default();
            *bytes = bytes.saturating_add(moved.bytes);
            places.push(place);
        }
        let named = channels.into_iter().map(|((is_fill, from, to), (bytes, mut places))| {
            places.sort_unstable();
            let name = if is_fill { format!("fill memory {to}") } else { format!("memory {from} to {to}") };
            (ChannelData { name, bytes, transfers: places.len() }, places)
        });
        Self(named.collect())
    }

    fn places(&self) -> impl Iterator<Item = SpanPlace> {
        self.0.iter().flat_map(|(_, places)| places.iter().copied())
    }
}

/// No operation, no span, no time; what there is, is one more.
const NONE: u64 = 0;

fn operation(operation: Option<ProfiledOperation>) -> u64 {
    operation.map_or(NONE, |operation| u64::from(operation.0) + 1)
}

fn columns(profile: &Profile, channels: &Channels) -> Columns {
    let mut columns = Columns::default();
    let since = |time: u64| time.saturating_sub(profile.began);
    let spans = || profile.lanes.iter().flat_map(|lane| &lane.spans);
    columns.add("span.start", spans().map(|span| since(span.start)));
    columns.add("span.duration", spans().map(Span::duration));
    columns.add("span.label", spans().map(|span| span.label.into()));
    columns.add("span.index", spans().map(|span| span.index.into()));
    columns.add("span.operation", spans().map(|span| operation(span.operation)));
    columns.add("span.depth", spans().map(|span| span.depth.into()));

    let slices =
        || (0..profile.lanes.len()).flat_map(|lane| profile.slices(lane).iter().map(move |slice| (lane, slice)));
    columns.add("slice.start", slices().map(|(_, slice)| since(slice.start)));
    columns.add(
        "slice.activity",
        slices().map(|(lane, slice)| {
            let span = slice.span.map(|place| &profile.lanes[lane].spans[place as usize]);
            Activity::of(span.map(|span| profile.label(span).kind)) as u64
        }),
    );

    let operations = || (0..profile.operations.len() as u32).map(ProfiledOperation);
    let launched = |found: ProfiledOperation| profile.operations.launched(found);
    let time = |time: Option<u64>| time.map_or(NONE, |time| since(time) + 1);
    columns.add("operation.launched", operations().map(|found| time(launched(found).map(|cause| cause.time))));
    columns.add("operation.by", operations().map(|found| operation(launched(found).and_then(|cause| cause.by))));
    columns.add("operation.ready", operations().map(|found| time(profile.ready(found))));
    columns.add(
        "operation.bytes",
        operations().map(|found| profile.operations.moved(found).map_or(0, |moved| moved.bytes)),
    );
    add_order(profile, &mut columns);

    let path = CriticalPath::of(profile);
    columns.add("path.start", path.steps.iter().map(|step| since(step.start)));
    columns.add("path.end", path.steps.iter().map(|step| since(step.end)));
    let firsts = first_spans(profile);
    let number = |place: SpanPlace| (firsts[place.lane as usize] + place.span as usize) as u64;
    columns.add("path.span", path.steps.iter().map(|step| step.work.map_or(NONE, |(_, place)| number(place) + 1)));
    columns.add("transfer.span", channels.places().map(number));

    let changes = || profile.memories.iter().flat_map(|memory| &memory.used);
    columns.add("memory.time", changes().map(|&(time, _)| since(time)));
    columns.add("memory.used", changes().map(|&(_, used)| used));
    columns
}

/// Adds the order of operations: pairs of an operation, or event, and one that it came after, that triggered it or that
/// it waited for. Pairs are sorted by the later.
fn add_order(profile: &Profile, columns: &mut Columns) {
    let operations = &profile.operations;
    let awaited = operations.all_awaited().map(|(operation, _, event)| (operation, event));
    let mut pairs: Vec<(ProfiledOperation, ProfiledOperation)> =
        operations.pairs().iter().copied().chain(profile.triggers()).chain(awaited).collect();
    pairs.sort_unstable();
    pairs.dedup();
    columns.add("order.later", pairs.iter().map(|&(later, _)| u64::from(later.0)));
    columns.add("order.earlier", pairs.iter().map(|&(_, earlier)| u64::from(earlier.0)));
}

/// The number of each lane's first span among all.
fn first_spans(profile: &Profile) -> Vec<usize> {
    let ends = profile.lanes.iter().scan(0, |before, lane| {
        let first = *before;
        *before += lane.spans.len();
        Some(first)
    });
    ends.collect()
}
