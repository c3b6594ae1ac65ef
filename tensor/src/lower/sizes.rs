//! Extents of loops and lengths of blocks, as kernels see them: numbers, or what follows from the kernel's parameters.
//!
//! A kernel for any size takes the extents of the assignment's variables as parameters. Extents of variables that
//! commands made follow from them, as `blocks = (n + 31) / 32` for a split, and are bound once, where the kernel
//! begins. A block of a fixed length and an extent that the schedule promises
//! ([`bound`](crate::schedule::Command::Bound)) stay numbers.

use std::collections::BTreeMap;

use crate::concrete::{Relation, Statement};
use crate::loops::{Expression, FreshNames, Statement as Step, Variable};
use crate::notation::IndexVariable;

/// The sizes of a statement, as far as they are known.
#[derive(Clone)]
pub(super) enum Sizes {
    /// All of them, as the statement has them.
    Known,
    /// Sizes that follow from the parameters.
    Parameters {
        /// For each variable of the assignment, its extent.
        parameters: Vec<(IndexVariable, Variable)>,
        /// The extent of each variable.
        extents: BTreeMap<IndexVariable, Expression>,
        /// The same where the kernel begins: how many positions there are at most, where that depends on those of other
        /// variables.
        outside: BTreeMap<IndexVariable, Expression>,
        /// The steps with which the kernel begins.
        lets: Vec<Step>,
    },
}

impl Sizes {
    /// Parameters for all variables of a statement. No extent may be zero.
    pub fn parameters(statement: &Statement, names: &mut FreshNames) -> Self {
        let mut maker = Maker { statement, names, parameters: Vec::new(), known: BTreeMap::new(), lets: Vec::new() };
        for variable in statement.extents.keys() {
            maker.extent(variable);
        }
        let Maker { parameters, known: extents, lets, .. } = maker;
        Self::Parameters { parameters, outside: extents.clone(), extents, lets }
    }

    /// The number of values of a variable.
    pub fn extent(&self, statement: &Statement, variable: &IndexVariable) -> Expression {
        match self {
            Self::Known => Expression::index(statement.extents[variable]),
            Self::Parameters { extents, .. } => extents[variable].clone(),
        }
    }

    /// The number of values that a variable has at most, as it is known where the kernel begins.
    pub fn extent_outside(&self, statement: &Statement, variable: &IndexVariable) -> Expression {
        match self {
            Self::Known => Expression::index(statement.extents[variable]),
            Self::Parameters { outside, .. } => outside[variable].clone(),
        }
    }

    /// The divisor of an index: the extent, or 1 if there are no values, and so no index.
    pub fn divisor(&self, statement: &Statement, variable: &IndexVariable) -> Expression {
        match self {
            Self::Known => statement.extents[variable].max(1).into(),
            // With its bound, divisions need no check.
            Self::Parameters { extents, .. } => match &extents[variable] {
                constant @ Expression::Constant(_) => constant.clone(),
                extent => extent.clone().maximum(1),
            },
        }
    }

    /// Gives `position`, and all variables that were made of it, the extents that they have if it has `count` values;
    /// `outside` says that it has so many where the kernel begins. Gives the steps that bind them.
    pub fn count(
        &mut self,
        statement: &Statement,
        names: &mut FreshNames,
        position: &IndexVariable,
        count: Expression,
        is_outside: bool,
    ) -> Vec<Step> {
        let Self::Parameters { extents, outside, .. } = self else { return Vec::new() };
        let descends = |variable: &IndexVariable| statement.descends(variable, position);
        let mut known = std::mem::take(extents);
        known.retain(|variable, _| !descends(variable));
        known.insert(position.clone(), count);
        let mut maker = Maker { statement, names, parameters: Vec::new(), known, lets: Vec::new() };
        for variable in statement.extents.keys().filter(|variable| descends(variable)) {
            maker.extent(variable);
        }
        *extents = maker.known;
        if is_outside {
            outside.clone_from(extents);
        }
        maker.lets
    }

    /// The outer and inner variables of a split or division, and the length of a block.
    pub fn blocks<'r>(
        &self,
        statement: &Statement,
        relation: &'r Relation,
    ) -> Option<(&'r IndexVariable, &'r IndexVariable, Expression)> {
        let (outer, inner, length) = relation.blocks()?;
        let length = match relation {
            Relation::Divide { .. } => match self {
                Self::Known => length.into(),
                Self::Parameters { .. } => self.extent(statement, inner),
            },
            _ => length.into(),
        };
        Some((outer, inner, length))
    }
}

struct Maker<'a> {
    statement: &'a Statement,
    names: &'a mut FreshNames,
    parameters: Vec<(IndexVariable, Variable)>,
    known: BTreeMap<IndexVariable, Expression>,
    lets: Vec<Step>,
}

impl Maker<'_> {
    fn extent(&mut self, variable: &IndexVariable) -> Expression {
        if let Some(known) = self.known.get(variable) {
            return known.clone();
        }
        let statement = self.statement;
        let promised = |relation: &Relation| matches!(relation, Relation::Bound { .. });
        let made_by = statement.relations.iter().find(|relation| relation.children().contains(&variable));
        let extent = if made_by.is_some_and(promised) || statement.recovery(variable).is_some_and(promised) {
            statement.extents[variable].into()
        } else {
            match made_by {
                None => {
                    let parameter = self.names.index(&format!("n_{variable}"));
                    self.parameters.push((variable.clone(), parameter.clone()));
                    parameter.value()
                }
                // A block longer than the loop is as long as the loop: what is made of it depends on that.
                Some(Relation::Split { inner, factor, .. }) if variable == inner => {
                    if statement.recovery(inner).is_some() { statement.extents[inner] } else { *factor }.into()
                }
                Some(Relation::Split { parent, factor, .. }) => {
                    let parent = self.extent(parent);
                    self.bound(variable, parent.ceiling_divide(*factor))
                }
                Some(Relation::SplitAt { outer, points, .. }) if variable == outer => (points.len() as i64 + 1).into(),
                // The longest of those whose lengths are known, and the last.
                Some(Relation::SplitAt { parent, points, .. }) => {
                    let ends = points.iter().zip([0].iter().chain(points));
                    let longest = ends.map(|(end, begin)| end - begin).max().unwrap_or(0);
                    let last = self.extent(parent) - points.last().copied().unwrap_or(0);
                    self.bound(variable, last.maximum(longest))
                }
                Some(Relation::Divide { outer, pieces, .. }) if variable == outer => (*pieces).into(),
                Some(Relation::Divide { parent, pieces, .. }) => {
                    let parent = self.extent(parent);
                    self.bound(variable, parent.ceiling_divide(*pieces))
                }
                Some(Relation::Fuse { outer, inner, .. }) => {
                    let (outer, inner) = (self.extent(outer), self.extent(inner));
                    self.bound(variable, outer * inner)
                }
                Some(Relation::Rotate { target, .. } | Relation::Bound { parent: target, .. }) => self.extent(target),
                // As many as can be, until it is known how many are stored.
                Some(Relation::Positions(positions)) => self.extent(&positions.parent),
                // It takes the place of nothing.
                Some(Relation::Window { window, .. }) => self.extent(window),
            }
        };
        self.known.insert(variable.clone(), extent.clone());
        extent
    }

    fn bound(&mut self, variable: &IndexVariable, value: Expression) -> Expression {
        let name = self.names.index(&format!("n_{variable}"));
        self.lets.push(Step::bind(&name, value));
        name.value()
    }
}
