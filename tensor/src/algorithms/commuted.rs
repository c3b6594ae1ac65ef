//! Products whose factors are in another order than an algorithm's form has them.

use super::roles::{permutations, product};
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, StatementNode};
use crate::notation::{BinaryOperator, Expression};

/// The algorithm that `algorithm` makes of `statement`, or of the same statement with its factors in another order:
/// products commute. If no order matches, the error is the one of the statement as it is.
///
/// # Errors
///
/// The errors of `algorithm`.
pub fn in_any_order(
    statement: &Statement,
    algorithm: impl Fn(&Statement) -> Result<Algorithm, AlgorithmError>,
) -> Result<Algorithm, AlgorithmError> {
    algorithm(statement).or_else(|error| match error {
        AlgorithmError::Form { .. } => commuted(statement).iter().find_map(|other| algorithm(other).ok()).ok_or(error),
        other => Err(other),
    })
}

/// The statement with its factors in all other orders, if it is a product.
fn commuted(statement: &Statement) -> Vec<Statement> {
    let Some((_, factors)) = product(statement) else { return Vec::new() };
    let in_order = |order: Vec<usize>| {
        let factors = order.into_iter().map(|number| Expression::Access(factors[number].clone()));
        let value = factors
            .reduce(|left, right| Expression::Binary(BinaryOperator::Multiply, Box::new(left), Box::new(right)))?;
        let mut other = statement.clone();
        let mut node = &mut other.body;
        while let StatementNode::Forall(_, body) = node {
            node = body;
        }
        if let StatementNode::Assign { value: old, .. } = node {
            *old = value;
        }
        Some(other)
    };
    permutations(factors.len()).into_iter().skip(1).filter_map(in_order).collect()
}
