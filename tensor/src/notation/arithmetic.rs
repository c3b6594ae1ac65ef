//! Arithmetic of the operators of index notation, on numbers.

use maniple_kernel::arithmetic;

use crate::element::Scalar;
use crate::loops::BinaryOperator;

pub use maniple_kernel::arithmetic::{DivisionByZero, call, cast, is_fill, is_nan, is_zero, negate, reduce};

/// An element, or none if an integer was divided by zero.
pub type Value = Result<Scalar, DivisionByZero>;

/// `left operator right`. A comparison that holds is 1, and 0 if it does not; so are `and` and `or` of numbers that are
/// other than zero or not.
///
/// # Errors
///
/// If an integer is divided by zero.
pub fn binary(operator: BinaryOperator, left: Scalar, right: Scalar) -> Value {
    arithmetic::binary(operator, left, right).map(|value| match value {
        arithmetic::Value::Number(number) => number,
        arithmetic::Value::Truth(truth) => cast(Scalar::I32(truth.into()), left.element_type()),
    })
}
