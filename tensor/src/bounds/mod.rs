//! Which coordinates a part of a statement uses, as intervals and rectangles.
//!
//! Given values of some loops, usually those from the outside to a certain one, [`Bounds`] tells the interval of every
//! variable that can still occur, and the rectangle of every tensor that is used. What a launch's points and steps
//! fetch, what a leaf's views are, and how many bytes move all follow from this. It is a function of the statement and
//! the values, and of nothing else.
//!
//! Intervals cover all that occurs, and nothing beyond the tensor. They are exact where blocks are full, or cut by the
//! end:
//!
//! | | interval of the parent |
//! | --- | --- |
//! | `i = o * f + n` | from the lowest `o` and `n` to the highest, cut at the extent; exact if `o` is known, or `n` has its whole range |
//! | `i` is `n` after the beginning of part `o` | the same, cut at the part's end |
//! | `a = f / e`, `b = f % e` | exact for `a`; for `b` exact if `f` is known or `a` has one value, otherwise all |
//! | `t = (r + ...) % e` | exact if all is known, otherwise all |
//!
//! An assignment uses nothing if a variable that it needs has no values.

mod colors;
mod exact;
mod formula;

use crate::concrete::{Statement, StatementNode};
use crate::notation::{Access, IndexVariable};
use crate::rectangle::Rectangle;

pub use colors::Colors;
pub use exact::{is_exact, is_exact_in_parts};
pub use formula::{IterationsOf, RectangleOf};

use formula::Finder;

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

/// The values and elements that can still occur in a statement, given values of some loops.
#[derive(Clone, Debug)]
pub struct Bounds<'a> {
    statement: &'a Statement,
    fixed: Vec<IndexVariable>,
    values: Vec<i64>,
}

impl<'a> Bounds<'a> {
    /// The bounds when the given loops have the given values, and all other loops any value.
    pub fn new(statement: &'a Statement, fixed: impl IntoIterator<Item = (IndexVariable, i64)>) -> Self {
        let (fixed, values) = fixed.into_iter().unzip();
        Self { statement, fixed, values }
    }

    /// The values of `variable` that can occur; none if the statement does not have it.
    pub fn interval(&self, variable: &IndexVariable) -> Option<Interval> {
        self.statement.extent(variable)?;
        let mut finder = Finder::new(self.statement, &self.fixed);
        let position = finder.variable(variable);
        Some(finder.formulas().evaluate(&self.values)[position])
    }

    /// All accesses in `node`, each with the elements that it can use. `node` is what is inside of the loops whose
    /// values are known.
    pub fn uses<'n>(&self, node: &'n StatementNode) -> Vec<(&'n Access, Rectangle)> {
        let mut finder = Finder::new(self.statement, &self.fixed);
        let accesses = finder.accesses(node, |_| true);
        let intervals = finder.formulas().evaluate(&self.values);
        accesses.iter().map(|access| (access.access, access.rectangle(&intervals))).collect()
    }

    /// The smallest rectangle with all elements of `tensor` that `node` can use, read or written; none if it names it
    /// nowhere.
    pub fn tensor(&self, node: &StatementNode, tensor: &str) -> Option<Rectangle> {
        let uses = self.uses(node).into_iter().filter(|(access, _)| access.tensor.name() == tensor);
        uses.map(|(_, rectangle)| rectangle).reduce(|first, second| first.hull(&second))
    }
}
