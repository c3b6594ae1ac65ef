//! Loops that are products of matrices.

use crate::loops::Reduction;
use crate::notation::{Access, BinaryOperator, Expression};

/// The two factors, if an assignment sums products of two tensors; otherwise what it does instead.
pub fn matches<'a>(
    target: &Access,
    operator: Option<Reduction>,
    value: &'a Expression,
) -> Result<(&'a Access, &'a Access), String> {
    let found = || format!("{target} = {value}");
    if operator != Some(Reduction::Sum) {
        return Err(found());
    }
    let Expression::Binary(BinaryOperator::Multiply, left, right) = value else { return Err(found()) };
    match (&**left, &**right) {
        (Expression::Access(left), Expression::Access(right)) => Ok((left, right)),
        _ => Err(found()),
    }
}
