//! Sums that an assignment does not write.
//!
//! Each term of the right side is summed over the variables that it has and the left side has not. TACO sums the
//! operands of the uppermost `+` instead, so that in `a(i) = D(i,j) + b(i) + c(i)` it sums `b` over `j` too.

use super::expression::{Access, Expression};
use super::variable::IndexVariable;
use crate::loops::{BinaryOperator, Reduction};

/// `right` with a reduction around each term that has variables of its own.
pub(super) fn explicit(left: &Access, right: &Expression) -> Expression {
    match right {
        Expression::Binary(operator @ (BinaryOperator::Add | BinaryOperator::Subtract), first, second) => {
            let (first, second) = (explicit(left, first), explicit(left, second));
            Expression::Binary(*operator, Box::new(first), Box::new(second))
        }
        Expression::Negate(operand) => Expression::Negate(Box::new(explicit(left, operand))),
        term => own_variables(left, term)
            .into_iter()
            .rev()
            .fold(term.clone(), |body, variable| Expression::Reduce(Reduction::Sum, variable, Box::new(body))),
    }
}

/// The variables that a term has and the left side has not, without those that it reduces over.
fn own_variables(left: &Access, term: &Expression) -> Vec<IndexVariable> {
    let mut own: Vec<IndexVariable> = Vec::new();
    for variable in term.variables() {
        let variable = variable.base();
        if !left.variables.contains(variable) && !own.contains(variable) {
            own.push(variable.clone());
        }
    }
    own
}
