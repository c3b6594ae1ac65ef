//! Masks, which say where values are computed, written as selections.
//!
//! `C(i,j) = M(i,j) ? A(i,k) * B(k,j)` computes nothing where `M` stores nothing. So a mask goes into the sum, where
//! loops over what is stored meet it first.

use super::expression::{Access, Expression, Literal, Test};
use crate::element::Scalar;
use crate::loops::{BinaryOperator, Reduction};

/// `right`, whose sums are explicit, where all masks store an element; elsewhere what leaves elements as they are.
pub(super) fn masked(
    left: &Access,
    accumulation: Option<Reduction>,
    masks: &[Access],
    right: Expression,
) -> Expression {
    let tensor = &left.tensor;
    let otherwise = match accumulation {
        None => tensor.fill(),
        Some(operator) => operator.identity(tensor.element()).unwrap_or(tensor.fill()),
    };
    masks.iter().rev().fold(right, |right, mask| within(mask, right, otherwise))
}

/// `right`, whose sums are not explicit, where all masks store an element; elsewhere zero, which adds nothing to a sum.
pub(super) fn of_terms(left: &Access, masks: &[Access], right: Expression) -> Expression {
    let Some(zero) = Reduction::Sum.identity(left.tensor.element()) else { return right };
    masks.iter().rev().fold(right, |right, mask| selected(mask, right, zero))
}

/// `value` where the mask stores an element.
fn selected(mask: &Access, value: Expression, otherwise: Scalar) -> Expression {
    let place = value.place();
    let stored = Expression::Test(Test::Stored, mask.clone());
    let otherwise = Expression::Literal(Literal::Typed(otherwise), place);
    Expression::Select(Box::new([stored, value, otherwise]), place)
}

fn within(mask: &Access, right: Expression, otherwise: Scalar) -> Expression {
    let element = otherwise.element_type();
    let is_zero = Reduction::Sum.identity(element) == Some(otherwise);
    let within = |operand: Expression| Box::new(within(mask, operand, otherwise));
    match right {
        Expression::Reduce(reduction, variable, operand)
            if reduction.identity(element) == Some(otherwise) && !mask.variables.contains(&variable) =>
        {
            Expression::Reduce(reduction, variable, within(*operand))
        }
        Expression::Binary(operator @ (BinaryOperator::Add | BinaryOperator::Subtract), first, second) if is_zero => {
            Expression::Binary(operator, within(*first), within(*second))
        }
        Expression::Negate(operand) if is_zero => Expression::Negate(within(*operand)),
        right => selected(mask, right, otherwise),
    }
}
