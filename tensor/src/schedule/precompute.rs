//! A part of an expression in a workspace of its own.

use std::collections::BTreeMap;

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Relation, Statement, StatementNode, with_lengths};
use crate::loops::{FreshNames, Reduction};
use crate::notation::{Access, BinaryOperator, Expression, IndexVariable, TensorVariable, element_of, typed};

pub(super) fn apply(
    statement: &Statement,
    expression: &Expression,
    variables: &[IndexVariable],
    inside: &[IndexVariable],
    workspace: &str,
) -> Result<Statement, Reason> {
    if variables.len() != inside.len() {
        let (what, other) = ("variables", "workspace variables");
        return Err(Reason::Lengths { what, expected: variables.len(), other, found: inside.len() });
    }
    if !variables.is_empty() {
        select::check_list("variables", variables)?;
    }
    if let Some(value) = gathered_in(statement, workspace) {
        return Err(Reason::TakenByWorkspace { workspace: workspace.to_owned(), values: value.to_string() });
    }
    select::check_new(statement, inside.iter().map(IndexVariable::name).chain([workspace]))?;
    // Tensors in the expression are stored as they are in the statement, and numbers get the type that they have there.
    let expression = &expression.with_accesses(&|access| {
        let mut known = statement.tensors().into_iter().chain(statement.body.workspaces());
        let tensor = known.find(|tensor| tensor.name() == access.tensor.name())?.clone();
        Some(with_lengths(&Access { tensor, ..access.clone() }, &statement.extents))
    });
    let is_it = |other: &Expression| {
        other == expression || typed(expression, element_of(other)).is_ok_and(|typed| *other == typed)
    };
    let sites = statement.body.sites();
    let found: Vec<_> = sites.iter().filter(|site| contains(site.value, &is_it)).collect();
    let site = match found[..] {
        [] => {
            let values: Vec<String> = sites.iter().map(|site| site.value.to_string()).collect();
            return Err(Reason::NoExpression { expression: expression.to_string(), values: values.join(" and ") });
        }
        [site] => site,
        _ => {
            return Err(Reason::SeveralAssignments { expression: expression.to_string(), count: found.len() });
        }
    };
    for variable in variables {
        select::find(statement, variable)?;
        if !site.loops.iter().any(|outer| outer.variable == *variable) {
            let target = site.target.to_string();
            return Err(Reason::NotAround { variable: variable.clone(), target });
        }
    }
    let dimensions: Vec<i64> = variables.iter().map(|variable| statement.extents[variable]).collect();
    let tensor = TensorVariable::new(workspace, element_of(&instance(site.value, &is_it)), dimensions);
    let plan = PrecomputePlan { statement, is_it: &is_it, variables, inside, tensor };
    plan.carry_out(site.target.tensor.name())
}

/// The expression that is assigned to a workspace, if there is one of this name.
fn gathered_in<'s>(statement: &'s Statement, workspace: &str) -> Option<&'s Expression> {
    let is_made = statement.body.workspaces().iter().any(|made| made.name() == workspace);
    let mut sites = statement.body.sites().into_iter();
    sites.find(|site| is_made && site.target.tensor.name() == workspace).map(|site| site.value)
}

/// Whether `is_it` holds for `expression` or a part of it.
fn contains(expression: &Expression, is_it: &dyn Fn(&Expression) -> bool) -> bool {
    is_it(expression) || expression.operands().into_iter().any(|operand| contains(operand, is_it))
}

/// The part of `expression` for which `is_it` holds; the expression itself if there is none.
fn instance(expression: &Expression, is_it: &dyn Fn(&Expression) -> bool) -> Expression {
    fn find<'a>(expression: &'a Expression, is_it: &dyn Fn(&Expression) -> bool) -> Option<&'a Expression> {
        if is_it(expression) {
            return Some(expression);
        }
        expression.operands().into_iter().find_map(|operand| find(operand, is_it))
    }
    find(expression, is_it).unwrap_or(expression).clone()
}

/// How often `is_it` holds for a part of `expression`.
fn count(expression: &Expression, is_it: &dyn Fn(&Expression) -> bool) -> usize {
    if is_it(expression) {
        return 1;
    }
    expression.operands().into_iter().map(|operand| count(operand, is_it)).sum()
}

struct PrecomputePlan<'a> {
    statement: &'a Statement,
    is_it: &'a dyn Fn(&Expression) -> bool,
    variables: &'a [IndexVariable],
    inside: &'a [IndexVariable],
    tensor: TensorVariable,
}

/// The loops around the assignment, divided between consumer and producer.
#[derive(Default)]
struct Sides {
    /// From the innermost.
    consumer: Vec<Loop>,
    producer: Vec<Loop>,
    /// The innermost loop that stays around both.
    shared: Option<IndexVariable>,
    /// Whether the producer sums over loops that were the consumer's.
    reduces: bool,
}

impl PrecomputePlan<'_> {
    fn carry_out(&self, target: &str) -> Result<Statement, Reason> {
        let mut changed = self.statement.clone();
        let mut failure = None;
        changed.body = self.rewrite(changed.body.clone(), target, &mut Vec::new(), &mut changed, &mut failure);
        match failure {
            Some(reason) => Err(reason),
            None => Ok(changed),
        }
    }

    /// The tree with the workspace in it; `nest` are the loops directly around `node`, from the outermost, which the
    /// result contains.
    fn rewrite(
        &self,
        node: StatementNode,
        target: &str,
        nest: &mut Vec<Loop>,
        changed: &mut Statement,
        failure: &mut Option<Reason>,
    ) -> StatementNode {
        match node {
            StatementNode::Forall(outer, body) => {
                nest.push(outer);
                self.rewrite(*body, target, nest, changed, failure)
            }
            StatementNode::Where { workspace, consumer, producer } => {
                let around = std::mem::take(nest);
                let consumer = Box::new(self.rewrite(*consumer, target, &mut Vec::new(), changed, failure));
                let producer = Box::new(self.rewrite(*producer, target, &mut Vec::new(), changed, failure));
                StatementNode::Where { workspace, consumer, producer }.in_loops(around.into_iter())
            }
            StatementNode::Assign { target: access, operator, value } => {
                let nest = std::mem::take(nest);
                let assignment = StatementNode::Assign { target: access.clone(), operator, value: value.clone() };
                if access.tensor.name() != target || !contains(&value, self.is_it) {
                    return assignment.in_loops(nest.into_iter());
                }
                match self.separate(&nest, &access.variables, operator, &value) {
                    Ok(sides) => self.build(nest, sides, access, operator, &value, changed),
                    Err(reason) => {
                        *failure = Some(reason);
                        assignment.in_loops(nest.into_iter())
                    }
                }
            }
        }
    }

    /// Decides for each loop of the nest on which side it goes.
    fn separate(
        &self,
        nest: &[Loop],
        target: &[IndexVariable],
        operator: Option<Reduction>,
        value: &Expression,
    ) -> Result<Sides, Reason> {
        let expression = instance(value, self.is_it);
        let needs = |used: &[IndexVariable], wanted: &IndexVariable| {
            used.iter().any(|variable| self.statement.dependencies(variable).contains(wanted))
        };
        let rest = self.with_workspace(value, &[]);
        let movable = operator.is_some_and(|operator| distributes(value, self.is_it, operator));
        let mut sides = Sides::default();
        for (position, outer) in nest.iter().enumerate().rev() {
            let variable = &outer.variable;
            let copied = self.variables.contains(variable);
            let stays = outer.level().is_some() || !outer.communicate.is_empty();
            let produces = needs(&expression.variables(), variable);
            let consumes = needs(target, variable) || needs(&rest.variables(), variable);
            if copied && !stays {
                let copy = self.variables.iter().position(|listed| listed == variable).map(|at| &self.inside[at]);
                sides.producer.extend(copy.cloned().map(Loop::new));
                sides.consumer.push(outer.clone());
            } else if produces && !consumes && movable && !stays && !self.is_tied(variable, &sides.consumer) {
                sides.producer.push(outer.clone());
                sides.reduces = true;
            } else if !produces && !stays && !self.is_tied(variable, &sides.producer) {
                sides.consumer.push(outer.clone());
            } else {
                let outside = nest[..=position].iter().find(|outer| self.variables.contains(&outer.variable));
                if let Some(outside) = outside {
                    let (variable, shared) = (outside.variable.clone(), variable.clone());
                    return Err(Reason::OutsideShared { variable, shared });
                }
                sides.shared = Some(variable.clone());
                break;
            }
        }
        match self.variables.iter().find(|variable| !nest.iter().any(|outer| outer.variable == **variable)) {
            Some(variable) => Err(Reason::NotAround { variable: variable.clone(), target: "the expression".into() }),
            None => Ok(sides),
        }
    }

    /// Whether a variable is recovered from both `variable` and one of `loops`, or one that gets a copy, and may be
    /// beyond its end: no side could see that alone.
    fn is_tied(&self, variable: &IndexVariable, loops: &[Loop]) -> bool {
        self.statement.relations.iter().filter(|relation| relation.is_cut()).any(|relation| {
            relation.parents().into_iter().any(|parent| {
                let from = self.statement.dependencies(parent);
                let other = |other: &IndexVariable| other != variable && from.contains(other);
                from.contains(variable)
                    && (loops.iter().any(|outer| other(&outer.variable)) || self.variables.iter().any(other))
            })
        })
    }

    fn build(
        &self,
        nest: Vec<Loop>,
        sides: Sides,
        target: crate::notation::Access,
        operator: Option<Reduction>,
        value: &Expression,
        changed: &mut Statement,
    ) -> StatementNode {
        let kept = nest.iter().position(|outer| Some(&outer.variable) == sides.shared.as_ref()).map_or(0, |at| at + 1);
        for (variable, inside) in self.variables.iter().zip(self.inside) {
            changed.extents.insert(inside.clone(), self.statement.extents[variable]);
        }
        let mut renamed: BTreeMap<_, _> = self.variables.iter().cloned().zip(self.inside.iter().cloned()).collect();
        let expression = instance(value, self.is_it);
        let mut copied = Vec::new();
        for variable in expression.variables() {
            self.copy(&variable, &mut renamed, &mut copied, changed);
        }
        // What is beyond an end is not computed either: it would be of elements that other workspaces don't have.
        for parent in self.statement.relations.iter().filter(|relation| relation.is_cut()) {
            parent.parents().into_iter().for_each(|parent| {
                self.copy(parent, &mut renamed, &mut copied, changed);
            });
        }
        // Coordinates of all levels follow from a position.
        for positions in self.statement.positions() {
            (positions.outermost..=positions.level).for_each(|level| {
                self.copy(positions.variable(level), &mut renamed, &mut copied, changed);
            });
        }
        changed.relations.extend(copied.into_iter().map(|relation| relation.rename(&renamed)));
        let producer = StatementNode::Assign {
            target: self.tensor.at(self.inside),
            operator: operator.filter(|_| sides.reduces),
            value: expression.rename(&|variable| renamed.get(variable).unwrap_or(variable).clone()),
        };
        let consumer = StatementNode::Assign { target, operator, value: self.with_workspace(value, self.variables) };
        StatementNode::Where {
            workspace: self.tensor.clone(),
            consumer: Box::new(consumer.in_loops(sides.consumer.into_iter().rev())),
            producer: Box::new(producer.in_loops(sides.producer.into_iter().rev())),
        }
        .in_loops(nest.into_iter().take(kept))
    }

    /// `value`, with the workspace in place of the expression.
    fn with_workspace(&self, value: &Expression, variables: &[IndexVariable]) -> Expression {
        if (self.is_it)(value) {
            return Expression::Access(self.tensor.at(variables));
        }
        value.map(&mut |operand| self.with_workspace(operand, variables))
    }

    /// Makes a copy of `variable` for the producer, if it is recovered from a loop that has one, and takes note of the
    /// relation that is to be copied; says whether it did.
    fn copy<'s>(
        &'s self,
        variable: &IndexVariable,
        renamed: &mut BTreeMap<IndexVariable, IndexVariable>,
        copied: &mut Vec<&'s Relation>,
        changed: &mut Statement,
    ) -> bool {
        if renamed.contains_key(variable) {
            return true;
        }
        let Some(relation) = self.statement.recovery(variable) else { return false };
        let sources: Vec<bool> =
            relation.sources().into_iter().map(|source| self.copy(source, renamed, copied, changed)).collect();
        if !sources.contains(&true) {
            return false;
        }
        let mut names = FreshNames::default();
        for parent in relation.parents() {
            let name = loop {
                let name = names.fresh(parent.name());
                if !changed.is_taken(&name) {
                    break name;
                }
            };
            let fresh = IndexVariable::new(&name);
            changed.extents.insert(fresh.clone(), self.statement.extents[parent]);
            renamed.insert(parent.clone(), fresh);
        }
        copied.push(relation);
        true
    }
}

/// Whether combining values of `value` under `operator` is the same as combining values of the expression first: it is
/// if the value is the expression, or, for sums, a multiple of it.
fn distributes(value: &Expression, is_it: &dyn Fn(&Expression) -> bool, operator: Reduction) -> bool {
    if is_it(value) {
        return true;
    }
    match value {
        Expression::Binary(BinaryOperator::Multiply, left, right) => {
            let (in_left, in_right) = (count(left, is_it), count(right, is_it));
            operator == Reduction::Sum
                && match (in_left, in_right) {
                    (1, 0) => distributes(left, is_it, operator),
                    (0, 1) => distributes(right, is_it, operator),
                    _ => false,
                }
        }
        Expression::Negate(operand) => operator == Reduction::Sum && distributes(operand, is_it, operator),
        _ => false,
    }
}
