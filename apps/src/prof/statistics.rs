//! Counts and times: of each task, and of the activities of each thread.

use maniple::profile::Kind;
use rustc_hash::FxHashMap;

use super::model::Profile;
use super::operations::ProfiledOperation;

/// How long things of one name took, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The kind of the work.
    pub kind: Kind,
    /// Their name.
    pub name: String,
    /// How many.
    pub count: u64,
    /// All together.
    pub total: u64,
    /// Half took at most this.
    pub median: u64,
    /// 99 of a hundred took at most this.
    pub percentile_99: u64,
    /// The longest.
    pub max: u64,
}

impl Times {
    /// On average.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.total / self.count.max(1)
    }

    fn of(kind: Kind, name: String, mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let at_most = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
        Self {
            kind,
            name,
            count: times.len() as u64,
            total: times.iter().sum(),
            median: at_most(50),
            percentile_99: at_most(99),
            max: at_most(100),
        }
    }
}

/// How long tasks, and the runtime's work, took, by kind and total time. The time of an operation is what it took
/// itself: without what ran inside it, such as the analysis of its launches, and without waits.
#[must_use]
pub fn times(profile: &Profile) -> Vec<Times> {
    let mut own: FxHashMap<(u32, Unit), u64> = FxHashMap::default();
    for lane in 0..profile.lanes.len() {
        for slice in profile.slices(lane) {
            let Some(place) = slice.span else { continue };
            let span = &profile.lanes[lane].spans[place as usize];
            // A part of an operation, such as a mapper call, counts for itself.
            let unit = match span.operation {
                Some(operation) if span.is_body => Unit::Operation(operation),
                _ => Unit::Span(lane, place),
            };
            *own.entry((span.label, unit)).or_default() += slice.end - slice.start;
        }
    }
    let mut named: FxHashMap<(Kind, &str), Vec<u64>> = FxHashMap::default();
    for ((label, _), time) in own {
        let label = &profile.labels[label as usize];
        if !matches!(label.kind, Kind::Waiting | Kind::Asleep) {
            named.entry((label.kind, &label.name)).or_default().push(time);
        }
    }
    let mut times: Vec<Times> =
        named.into_iter().map(|((kind, name), times)| Times::of(kind, name.to_owned(), times)).collect();
    times.sort_by(|a, b| (a.kind, b.total, &a.name).cmp(&(b.kind, a.total, &b.name)));
    times
}

/// A unit that is counted once.
#[derive(PartialEq, Eq, Hash)]
enum Unit {
    Operation(ProfiledOperation),
    Span(usize, u32),
}

/// An activity of a thread: the time of a thread is broken down by these for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// The bodies of tasks.
    Task,
    /// Finding what launches must be mapped after.
    Analysis,
    /// Choosing processors and instances.
    Mapping,
    /// The mapper's decisions.
    Mapper,
    /// Copies, fills and reductions.
    Data,
    /// Other work of the runtime.
    Other,
    /// Bodies that wait.
    Waiting,
    /// Nothing to do: asleep, or looking for work.
    Idle,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Task, Self::Analysis, Self::Mapping, Self::Mapper, Self::Data, Self::Other, Self::Waiting, Self::Idle];

    /// The activity of a span of this kind; without a span, a thread is idle.
    #[must_use]
    pub fn of(kind: Option<Kind>) -> Self {
        match kind {
            Some(Kind::Task) => Self::Task,
            Some(Kind::Analysis) => Self::Analysis,
            Some(Kind::Mapping) => Self::Mapping,
            Some(Kind::Mapper) => Self::Mapper,
            Some(Kind::Copy | Kind::Fill | Kind::Reduction) => Self::Data,
            Some(Kind::Runtime) => Self::Other,
            Some(Kind::Waiting) => Self::Waiting,
            Some(Kind::Asleep) | None => Self::Idle,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "tasks",
            Self::Analysis => "analysis",
            Self::Mapping => "mapping",
            Self::Mapper => "mapper",
            Self::Data => "copies",
            Self::Other => "other",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
        }
    }

    /// Whether it is work of the runtime.
    #[must_use]
    pub fn is_runtime(self) -> bool {
        !matches!(self, Self::Task | Self::Waiting | Self::Idle)
    }
}

/// How long a lane spent with each of [`Activity::ALL`].
#[must_use]
pub fn activities(profile: &Profile, lane: usize) -> [u64; Activity::ALL.len()] {
    let mut times = [0; Activity::ALL.len()];
    for slice in profile.slices(lane) {
        let span = slice.span.map(|place| &profile.lanes[lane].spans[place as usize]);
        let activity = Activity::of(span.map(|span| profile.label(span).kind));
        times[activity as usize] += slice.end - slice.start;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn an_operation_takes_what_it_does_itself_in_all_its_parts() {
        let mut script = Script::new(1);
        let (task, analysis) = (script.label(Kind::Task, "task"), script.label(Kind::Analysis, "task"));
        let waiting = script.label(Kind::Waiting, "waiting");
        script.span(0, analysis, 1, 10..15);
        script.span(0, waiting, 1, 20..30);
        script.span(0, task, 1, 0..40);
        script.span(0, task, 1, 50..60);
        script.span(0, task, 2, 70..71);
        let profile = Profile::of(script.0);
        let [tasks, analyses] = &times(&profile)[..] else { panic!("{:?}", times(&profile)) };
        assert_eq!((tasks.kind, tasks.count, tasks.total, tasks.median, tasks.max), (Kind::Task, 2, 36, 1, 35));
        assert_eq!((analyses.kind, analyses.count, analyses.total), (Kind::Analysis, 1, 5));
        let spent = activities(&profile, 0);
        assert_eq!(spent[Activity::Task as usize], 36);
        assert_eq!((spent[Activity::Waiting as usize], spent[Activity::Idle as usize]), (10, 20));
        assert_eq!(spent.iter().sum::<u64>(), profile.ended - profile.began);
    }

    #[test]
    fn percentiles_are_times_that_so_many_stay_within() {
        let of = |times: Vec<u64>| Times::of(Kind::Task, String::new(), times);
        let hundred = of((1..=100).rev().collect());
        assert_eq!((hundred.median, hundred.percentile_99, hundred.max, hundred.mean()), (50, 99, 100, 50));
        let one = of(vec![7]);
        assert_eq!((one.median, one.percentile_99, one.max, one.mean()), (7, 7, 7, 7));
        assert_eq!(of(vec![1, 9]).median, 1);
    }

    #[test]
    fn activities_are_numbered_in_their_order() {
        assert!(Activity::ALL.iter().enumerate().all(|(number, &activity)| activity as usize == number));
        assert!(Activity::Mapping.is_runtime() && !Activity::Idle.is_runtime() && !Activity::Task.is_runtime());
    }
}
