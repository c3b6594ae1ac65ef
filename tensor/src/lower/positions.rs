//! Loops over positions of an operand, as loops over the levels that they are of.
//!
//! A loop over a range of positions visits, from the outermost level inwards, what has positions of that range below
//! it: a part of the elements that may begin and end in the middle of a row (Senanayake et al., *A sparse iteration
//! space transformation framework for sparse tensor algebra*, OOPSLA 2020). The rows at both ends are found by a
//! search, and what is reduced over a row is combined with the result once. Where several threads have a part each,
//! only the rows at the ends of the parts may have elements in others: what these give is combined atomically, the rest
//! is not.
//!
//! A loop that is no range of positions, as one over blocks inside of one over what is in them, finds the coordinates
//! of each position by a search.

use std::ops;

use super::leaf::{Around, Border, Division, LoopParts, Lowering, kind};
use super::storage::{Storage, StoragePlace, StoredLevel};
use super::support::{GivenAccesses, Support};
use crate::concrete::{Loop, Positions, Relation, Statement, StatementNode};
use crate::element::ElementType::I64;
use crate::loops::{Expression, LoopKind, Statement as Step, Variable};
use crate::notation::{Access, IndexVariable};

/// Why other levels are not met here.
const NO_POSITIONS: &str = "loops go through positions of formats whose levels store dimensions";

/// The target of an assignment in `node`, which is inside of a loop, that may change where `access` stores nothing.
pub fn acts_without<'s>(statement: &'s Statement, node: &'s StatementNode, access: &Access) -> Option<&'s Access> {
    let mut lowering = Lowering::new(statement, &[]);
    lowering.append_result();
    lowering.visit_all(&|_| true);
    let visit = lowering.visit(access)?;
    lowering.places[visit] = StoragePlace::Absent;
    let acts = lowering.effect(node, &mut GivenAccesses::default()) != Support::Never;
    node.sites().last().map(|site| site.target).filter(|_| acts)
}

/// A loop over a range of positions.
struct Range<'a> {
    outer: &'a Loop,
    body: &'a StatementNode,
    positions: &'a Positions,
    visit: usize,
    /// The position at which the variable of the loop is 0.
    begin: Expression,
    /// How the loop over positions of the innermost level runs.
    kind: LoopKind,
    /// The first position in the range of each level, and that after the last.
    ends: Vec<(Variable, Variable)>,
    /// How many loops are around it.
    depth: usize,
}

impl<'a> Lowering<'a> {
    /// The visit of the operand whose positions a relation has, if it is stored in levels.
    fn of_stored(&self, relation: &'a Relation) -> Option<(&'a Positions, usize)> {
        let Relation::Positions(positions) = relation else { return None };
        Some((positions, self.visit(&positions.access)?))
    }

    /// All positions of operands that are stored in levels.
    pub(super) fn all_positions(&self) -> Vec<(&'a Positions, usize)> {
        self.statement.relations.iter().filter_map(|relation| self.of_stored(relation)).collect()
    }

    /// Whether the coordinates that are recovered by a relation are those that an operand stores.
    pub(super) fn is_stored(&self, relation: &'a Relation) -> bool {
        self.of_stored(relation).is_some()
    }

    fn level(&self, visit: usize, level: usize) -> &StoredLevel {
        match self.stored(visit) {
            Storage::Levels(levels) => &levels.levels[level],
            _ => unreachable!("positions are those of operands"),
        }
    }

    /// The positions of a level that are below a range of those of the level above; the root is the only position above
    /// the outermost.
    pub(super) fn below(&self, visit: usize, level: usize, above: ops::Range<Expression>) -> ops::Range<Expression> {
        match self.level(visit, level) {
            StoredLevel::Dense(extent, _) => above.start * extent.value()..above.end * extent.value(),
            StoredLevel::Compressed { pos, .. } => pos.load([above.start]).cast(I64)..pos.load([above.end]).cast(I64),
            StoredLevel::Singleton(_) => above,
            StoredLevel::Counter { slots, .. } => above.start * slots.value()..above.end * slots.value(),
            StoredLevel::Bits { .. } | StoredLevel::Diagonals { .. } => {
                unreachable!("{NO_POSITIONS}")
            }
        }
    }

    /// Binds where positions begin, and how many there are, which the extents of variables that were made of them
    /// follow.
    pub(super) fn begin_positions(&mut self, positions: &'a Positions, visit: usize) -> Vec<Step> {
        let (low, count) = match (&self.places[visit], self.level(visit, positions.level)) {
            (_, _) if self.counts.contains_key(&positions.position) => {
                (0.into(), self.counts[&positions.position].clone())
            }
            // All that there are.
            (_, StoredLevel::Compressed { crd, .. } | StoredLevel::Singleton(crd)) if positions.outermost == 0 => {
                (0.into(), crd.high(0))
            }
            (StoragePlace::Level(_, above) | StoragePlace::Maybe(_, above, _), _) => {
                let mut range = above.clone()..above.clone() + 1;
                for level in positions.outermost..=positions.level {
                    range = self.below(visit, level, range);
                }
                let count = range.end - range.start.clone();
                match &self.places[visit] {
                    StoragePlace::Maybe(.., is_stored) => (range.start, is_stored.value().equal(1).select(count, 0)),
                    _ => (range.start, count),
                }
            }
            _ => (0.into(), 0.into()),
        };
        let (begin, all) = (self.names.index("begin"), self.names.index(&format!("n_{}", positions.position)));
        let mut steps = vec![Step::bind(&begin, low), Step::bind(&all, count)];
        self.begins.insert(positions.position.clone(), begin.value());
        let is_outside = positions.outermost == 0;
        let (position, count) = (&positions.position, all.value());
        steps.extend(self.sizes.count(self.statement, &mut self.names, position, count, is_outside));
        steps
    }

    /// The loop, after it is known how many positions there are that it goes through a part of.
    pub(super) fn counted(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let is_new = |(positions, _): &(&Positions, usize)| {
            let position = &positions.position;
            !self.begins.contains_key(position) && self.statement.descends(&outer.variable, position)
        };
        let (positions, visit) = self.all_positions().into_iter().find(is_new)?;
        let before = (self.begins.clone(), self.sizes.clone());
        let mut steps = self.begin_positions(positions, visit);
        steps.push(self.forall(outer, body));
        (self.begins, self.sizes) = before;
        Some(Step::Sequence(steps))
    }

    /// The loop, if it is over a range of positions.
    pub(super) fn over_positions(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let (positions, visit, base) = self.all_positions().into_iter().find_map(|(positions, visit)| {
            let position = &positions.position;
            let is_known = self.known.contains_key(position) || !self.begins.contains_key(position);
            let base = self.base(&outer.variable, position).filter(|_| !is_known)?;
            Some((positions, visit, base))
        })?;
        if self.effect(body, &mut GivenAccesses::default()) == Support::Never {
            return Some(Step::nothing());
        }
        let low = self.begins[&positions.position].clone();
        let begin = self.names.index("begin");
        let begins = Step::bind(&begin, base.map_or(low.clone(), |base| low + base));
        let end = begin.value() + self.high(&outer.variable).maximum(0);
        let parallel = self.is_parallel(outer, body);
        let kind = if parallel { kind(outer) } else { LoopKind::Serial };
        let ends: Vec<(Variable, Variable)> = (positions.outermost..=positions.level)
            .map(|_| (self.names.index("first"), self.names.index("end")))
            .collect();
        let innermost = ends[ends.len() - 1].clone();
        let is_threaded = kind == LoopKind::Threads;
        let inside = |lowering: &mut Self| {
            // As if the loop were around what is done for a row: a part of it is.
            lowering.around.push(Around { variable: outer.variable.clone(), parallel: is_threaded });
            let kind = if is_threaded { LoopKind::Serial } else { kind };
            let depth = lowering.around.len();
            let range = Range { outer, body, positions, visit, begin: begin.value(), kind, ends, depth };
            let mut steps = lowering.find_ends(&range);
            let (places, known) = (lowering.places.clone(), lowering.known.clone());
            steps.push(lowering.level_of(&range, positions.outermost, None));
            (lowering.places, lowering.known) = (places, known);
            lowering.around.pop();
            let (first, end) = &range.ends[range.ends.len() - 1];
            Step::when(first.value().less(end.value()), Step::Sequence(steps))
        };
        let parts = if is_threaded { LoopParts::Always } else { LoopParts::AsNeeded };
        let step = self.in_parts(body, Division { kind, parts }, begin.value()..end, inside, &|step, first, end, _| {
            Step::Sequence(vec![Step::bind(&innermost.0, first), Step::bind(&innermost.1, end), step.clone()])
        });
        Some(Step::Sequence(vec![begins, step]))
    }

    /// Binds the ends of a range that is not empty in the levels above the innermost.
    fn find_ends(&mut self, range: &Range<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        for at in (1..range.ends.len()).rev() {
            let level = range.positions.outermost + at;
            let ((first, end), (above, end_above)) = (&range.ends[at], &range.ends[at - 1]);
            let (found, parent) = self.parent(range.visit, level, first.value(), None);
            steps.extend(found);
            steps.push(Step::bind(above, parent));
            let (found, parent) = self.parent(range.visit, level, end.value() - 1, Some(above.value()));
            steps.extend(found);
            steps.push(Step::bind(end_above, parent + 1));
        }
        steps
    }

    /// The position in the level above of a position of a level, which is that of `least` or later, if that is known,
    /// and the steps that find it.
    fn parent(
        &mut self,
        visit: usize,
        level: usize,
        position: Expression,
        least: Option<Expression>,
    ) -> (Vec<Step>, Expression) {
        let pos = match self.level(visit, level) {
            StoredLevel::Dense(extent, _) => return (Vec::new(), position.floor_divide(extent.value().maximum(1))),
            StoredLevel::Compressed { pos, .. } => pos.clone(),
            StoredLevel::Singleton(_) => return (Vec::new(), position),
            StoredLevel::Counter { slots, .. } => {
                return (Vec::new(), position.floor_divide(slots.value().maximum(1)));
            }
            StoredLevel::Bits { .. } | StoredLevel::Diagonals { .. } => {
                unreachable!("{NO_POSITIONS}")
            }
        };
        let least = least.unwrap_or_else(|| if self.counts.is_empty() { 0.into() } else { pos.low(0) });
        let [low, high, step, middle] = ["low", "high", "step", "middle"].map(|name| self.names.index(name));
        // It is the first position after whose segment there are others.
        let is_before = |at: Expression| pos.load([at + 1]).cast(I64).less_equal(position.clone());
        let parents = pos.high(0) - 1;
        // From `least` in steps of twice the length: those that are near are found soon.
        let leap = Step::Sequence(vec![
            Step::set(&low, high.value() + 1),
            Step::set(&high, (high.value() + step.value()).minimum(parents.clone() - 1)),
            Step::set(&step, step.value() * 2),
        ]);
        let halve = Step::Sequence(vec![
            Step::bind(&middle, low.value() + (high.value() - low.value()).floor_divide(2)),
            Step::choose(
                is_before(middle.value()),
                Step::set(&low, middle.value() + 1),
                Step::set(&high, middle.value()),
            ),
        ]);
        let steps = vec![
            Step::bind_mutable(&low, least.clone()),
            Step::bind_mutable(&high, least),
            Step::bind_mutable(&step, 1),
            Step::repeat_while(is_before(high.value()), leap),
            Step::repeat_while(low.value().less(high.value()), halve),
        ];
        (steps, low.value())
    }

    /// The coordinate of a position of a level.
    fn coordinate_at(&self, visit: usize, level: usize, position: Expression, above: Option<Expression>) -> Expression {
        match (self.level(visit, level), above) {
            (StoredLevel::Dense(extent, _), Some(above)) => position - above * extent.value(),
            (StoredLevel::Dense(..), None) => position,
            (
                StoredLevel::Compressed { crd, .. } | StoredLevel::Singleton(crd) | StoredLevel::Counter { crd, .. },
                _,
            ) => crd.load([position]).cast(I64),
            (StoredLevel::Bits { .. } | StoredLevel::Diagonals { .. }, _) => {
                unreachable!("{NO_POSITIONS}")
            }
        }
    }

    /// A loop over the positions of a level that are below the one `above`, as far as they are in the range.
    fn level_of(&mut self, range: &Range<'_>, level: usize, above: Option<Expression>) -> Step {
        let Range { positions, visit, .. } = *range;
        let (first, end) = &range.ends[level - positions.outermost];
        let (low, high) = match &above {
            None => (first.value(), end.value()),
            Some(above) => {
                let below = self.below(visit, level, above.clone()..above.clone() + 1);
                (below.start.maximum(first.value()), below.end.minimum(end.value()))
            }
        };
        let outside = || match &self.places[visit] {
            StoragePlace::Level(_, above) | StoragePlace::Maybe(_, above, _) if positions.outermost > 0 => {
                Some(above.clone())
            }
            _ => None,
        };
        let above = above.or_else(outside);
        // Singleton levels below have the same positions.
        let is_singleton = |below: &usize| matches!(self.level(visit, *below), StoredLevel::Singleton(_));
        let lowest = (level + 1..=positions.level).take_while(is_singleton).last().unwrap_or(level);
        let position = self.names.index("p");
        let (places, known) = (self.places.clone(), self.known.clone());
        let (mut steps, mut is_there) = (Vec::new(), None);
        for number in level..=lowest {
            let variable = positions.variable(number).clone();
            let at = self.names.index(variable.name());
            let above = above.clone().filter(|_| number == level);
            steps.push(Step::bind(&at, self.coordinate_at(visit, number, position.value(), above)));
            if matches!(self.level(visit, number), StoredLevel::Singleton(_)) {
                // What says that nothing is stored is no coordinate.
                let own = at.value().less(self.sizes.extent(self.statement, &variable));
                is_there = Some(is_there.map_or(own.clone(), |all: Expression| all.and(own)));
            }
            self.known.insert(variable, at.value());
        }
        self.places[visit] = StoragePlace::Level(lowest + 1, position.value());
        let visits = self.visits_in(range.body);
        let mut inside = Vec::new();
        let is_last = lowest == positions.level;
        if is_last {
            let (place, element) = self.with_element(visit, lowest, range.body, &position);
            self.places[visit] = place;
            inside.extend(element);
            self.know_fused(&positions.parent);
            let value = position.value() - range.begin.clone();
            let lanes = range.kind == LoopKind::Vector;
            inside.push(self.iteration(range.outer, range.body, value, lanes));
        } else {
            let is_end = position.value().equal(first.value()).or(position.value().equal(end.value() - 1));
            // Where a coordinate may be there several times, each of its positions may be one of several parts.
            let properties = self.visits[visit].format.properties();
            let is_border =
                if properties[..=lowest].iter().all(|level| level.unique) { is_end } else { Expression::Bool(true) };
            self.borders.push(Border {
                position: positions.position.clone(),
                variables: (positions.outermost..=lowest).map(|level| positions.variable(level).clone()).collect(),
                depth: range.depth,
                is_border,
            });
            let below = &mut |lowering: &mut Self| lowering.row(range, lowest + 1, position.value());
            inside.push(self.located(&visits, below));
            self.borders.pop();
        }
        (self.places, self.known) = (places, known);
        match is_there {
            Some(is_there) => steps.push(Step::when(is_there, Step::Sequence(inside))),
            None => steps.append(&mut inside),
        }
        let step = Step::for_each(&position, low, high, Step::Sequence(steps));
        if is_last { step.with_kind(range.kind).with_unroll(range.outer.unroll) } else { step }
    }

    /// The step below a position of the level above: into a scalar, if all values below the position are combined in
    /// one element.
    fn row(&mut self, range: &Range<'_>, level: usize, above: Expression) -> Step {
        let mut node = range.body;
        while let StatementNode::Forall(_, body) = node {
            node = body;
        }
        let inside = |lowering: &mut Self| lowering.level_of(range, level, Some(above.clone()));
        if let StatementNode::Assign { target, operator: Some(operator), .. } = node
            && target.variables.iter().all(|variable| self.recovered(variable).is_some())
            && let Some(step) = self.in_scalar(target, *operator, inside)
        {
            return step;
        }
        self.level_of(range, level, Some(above))
    }

    /// The value of what variables whose values are known were fused to, which is then known.
    fn know_fused(&mut self, variable: &IndexVariable) -> Option<Expression> {
        if let Some(known) = self.known.get(variable) {
            return Some(known.clone());
        }
        let made_by = self.statement.relations.iter().find(|relation| relation.children().contains(&variable));
        let Some(Relation::Fuse { outer, inner, .. }) = made_by else { return None };
        let value = self.know_fused(outer)? * self.sizes.extent(self.statement, inner) + self.know_fused(inner)?;
        self.known.insert(variable.clone(), value.clone());
        Some(value)
    }

    /// The steps that find the coordinates of a position that is known.
    pub(super) fn at_position(&mut self, relation: &'a Relation) -> Option<Vec<Step>> {
        let (positions, visit) = self.of_stored(relation)?;
        let value = self.known.get(&positions.position)?.clone();
        let begin = self.begins.get(&positions.position)?.clone();
        let place = self.names.index("p");
        let mut steps = vec![Step::bind(&place, begin + value)];
        let mut position = place.value();
        for level in (positions.outermost..=positions.level).rev() {
            let variable = positions.variable(level).clone();
            let at = self.names.index(variable.name());
            let above = if level == 0 {
                None
            } else if level == positions.outermost {
                match &self.places[visit] {
                    StoragePlace::Level(_, above) | StoragePlace::Maybe(_, above, _) => Some(above.clone()),
                    _ => None,
                }
            } else {
                let (found, above) = self.parent(visit, level, position.clone(), None);
                steps.extend(found);
                Some(above)
            };
            steps.push(Step::bind(&at, self.coordinate_at(visit, level, position.clone(), above.clone())));
            self.known.insert(variable, at.value());
            position = above.unwrap_or(position);
        }
        self.places[visit] = StoragePlace::Level(positions.level + 1, place.value());
        self.know_fused(&positions.parent)?;
        Some(steps)
    }

    /// Whether it has to be seen to that parallel loops, by their numbers, that reduce into an element do not do so at
    /// the same time: only if the row is one that others have a part of.
    pub(super) fn border(&self, target: &[IndexVariable], shared: &[usize]) -> Option<Expression> {
        let is_one = |border: &&Border| {
            border.variables.iter().all(|variable| target.contains(variable))
                && shared.iter().all(|&number| {
                    number < border.depth && self.statement.descends(&self.around[number].variable, &border.position)
                })
        };
        self.borders.iter().rev().find(is_one).map(|border| border.is_border.clone())
    }
}
