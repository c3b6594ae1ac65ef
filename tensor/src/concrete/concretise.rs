//! Assignments to statements.

use std::collections::BTreeMap;

use super::node::{Loop, StatementNode};
use super::relation::Relation;
use super::statement::Statement;
use crate::loops::{FreshNames, Reduction};
use crate::notation::{Access, Assignment, Expression, IndexVariable, TensorVariable, TextPlace, Window, element_of};

impl Statement {
    /// The loops that compute `assignment` when nothing is scheduled.
    ///
    /// Variables of the left side are outermost, in their order. If the right side is one reduction, its variables
    /// follow, and the result is reduced into. Other reductions get scalars of their own, `t`, `t_1` and so on. A
    /// variable that several terms sum over becomes several: `j`, `j_1` and so on.
    pub fn new(assignment: &Assignment) -> Self {
        Self::concretised(assignment, false)
    }

    /// The same with a scalar for each reduction, the outermost among them: each element of the result is assigned
    /// once.
    pub(crate) fn with_scalars(assignment: &Assignment) -> Self {
        Self::concretised(assignment, true)
    }

    fn concretised(assignment: &Assignment, scalars: bool) -> Self {
        let mut names = FreshNames::default();
        let tensors = assignment.tensors();
        for name in tensors.iter().map(TensorVariable::name) {
            names.fresh(name);
        }
        // All names of the assignment are taken, but each can be given to one loop.
        let left = assignment.left();
        let free: Vec<IndexVariable> =
            assignment.extents().keys().filter(|variable| !left.variables.contains(variable)).cloned().collect();
        for variable in assignment.extents().keys() {
            names.fresh(variable.name());
        }
        let extents =
            left.variables.iter().map(|variable| (variable.clone(), assignment.extents()[variable])).collect();
        let mut concretiser = Concretiser { assignment, scalars, names, free, extents };
        let operator = assignment.accumulation();
        let body = concretiser.assign(left.clone(), operator, assignment.right().clone());
        let mut extents = concretiser.extents;
        let (body, relations) = windows(body, &mut extents);
        let mut operands = Vec::new();
        for access in assignment.right().accesses() {
            if !operands.contains(&access.tensor) {
                operands.push(access.tensor.clone());
            }
        }
        Self {
            body: body.in_loops(left.variables.iter().cloned().map(Loop::new)),
            relations,
            extents,
            result: left.tensor.clone(),
            operands,
            accumulate: assignment.accumulates(),
            divisors: assignment.checked_divisors(),
        }
    }
}

/// Relations by which the coordinates of parts of dimensions, and of shifts, follow from variables. Shifts that are
/// taken of dimensions of several lengths become several.
fn windows(body: StatementNode, extents: &mut BTreeMap<IndexVariable, i64>) -> (StatementNode, Vec<Relation>) {
    for access in body.sites().iter().flat_map(|site| site.value.accesses()) {
        for (variable, &extent) in access.variables.iter().zip(access.tensor.dimensions()) {
            match variable.window() {
                // A part is one of each dimension that it is taken of.
                Some(Window { end: Some(_), .. }) => {
                    let shortest = extents.entry(variable.clone()).or_insert(extent);
                    *shortest = extent.min(*shortest);
                }
                Some(_) => _ = extents.entry(of_length(variable, extent, extents)).or_insert(extent),
                None => {}
            }
        }
    }
    let body = body.with_accesses(&|access| Some(with_lengths(access, extents)));
    let mut relations: Vec<Relation> = Vec::new();
    for variable in body.sites().iter().flat_map(|site| site.value.accesses()).flat_map(|access| &access.variables) {
        let Some(Window { of, start, step, end, .. }) = variable.window() else { continue };
        let (window, of, inside) = (variable.clone(), of.clone(), end.is_some());
        let relation = Relation::Window { window, of, start: *start, step: *step, inside };
        if !relations.contains(&relation) {
            relations.push(relation);
        }
    }
    (body, relations)
}

/// The variable of a shift that is taken of a dimension of length `extent`: the first that has no other extent.
fn of_length(shift: &IndexVariable, extent: i64, extents: &BTreeMap<IndexVariable, i64>) -> IndexVariable {
    let mut variables = (0..).map(|length| shift.of_length(length));
    let is_it = |variable: &IndexVariable| extents.get(variable).is_none_or(|own| *own == extent);
    variables.find(is_it).unwrap_or_else(|| shift.clone())
}

/// An access with those variables that its shifts are, of dimensions as long as the tensor's.
pub(crate) fn with_lengths(access: &Access, extents: &BTreeMap<IndexVariable, i64>) -> Access {
    let variables = access.variables.iter().zip(access.tensor.dimensions());
    let variables = variables.map(|(variable, &extent)| match variable.window() {
        Some(Window { end: None, .. }) => of_length(variable, extent, extents),
        _ => variable.clone(),
    });
    Access { variables: variables.collect(), ..access.clone() }
}

struct Concretiser<'a> {
    assignment: &'a Assignment,
    /// Whether the result is never reduced into.
    scalars: bool,
    names: FreshNames,
    /// The reduced variables whose own names no loop has yet.
    free: Vec<IndexVariable>,
    extents: BTreeMap<IndexVariable, i64>,
}

impl Concretiser<'_> {
    /// Loops that assign `value`, which may be reductions, to `target`.
    fn assign(&mut self, target: Access, operator: Option<Reduction>, value: Expression) -> StatementNode {
        match value {
            // A result that is read has to keep its old value until the sum is complete.
            Expression::Reduce(reduction, variable, operand)
                if !(self.scalars && target.tensor == self.assignment.left().tensor)
                    && operator.is_none_or(|operator| operator == reduction)
                    && operand.accesses().iter().all(|access| access.tensor != target.tensor) =>
            {
                let fresh = self.bind(&variable);
                let operand = operand.rename(&|used| if *used == variable { fresh.clone() } else { used.clone() });
                let body = self.assign(target, Some(reduction), operand);
                StatementNode::Forall(Loop::new(fresh), Box::new(body))
            }
            value => {
                let mut reductions = Vec::new();
                let value = self.extract(&value, &mut reductions);
                let assignment = StatementNode::Assign { target, operator, value };
                reductions.into_iter().rev().fold(assignment, |consumer, (workspace, reduction)| {
                    let producer = Box::new(self.assign(workspace.scalar(), None, reduction));
                    StatementNode::Where { workspace, consumer: Box::new(consumer), producer }
                })
            }
        }
    }

    /// `expression` with a scalar in place of each reduction.
    fn extract(&mut self, expression: &Expression, found: &mut Vec<(TensorVariable, Expression)>) -> Expression {
        if let Expression::Reduce(..) = expression {
            let scalar = TensorVariable::new(&self.names.fresh("t"), element_of(expression), []);
            found.push((scalar.clone(), expression.clone()));
            return Expression::Access(Access { place: TextPlace::default(), ..scalar.scalar() });
        }
        expression.map(&mut |operand| self.extract(operand, found))
    }

    /// The variable of a new loop over `variable`.
    fn bind(&mut self, variable: &IndexVariable) -> IndexVariable {
        let fresh = match self.free.iter().position(|free| free == variable) {
            Some(position) => self.free.swap_remove(position),
            None => IndexVariable::new(&self.names.fresh(variable.name())),
        };
        self.extents.insert(fresh.clone(), self.assignment.extents()[variable]);
        fresh
    }
}
