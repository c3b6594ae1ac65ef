//! Task graphs: which points each step has, and which pattern ties them to the step before.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::kernel::{Kernel, KernelKind};

/// The size of what a task writes once, or as often as fits: a step and a point. No output is smaller.
pub const STAMP_BYTES: i64 = 16;

/// Neighbouring points, both ends included; none if `last` is before `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first point.
    pub first: i64,
    /// The last point.
    pub last: i64,
}

impl Interval {
    /// No points.
    pub const EMPTY: Self = Self { first: 0, last: -1 };

    /// One point.
    #[must_use]
    pub fn one(point: i64) -> Self {
        Self { first: point, last: point }
    }

    /// The points.
    #[must_use]
    pub fn points(self) -> RangeInclusive<i64> {
        self.first..=self.last
    }

    /// How many points there are.
    #[must_use]
    pub fn len(self) -> i64 {
        (self.last - self.first + 1).max(0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.last < self.first
    }

    /// The points that both have.
    #[inline]
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self { first: self.first.max(other.first), last: self.last.min(other.last) }
    }
}

/// How the points of a step depend on those of the step before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// On none.
    #[default]
    Trivial,
    /// On the same point.
    NoComm,
    /// On the same point and its neighbours.
    Stencil1d,
    /// The same on a ring.
    Stencil1dPeriodic,
    /// On the same point and the one before: a wave that sweeps over a triangle and back.
    Dom,
    /// On the parent in a binary tree: each step has twice as many points as the one before.
    Tree,
    /// On the same point and those a power of two away: a butterfly.
    Fft,
    /// On every point.
    AllToAll,
    /// On the `radix` nearest points.
    Nearest,
    /// On `radix` points, spread evenly; others in each step of a period.
    Spread,
    /// On some of the `radix` nearest points, chosen by a hash; others in each step of a period.
    RandomNearest,
}

impl Pattern {
    /// All patterns, in the order of Task Bench.
    pub const ALL: [Self; 11] = [
        Self::Trivial,
        Self::NoComm,
        Self::Stencil1d,
        Self::Stencil1dPeriodic,
        Self::Dom,
        Self::Tree,
        Self::Fft,
        Self::AllToAll,
        Self::Nearest,
        Self::Spread,
        Self::RandomNearest,
    ];

    /// Task Bench's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trivial => "trivial",
            Self::NoComm => "no_comm",
            Self::Stencil1d => "stencil_1d",
            Self::Stencil1dPeriodic => "stencil_1d_periodic",
            Self::Dom => "dom",
            Self::Tree => "tree",
            Self::Fft => "fft",
            Self::AllToAll => "all_to_all",
            Self::Nearest => "nearest",
            Self::Spread => "spread",
            Self::RandomNearest => "random_nearest",
        }
    }

    /// The pattern in a few words: the points that a point depends on.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Trivial => "on nothing",
            Self::NoComm => "on the same point",
            Self::Stencil1d => "on the same point and its two neighbours",
            Self::Stencil1dPeriodic => "the same on a ring",
            Self::Dom => "on the same point and the one before, in a triangle",
            Self::Tree => "on the parent; a step has twice the points of the last",
            Self::Fft => "on the same point and those 2^d away, another d each step",
            Self::AllToAll => "on every point",
            Self::Nearest => "on the `radix` nearest points",
            Self::Spread => "on `radix` points far apart, others each step of a period",
            Self::RandomNearest => "on a `fraction` of the nearest, others each step of a period",
        }
    }

    /// Whether `-period` says after how many steps the dependences repeat.
    #[must_use]
    pub fn has_period(self) -> bool {
        matches!(self, Self::Spread | Self::RandomNearest)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        known.ok_or_else(|| match text {
            "random_spread" => "Task Bench lists it, but nobody implements it".to_owned(),
            _ => format!("there are the patterns {}", Self::ALL.map(Self::name).join(", ")),
        })
    }
}

/// One task graph: `steps` rows of at most `width` tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Its place among the graphs that run side by side, from 0 on.
    pub index: i64,
    /// How many steps there are.
    pub steps: i64,
    /// The most points of a step.
    pub width: i64,
    /// The pattern of dependences between points.
    pub pattern: Pattern,
    /// How many points a point depends on, where the pattern leaves that open.
    pub radix: i64,
    /// After how many steps the dependences repeat, where the pattern leaves that open; else 0.
    pub period: i64,
    /// The probability of a dependence, where the pattern leaves that open.
    pub fraction: f64,
    /// The kernel of each task: the work that it does.
    pub kernel: Kernel,
    /// How many bytes a task writes and each task that depends on it reads.
    pub output_bytes: i64,
    /// How many bytes a task has to work in.
    pub scratch_bytes: i64,
}

impl Graph {
    /// Task Bench's defaults for the graph of this index. The period is 0 until the pattern is known.
    #[must_use]
    pub fn new(index: i64) -> Self {
        Self {
            index,
            steps: 4,
            width: 4,
            pattern: Pattern::Trivial,
            radix: 3,
            period: 0,
            fraction: 0.25,
            kernel: Kernel { kind: KernelKind::Empty, iterations: 0, samples: 16, imbalance: 0.0 },
            output_bytes: STAMP_BYTES,
            scratch_bytes: 0,
        }
    }

    /// The points of a step; none before the first.
    #[inline]
    #[must_use]
    pub fn window(&self, step: i64) -> Interval {
        if step < 0 {
            return Interval::EMPTY;
        }
        let (first, width) = match self.pattern {
            Pattern::Dom => {
                let width = self.width.min(step + 1).min(self.steps - step);
                ((step + self.width - self.steps).max(0), width)
            }
            Pattern::Tree => (0, self.width.min(1 << step.min(62))),
            _ => (0, self.width),
        };
        Interval { first, last: first + width - 1 }
    }

    /// How many different sets of dependences there are; steps take turns with them.
    #[must_use]
    pub fn sets(&self) -> i64 {
        match self.pattern {
            Pattern::Fft => self.stages().max(1),
            pattern if pattern.has_period() => self.period,
            _ => 1,
        }
    }

    /// The most inputs that the tasks of a step have together, those of points that the step before has not included.
    #[must_use]
    pub fn most_inputs(&self) -> i64 {
        let of_each = match self.pattern {
            Pattern::Trivial => 0,
            Pattern::NoComm | Pattern::Tree => 1,
            Pattern::Dom => 2,
            Pattern::Stencil1d | Pattern::Stencil1dPeriodic | Pattern::Fft => 3,
            Pattern::AllToAll => self.width,
            Pattern::Nearest | Pattern::RandomNearest => self.radix.min(self.width),
            Pattern::Spread => self.radix,
        };
        self.width.saturating_mul(of_each)
    }

    /// The set of dependences of a step.
    #[inline]
    #[must_use]
    pub fn set_at(&self, step: i64) -> i64 {
        match self.pattern {
            Pattern::Fft => (step + self.sets() - 1) % self.sets(),
            _ => step % self.sets(),
        }
    }

    /// The stages of a butterfly over all points: the logarithm of the width, rounded up.
    fn stages(&self) -> i64 {
        i64::from(self.width.unsigned_abs().next_power_of_two().trailing_zeros())
    }

    /// All tasks of the graph, each as its step and point.
    pub fn tasks(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (0..self.steps).flat_map(|step| self.window(step).points().map(move |point| (step, point)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(pattern: Pattern, width: i64, steps: i64) -> Graph {
        let period = if pattern.has_period() { 3 } else { 0 };
        Graph { pattern, width, steps, period, ..Graph::new(0) }
    }

    fn windows(graph: &Graph) -> Vec<(i64, i64)> {
        (0..graph.steps).map(|step| graph.window(step)).map(|window| (window.first, window.len())).collect()
    }

    #[test]
    fn most_patterns_have_all_points_in_every_step() {
        for pattern in Pattern::ALL.into_iter().filter(|pattern| !matches!(pattern, Pattern::Dom | Pattern::Tree)) {
            assert_eq!(windows(&graph(pattern, 5, 3)), [(0, 5); 3], "{pattern}");
        }
    }

    #[test]
    fn a_tree_doubles_until_it_is_wide_enough() {
        assert_eq!(windows(&graph(Pattern::Tree, 5, 5)), [(0, 1), (0, 2), (0, 4), (0, 5), (0, 5)]);
        assert_eq!(graph(Pattern::Tree, 5, 100).window(99).len(), 5);
    }

    #[test]
    fn dom_grows_from_the_first_point_and_shrinks_to_the_last() {
        assert_eq!(windows(&graph(Pattern::Dom, 3, 5)), [(0, 1), (0, 2), (0, 3), (1, 2), (2, 1)]);
        assert_eq!(windows(&graph(Pattern::Dom, 5, 2)), [(3, 1), (4, 1)], "a graph wider than high");
    }

    #[test]
    fn before_the_first_step_there_are_no_points() {
        for pattern in Pattern::ALL {
            assert!(graph(pattern, 4, 4).window(-1).is_empty(), "{pattern}");
        }
    }

    #[test]
    fn sets_of_dependences_take_turns() {
        let sets = |graph: &Graph| (0..5).map(|step| graph.set_at(step)).collect::<Vec<_>>();
        assert_eq!(sets(&graph(Pattern::Fft, 8, 5)), [2, 0, 1, 2, 0]);
        assert_eq!(sets(&graph(Pattern::Fft, 5, 5)), [2, 0, 1, 2, 0], "a butterfly that is not full");
        assert_eq!(sets(&graph(Pattern::Fft, 1, 5)), [0; 5], "a butterfly without wings");
        assert_eq!(sets(&graph(Pattern::Spread, 9, 5)), [0, 1, 2, 0, 1]);
        assert_eq!(sets(&graph(Pattern::Stencil1d, 9, 5)), [0; 5]);
    }

    #[test]
    fn patterns_are_read_by_the_names_they_print() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
        assert!("random_spread".parse::<Pattern>().is_err());
        assert!("stencil".parse::<Pattern>().is_err_and(|message| message.contains("stencil_1d_periodic")));
    }
}
