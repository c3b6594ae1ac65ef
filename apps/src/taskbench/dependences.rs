//! Which points of the step before a point depends on.
//!
//! The points here are those of a full step; a task's inputs are those among them that the step before has, in this
//! order.

use std::ops::Range;

use super::graph::{Graph, Interval, Pattern};
use super::hash::uniform;

impl Graph {
    /// The points that a point depends on in a set of dependences.
    ///
    /// On small rings, and where `radix` is larger than the width, a point may be named several times: it is an input
    /// as many times.
    #[must_use]
    pub fn dependences(&self, set: i64, point: i64) -> Vec<Interval> {
        match self.pattern {
            Pattern::Dom => vec![self.clipped(point - 1, point)],
            Pattern::Tree => vec![Interval::one(point / 2)],
            Pattern::Nearest if self.radix > 0 => vec![self.nearest(point)],
            Pattern::Spread => (0..self.radix).map(|i| self.spread(point, i, set)).collect(),
            Pattern::RandomNearest if self.radix > 0 => {
                runs(self.nearest(point), |source| self.is_chosen(set, source, point))
            }
            _ => self.mutual_dependences(set, point),
        }
    }

    /// Which points depend on a point, in a set of dependences.
    #[must_use]
    pub fn reverse_dependences(&self, set: i64, point: i64) -> Vec<Interval> {
        match self.pattern {
            Pattern::Dom => vec![self.clipped(point, point + 1)],
            Pattern::Tree => {
                let children = self.clipped(2 * point, 2 * point + 1);
                if children.is_empty() { Vec::new() } else { vec![children] }
            }
            Pattern::Nearest if self.radix > 0 => vec![self.nearest_to(point)],
            Pattern::Spread => {
                let reader = |i: i64| (point - i * self.width / self.radix - shift(i, set)).rem_euclid(self.width);
                (0..self.radix).map(|i| Interval::one(reader(i))).collect()
            }
            Pattern::RandomNearest if self.radix > 0 => {
                runs(self.nearest_to(point), |reader| self.is_chosen(set, point, reader))
            }
            _ => self.mutual_dependences(set, point),
        }
    }

    /// Of the patterns in which a point depends on those that depend on it.
    fn mutual_dependences(&self, set: i64, point: i64) -> Vec<Interval> {
        let last = self.width - 1;
        match self.pattern {
            Pattern::NoComm => vec![Interval::one(point)],
            Pattern::Stencil1d => vec![self.clipped(point - 1, point + 1)],
            Pattern::Stencil1dPeriodic => {
                let before = (point == 0).then_some(Interval::one(last));
                let after = (point == last).then_some(Interval::one(0));
                [Some(self.clipped(point - 1, point + 1)), before, after].into_iter().flatten().collect()
            }
            Pattern::Fft => {
                let wing = 1 << set;
                let ends = [point - wing, point, point + wing];
                ends.into_iter().filter(|end| (0..self.width).contains(end)).map(Interval::one).collect()
            }
            Pattern::AllToAll => vec![Interval { first: 0, last }],
            _ => Vec::new(),
        }
    }

    fn clipped(&self, first: i64, last: i64) -> Interval {
        Interval { first, last }.intersection(Interval { first: 0, last: self.width - 1 })
    }

    /// The points nearest to a point, which has one more of them on its left if their number is even.
    fn nearest(&self, point: i64) -> Interval {
        self.clipped(point - self.radix / 2, point + (self.radix - 1) / 2)
    }

    /// The points that a point is one of the nearest to.
    fn nearest_to(&self, point: i64) -> Interval {
        self.clipped(point - (self.radix - 1) / 2, point + self.radix / 2)
    }

    fn spread(&self, point: i64, i: i64, set: i64) -> Interval {
        Interval::one((point + i * self.width / self.radix + shift(i, set)) % self.width)
    }

    fn is_chosen(&self, set: i64, source: i64, reader: i64) -> bool {
        source == reader || uniform([self.index, self.radix, set, source, reader]) < self.fraction
    }
}

/// How much further the `i`-th of the points spread out is in a set: the first is the point itself in all of them.
fn shift(i: i64, set: i64) -> i64 {
    if i > 0 { set } else { 0 }
}

/// The longest intervals of points that are all chosen.
fn runs(points: Interval, is_chosen: impl Fn(i64) -> bool) -> Vec<Interval> {
    let mut runs: Vec<Interval> = Vec::new();
    for point in points.points().filter(|&point| is_chosen(point)) {
        match runs.last_mut() {
            Some(run) if run.last == point - 1 => run.last = point,
            _ => runs.push(Interval::one(point)),
        }
    }
    runs
}

/// The dependences of all points in all sets, to be looked up quickly.
#[derive(Clone, Debug)]
pub struct DependenceTable {
    width: usize,
    /// The range of the intervals of each set and point.
    places: Vec<Range<usize>>,
    intervals: Vec<Interval>,
}

impl DependenceTable {
    /// The table of a graph.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let mut intervals = Vec::new();
        let all = (0..graph.sets()).flat_map(|set| (0..graph.width).map(move |point| (set, point)));
        let places = all.map(|(set, point)| {
            let start = intervals.len();
            intervals.extend(graph.dependences(set, point));
            start..intervals.len()
        });
        Self { places: places.collect(), width: graph.width as usize, intervals }
    }

    /// The points that a point depends on.
    ///
    /// # Panics
    /// If the graph has no such set or point.
    #[inline]
    #[must_use]
    pub fn of_point(&self, set: i64, point: i64) -> &[Interval] {
        &self.intervals[self.places[set as usize * self.width + point as usize].clone()]
    }

    /// Whether no point depends on another.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sources of a point, word for word as the table of patterns has them: every source is tried.
    fn sources_by_the_table(graph: &Graph, set: i64, point: i64) -> Vec<i64> {
        let Graph { width, radix, fraction, .. } = *graph;
        let near = |source: i64| radix > 0 && (point - radix / 2..=point + (radix - 1) / 2).contains(&source);
        let depends = |source: i64| match graph.pattern {
            Pattern::Trivial => false,
            Pattern::NoComm => source == point,
            Pattern::Stencil1d | Pattern::Stencil1dPeriodic => (source - point).abs() <= 1,
            Pattern::Dom => source == point || source == point - 1,
            Pattern::Tree => source == point / 2,
            Pattern::Fft => [point - (1 << set), point, point + (1 << set)].contains(&source),
            Pattern::AllToAll => true,
            Pattern::Nearest => near(source),
            Pattern::RandomNearest => {
                near(source) && (source == point || uniform([graph.index, radix, set, source, point]) < fraction)
            }
            Pattern::Spread => unreachable!("its order is not that of the points"),
        };
        if graph.pattern == Pattern::Spread {
            return (0..radix).map(|i| (point + i * width / radix + if i > 0 { set } else { 0 }) % width).collect();
        }
        let mut sources: Vec<i64> = (0..width).filter(|&source| depends(source)).collect();
        if graph.pattern == Pattern::Stencil1dPeriodic {
            sources.extend((point == 0).then_some(width - 1));
            sources.extend((point == width - 1).then_some(0));
        }
        sources
    }

    fn points(intervals: &[Interval]) -> Vec<i64> {
        intervals.iter().flat_map(|interval| interval.points()).collect()
    }

    prop_compose! {
        fn any_graph()(
            pattern in prop::sample::select(&Pattern::ALL[..]),
            width in 1..40_i64,
            radix in 0..9_i64,
            period in 1..5_i64,
            fraction in 0.0..1.0_f64,
            index in 0..3_i64,
        ) -> Graph {
            let radix = if pattern == Pattern::Spread { radix.max(1) } else { radix };
            let period = match pattern {
                Pattern::Spread => period.min((width + radix - 1) / radix),
                pattern if pattern.has_period() => period,
                _ => 0,
            };
            Graph { pattern, width, radix, period, fraction, steps: 12, ..Graph::new(index) }
        }
    }

    proptest! {
        #[test]
        fn dependences_are_those_of_the_table(graph in any_graph()) {
            let table = DependenceTable::of(&graph);
            for set in 0..graph.sets() {
                for point in 0..graph.width {
                    let expected = sources_by_the_table(&graph, set, point);
                    prop_assert_eq!(points(&graph.dependences(set, point)), &expected[..]);
                    prop_assert_eq!(points(table.of_point(set, point)), expected);
                }
            }
        }

        #[test]
        fn a_point_depends_on_those_that_have_it_as_a_reverse_dependence(graph in any_graph()) {
            for set in 0..graph.sets() {
                for source in 0..graph.width {
                    let mut readers = points(&graph.reverse_dependences(set, source));
                    readers.sort_unstable();
                    readers.dedup();
                    let reads = |reader: &i64| points(&graph.dependences(set, *reader)).contains(&source);
                    let expected: Vec<i64> = (0..graph.width).filter(reads).collect();
                    prop_assert_eq!(readers, expected, "set {}, source {}", set, source);
                }
            }
        }

        #[test]
        fn dependences_lie_within_the_graph(graph in any_graph()) {
            for (step, point) in graph.tasks() {
                let all = points(&graph.dependences(graph.set_at(step), point));
                prop_assert!(all.iter().all(|source| (0..graph.width).contains(source)));
            }
        }

        #[test]
        fn a_pattern_repeats_after_as_many_steps_as_it_has_sets(graph in any_graph()) {
            for step in 0..20 {
                prop_assert!((0..graph.sets()).contains(&graph.set_at(step)));
                prop_assert_eq!(graph.set_at(step), graph.set_at(step + graph.sets()));
            }
            let used: std::collections::BTreeSet<i64> = (0..graph.sets()).map(|step| graph.set_at(step)).collect();
            prop_assert_eq!(used.len() as i64, graph.sets(), "every set is used");
        }
    }

    #[test]
    fn spread_with_a_period_that_is_allowed_names_no_point_twice() {
        for (width, radix) in (1..20).flat_map(|width| (1..=width).map(move |radix| (width, radix))) {
            let period = (width + radix - 1) / radix;
            let graph = Graph { pattern: Pattern::Spread, width, radix, period, ..Graph::new(0) };
            for set in 0..period {
                let mut sources = points(&graph.dependences(set, width / 2));
                sources.sort_unstable();
                sources.dedup();
                assert_eq!(sources.len() as i64, radix, "width {width}, radix {radix}, set {set}");
            }
        }
    }

    #[test]
    fn intervals_are_as_long_as_they_can_be() {
        let chosen = [1, 2, 4, 5, 6, 9];
        let found = runs(Interval { first: 0, last: 9 }, |point| chosen.contains(&point));
        let expected = [(1, 2), (4, 6), (9, 9)].map(|(first, last)| Interval { first, last });
        assert_eq!(found, expected);
    }
}
