//! Products with a tensor that is stored entry by entry, in a loop over its entries.
//!
//! Loops over the coordinates of each level cannot merge coordinates of an outer level that are there several times,
//! and the tensor is converted for these loops. A sum of products of which it is a factor needs no other order than
//! that of the entries, though, whatever that is, and entries with the same coordinates add up.

use super::arrange::{fresh, nest};
use crate::concrete::{Statement, StatementNode};
use crate::loops::Reduction;
use crate::lower::adds_up;
use crate::notation::{Access, Assignment, BinaryOperator, Expression, IndexVariable};
use crate::schedule::is_of_entries;

/// The assignment with a loop over the entries of an operand around all others; none if it is no sum of products with
/// one operand that is not dense, and that stored entry by entry.
pub(super) fn by_entries(assignment: &Assignment) -> Option<Statement> {
    let statement = Statement::new(assignment);
    let result = statement.result();
    if statement.reduction() != Some(Reduction::Sum) || !adds_up(&statement) || !is_dense(result.format()) {
        return None;
    }
    let (loops, inside) = nest(statement.body());
    let StatementNode::Assign { value, .. } = inside else { return None };
    let stored: Vec<&Access> =
        value.accesses().into_iter().filter(|access| !is_dense(access.tensor.format())).collect();
    let [access] = stored[..] else { return None };
    if !is_of_entries(access.tensor.format()) || !is_product(value) {
        return None;
    }
    let own: Vec<IndexVariable> =
        access.tensor.format().order().iter().map(|&mode| access.variables[mode].clone()).collect();
    let is_once = |variable: &IndexVariable| own.iter().filter(|other| *other == variable).count() == 1;
    if !own.iter().all(|variable| loops.contains(variable) && is_once(variable)) {
        return None;
    }
    let others = loops.iter().filter(|variable| !own.contains(variable));
    let order: Vec<IndexVariable> = own.iter().chain(others).cloned().collect();
    let (name, mut made) = (access.tensor.name().to_owned(), statement.reorder(order).ok()?);
    let (mut entry, inner) = own.split_first().map(|(first, inner)| (first.clone(), inner))?;
    for variable in inner {
        let fused = IndexVariable::new(&fresh(&format!("{entry}{variable}"), &|name| made.is_taken(name)));
        made = made.fuse(entry, variable.clone(), fused.clone()).ok()?;
        entry = fused;
    }
    let position = fresh("p", &|name| made.is_taken(name));
    made.pos(entry, IndexVariable::new(&position), &name).ok()
}

fn is_dense(format: &crate::format::Format) -> bool {
    format.is_dense() && format.is_plain()
}

/// Whether an expression is a product of accesses and numbers: what it is for a sum of elements is the sum of what it
/// is for each.
fn is_product(expression: &Expression) -> bool {
    match expression {
        Expression::Access(_) | Expression::Literal(..) => true,
        Expression::Binary(BinaryOperator::Multiply, left, right) => is_product(left) && is_product(right),
        Expression::Negate(operand) => is_product(operand),
        _ => false,
    }
}
