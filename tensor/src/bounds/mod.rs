//! Which coordinates a part of a statement uses, as intervals and rectangles.
//!
//! Given values of some loops, usually those from the outside to a certain one, [`Bounds`] tells the interval of every variable that can
//! still occur, and the rectangle of every tensor that is used. What a launch's points and steps fetch, what a leaf's views are, and
//! how many bytes move all follow from this. It is a function of the statement and the values, and of nothing else.
//!
//! Intervals cover all that occurs, and nothing beyond the tensor. They are exact where blocks are full, or cut by the end:
//!
//! | | interval of the parent |
//! | --- | --- |
//! | `i = o * f + n` | from the lowest `o` and `n` to the highest, cut at the extent; exact if `o` is known, or `n` has its whole range |
//! | `a = f / e`, `b = f % e` | exact for `a`; for `b` exact if `f` is known or `a` has one value, otherwise all |
//! | `t = (r + ...) % e` | exact if all is known, otherwise all |
//!
//! Where a variable that an assignment needs has no values, the assignment uses nothing.

mod exact;

use std::collections::BTreeMap;

use crate::concrete::{Loop, Node, Relation, Statement};
use crate::notation::{Access, IndexVariable};
use crate::rectangle::Rectangle;

pub use exact::is_exact;

/// Values from `low` to before `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lowest value.
    pub low: i64,
    /// The value after the highest.
    pub high: i64,
}

impl Interval {
    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.high <= self.low
    }

    fn is_single(self) -> bool {
        self.high == self.low + 1
    }

    fn last(self) -> i64 {
        self.high - 1
    }
}

/// What can still occur, given values of some loops.
#[derive(Clone, Debug)]
pub struct Bounds<'a> {
    statement: &'a Statement,
    fixed: BTreeMap<IndexVariable, i64>,
}

impl<'a> Bounds<'a> {
    /// What can occur when the given loops have the given values, and all others any.
    pub fn new(statement: &'a Statement, fixed: impl IntoIterator<Item = (IndexVariable, i64)>) -> Self {
        Self { statement, fixed: fixed.into_iter().collect() }
    }

    /// The values of `variable` that can occur; none if the statement does not have it.
    pub fn interval(&self, variable: &IndexVariable) -> Option<Interval> {
        let extent = self.statement.extent(variable)?;
        if let Some(&value) = self.fixed.get(variable) {
            return Some(Interval { low: value, high: value + 1 });
        }
        let all = Interval { low: 0, high: extent };
        let Some(relation) = self.statement.recovery(variable) else { return Some(all) };
        if let Some((outer, inner, length)) = relation.blocks() {
            let (outer, inner) = (self.interval(outer)?, self.interval(inner)?);
            if outer.is_empty() || inner.is_empty() {
                return Some(Interval { low: 0, high: 0 });
            }
            let low = outer.low * length + inner.low;
            let high = outer.last() * length + inner.high;
            return Some(Interval { low: low.min(extent), high: high.min(extent) });
        }
        Some(match relation {
            Relation::Bound { bounded, .. } => self.interval(bounded)?,
            Relation::Rotate { .. } => match relation.recover(variable, &mut |source| self.single(source)) {
                Some(value) => Interval { low: value, high: value + 1 },
                None => all,
            },
            Relation::Fuse { outer, fused, extent: length, .. } => {
                let fused = self.interval(fused)?;
                if fused.is_empty() {
                    return Some(Interval { low: 0, high: 0 });
                }
                // There are values, so there is an extent.
                let (first, last) = (fused.low / length, fused.last() / length);
                if variable == outer {
                    Interval { low: first, high: last + 1 }
                } else if first == last {
                    Interval { low: fused.low % length, high: fused.last() % length + 1 }
                } else {
                    all
                }
            }
            Relation::Split { .. } | Relation::Divide { .. } => all,
        })
    }

    /// The only value of a variable, if it has but one.
    fn single(&self, variable: &IndexVariable) -> Option<i64> {
        let interval = self.interval(variable)?;
        interval.is_single().then_some(interval.low)
    }

    /// Whether an assignment inside of `loops`, and of those with known values, happens for some of their values.
    fn happens(&self, loops: &[&Loop]) -> bool {
        let around = |variable: &IndexVariable| {
            self.fixed.contains_key(variable) || loops.iter().any(|outer| outer.variable == *variable)
        };
        let has_values = |variable| self.interval(variable).is_some_and(|interval| !interval.is_empty());
        // Nothing happens where a block reaches beyond the end of what was split.
        let mut guarded = self.statement.relations.iter().filter(|relation| relation.blocks().is_some());
        loops.iter().all(|outer| has_values(&outer.variable))
            && guarded.all(|relation| {
                relation
                    .parents()
                    .into_iter()
                    .all(|parent| has_values(parent) || !self.statement.dependencies(parent).iter().all(around))
            })
    }

    /// All accesses in `node`, each with the elements that it can use. `node` is what is inside of the loops whose values are known.
    pub fn uses<'n>(&self, node: &'n Node) -> Vec<(&'n Access, Rectangle)> {
        let mut uses = Vec::new();
        for site in node.sites() {
            let happens = self.happens(&site.loops);
            for access in std::iter::once(site.target).chain(site.value.accesses()) {
                let interval = |variable| match self.interval(variable) {
                    Some(interval) if happens => (interval.low, interval.high),
                    _ => (0, 0),
                };
                uses.push((access, Rectangle::new(access.variables.iter().map(interval))));
            }
        }
        uses
    }

    /// The smallest rectangle with all elements of `tensor` that `node` can use, read or written; none if it names it nowhere.
    pub fn tensor(&self, node: &Node, tensor: &str) -> Option<Rectangle> {
        let uses = self.uses(node).into_iter().filter(|(access, _)| access.tensor.name() == tensor);
        uses.map(|(_, rectangle)| rectangle).reduce(|first, second| first.hull(&second))
    }
}
