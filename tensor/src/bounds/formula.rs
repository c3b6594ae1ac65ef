//! Intervals as functions of the values of some loops: what there is to know of a statement is found once, and then
//! evaluated for any values.

use std::collections::BTreeMap;

use super::Interval;
use crate::concrete::{Loop, Relation, Statement, StatementNode};
use crate::notation::{Access, Expression, IndexVariable, TensorVariable};
use crate::rectangle::Rectangle;

/// How an interval follows from values, and from intervals before it, which are told by their positions.
#[derive(Clone, Debug)]
enum Formula {
    /// The value of a loop, told by its position.
    Value(usize),
    /// All values from zero to before this one.
    All(i64),
    /// `outer * length + inner`, cut at the extent.
    Blocks { outer: usize, inner: usize, length: i64, extent: i64 },
    /// `inner` after the beginning of part `outer`, cut at its end, which is the beginning of the next.
    Parts { outer: usize, inner: usize, ends: Vec<i64> },
    /// The sum of the only values of these, modulo the extent.
    Rotated { sources: Vec<usize>, extent: i64 },
    /// `fused / length`.
    Quotient { fused: usize, length: i64 },
    /// `fused % length`.
    Remainder { fused: usize, length: i64 },
}

const NONE: Interval = Interval { low: 0, high: 0 };

impl Formula {
    /// The formulas that it depends on.
    fn sources(&self) -> Vec<usize> {
        match self {
            Self::Value(_) | Self::All(_) => Vec::new(),
            Self::Blocks { outer, inner, .. } | Self::Parts { outer, inner, .. } => vec![*outer, *inner],
            Self::Rotated { sources, .. } => sources.clone(),
            Self::Quotient { fused, .. } | Self::Remainder { fused, .. } => vec![*fused],
        }
    }

    fn evaluate(&self, values: &[i64], before: &[Interval]) -> Interval {
        match self {
            Self::Value(position) => Interval { low: values[*position], high: values[*position] + 1 },
            Self::All(extent) => Interval { low: 0, high: *extent },
            Self::Blocks { outer, inner, length, extent } => {
                let (outer, inner) = (before[*outer], before[*inner]);
                if outer.is_empty() || inner.is_empty() {
                    return NONE;
                }
                let (low, high) = (outer.low * length + inner.low, outer.last() * length + inner.high);
                Interval { low: low.min(*extent), high: high.min(*extent) }
            }
            Self::Parts { outer, inner, ends } => {
                let (outer, inner) = (before[*outer], before[*inner]);
                if outer.is_empty() || inner.is_empty() {
                    return NONE;
                }
                let end = |part: i64| ends[part.clamp(0, ends.len() as i64 - 1) as usize];
                let high = (end(outer.last()) + inner.high).min(end(outer.high));
                Interval { low: (end(outer.low) + inner.low).min(high), high }
            }
            Self::Rotated { sources, extent } => {
                if sources.iter().any(|source| !before[*source].is_single()) {
                    return Interval { low: 0, high: *extent };
                }
                let sum: i64 = sources.iter().map(|source| before[*source].low).sum();
                let value = sum % (*extent).max(1);
                Interval { low: value, high: value + 1 }
            }
            Self::Quotient { fused, .. } | Self::Remainder { fused, .. } if before[*fused].is_empty() => NONE,
            // There are values, so the length is not zero.
            Self::Quotient { fused, length } => {
                let fused = before[*fused];
                Interval { low: fused.low / length, high: fused.last() / length + 1 }
            }
            Self::Remainder { fused, length } => {
                let fused = before[*fused];
                if fused.low / length == fused.last() / length {
                    Interval { low: fused.low % length, high: fused.last() % length + 1 }
                } else {
                    Interval { low: 0, high: *length }
                }
            }
        }
    }
}

/// Formulas, each after those that it depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Formulas {
    all: Vec<Formula>,
    /// Of the variable of each, how many values it has in all.
    extents: Vec<i64>,
}

impl Formulas {
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn extent(&self, position: usize) -> i64 {
        self.extents[position]
    }

    /// Whether there is one value at most, whatever the loops' values are.
    fn is_single(&self, position: usize) -> bool {
        match &self.all[position] {
            // Blocks are cut at the end.
            _ if self.extents[position] <= 1 => true,
            Formula::All(_) => false,
            other => other.sources().into_iter().all(|source| self.is_single(source)),
        }
    }

    /// The positions of the formulas on which an interval depends: none, if the interval has all values.
    pub(super) fn below(&self, position: usize) -> Vec<usize> {
        match &self.all[position] {
            Formula::Rotated { .. } if !self.is_single(position) => Vec::new(),
            other => other.sources(),
        }
    }

    /// Whether an interval depends on others in the same way as another one.
    pub(super) fn is_like(&self, here: usize, other: &Self, there: usize) -> bool {
        self.extents[here] == other.extents[there]
            && match (&self.all[here], &other.all[there]) {
                (Formula::Blocks { length: mine, .. }, Formula::Blocks { length: others, .. })
                | (Formula::Quotient { length: mine, .. }, Formula::Quotient { length: others, .. })
                | (Formula::Remainder { length: mine, .. }, Formula::Remainder { length: others, .. }) => {
                    mine == others
                }
                (Formula::Parts { ends: mine, .. }, Formula::Parts { ends: others, .. }) => mine == others,
                (Formula::All(_) | Formula::Rotated { .. }, Formula::All(_) | Formula::Rotated { .. }) => true,
                _ => false,
            }
    }

    /// Adds those with one value, which depends on loops, on which the interval of a variable depends.
    pub(super) fn single_below(&self, position: usize, found: &mut Vec<usize>) {
        match &self.all[position] {
            Formula::All(_) => {}
            _ if self.is_single(position) => found.push(position),
            // It is all values.
            Formula::Rotated { .. } => {}
            other => other.sources().into_iter().for_each(|source| self.single_below(source, found)),
        }
    }

    /// Adds the positions of the loops on which the interval of a variable depends.
    pub(super) fn loops_below(&self, position: usize, found: &mut Vec<usize>) {
        match &self.all[position] {
            Formula::Value(of_loop) => found.push(*of_loop),
            other => other.sources().into_iter().for_each(|source| self.loops_below(source, found)),
        }
    }

    pub(super) fn evaluate(&self, values: &[i64]) -> Vec<Interval> {
        let mut intervals = Vec::with_capacity(self.all.len());
        for formula in &self.all {
            let interval = formula.evaluate(values, &intervals);
            intervals.push(interval);
        }
        intervals
    }

    /// The same, once for each combination of parts of fused loops for which the intervals of both loops that were
    /// fused are exact. Some intervals may be known to be single values.
    pub(super) fn cases(&self, values: &[i64], known: &[Option<i64>]) -> Vec<Vec<Interval>> {
        let mut cases = vec![Vec::with_capacity(self.all.len())];
        for (position, formula) in self.all.iter().enumerate() {
            if let Some(value) = known.get(position).copied().flatten() {
                // Blocks may reach beyond the end.
                let high = (value + 1).min(self.extents[position]);
                cases.iter_mut().for_each(|case| case.push(Interval { low: value, high }));
                continue;
            }
            if let Formula::Quotient { fused, length } | Formula::Remainder { fused, length } = formula {
                let divided = |case: Vec<Interval>| {
                    let parts = whole_rows(case[*fused], *length);
                    parts.into_iter().map(move |part| {
                        let mut case = case.clone();
                        case[*fused] = part;
                        case
                    })
                };
                cases = cases.into_iter().flat_map(divided).collect();
            }
            for case in &mut cases {
                let interval = formula.evaluate(values, case);
                case.push(interval);
            }
        }
        cases
    }
}

/// An interval in parts that are within a row of this length each, or whole rows.
fn whole_rows(interval: Interval, length: i64) -> Vec<Interval> {
    if interval.is_empty() || interval.low / length == interval.last() / length {
        return vec![interval];
    }
    let (from, to) = ((interval.low + length - 1) / length * length, interval.high / length * length);
    let parts = [(interval.low, from), (from, to), (to, interval.high)];
    parts.into_iter().map(|(low, high)| Interval { low, high }).filter(|part| !part.is_empty()).collect()
}

/// An access, and what its rectangle depends on.
pub(super) struct AccessFormula<'n> {
    pub(super) access: &'n Access,
    /// The variables that need values, or nothing is accessed.
    needed: Vec<usize>,
    dimensions: Vec<usize>,
}

impl AccessFormula<'_> {
    pub(super) fn rectangle(&self, intervals: &[Interval]) -> Rectangle {
        rectangle(&self.needed, &self.dimensions, intervals)
    }
}

fn rectangle(needed: &[usize], dimensions: &[usize], intervals: &[Interval]) -> Rectangle {
    let happens = needed.iter().all(|variable| !intervals[*variable].is_empty());
    Rectangle::new(dimensions.iter().map(|variable| match intervals[*variable] {
        Interval { low, high } if happens => (low, high),
        _ => (0, 0),
    }))
}

/// Finds the formulas of a statement, given which loops will have values.
pub(super) struct Finder<'a> {
    statement: &'a Statement,
    fixed: &'a [IndexVariable],
    formulas: Formulas,
    known: BTreeMap<IndexVariable, usize>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(statement: &'a Statement, fixed: &'a [IndexVariable]) -> Self {
        Self { statement, fixed, formulas: Formulas::default(), known: BTreeMap::new() }
    }

    pub(super) fn formulas(self) -> Formulas {
        self.formulas
    }

    /// The position of the formula for `variable`. One that the statement does not have has no values.
    pub(super) fn variable(&mut self, variable: &IndexVariable) -> usize {
        if let Some(&position) = self.known.get(variable) {
            return position;
        }
        let is_position =
            self.statement.positions().any(|positions| self.statement.descends(variable, &positions.position));
        let formula = match self.statement.extent(variable) {
            None => Formula::All(0),
            // How many positions there are, and so how long parts of them are, is known when it runs.
            Some(extent) if is_position && !self.fixed.contains(variable) => Formula::All(extent),
            Some(extent) => match self.fixed.iter().position(|fixed| fixed == variable) {
                Some(position) => Formula::Value(position),
                None => match self.statement.recovery(variable) {
                    None => Formula::All(extent),
                    Some(Relation::Bound { bounded, .. }) => {
                        let position = self.variable(bounded);
                        self.known.insert(variable.clone(), position);
                        return position;
                    }
                    Some(relation) => self.recovered(variable, relation, extent),
                },
            },
        };
        self.formulas.all.push(formula);
        self.formulas.extents.push(self.statement.extent(variable).unwrap_or(0));
        let position = self.formulas.all.len() - 1;
        self.known.insert(variable.clone(), position);
        position
    }

    fn recovered(&mut self, variable: &IndexVariable, relation: &Relation, extent: i64) -> Formula {
        match relation {
            Relation::Split { outer, inner, factor: length, .. } | Relation::Divide { outer, inner, length, .. } => {
                let (outer, inner) = (self.variable(outer), self.variable(inner));
                Formula::Blocks { outer, inner, length: *length, extent }
            }
            Relation::SplitAt { outer, inner, points, extent, .. } => {
                let (outer, inner) = (self.variable(outer), self.variable(inner));
                let ends = [0].into_iter().chain(points.iter().copied()).chain([*extent]).collect();
                Formula::Parts { outer, inner, ends }
            }
            Relation::Rotate { .. } => {
                let sources = relation.sources().into_iter().map(|source| self.variable(source)).collect();
                Formula::Rotated { sources, extent }
            }
            Relation::Fuse { outer, fused, extent: length, .. } => {
                let (fused, length) = (self.variable(fused), *length);
                if variable == outer {
                    Formula::Quotient { fused, length }
                } else {
                    Formula::Remainder { fused, length }
                }
            }
            // What is stored, is known when it runs; of dimensions that parts are taken of, or that are shifted, all.
            Relation::Bound { .. } | Relation::Positions(_) | Relation::Window { .. } => Formula::All(extent),
        }
    }

    /// The accesses in `node`, which is what is inside of the loops whose values will be known, to tensors that are
    /// wanted.
    pub(super) fn accesses<'n>(
        &mut self,
        node: &'n StatementNode,
        is_wanted: impl Fn(&TensorVariable) -> bool,
    ) -> Vec<AccessFormula<'n>> {
        let mut found = Vec::new();
        for site in node.sites() {
            let accesses = std::iter::once(site.target).chain(site.value.accesses());
            let wanted: Vec<&Access> = accesses.filter(|access| is_wanted(&access.tensor)).collect();
            if wanted.is_empty() {
                continue;
            }
            let needed = self.needed(&site.loops);
            for access in wanted {
                let dimensions = access.variables.iter().map(|variable| self.variable(variable)).collect();
                found.push(AccessFormula { access, needed: needed.clone(), dimensions });
            }
        }
        found
    }

    /// The variables that must have values, or an assignment inside of `loops`, and of those with known values, never
    /// happens.
    fn needed(&mut self, loops: &[&Loop]) -> Vec<usize> {
        let statement = self.statement;
        let around = |variable: &IndexVariable| {
            self.fixed.contains(variable) || loops.iter().any(|outer| outer.variable == *variable)
        };
        // Nothing happens where a block reaches beyond the end of what was split.
        let guarded = statement.relations.iter().filter(|relation| relation.blocks().is_some());
        let guarded = guarded.flat_map(Relation::parents);
        let guarded: Vec<_> = guarded.filter(|parent| statement.dependencies(parent).iter().all(around)).collect();
        let all = loops.iter().map(|outer| &outer.variable).chain(guarded);
        let mut needed: Vec<usize> = all.map(|variable| self.variable(variable)).collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }
}

/// The part of a tensor that a part of a statement uses, as a function of the values of the loops around it.
///
/// [`Bounds::tensor`](super::Bounds::tensor) says the same for values that are known already. Where many values are to
/// come, this is far quicker.
#[derive(Clone, Debug)]
pub struct RectangleOf {
    pub(super) formulas: Formulas,
    /// Of each access: what it needs, and its dimensions.
    pub(super) accesses: Vec<(Vec<usize>, Vec<usize>)>,
    pub(super) order: usize,
    /// The number of loops with values.
    pub(super) loops: usize,
}

impl RectangleOf {
    /// The rectangle of `tensor` in `node`, which is what is inside of the loops over `fixed`.
    pub fn new(statement: &Statement, node: &StatementNode, tensor: &str, fixed: &[IndexVariable]) -> Self {
        let mut finder = Finder::new(statement, fixed);
        let accesses = finder.accesses(node, |other| other.name() == tensor);
        let order = statement.tensors().iter().find(|known| known.name() == tensor).map_or(0, |known| known.order());
        let accesses = accesses.into_iter().map(|access| (access.needed, access.dimensions)).collect();
        Self { formulas: finder.formulas(), accesses, order, loops: fixed.len() }
    }

    /// The rectangle where the loops have these values, in their order: the smallest one with all that the accesses
    /// use. It is empty for a tensor that is not used, or if nothing happens there.
    ///
    /// # Panics
    ///
    /// If there are fewer values than loops.
    pub fn at(&self, values: &[i64]) -> Rectangle {
        self.hull(&self.formulas.evaluate(values))
    }

    /// The same without what the accesses surely do not use where a part of a fused loop is known: disjoint rectangles,
    /// none of them empty. Seven elements from the middle of a row on are the rest of this row, whole rows, and the
    /// beginning of another.
    ///
    /// # Panics
    ///
    /// If there are fewer values than loops.
    pub fn parts(&self, values: &[i64]) -> Vec<Rectangle> {
        apart(self.formulas.cases(values, &[]).iter().map(|case| self.hull(case)), self.order)
    }

    fn hull(&self, intervals: &[Interval]) -> Rectangle {
        let rectangles = self.accesses.iter().map(|(needed, dimensions)| rectangle(needed, dimensions, intervals));
        rectangles.reduce(|first, second| first.hull(&second)).unwrap_or_else(|| Rectangle::empty(self.order))
    }
}

/// The union of some rectangles, as disjoint rectangles; as a single one, if the union is a rectangle.
pub(super) fn apart(rectangles: impl Iterator<Item = Rectangle>, order: usize) -> Vec<Rectangle> {
    let mut parts: Vec<Rectangle> = Vec::new();
    for rectangle in rectangles.filter(|rectangle| !rectangle.is_empty()) {
        let mut rest = vec![rectangle];
        for known in &parts {
            rest = rest.iter().flat_map(|part| part.minus(known)).collect();
        }
        parts.append(&mut rest);
    }
    if parts.len() > 1 {
        let hull = parts.iter().fold(Rectangle::empty(order), |hull, part| hull.hull(part));
        if parts.iter().map(Rectangle::volume).sum::<i64>() == hull.volume() {
            return vec![hull];
        }
    }
    parts
}

/// How many operations a part of a statement does, as a function of the values of the loops around it.
#[derive(Clone, Debug)]
pub struct IterationsOf {
    formulas: Formulas,
    /// Of each assignment: what it needs, the variables that it runs over, and the operations of each iteration.
    sites: Vec<(Vec<usize>, Vec<usize>, i64)>,
}

impl IterationsOf {
    /// The operations inside of the loops over `fixed`, which are the outermost ones.
    pub fn new(statement: &Statement, fixed: &[IndexVariable]) -> Self {
        let mut finder = Finder::new(statement, fixed);
        let sites = statement.body.sites();
        let sites = sites.into_iter().map(|site| {
            let mut original = Vec::new();
            for variable in site.loops.iter().flat_map(|outer| statement.ancestors(&outer.variable)) {
                if !original.contains(&variable) {
                    original.push(variable);
                }
            }
            let around: Vec<&Loop> =
                site.loops.iter().copied().filter(|outer| !fixed.contains(&outer.variable)).collect();
            let needed = finder.needed(&around);
            let variables = original.iter().map(|variable| finder.variable(variable)).collect();
            (needed, variables, operators(site.value) + i64::from(site.operator.is_some()))
        });
        let sites = sites.collect();
        Self { formulas: finder.formulas(), sites }
    }

    /// The number of operations where the loops have these values: exact where [intervals](crate::bounds) are, and
    /// otherwise at least as many as there are.
    pub fn operations(&self, values: &[i64]) -> i64 {
        let intervals = self.formulas.evaluate(values);
        let of = |(needed, variables, each): &(Vec<usize>, Vec<usize>, i64)| {
            if needed.iter().any(|variable| intervals[*variable].is_empty()) {
                return 0;
            }
            let extents = variables.iter().map(|variable| intervals[*variable].high - intervals[*variable].low);
            extents.fold(*each, |product: i64, extent: i64| product.saturating_mul(extent.max(0)))
        };
        self.sites.iter().map(of).fold(0, i64::saturating_add)
    }
}

/// The number of operators in an expression.
fn operators(value: &Expression) -> i64 {
    let operands = value.operands();
    i64::from(!operands.is_empty()) + operands.into_iter().map(operators).sum::<i64>()
}
