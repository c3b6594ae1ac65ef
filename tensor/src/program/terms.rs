//! Sums to several assignments.
//!
//! In `A(i,j) = B(i,k) * C(k,j) + D(i,j)` the product is a reduction beside another term. As one statement, each
//! element would need a scalar for it, in loops that no library knows and that cannot be distributed over `k`. Two
//! assignments, `A(i,j) = D(i,j); A(i,j) += B(i,k) * C(k,j)`, have none of these limits.

use crate::loops::{BinaryOperator, Reduction};
use crate::notation::{Assignment, Expression};

/// The assignments that together do the same as `statement`; itself, if it cannot be divided.
pub(super) fn divide(statement: &Assignment) -> Vec<Assignment> {
    let (summed, plain): (Vec<_>, Vec<_>) = terms(statement.right())
        .into_iter()
        .partition(|(term, _)| matches!(term, Expression::Reduce(Reduction::Sum, ..)));
    // Minus a sum is the sum of what is negative.
    let is_one = plain.len() + summed.len() < 2 && summed.iter().all(|(_, negated)| !negated);
    let left = statement.left();
    // Old elements are needed until all terms are there.
    let reads_result = statement.right().accesses().iter().any(|access| access.tensor == left.tensor);
    let adds = matches!(statement.accumulation(), None | Some(Reduction::Sum));
    if is_one || summed.is_empty() || reads_result || !adds {
        return vec![statement.clone()];
    }
    let together =
        plain.into_iter().map(|(term, negated)| (term.clone(), negated)).reduce(|(sum, minus), (term, negated)| {
            let sum = if minus { Expression::Negate(Box::new(sum)) } else { sum };
            let operator = if negated { BinaryOperator::Subtract } else { BinaryOperator::Add };
            (Expression::Binary(operator, Box::new(sum), Box::new(term)), false)
        });
    let together = together.map(|(sum, negated)| if negated { Expression::Negate(Box::new(sum)) } else { sum });
    let summed = summed.into_iter().map(|(term, negated)| if negated { negative(term) } else { term.clone() });
    let mut parts = Vec::new();
    for value in together.into_iter().chain(summed) {
        let accumulation = if parts.is_empty() { statement.accumulation() } else { Some(Reduction::Sum) };
        match Assignment::accumulating(left.clone(), accumulation, value) {
            Ok(part) => parts.push(part),
            // Parts of a checked assignment are checked.
            Err(_) => return vec![statement.clone()],
        }
    }
    parts
}

/// The terms of a sum, with whether each is subtracted.
pub(crate) fn terms(sum: &Expression) -> Vec<(&Expression, bool)> {
    let mut terms = Vec::new();
    collect(sum, false, &mut terms);
    terms
}

fn collect<'a>(value: &'a Expression, negated: bool, terms: &mut Vec<(&'a Expression, bool)>) {
    match value {
        Expression::Binary(operator @ (BinaryOperator::Add | BinaryOperator::Subtract), left, right) => {
            collect(left, negated, terms);
            collect(right, negated != (*operator == BinaryOperator::Subtract), terms);
        }
        Expression::Negate(operand) => collect(operand, !negated, terms),
        term => terms.push((term, negated)),
    }
}

/// Minus a sum: the sum of what is negative.
fn negative(value: &Expression) -> Expression {
    match value {
        Expression::Reduce(Reduction::Sum, variable, operand) => {
            Expression::Reduce(Reduction::Sum, variable.clone(), Box::new(negative(operand)))
        }
        other => Expression::Negate(Box::new(other.clone())),
    }
}
