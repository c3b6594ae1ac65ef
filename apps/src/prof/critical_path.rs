//! The critical path of a profile: the work that its end waited for, step by step, back to its beginning.

use std::collections::BTreeMap;

use maniple::profile::Kind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lanes::Span;
use super::model::{Profile, SpanPlace};
use super::operations::{Cause, ProfiledOperation};

/// A part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// When it began.
    pub start: u64,
    /// When it ended, and the next began.
    pub end: u64,
    /// The operation that ran in the step, and the place of its span; `None` while the next step waited for a worker,
    /// or for a thread outside the runtime.
    pub work: Option<(ProfiledOperation, SpanPlace)>,
}

impl PathStep {
    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// The steps that the end of a profile waited for, from its beginning to its end without gaps.
///
/// The path is found backwards. The task that ended last began when it did because of something: the latest of the
/// operations that it came after, its launch, an event that it waited for in between, or the previous work of its
/// worker; and so on to the beginning. Making other work faster does not bring the end nearer; making this faster does,
/// until another path takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// The steps, by time.
    pub steps: Vec<PathStep>,
}

impl CriticalPath {
    /// Finds the critical path of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut walk = Walk::new(profile);
        if let Some(place) = walk.last() {
            walk.back_from(place);
        }
        walk.steps.reverse();
        Self { steps: walk.steps }
    }

    /// How long it is.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.steps.iter().map(PathStep::duration).sum()
    }

    /// How long it is on each node that it goes through.
    #[must_use]
    pub fn by_node(&self, profile: &Profile) -> BTreeMap<u16, u64> {
        let mut nodes = BTreeMap::new();
        for step in &self.steps {
            if let Some((_, place)) = step.work {
                *nodes.entry(profile.lanes[place.lane as usize].node).or_default() += step.duration();
            }
        }
        nodes
    }

    /// How long it is in each kind of work, and how long nothing was done.
    #[must_use]
    pub fn by_kind(&self, profile: &Profile) -> (FxHashMap<Kind, u64>, u64) {
        let (mut kinds, mut nothing) = (FxHashMap::default(), 0);
        for step in &self.steps {
            let Some((_, place)) = step.work else {
                nothing += step.duration();
                continue;
            };
            for (start, end, span) in profile.slices_within(place.lane, step.start, step.end) {
                match span {
                    Some(span) => *kinds.entry(profile.label(span).kind).or_default() += end - start,
                    None => nothing += end - start,
                }
            }
        }
        (kinds, nothing)
    }
}

/// A time in which an operation ran without waiting.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    place: SpanPlace,
}

/// A segment of an operation, and a moment in it.
#[derive(Clone, Copy)]
struct Moment {
    operation: ProfiledOperation,
    segment: usize,
    time: u64,
}

struct Walk<'a> {
    profile: &'a Profile,
    segments: FxHashMap<ProfiledOperation, Vec<Segment>>,
    /// When operations ended, and other things happened, as far as that was asked.
    happened: FxHashMap<ProfiledOperation, u64>,
    /// Segments that the path has been through: it goes through none twice, not even in a profile that makes no sense.
    seen: FxHashSet<(ProfiledOperation, usize)>,
    steps: Vec<PathStep>,
}

impl<'a> Walk<'a> {
    fn new(profile: &'a Profile) -> Self {
        let (segments, happened, seen) = (FxHashMap::default(), FxHashMap::default(), FxHashSet::default());
        Self { profile, segments, happened, seen, steps: Vec::new() }
    }

    /// The end of the task that ended last; without tasks, of the operation that did.
    fn last(&mut self) -> Option<Moment> {
        let bodies = self.profile.lanes.iter().flat_map(|lane| &lane.spans).filter(|span| span.is_body);
        let is_task = |span: &Span| self.profile.label(span).kind == Kind::Task;
        let (.., operation) = bodies.filter_map(|span| Some((is_task(span), span.end, span.operation?))).max()?;
        self.end_of(operation)
    }

    fn back_from(&mut self, mut moment: Moment) {
        while self.seen.insert((moment.operation, moment.segment)) {
            let segments = self.segments(moment.operation);
            let Segment { start, place, .. } = segments[moment.segment];
            let before = moment.segment.checked_sub(1).map(|number| segments[number]);
            self.step(start, moment.time, Some((moment.operation, place)));
            let (wanted, cause) = match before {
                Some(before) => self.why_went_on(moment, before, start),
                None => self.why_began(moment.operation, start),
            };
            let Some(cause) = self.why_not_earlier(place.lane, start, wanted).or(cause) else {
                self.step(self.profile.began, start, None);
                return;
            };
            self.step(cause.time, start, None);
            moment = cause;
        }
    }

    fn step(&mut self, start: u64, end: u64, work: Option<(ProfiledOperation, SpanPlace)>) {
        if start < end {
            self.steps.push(PathStep { start, end, work });
        }
    }

    /// From when on an operation could have begun, and whose doing that was.
    fn why_began(&mut self, operation: ProfiledOperation, start: u64) -> (u64, Option<Moment>) {
        let launched = self.profile.operations.launched(operation).filter(|launched| launched.time <= start);
        let last = self.latest(self.profile.operations.after(operation), start);
        match (last, launched) {
            (Some((time, earlier)), launched) if launched.is_none_or(|launched| launched.time < time) => {
                (time, self.maker_of(earlier, time))
            }
            (_, Some(Cause { by, time })) => (time, by.and_then(|by| self.moment(by, time))),
            (_, None) => (self.profile.began, None),
        }
    }

    /// From when on an operation could have gone on after a segment, and whose doing that was.
    fn why_went_on(&mut self, now: Moment, before: Segment, start: u64) -> (u64, Option<Moment>) {
        let own = Moment { segment: now.segment - 1, time: before.end, ..now };
        let awaited = self.profile.operations.awaited(now.operation);
        let awaited = awaited.filter(|&(time, _)| before.start <= time && time <= start).map(|(_, event)| event);
        match self.latest(awaited, start) {
            Some((time, event)) if time > before.end => (time, self.maker_of(event, time).or(Some(own))),
            _ => (own.time, Some(own)),
        }
    }

    /// Returns the end of the work that kept a worker busy before `start`, if the operation that began at `start` could
    /// have begun before that end, at `wanted`.
    fn why_not_earlier(&mut self, lane: u32, start: u64, wanted: u64) -> Option<Moment> {
        let slices = self.profile.slices(lane as usize);
        let before = &slices[..slices.partition_point(|slice| slice.end <= start)];
        let (end, span) = before.iter().rev().find_map(|slice| Some((slice.end, slice.span?)))?;
        let span = &self.profile.lanes[lane as usize].spans[span as usize];
        let was_busy = span.end <= start && !matches!(self.profile.label(span).kind, Kind::Asleep | Kind::Waiting);
        if was_busy && end > wanted { self.moment(span.operation?, end) } else { None }
    }

    /// The latest of these to happen, and when: not after `limit`.
    fn latest(
        &mut self,
        events: impl Iterator<Item = ProfiledOperation>,
        limit: u64,
    ) -> Option<(u64, ProfiledOperation)> {
        events.map(|event| (self.happened(event), event)).filter(|&(time, _)| time <= limit).max()
    }

    /// Whose doing it was that something happened at `time`: behind merges and the like.
    fn maker_of(&mut self, mut event: ProfiledOperation, time: u64) -> Option<Moment> {
        let mut seen = FxHashSet::default();
        while seen.insert(event) {
            if let Some(end) = self.end_of(event) {
                return Some(end);
            }
            if let Some(cause) = self.profile.operations.triggered(event) {
                return self.moment(cause.by?, cause.time.min(time));
            }
            (_, event) = self.latest(self.profile.operations.after(event), time)?;
        }
        None
    }

    /// When an operation ended, or something else happened: as it says, or when the last of what it came after did.
    fn happened(&mut self, event: ProfiledOperation) -> u64 {
        let profile = self.profile;
        let mut open = vec![(event, false)];
        while let Some((next, is_known_before)) = open.pop() {
            let before = profile.operations.after(next);
            if is_known_before {
                let last = before.map(|earlier| self.happened[&earlier]).max();
                self.happened.insert(next, last.unwrap_or(0));
            } else if !self.happened.contains_key(&next) {
                let told = self.told(next);
                // Those that come after each other, in a profile that makes no sense, find a time here all the same.
                self.happened.insert(next, told.unwrap_or(0));
                if told.is_none() {
                    open.push((next, true));
                    open.extend(before.map(|earlier| (earlier, false)));
                }
            }
        }
        self.happened[&event]
    }

    /// When something happened, if the profile tells.
    fn told(&mut self, event: ProfiledOperation) -> Option<u64> {
        let ended = self.end_of(event).map(|end| end.time);
        let triggered = || self.profile.operations.triggered(event).map(|cause| cause.time);
        ended.or_else(triggered)
    }

    fn end_of(&mut self, operation: ProfiledOperation) -> Option<Moment> {
        let segments = self.segments(operation);
        let last = segments.last()?;
        Some(Moment { operation, segment: segments.len() - 1, time: last.end })
    }

    /// Returns the moment of an operation at a time: the segment that had begun last by then.
    fn moment(&mut self, operation: ProfiledOperation, time: u64) -> Option<Moment> {
        let segments = self.segments(operation);
        let segment = segments.partition_point(|segment| segment.start <= time).checked_sub(1)?;
        Some(Moment { operation, segment, time })
    }

    /// The times in which an operation ran: its bodies without the waits in them.
    fn segments(&mut self, operation: ProfiledOperation) -> &[Segment] {
        let profile = self.profile;
        self.segments.entry(operation).or_insert_with(|| {
            let bodies = profile.bodies(operation).filter(|&place| profile.kind(place) != Kind::Waiting);
            bodies.flat_map(|place| without_waits(profile, operation, place)).collect()
        })
    }
}

fn without_waits(profile: &Profile, operation: ProfiledOperation, place: SpanPlace) -> Vec<Segment> {
    let body = profile.span(place);
    let spans = &profile.lanes[place.lane as usize].spans[place.span as usize + 1..];
    let within = spans.iter().take_while(|span| span.depth > body.depth);
    let waits = within.filter(|span| span.operation == Some(operation) && profile.label(span).kind == Kind::Waiting);
    let (mut segments, mut start) = (Vec::new(), body.start);
    for wait in waits {
        segments.push(Segment { start, end: wait.start, place });
        start = wait.end;
    }
    segments.push(Segment { start, end: body.end, place });
    segments
}

/// The longest chain of tasks and transfers that come one after another, and how long its operations take together:
/// what the program would take at least if the runtime's decisions were free and processors were without number.
///
/// By the order of dependences (Kahn 1962), in time linear in them.
#[must_use]
pub fn longest_chain(profile: &Profile) -> (u64, Vec<ProfiledOperation>) {
    let count = profile.operations.len();
    let work = work(profile);
    let edges = || profile.operations.pairs().iter().copied().chain(profile.operations.triggers());
    let mut before = vec![0u32; count];
    let mut later: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (operation, earlier) in edges() {
        before[operation.index()] += 1;
        later[earlier.index()].push(operation.0);
    }
    let mut open: Vec<u32> = (0..count as u32).filter(|&number| before[number as usize] == 0).collect();
    let mut longest: Vec<(u64, Option<u32>)> = vec![(0, None); count];
    let mut end = None;
    while let Some(next) = open.pop() {
        let number = next as usize;
        longest[number].0 += work[number];
        end = end.max(Some((longest[number].0, next)));
        for &after in &later[number] {
            longest[after as usize] = longest[after as usize].max((longest[number].0, Some(next)));
            before[after as usize] -= 1;
            if before[after as usize] == 0 {
                open.push(after);
            }
        }
    }
    let Some((length, last)) = end else { return (0, Vec::new()) };
    let mut chain: Vec<ProfiledOperation> =
        std::iter::successors(Some(last), |&number| longest[number as usize].1).map(ProfiledOperation).collect();
    chain.reverse();
    (length, chain)
}

/// How long each operation was at work itself, if it is a task or a transfer.
fn work(profile: &Profile) -> Vec<u64> {
    let mut work = vec![0; profile.operations.len()];
    for lane in 0..profile.lanes.len() {
        for slice in profile.slices(lane) {
            let span = slice.span.map(|place| &profile.lanes[lane].spans[place as usize]);
            if let Some(Span { operation: Some(operation), is_body: true, label, .. }) = span
                && matches!(
                    profile.labels[*label as usize].kind,
                    Kind::Task | Kind::Copy | Kind::Fill | Kind::Reduction
                )
            {
                work[operation.index()] += slice.end - slice.start;
            }
        }
    }
    work
}

#[cfg(test)]
mod tests {
    use maniple::profile::{OperationId, Record};
    use proptest::prelude::*;

    use super::super::script::Script;
    use super::*;

    /// Steps as times, and names of what was done.
    fn steps(profile: &Profile) -> Vec<(u64, u64, Option<String>)> {
        let named = |step: &PathStep| step.work.map(|(_, place)| profile.name(profile.span(place)));
        CriticalPath::of(profile).steps.iter().map(|step| (step.start, step.end, named(step))).collect()
    }

    fn some(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn the_path_goes_through_what_ended_last_of_what_was_waited_for() {
        let mut script = Script::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| script.label(Kind::Task, name));
        script.span(0, a, 1, 0..10);
        script.span(1, b, 2, 0..25);
        script.span(0, c, 3, 30..40);
        script.after(3, &[1, 2]);
        let profile = Profile::of(script.0);
        assert_eq!(steps(&profile), [(0, 25, some("b")), (25, 30, None), (30, 40, some("c"))]);
        assert_eq!(CriticalPath::of(&profile).by_kind(&profile), (FxHashMap::from_iter([(Kind::Task, 35)]), 5));
        let chain = longest_chain(&profile).1.into_iter().filter_map(|operation| profile.body(operation));
        assert_eq!(chain.map(|span| profile.name(span)).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn the_path_goes_through_merges_and_through_whoever_triggered_an_event() {
        let mut script = Script::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| script.label(Kind::Task, name));
        script.span(0, a, 1, 0..10);
        script.span(1, b, 2, 0..25);
        script.span(0, c, 3, 30..40);
        // 9 merges 1 and 8; b triggers 8 at time 20, in its midst.
        script.after(3, &[9]);
        script.after(9, &[1, 8]);
        script.record(1, Record::Triggered { event: OperationId(8), by: OperationId(2), time: 20 });
        assert_eq!(steps(&Profile::of(script.0)), [(0, 20, some("b")), (20, 30, None), (30, 40, some("c"))]);
    }

    #[test]
    fn what_was_launched_late_leads_to_its_launcher() {
        let mut script = Script::new(1);
        let (main, task) = (script.label(Kind::Task, "main"), script.label(Kind::Task, "task"));
        script.span(0, task, 2, 50..60);
        script.span(1, main, 1, 0..55);
        script.launched(2, 1, 45);
        assert_eq!(steps(&Profile::of(script.0)), [(0, 45, some("main")), (45, 50, None), (50, 60, some("task"))]);
    }

    #[test]
    fn what_waited_for_its_worker_leads_to_what_the_worker_did() {
        let mut script = Script::new(1);
        let [a, b] = ["a", "b"].map(|name| script.label(Kind::Task, name));
        script.span(0, a, 1, 5..30);
        script.span(0, b, 2, 31..40);
        script.launched(1, 0, 1);
        script.launched(2, 0, 2);
        let expected = [(5, 30, some("a")), (30, 31, None), (31, 40, some("b"))];
        assert_eq!(steps(&Profile::of(script.0)), expected);
    }

    #[test]
    fn a_body_that_waited_leads_to_what_it_waited_for() {
        let mut script = Script::new(2);
        let (outer, inner) = (script.label(Kind::Task, "outer"), script.label(Kind::Task, "inner"));
        let waiting = script.label(Kind::Waiting, "waiting");
        script.span(0, waiting, 1, 10..42);
        script.span(0, outer, 1, 0..50);
        script.span(1, inner, 2, 12..40);
        script.launched(2, 1, 8);
        let awaited = Record::Awaited { operation: OperationId(1), event: OperationId(2), time: 9 };
        script.record(0, awaited);
        let expected =
            [(0, 8, some("outer")), (8, 12, None), (12, 40, some("inner")), (40, 42, None), (42, 50, some("outer"))];
        assert_eq!(steps(&Profile::of(script.0)), expected);
    }

    #[test]
    fn dependences_in_a_circle_are_survived() {
        let mut script = Script::new(1);
        let label = script.label(Kind::Task, "a");
        script.span(0, label, 1, 0..10);
        script.span(0, label, 2, 10..20);
        script.after(1, &[2, 1, 8]);
        script.after(2, &[1]);
        script.after(8, &[9]);
        script.after(9, &[8, 2]);
        let profile = Profile::of(script.0);
        assert_eq!(CriticalPath::of(&profile).duration(), 20);
        assert_eq!(longest_chain(&profile).0, 0);
    }

    /// Tasks, each with its time, what it comes after, and whether through a merge.
    #[derive(Clone, Debug)]
    struct Tasks(Vec<(u64, Vec<usize>, bool)>);

    fn tasks() -> impl Strategy<Value = Tasks> {
        let task = |number: usize| {
            let earlier = prop::collection::vec(0..number.max(1), 0..4.min(number + 1));
            (1..20u64, earlier, any::<bool>()).prop_map(move |(time, mut earlier, merged)| {
                earlier.retain(|&found| found < number);
                (time, earlier, merged)
            })
        };
        (1..9usize).prop_flat_map(move |count| (0..count).map(task).collect::<Vec<_>>()).prop_map(Tasks)
    }

    /// Runs tasks in order on so many workers, each when it may; gives their beginnings, ends and workers.
    fn schedule(tasks: &Tasks, workers: usize) -> Vec<(u64, u64, usize)> {
        let mut free = vec![0; workers];
        let mut times: Vec<(u64, u64, usize)> = Vec::new();
        for (number, (long, earlier, _)) in tasks.0.iter().enumerate() {
            let ready = earlier.iter().map(|&found| times[found].1).max().unwrap_or(0).max(number as u64);
            let worker = (0..workers).min_by_key(|&worker| free[worker]).expect("there are workers");
            let start = ready.max(free[worker]);
            times.push((start, start + long, worker));
            free[worker] = start + long;
        }
        times
    }

    /// The tasks as they ran; task `k` is operation `k + 1`, launched at time `k`.
    fn profile(tasks: &Tasks, times: &[(u64, u64, usize)], workers: usize) -> Profile {
        let mut script = Script::new(workers as u32);
        let label = script.label(Kind::Task, "task");
        for (number, (_, earlier, merged)) in tasks.0.iter().enumerate() {
            let (operation, merge) = (number as u64 + 1, number as u64 + 100);
            let earlier: Vec<u64> = earlier.iter().map(|&found| found as u64 + 1).collect();
            script.launched(operation, 0, number as u64);
            if *merged {
                script.after(operation, &[merge]);
            }
            script.after(if *merged { merge } else { operation }, &earlier);
            let (start, end, worker) = times[number];
            script.span(worker, label, operation, start..end);
        }
        Profile::of(script.0)
    }

    /// By trying all chains that end in a task.
    fn longest(tasks: &Tasks, number: usize) -> u64 {
        let (time, earlier, _) = &tasks.0[number];
        time + earlier.iter().map(|&found| longest(tasks, found)).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_longest_chain_is_the_longest_of_all(tasks in tasks(), workers in 1..4usize) {
            let profile = profile(&tasks, &schedule(&tasks, workers), workers);
            let (length, chain) = longest_chain(&profile);
            prop_assert_eq!(length, (0..tasks.0.len()).map(|number| longest(&tasks, number)).max().unwrap());
            let took = |operation: ProfiledOperation| profile.body(operation).map_or(0, Span::duration);
            prop_assert_eq!(chain.iter().map(|&operation| took(operation)).sum::<u64>(), length);
            prop_assert!(chain.windows(2).all(|two| profile.operations.after(two[1]).any(|earlier| earlier == two[0])));
        }

        #[test]
        fn each_step_begins_as_soon_as_what_it_waited_for_last_had_ended(tasks in tasks(), workers in 1..4usize) {
            let times = schedule(&tasks, workers);
            let profile = profile(&tasks, &times, workers);
            let path = CriticalPath::of(&profile);
            let began =
                |step: &PathStep| times.iter().position(|&(start, end, _)| (start, end) == (step.start, step.end));
            prop_assert_eq!(path.duration(), profile.ended - profile.began);
            prop_assert!(path.steps.windows(2).all(|two| two[0].end == two[1].start));
            for (number, step) in path.steps.iter().enumerate() {
                let Some((_, place)) = step.work else { continue };
                prop_assert!(began(step).is_some(), "a task without a launcher is on the path as a whole");
                let task = (0..times.len()).find(|&task| {
                    times[task] == (step.start, step.end, place.lane as usize)
                }).unwrap();
                let (_, earlier, _) = &tasks.0[task];
                let ready = earlier.iter().map(|&found| times[found].1).max().unwrap_or(0).max(task as u64);
                let of_worker = times.iter().filter(|other| other.2 == place.lane as usize && other.1 <= step.start);
                let last = of_worker.map(|other| other.1).max().unwrap_or(0).max(ready);
                // The schedule leaves no gap: what is before the step is a cause, or a step in which nothing ran.
                prop_assert_eq!(last, step.start);
                let before = number.checked_sub(1).map(|before| path.steps[before]);
                let is_cause = |before: PathStep| earlier.iter().any(|&found| times[found].1 == before.end)
                    || times.iter().any(|other| other.2 == place.lane as usize && other.1 == before.end)
                    || (before.work.is_none() && before.start == profile.began);
                prop_assert!(before.is_none_or(is_cause));
            }
        }
    }
}
