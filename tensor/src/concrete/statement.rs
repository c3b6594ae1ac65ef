//! A tree of loops with the relations between their variables.

use std::collections::BTreeMap;

use super::node::{Loop, StatementNode};
use super::relation::{Positions, Relation};
use crate::element::Scalar;
use crate::loops::Reduction;
use crate::notation::{Access, IndexVariable, TensorVariable};

/// An assignment with its loops.
///
/// Each variable belongs to one loop at most, and names of variables, workspaces and tensors differ from one another.
/// So a name says which loop is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub(crate) body: StatementNode,
    pub(crate) relations: Vec<Relation>,
    /// Of all variables, loops or not.
    pub(crate) extents: BTreeMap<IndexVariable, i64>,
    pub(crate) result: TensorVariable,
    pub(crate) operands: Vec<TensorVariable>,
    pub(crate) accumulate: bool,
    /// The dense operands by whose elements zeros are divided, which [are checked
    /// before](crate::notation::Assignment::checked_divisors): the quotients are zero.
    pub(crate) divisors: Vec<TensorVariable>,
}

impl Statement {
    /// The tree of loops.
    pub fn body(&self) -> &StatementNode {
        &self.body
    }

    /// How variables that are no loops are recovered.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The tensor that is computed.
    pub fn result(&self) -> &TensorVariable {
        &self.result
    }

    /// The tensors that are read, in order of appearance. The result is among them if its old elements are read by
    /// name.
    pub fn operands(&self) -> &[TensorVariable] {
        &self.operands
    }

    /// Whether old elements of the result are added to (`+=`).
    pub fn accumulates(&self) -> bool {
        self.accumulate
    }

    /// The result, then the other tensors.
    pub fn tensors(&self) -> Vec<&TensorVariable> {
        let mut tensors = vec![&self.result];
        tensors.extend(self.operands.iter().filter(|tensor| **tensor != self.result));
        tensors
    }

    /// How many values `variable` has: it ranges from 0 to before its extent.
    pub fn extent(&self, variable: &IndexVariable) -> Option<i64> {
        self.extents.get(variable).copied()
    }

    /// The relation from which `variable` is recovered, if it is no loop any more.
    pub fn recovery(&self, variable: &IndexVariable) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.parents().contains(&variable))
    }

    /// The variable that the coordinates of a part of a dimension, or of a shift, follow; another variable itself.
    pub fn followed<'v>(&'v self, variable: &'v IndexVariable) -> &'v IndexVariable {
        match self.recovery(variable) {
            Some(Relation::Window { of, .. }) => of,
            _ => variable,
        }
    }

    /// How assignments to the result combine old and new values.
    pub fn reduction(&self) -> Option<Reduction> {
        self.body.sites().into_iter().find(|site| *site.target.tensor.name() == *self.result.name())?.operator
    }

    /// The value that all elements of the result must have before the loops run: none if they are assigned plainly, or
    /// if their old values count.
    pub fn initial(&self) -> Option<Scalar> {
        if self.accumulate { None } else { self.reduction()?.identity(self.result.element()) }
    }

    /// The loops that `variable` is recovered from, or the variable itself if it is a loop, or never became one.
    pub(crate) fn dependencies(&self, variable: &IndexVariable) -> Vec<IndexVariable> {
        match self.recovery(variable) {
            None => vec![variable.clone()],
            Some(relation) => relation.sources().into_iter().flat_map(|source| self.dependencies(source)).collect(),
        }
    }

    /// The variables of the assignment that `variable` descends from.
    pub fn ancestors(&self, variable: &IndexVariable) -> Vec<IndexVariable> {
        match self.relations.iter().find(|relation| relation.children().contains(&variable)) {
            None => vec![variable.clone()],
            Some(relation) => relation.parents().into_iter().flat_map(|parent| self.ancestors(parent)).collect(),
        }
    }

    /// Whether `variable` is `ancestor`, or was made of it by commands.
    pub(crate) fn descends(&self, variable: &IndexVariable, ancestor: &IndexVariable) -> bool {
        let made_by = self.relations.iter().find(|relation| relation.children().contains(&variable));
        variable == ancestor
            || made_by
                .is_some_and(|relation| relation.parents().into_iter().any(|parent| self.descends(parent, ancestor)))
    }

    /// The positions that variables have the place of.
    pub(crate) fn positions(&self) -> impl Iterator<Item = &Positions> {
        self.relations.iter().filter_map(|relation| match relation {
            Relation::Positions(positions) => Some(positions),
            _ => None,
        })
    }

    /// Whether iterations of the loop over `variable` differ in some of `among`, however the loops inside of it run.
    pub(crate) fn separates(&self, variable: &IndexVariable, among: &[IndexVariable]) -> bool {
        let around: Vec<IndexVariable> = self.body.loops_around(variable).unwrap_or_default();
        self.differ_in(variable, among, &around)
    }

    fn differ_in(&self, variable: &IndexVariable, among: &[IndexVariable], around: &[IndexVariable]) -> bool {
        let same = |by: &IndexVariable| self.dependencies(by).iter().all(|dependency| around.contains(dependency));
        among.contains(variable)
            || self.relations.iter().any(|relation| {
                relation.children().contains(&variable)
                    // Iterations that are rotated differently may meet.
                    && !matches!(relation, Relation::Rotate { by, .. } if !by.iter().all(same))
                    && relation.parents().into_iter().all(|parent| self.differ_in(parent, among, around))
            })
    }

    /// The value of `variable`, given the values of the loops that `loops` knows; none if it needs others.
    pub(crate) fn recover(
        &self,
        variable: &IndexVariable,
        loops: &dyn Fn(&IndexVariable) -> Option<i64>,
    ) -> Option<i64> {
        if let Some(value) = loops(variable) {
            return Some(value);
        }
        self.recovery(variable)?.recover(variable, &mut |source| self.recover(source, loops))
    }

    /// Whether each variable that can be recovered is in its range: blocks may reach beyond the end of what was split.
    pub(crate) fn is_inside(&self, loops: &dyn Fn(&IndexVariable) -> Option<i64>) -> bool {
        let parts_hold = self.relations.iter().all(|relation| match relation {
            Relation::SplitAt { outer, inner, points, extent, .. } => {
                match (self.recover(outer, loops), self.recover(inner, loops)) {
                    (Some(outer), Some(inner)) => {
                        let part = usize::try_from(outer).unwrap_or(0);
                        let begin = part.checked_sub(1).and_then(|part| points.get(part)).copied().unwrap_or(0);
                        begin + inner < points.get(part).copied().unwrap_or(*extent)
                    }
                    _ => true,
                }
            }
            _ => true,
        });
        let mut blocks = self.relations.iter().filter(|relation| relation.blocks().is_some());
        parts_hold
            && blocks.all(|relation| {
                relation.parents().into_iter().all(|parent| match self.recover(parent, loops) {
                    Some(value) => value < self.extents[parent],
                    None => true,
                })
            })
    }

    /// The same statement with other tensors, of the same extents, in those accesses of operands and workspaces for
    /// which `other` gives one.
    pub(crate) fn with_tensors(&self, other: &dyn Fn(&Access) -> Option<TensorVariable>) -> Self {
        let body = self.body.clone().with_tensors(other, &|target| match target.tensor == self.result {
            true => None,
            false => other(target),
        });
        self.with_body(body)
    }

    /// The same statement with other accesses of what is read in the place of those for which `other` gives one.
    pub(crate) fn with_accesses(&self, other: &dyn Fn(&Access) -> Option<Access>) -> Self {
        self.with_body(self.body.clone().with_accesses(other))
    }

    /// The same statement with another tree of loops between the same variables.
    fn with_body(&self, body: StatementNode) -> Self {
        let mut operands: Vec<TensorVariable> = Vec::new();
        let workspaces = body.workspaces();
        for access in body.sites().iter().flat_map(|site| site.value.accesses()) {
            if !operands.contains(&access.tensor) && !workspaces.contains(&&access.tensor) {
                operands.push(access.tensor.clone());
            }
        }
        Self { operands, body, ..self.clone() }
    }

    /// The names that new variables and workspaces can't have.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.extents.keys().any(|variable| variable.name() == name)
            || self.tensors().into_iter().chain(self.body.workspaces()).any(|tensor| tensor.name() == name)
    }

    /// The node inside of the loops over `fixed`, the outermost ones.
    pub(crate) fn inside(&self, fixed: &[IndexVariable]) -> &StatementNode {
        let mut node = &self.body;
        while let StatementNode::Forall(outer, body) = node
            && fixed.contains(&outer.variable)
        {
            node = body;
        }
        node
    }

    /// The loops from the outermost inwards, as long as each has nothing but the next inside.
    pub fn spine(&self) -> Vec<&Loop> {
        let mut loops = Vec::new();
        let mut node = &self.body;
        while let StatementNode::Forall(outer, body) = node {
            loops.push(outer);
            node = body;
        }
        loops
    }
}
