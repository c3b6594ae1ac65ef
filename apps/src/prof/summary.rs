//! A profile in text.

use std::fmt;

use maniple::profile::Kind;

use super::critical_path::{CriticalPath, longest_chain};
use super::lanes::is_runtime;
use super::model::Profile;
use super::statistics::{Activity, Times, activities, times};
use crate::report::{Columns, bytes, counted};

/// A time with its unit.
#[must_use]
pub fn time(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        short if short < 1e3 => format!("{short} ns"),
        short if short < 1e6 => format!("{:.2} us", short / 1e3),
        long if long < 1e9 => format!("{:.2} ms", long / 1e6),
        long => format!("{:.3} s", long / 1e9),
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// The summary that `maniple prof --summary` prints.
pub struct Summary<'a>(pub &'a Profile);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.0;
        let workers = profile.lanes.iter().filter(|lane| lane.processor.is_some()).count();
        let took = profile.ended - profile.began;
        writeln!(f, "{}", profile.header.program)?;
        let (processors, spans) = (counted(workers, "processor", "processors"), profile.span_count());
        writeln!(f, "{} on {processors}, {}", time(took), counted(spans, "span", "spans"))?;
        let (runtime, tasks): (Vec<Times>, Vec<Times>) =
            times(profile).into_iter().partition(|times| is_runtime(times.kind));
        write!(f, "\n{}", table("task", &tasks))?;
        write!(f, "\n{}", table("runtime", &runtime))?;
        write!(f, "\n{}", shares(profile))?;
        write!(f, "\n{}", moved(profile))?;
        critical_path(profile, f)
    }
}

fn table(title: &str, times: &[Times]) -> Columns<8> {
    let mut columns = Columns::new([title, "", "count", "total", "mean", "median", "99%", "max"]);
    for times in times {
        let numbers = [times.total, times.mean(), times.median, times.percentile_99, times.max].map(time);
        let [total, mean, median, percentile_99, max] = numbers;
        let kind = if times.kind == Kind::Task { "" } else { kind_name(times.kind) };
        let count = times.count.to_string();
        columns.row([times.name.clone(), kind.to_owned(), count, total, mean, median, percentile_99, max]);
    }
    columns
}

/// All kinds of spans, in order.
pub const KINDS: [Kind; 10] = [
    Kind::Task,
    Kind::Analysis,
    Kind::Mapping,
    Kind::Mapper,
    Kind::Copy,
    Kind::Fill,
    Kind::Reduction,
    Kind::Runtime,
    Kind::Waiting,
    Kind::Asleep,
];

/// A kind of span in a word.
#[must_use]
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task",
        Kind::Analysis => "analysis",
        Kind::Mapping => "mapping",
        Kind::Mapper => "mapper",
        Kind::Copy => "copy",
        Kind::Fill => "fill",
        Kind::Reduction => "reduction",
        Kind::Runtime => "runtime",
        Kind::Waiting => "waiting",
        Kind::Asleep => "asleep",
    }
}

/// The table of where the time of each thread went.
fn shares(profile: &Profile) -> Columns<10> {
    let [a, b, c, d, e, f, g, h] = Activity::ALL.map(Activity::name);
    let mut columns = Columns::new(["where time went", a, b, c, d, e, f, g, h, "runtime in all"]);
    let mut row = |name: &str, times: [u64; Activity::ALL.len()]| {
        let whole = times.iter().sum();
        let runtime = Activity::ALL.iter().filter(|activity| activity.is_runtime()).map(|&found| times[found as usize]);
        let [a, b, c, d, e, f, g, h] = times.map(|part| share(part, whole));
        columns.row([name.to_owned(), a, b, c, d, e, f, g, h, share(runtime.sum(), whole)]);
    };
    let mut all = [0; Activity::ALL.len()];
    for (number, lane) in profile.lanes.iter().enumerate() {
        let times = activities(profile, number);
        row(&lane.name, times);
        if lane.processor.is_some() {
            all.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
    }
    row("all processors", all);
    columns
}

/// The table of bytes that were moved between memories, and of how full these were.
fn moved(profile: &Profile) -> Columns<4> {
    let mut columns = Columns::new(["memory", "most bytes in use", "copied from elsewhere", "copied within"]);
    for memory in &profile.memories {
        let (mut from_elsewhere, mut within) = (0u64, 0u64);
        for (operation, moved) in profile.operations.moves().filter(|(_, moved)| moved.to == memory.memory) {
            let is_fill = profile.body(operation).is_some_and(|span| profile.label(span).kind == Kind::Fill);
            match moved.from == memory.memory {
                _ if is_fill => {}
                true => within = within.saturating_add(moved.bytes),
                false => from_elsewhere = from_elsewhere.saturating_add(moved.bytes),
            }
        }
        let most = memory.used.iter().map(|&(_, used)| used).max().unwrap_or(0);
        let name = format!("{} ({})", memory.memory, memory.kind);
        columns.row([name, bytes(most), bytes(from_elsewhere), bytes(within)]);
    }
    columns
}

fn critical_path(profile: &Profile, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let path = CriticalPath::of(profile);
    let (kinds, nothing) = path.by_kind(profile);
    let whole = path.duration();
    writeln!(f, "\ncritical path: {}, of which", time(whole))?;
    let (mut kinds, mut line): (Vec<_>, _) = (kinds.into_iter().collect(), Vec::new());
    kinds.sort_by_key(|&(kind, time)| (std::cmp::Reverse(time), kind));
    for (kind, spent) in kinds {
        line.push(format!("{} {}", kind_name(kind), share(spent, whole)));
    }
    line.push(format!("nothing done {}", share(nothing, whole)));
    writeln!(f, "  {}", line.join(", "))?;
    let by_node = path.by_node(profile);
    if by_node.len() > 1 {
        let line = by_node.iter().map(|(node, spent)| format!("node {node} {}", share(*spent, whole)));
        writeln!(f, "  {}", line.collect::<Vec<_>>().join(", "))?;
    }
    let (longest, chain) = longest_chain(profile);
    let took = profile.ended - profile.began;
    let operations = counted(chain.len(), "operation", "operations");
    writeln!(f, "longest chain of work: {} in {operations}; {} of the time taken", time(longest), share(longest, took))
}
