//! What operators of index notation give: numbers.

use maniple_kernel::arithmetic;

use crate::element::Scalar;
use crate::loops::BinaryOperator;

pub use maniple_kernel::arithmetic::{DivisionByZero, call, cast, negate, reduce};

/// An element, or none if an integer was divided by zero.
pub type Value = Result<Scalar, DivisionByZero>;

/// `left operator right`.
///
/// # Errors
///
/// If an integer is divided by zero.
pub fn binary(operator: BinaryOperator, left: Scalar, right: Scalar) -> Value {
    arithmetic::binary(operator, left, right).map(|value| match value {
        arithmetic::Value::Number(number) => number,
        // Checked assignments compare nothing.
        arithmetic::Value::Truth(truth) => cast(Scalar::I32(truth.into()), left.element_type()),
    })
}
