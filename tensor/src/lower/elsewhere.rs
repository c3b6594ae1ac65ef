//! Reductions of which all values are alike where nothing is stored: these are combined at once.
//!
//! A minimum, a maximum, `and` and `or` do not change when a value is combined once more. So `reduce(min, j, A(i,j))`
//! goes through what `A` stores in a row, and combines what it is filled with once, if it does not store all of the
//! row. A sum has so many times that value. What is found among all elements of a tensor goes through its elements as
//! they are stored, on lanes.

use super::iterate::Driven;
use super::leaf::{Division, LoopParts, Lowering, kind};
use super::storage::{Levels, Storage, StoragePlace, StoredLevel, is_found};
use super::support::GivenAccesses;
use crate::concrete::{Loop, Statement, StatementNode};
use crate::element::{ElementType, Scalar};
use crate::format::Level;
use crate::loops::{Expression, LoopKind, Reduction, Statement as Step};
use crate::notation::{Access, Expression as Value, IndexVariable};

/// A reduction of the iterations of a loop into one element.
struct Combined<'n> {
    target: &'n Access,
    operator: Reduction,
    value: &'n Value,
    /// The loops, from the outermost.
    loops: Vec<&'n IndexVariable>,
    assignment: &'n StatementNode,
}

/// Whether a value changes nothing when it is combined once more.
fn is_idempotent(operator: Reduction) -> bool {
    matches!(operator, Reduction::Minimum | Reduction::Maximum | Reduction::And | Reduction::Or)
}

/// Whether the loop over `variable` goes through what one operand stores, although iterations have an effect elsewhere,
/// as all are alike there.
pub fn is_alike_elsewhere(statement: &Statement, variable: &IndexVariable, body: &StatementNode) -> bool {
    let mut lowering = Lowering::new(statement, &[]);
    lowering.append_result();
    lowering.visit_all(&|_| true);
    // As if all levels above were behind.
    let mut iterated = Vec::new();
    for visit in lowering.visits_in(body) {
        let levels = lowering.visits[visit].format.levels().to_vec();
        let depends = |level: usize| statement.dependencies(lowering.visits[visit].variable(level)).contains(variable);
        iterated.extend(
            (0..levels.len()).find(|&level| !is_found(levels[level]) && depends(level)).map(|level| (visit, level)),
        );
    }
    let [(visit, level)] = iterated[..] else { return false };
    lowering.alike_elsewhere(variable, body, visit, level).is_some()
}

impl Lowering<'_> {
    /// The reduction that a loop does, if it goes into one element.
    fn combined<'n>(&self, variable: &'n IndexVariable, body: &'n StatementNode) -> Option<Combined<'n>> {
        let (mut loops, mut node) = (vec![variable], body);
        while let StatementNode::Forall(inner, body) = node {
            loops.push(&inner.variable);
            node = body;
        }
        let StatementNode::Assign { target, operator: Some(operator), value } = node else { return None };
        let depends =
            |own: &IndexVariable| self.statement.dependencies(own).iter().any(|dependency| loops.contains(&dependency));
        let is_one = !target.variables.iter().any(depends) && self.statement.positions().next().is_none();
        is_one.then_some(Combined { target, operator: *operator, value, loops, assignment: node })
    }

    /// The reduction that a loop does, and the value that it combines where an access stores nothing, if that is one
    /// value, which can be combined at once.
    fn alike_elsewhere<'n>(
        &mut self,
        variable: &'n IndexVariable,
        body: &'n StatementNode,
        visit: usize,
        level: usize,
    ) -> Option<(Combined<'n>, Scalar)> {
        let combined = self.combined(variable, body)?;
        // Each coordinate is there once.
        if !self.visits[visit].format.properties().get(level)?.unique {
            return None;
        }
        let is_sum = combined.operator == Reduction::Sum && combined.loops.len() == 1;
        let is_number = combined.target.tensor.element() != ElementType::Bool;
        if !(is_idempotent(combined.operator) || is_sum && is_number) {
            return None;
        }
        let value = self.with_place(visit, StoragePlace::Absent, |lowering| {
            lowering.term(combined.value, &GivenAccesses::default())
        });
        value.map(|term| (combined, term.value))
    }

    /// The loop over what an access stores, and then what there is elsewhere, at once; if its iterations are alike
    /// there.
    pub(super) fn at_once(&mut self, driven: &Driven<'_>, iterated: &[usize]) -> Option<Step> {
        let &[visit] = iterated else { return None };
        let (level, ..) = self.next(visit)?;
        let (outer, body) = (driven.outer, driven.body);
        let (Combined { target, operator, .. }, value) = self.alike_elsewhere(&outer.variable, body, visit, level)?;
        if self.is_counting || !matches!(self.storage.get(target.tensor.name()), Some(Storage::Scalar(_))) {
            return None;
        }
        let mut steps = Vec::new();
        let merged = self.begin(visit, driven, &mut steps);
        let count = self.names.index("count");
        steps.push(Step::bind(&count, merged.end.value() - merged.cursor.value()));
        steps.push(self.alone(driven, &merged, true));
        let high = driven.high();
        let rest = match is_idempotent(operator) {
            true => self
                .with_place(visit, StoragePlace::Absent, |lowering| lowering.iteration(outer, body, 0.into(), false)),
            false => {
                let times = (high.clone() - count.value()).cast(target.tensor.element());
                self.combine(target, times * Expression::Constant(value), operator)
            }
        };
        steps.push(Step::when(count.value().less(high), rest));
        Some(Step::Sequence(steps))
    }

    /// One iteration of a loop, if all combine the same into one element, and it does not matter how often.
    pub(super) fn once(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let Combined { target, operator, value, .. } = self.combined(&outer.variable, body)?;
        let is_scalar = matches!(self.storage.get(target.tensor.name()), Some(Storage::Scalar(_)));
        if !is_scalar || !is_idempotent(operator) || self.term(value, &GivenAccesses::default()).is_none() {
            return None;
        }
        let has_values = Expression::index(0).less(self.high(&outer.variable));
        Some(Step::when(has_values, self.iteration(outer, body, 0.into(), false)))
    }

    /// The loops over all elements that an access stores, as one over their positions; if all of them go through a
    /// whole level, one inside of the other, and combine values that follow from the elements.
    pub(super) fn flattened(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let Combined { target, operator, value, loops, assignment } = self.combined(&outer.variable, body)?;
        let is_scalar = matches!(self.storage.get(target.tensor.name()), Some(Storage::Scalar(_)));
        if !is_scalar || !is_idempotent(operator) || self.is_counting || loops.len() < 2 || has_index(value) {
            return None;
        }
        let accesses = value.accesses();
        let visit = self.visit(accesses.first()?)?;
        let is_alone = accesses.iter().all(|access| self.visit(access) == Some(visit));
        let Storage::Levels(Levels { levels, .. }) = self.storage.get(self.visits[visit].access.tensor.name())? else {
            return None;
        };
        // Diagonals are two levels that store dimensions: what is below each position is in no range.
        let is_in_ranges = levels
            .iter()
            .all(|level| matches!(level, StoredLevel::Dense(..) | StoredLevel::Compressed { is_part: false, .. }));
        let format = &self.visits[visit].format;
        let is_plain = format.levels().iter().all(|level| matches!(level, Level::Dense | Level::Compressed))
            && format.properties().iter().all(|level| level.unique && !level.ranges)
            && format.levels().last() == Some(&Level::Compressed);
        let is_whole = |(level, own): (usize, &&IndexVariable)| {
            self.visits[visit].variable(level) == *own && self.statement.recovery(own).is_none()
        };
        let are_whole = loops.len() == format.rank() && loops.iter().enumerate().all(is_whole);
        let is_at_root = self.places[visit] == StoragePlace::Level(0, Expression::index(0));
        let all = loops.iter().try_fold(1_i64, |all, own| all.checked_mul(self.statement.extent(own)?));
        let is_one = self.with_place(visit, StoragePlace::Absent, |lowering| {
            lowering.term(value, &GivenAccesses::default()).is_some()
        });
        if !is_alone || !is_in_ranges || !is_plain || !are_whole || !is_at_root || all.is_none() || !is_one {
            return None;
        }
        let rank = loops.len();
        let all_positions = (0..rank).fold(0.into()..1.into(), |above, level| self.below(visit, level, above));
        let (first, end, position) = (self.names.index("begin"), self.names.index("end"), self.names.index("p"));
        let extents = loops.iter().map(|own| self.sizes.extent(self.statement, own));
        let all = extents.reduce(|all, extent| all * extent)?;
        let parallel = self.is_parallel(outer, body) && kind(outer) == LoopKind::Threads;
        let is_found = matches!(operator, Reduction::Minimum | Reduction::Maximum);
        let on_lanes = if is_found { LoopKind::Vector } else { LoopKind::Serial };
        let kind = if parallel { LoopKind::Threads } else { on_lanes };
        let there = StoragePlace::Level(rank, position.value());
        let found = self.in_parts(
            body,
            Division { kind, parts: if parallel { LoopParts::Always } else { LoopParts::AsNeeded } },
            first.value()..end.value(),
            |lowering| lowering.with_place(visit, there, |lowering| lowering.node(assignment)),
            &|step, low, high, kind| {
                let kind = if kind == LoopKind::Serial { on_lanes } else { kind };
                Step::for_each(&position, low, high, step.clone()).with_kind(kind)
            },
        );
        let rest = self.with_place(visit, StoragePlace::Absent, |lowering| lowering.node(assignment));
        Some(Step::Sequence(vec![
            Step::bind(&first, all_positions.start),
            Step::bind(&end, all_positions.end),
            found,
            Step::when((end.value() - first.value()).less(all), rest),
        ]))
    }
}

/// Whether a value depends on index variables, and not only on elements.
fn has_index(value: &Value) -> bool {
    matches!(value, Value::Index(_)) || value.operands().into_iter().any(has_index)
}
