//! The ends of loops, and the values that are recovered on entering them.
//!
//! Blocks may reach beyond the end of what was split. Where the other parts are known, the loop over the last one ends
//! early: for `i = io * 32 + ii < 100`, a loop over `ii` inside of one over `io` ends at `100 - io * 32`, and one over
//! `io` inside of one over `ii` at `(100 - ii) / 32`, rounded up. Where that can't be, as the inner part of a fused
//! loop or a rotated loop is concerned, a condition is inside of the loop. Neither is there where no block is cut.

use super::leaf::Lowering;
use super::sizes::Sizes;
use super::storage::Storage;
use crate::concrete::{Execution, Loop, Relation, StatementNode, Unit};
use crate::loops::{Expression, Statement as Step, Variable};
use crate::notation::IndexVariable;

/// The values that are recovered on entering a loop, and the conditions under which anything happens.
#[derive(Default)]
pub(super) struct LoopEntry {
    /// The entry around this one, under whose conditions `lets` are recovered.
    before: Option<Box<LoopEntry>>,
    lets: Vec<Step>,
    conditions: Vec<Expression>,
}

impl LoopEntry {
    /// `body`, with all of this before it.
    pub fn wrap(self, body: Step) -> Step {
        let mut steps = self.lets;
        steps.push(self.conditions.into_iter().rev().fold(body, |body, condition| Step::when(condition, body)));
        let step = Step::sequence(steps);
        match self.before {
            Some(before) => before.wrap(step),
            None => step,
        }
    }
}

impl Lowering<'_> {
    /// Whether blocks of a split or division reach beyond the end of `parent`.
    fn is_cut(&self, relation: &Relation, parent: &IndexVariable) -> bool {
        if relation.children().iter().any(|child| self.full.contains(*child)) {
            return false;
        }
        if matches!(self.sizes, Sizes::Parameters { .. }) || matches!(relation, Relation::SplitAt { .. }) {
            return relation.is_cut();
        }
        relation.blocks().is_some_and(|(outer, inner, length)| {
            let last = |variable| self.statement.extents[variable] - 1;
            last(outer) * length + last(inner) >= self.statement.extents[parent]
        })
    }

    /// Whether the block with this number, of those that a loop goes through, is whole, if that matters: lanes then
    /// have as many iterations as the block is long, which compilers know how to keep in registers.
    pub(super) fn is_whole(&self, outer: &Loop, body: &StatementNode, number: &Expression) -> Option<Expression> {
        if self.visits.is_empty() || self.full.contains(&outer.variable) {
            return None;
        }
        let loops = body.loops();
        let on_lanes = |inner: &IndexVariable| {
            loops
                .iter()
                .any(|within| within.variable == *inner && within.execution == Execution::Parallel(Unit::Vector))
        };
        let whole = self.statement.relations.iter().filter_map(|relation| match relation {
            Relation::Split { parent, outer: block, inner, factor } if *block == outer.variable && on_lanes(inner) => {
                Some(((number.clone() + 1) * *factor).less_equal(self.extent(parent)))
            }
            _ => None,
        });
        whole.reduce(Expression::and)
    }

    /// The variables that are parents of relations, and can be recovered if `variable` is known too, but not yet.
    fn newly_recoverable(&self, variable: &IndexVariable, parent: &IndexVariable) -> bool {
        let can = |with: bool| {
            let dependencies = self.statement.dependencies(parent);
            dependencies.iter().all(|source| self.known.contains_key(source) || with && source == variable)
        };
        !self.known.contains_key(parent) && can(true) && !can(false)
    }

    fn extent(&self, variable: &IndexVariable) -> Expression {
        self.sizes.extent(self.statement, variable)
    }

    fn blocks<'r>(&self, relation: &'r Relation) -> Option<(&'r IndexVariable, &'r IndexVariable, Expression)> {
        self.sizes.blocks(self.statement, relation)
    }

    /// The beginning and the end of the part of `parent` with this number.
    fn part(&self, parent: &IndexVariable, points: &[i64], number: &Expression) -> (Expression, Expression) {
        let extent = self.extent(parent);
        // There may be fewer positions.
        let is_stored = self.statement.positions().any(|stored| self.statement.descends(parent, &stored.position));
        let point = |point: i64| if is_stored { extent.clone().minimum(point) } else { point.into() };
        let begins: Vec<i64> = [0].into_iter().chain(points.iter().copied()).collect();
        let ends = points.iter().map(|&end| point(end)).chain([extent.clone()]);
        let choose = |values: Vec<Expression>| {
            let values = values.into_iter().enumerate().rev();
            let chosen =
                values.reduce(|(_, after), (at, value)| (at, number.clone().less(at as i64 + 1).select(value, after)));
            chosen.map_or(0.into(), |(_, chosen)| chosen)
        };
        (choose(begins.into_iter().map(Expression::index).collect()), choose(ends.collect()))
    }

    /// The value of the last of the loops that a part of `parent` depends on, where it begins.
    pub(super) fn part_begin(&self, relation: &Relation) -> Option<Expression> {
        let Relation::SplitAt { parent, outer, points, .. } = relation else { return None };
        Some(self.part(parent, points, &self.recovered(outer)?).0)
    }

    /// The end of the loop over `variable`, which is about to begin.
    pub fn high(&mut self, variable: &IndexVariable) -> Expression {
        let extent = self.extent(variable);
        let limits = self.limits(variable, variable);
        limits.into_iter().fold(extent, Expression::minimum)
    }

    /// Values that `child` has to stay below, where `child` is recovered from the loop over `variable`, or is it.
    fn limits(&self, variable: &IndexVariable, child: &IndexVariable) -> Vec<Expression> {
        let mut limits = Vec::new();
        for relation in &self.statement.relations {
            if !relation.children().contains(&child) {
                continue;
            }
            let Some(parent) = relation.parents().into_iter().find(|parent| self.newly_recoverable(variable, parent))
            else {
                continue;
            };
            if let Some((outer, inner, length)) = self.blocks(relation) {
                let other = if child == outer { inner } else { outer };
                let Some(other) = self.recovered(other) else { continue };
                let mut above = self.limits(variable, parent);
                if self.is_cut(relation, parent) {
                    above.push(self.extent(parent));
                }
                limits.extend(above.into_iter().map(|limit| {
                    if child == inner {
                        limit - other.clone() * length.clone()
                    } else {
                        (limit - other.clone()).ceiling_divide(length.clone())
                    }
                }));
            } else {
                match relation {
                    Relation::SplitAt { parent, outer, inner, points, .. } if child == inner => {
                        let Some(number) = self.recovered(outer) else { continue };
                        let (begin, end) = self.part(parent, points, &number);
                        let above = self.limits(variable, parent);
                        limits.extend(above.into_iter().chain([end]).map(|limit| limit - begin.clone()));
                    }
                    Relation::Bound { parent, .. } => limits.extend(self.limits(variable, parent)),
                    // `f / e < a` is `f < a * e`.
                    Relation::Fuse { outer, inner, .. } => {
                        let extent = self.extent(inner);
                        limits.extend(self.limits(variable, outer).into_iter().map(|limit| limit * extent.clone()));
                    }
                    _ => {}
                }
            }
        }
        limits
    }

    /// Whether the end of the loop over `variable` keeps `parent` below its extent, which was recovered on entering it.
    fn is_limited(&self, variable: &IndexVariable, parent: &IndexVariable) -> bool {
        // Follows the chain that `limits` goes up, down from the parent.
        let Some(relation) = self.statement.recovery(parent) else { return true };
        let child = match relation {
            Relation::Bound { bounded, .. } => bounded,
            Relation::Fuse { outer, fused, .. } if outer == parent => fused,
            Relation::Split { outer, inner, .. }
            | Relation::SplitAt { outer, inner, .. }
            | Relation::Divide { outer, inner, .. } => {
                let depends = |child| self.statement.dependencies(child).contains(variable);
                match (depends(outer), depends(inner)) {
                    // Parts differ in length, so that the last one says nothing of the others.
                    (true, false) if matches!(relation, Relation::SplitAt { .. }) => return false,
                    (true, false) => outer,
                    (false, true) => inner,
                    _ => return false,
                }
            }
            _ => return false,
        };
        child == variable || self.is_limited(variable, child)
    }

    /// The value of a variable that can be recovered from what is known.
    pub fn recovered(&self, variable: &IndexVariable) -> Option<Expression> {
        if let Some(value) = self.known.get(variable) {
            return Some(value.clone());
        }
        let relation = self.statement.recovery(variable)?;
        Some(match relation {
            Relation::Split { .. } | Relation::Divide { .. } => {
                let (outer, inner, length) = self.blocks(relation)?;
                self.recovered(outer)? * length + self.recovered(inner)?
            }
            Relation::SplitAt { inner, .. } => self.part_begin(relation)? + self.recovered(inner)?,
            Relation::Fuse { outer, inner, fused, .. } => {
                let fused = self.recovered(fused)?;
                let extent = self.sizes.divisor(self.statement, inner);
                if variable == outer { fused.floor_divide(extent) } else { fused.floor_remainder(extent) }
            }
            Relation::Bound { bounded, .. } => self.recovered(bounded)?,
            Relation::Positions(_) if self.is_stored(relation) => return None,
            Relation::Positions(positions) => self.recovered(&positions.position)?,
            Relation::Rotate { target, by, result, .. } => {
                let mut sum = self.recovered(result)?;
                for variable in by {
                    sum = sum + self.recovered(variable)?;
                }
                sum.floor_remainder(self.sizes.divisor(self.statement, target))
            }
            Relation::Window { of, start, step, .. } => {
                let value = self.recovered(of)?;
                let scaled = if *step == 1 { value } else { value * *step };
                if *start == 0 { scaled } else { scaled + *start }
            }
        })
    }

    /// That the coordinates of a shift are in its dimension, in which it may go beyond: nothing for others.
    pub fn is_in_dimension(&self, variable: &IndexVariable, at: &Expression) -> Option<Expression> {
        let Some(Relation::Window { inside: false, .. }) = self.statement.recovery(variable) else { return None };
        let not_before = Expression::index(0).less_equal(at.clone());
        Some(not_before.and(at.clone().less(self.extent(variable))))
    }

    /// Binds all that can be recovered now, given the loop that was entered, or else the variables that are fixed
    /// outside of the kernel.
    pub fn enter(&mut self, entered: Option<&IndexVariable>) -> LoopEntry {
        let mut entry = LoopEntry::default();
        loop {
            let next = self.statement.relations.iter().find_map(|relation| {
                let ready = relation.sources().into_iter().all(|source| self.known.contains_key(source));
                let missing = |parent: &&IndexVariable| !self.known.contains_key(*parent);
                relation.parents().into_iter().find(missing).filter(|_| ready).map(|parent| (relation, parent))
            });
            let Some((relation, parent)) = next else { return entry };
            if let Some(steps) = self.at_position(relation) {
                // There is no such position where a condition fails.
                entry = LoopEntry { before: Some(Box::new(entry)), lets: steps, conditions: Vec::new() };
                continue;
            }
            let Some(value) = self.recovered(parent) else { return entry };
            let value = if let Relation::Bound { .. } | Relation::Positions(_) = relation {
                value
            } else {
                let variable = Variable::index(self.names.fresh(parent.name()));
                entry.lets.push(Step::bind(&variable, value));
                variable.value()
            };
            self.known.insert(parent.clone(), value.clone());
            let limited = entered.is_some_and(|entered| self.is_limited(entered, parent));
            if self.is_cut(relation, parent) && !limited {
                let end = match relation {
                    Relation::SplitAt { outer, points, .. } => {
                        self.recovered(outer).map(|number| self.part(parent, points, &number).1)
                    }
                    _ => None,
                };
                entry.conditions.push(value.less(end.unwrap_or_else(|| self.extent(parent))));
            }
        }
    }

    /// Conditions on the loops that are fixed outside of the kernel: if one fails, no block has anything.
    pub fn guards_of_fixed(&self) -> Vec<Expression> {
        let mut guards = Vec::new();
        for position in self.counts.keys() {
            // Loops around have as many iterations as there may be positions; there are fewer.
            let fixed = self.known.iter().filter(|(variable, _)| self.statement.descends(variable, position));
            guards.extend(fixed.map(|(variable, value)| value.clone().less(self.extent(variable))));
        }
        for relation in &self.statement.relations {
            for parent in relation.parents() {
                let unknown = self.recovered(parent).is_none();
                let is_inside =
                    matches!(self.sizes, Sizes::Known) && self.greatest_low(parent) < self.statement.extents[parent];
                if !unknown || !self.is_cut(relation, parent) || is_inside {
                    continue;
                }
                guards.extend(self.low(parent).map(|low| low.less(self.extent(parent))));
                if self.is_uneven(parent) {
                    // The lowest value is not as simple as `low` has it. But there are views of what is used, and this
                    // is none.
                    guards.extend(self.result_is_there());
                }
            }
        }
        guards
    }

    /// Whether a variable that is not known yet is recovered by a remainder, in the inner part of a fused loop or a
    /// rotation.
    fn is_uneven(&self, variable: &IndexVariable) -> bool {
        self.recovered(variable).is_none()
            && self.statement.recovery(variable).is_some_and(|relation| {
                matches!(relation, Relation::Rotate { .. })
                    || matches!(relation, Relation::Fuse { inner, .. } if inner == variable)
                    || relation.sources().into_iter().any(|source| self.is_uneven(source))
            })
    }

    /// That the view of the result has elements.
    fn result_is_there(&self) -> Vec<Expression> {
        match self.storage.get(self.statement.result().name()) {
            Some(Storage::Buffer(buffer)) => {
                (0..buffer.rank).map(|dimension| buffer.low(dimension).less(buffer.high(dimension))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The lowest value of a variable, if it is not simply zero.
    fn low(&self, variable: &IndexVariable) -> Option<Expression> {
        if let Some(value) = self.recovered(variable) {
            return Some(value);
        }
        let relation = self.statement.recovery(variable)?;
        match relation {
            Relation::Bound { bounded, .. } => self.low(bounded),
            Relation::Fuse { outer, inner, fused, .. } if outer == variable => {
                self.low(fused).map(|low| low.floor_divide(self.sizes.divisor(self.statement, inner)))
            }
            _ => {
                let (outer, inner, length) = self.blocks(relation)?;
                match (self.low(outer).map(|outer| outer * length), self.low(inner)) {
                    (Some(outer), Some(inner)) => Some(outer + inner),
                    (outer, inner) => outer.or(inner),
                }
            }
        }
    }

    /// The greatest value that the lowest value of a variable can have, whatever is known.
    fn greatest_low(&self, variable: &IndexVariable) -> i64 {
        if self.recovered(variable).is_some() {
            return self.statement.extents[variable] - 1;
        }
        let Some(relation) = self.statement.recovery(variable) else { return 0 };
        match (relation, relation.blocks()) {
            (_, Some((outer, inner, length))) => self.greatest_low(outer) * length + self.greatest_low(inner),
            (Relation::Bound { bounded, .. }, _) => self.greatest_low(bounded),
            // It is not asked about what is not cut.
            _ => self.statement.extents[variable],
        }
    }
}
