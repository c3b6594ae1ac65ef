//! How far into its levels each access has come.

use crate::element::Scalar;
use crate::format::{Format, Level};
use crate::loops::Expression;
use crate::loops::Reduction;
use crate::notation::{Access, IndexVariable};

/// An access of an assignment, and how its tensor is stored.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    pub(super) access: Access,
    pub(super) format: Format,
    /// The number of what it accesses among the kernel's operands.
    pub(super) operand: usize,
}

impl Visited {
    /// The variable of a level.
    pub(super) fn variable(&self, level: usize) -> &IndexVariable {
        &self.access.variables[self.format.order()[level]]
    }

    /// What an element is that is not stored.
    pub(super) fn fill(&self) -> Scalar {
        self.access.tensor.fill()
    }
}

/// How far an access has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Nothing is stored at the coordinates so far.
    Absent,
    /// So many levels are behind it, at this position.
    Level(usize, Expression),
}

/// Where all accesses of an assignment are, in the order in which they are written.
#[derive(Clone, Debug)]
pub(super) struct Places<'a> {
    all: &'a [Visited],
    at: Vec<Place>,
}

impl<'a> Places<'a> {
    /// Before the first level of each.
    pub(super) fn new(all: &'a [Visited]) -> Self {
        Self { all, at: vec![Place::Level(0, Expression::index(0)); all.len()] }
    }

    pub(super) fn at(&self, access: usize) -> &Place {
        &self.at[access]
    }

    pub(super) fn fills_with_zero(&self, access: usize) -> bool {
        let visited = &self.all[access];
        Reduction::Sum.identity(visited.access.tensor.element()) == Some(visited.fill())
    }

    /// The same, with one access elsewhere.
    pub(super) fn with(&self, access: usize, place: Place) -> Self {
        let mut places = self.clone();
        places.at[access] = place;
        places
    }

    /// The next level of an access, with its position above; none if it has come to the end, or nothing is stored.
    pub(super) fn next(&self, access: usize) -> Option<(usize, Level, &Expression)> {
        let Place::Level(level, position) = &self.at[access] else { return None };
        let kind = *self.all[access].format.levels().get(*level)?;
        Some((*level, kind, position))
    }

    /// The accesses whose next level is compressed and stores `variable`.
    pub(super) fn compressed(&self, variable: &IndexVariable) -> Vec<usize> {
        let is_next = |access: &usize| {
            self.next(*access).is_some_and(|(level, kind, _)| {
                kind == Level::Compressed && self.all[*access].variable(level) == variable
            })
        };
        (0..self.at.len()).filter(is_next).collect()
    }
}
