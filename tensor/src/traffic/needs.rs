//! Which parts of a tensor processors need.

use crate::bounds::RectangleOf;
use crate::notation::{IndexVariable, TensorVariable};
use crate::plan::{Plan, PlanOrder};
use crate::rectangle::Rectangle;

/// The parts of a tensor that each processor needs.
pub(super) type Parts = Vec<Vec<Rectangle>>;

/// Which parts of a tensor each processor needs at one level of a plan.
pub(super) struct Needs<'a> {
    order: &'a PlanOrder,
    rectangles: RectangleOf,
    /// The number of variables with values.
    depth: usize,
    /// Whether of all points with the same values the first alone fetches.
    by_the_first: bool,
    /// The values that the last step had, as far as they matter, and what was needed.
    known: Option<(Vec<i64>, Parts)>,
}

impl<'a> Needs<'a> {
    pub(super) fn new(
        plan: &Plan,
        order: &'a PlanOrder,
        tensor: &TensorVariable,
        fixed: &[IndexVariable],
        by_the_first: bool,
    ) -> Self {
        let rectangles = plan.rectangles(tensor.name(), fixed);
        Self { order, rectangles, depth: fixed.len(), by_the_first, known: None }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The parts that each processor needs in a step.
    pub(super) fn at(&mut self, step: i64, processors: usize) -> &Parts {
        let prefix = self.order.values(step, 0)[..self.depth].to_vec();
        if self.known.as_ref().is_none_or(|(before, _)| *before != prefix) {
            let parts = (0..processors).map(|processor| self.of(step, processor, processors)).collect();
            self.known = Some((prefix, parts));
        }
        // It was set just now, if not before.
        self.known.as_ref().map(|(_, parts)| parts).expect("something is known")
    }

    /// The parts that one of so many processors needs.
    pub(super) fn of(&self, step: i64, processor: usize, processors: usize) -> Vec<Rectangle> {
        let mut parts = Vec::new();
        // Later steps need what the first one with the same values has fetched.
        let step = self.order.first_of(step, self.depth);
        for point in points_of(processor, self.order.points(), processors) {
            if self.by_the_first && !self.order.is_first(step, point, self.depth) {
                continue;
            }
            for part in self.rectangles.parts(&self.order.values(step, point)[..self.depth]) {
                if !part.is_empty() && !parts.contains(&part) {
                    parts.push(part);
                }
            }
        }
        parts
    }
}

/// The points that run on a processor: all in their order, in blocks, or one each.
pub(crate) fn points_of(processor: usize, points: i64, processors: usize) -> std::ops::Range<i64> {
    let (processor, count) = (processor as i128, processors as i128);
    if points as i128 <= count {
        return processor as i64..(processor as i64 + 1).min(points);
    }
    let first = |processor: i128| ((processor * points as i128 + count - 1) / count) as i64;
    first(processor)..first(processor + 1)
}

/// The parts that each processor holds: those that it has fetched, and those that it needs beside.
pub(super) fn together(fetched: &[&Parts], needed: &Parts) -> Parts {
    let mut all = fetched.iter().fold(vec![Vec::new(); needed.len()], |mut all, parts| {
        all.iter_mut().zip(*parts).for_each(|(all, parts)| all.extend(parts.iter().cloned()));
        all
    });
    for (all, needed) in all.iter_mut().zip(needed) {
        for part in needed {
            if !all.iter().any(|held| held.covers(part)) {
                all.push(part.clone());
            }
        }
    }
    all
}
