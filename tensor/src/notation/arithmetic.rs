//! Arithmetic of the operators of index notation, on numbers.

use maniple_kernel::arithmetic;

use crate::element::Scalar;
use crate::loops::BinaryOperator;

pub use maniple_kernel::arithmetic::{DivisionByZero, call, cast, is_zero, negate, reduce};

/// An element, or none if an integer was divided by zero.
pub type Value = Result<Scalar, DivisionByZero>;

/// Whether a number differs from itself.
#[allow(clippy::eq_op)] // only a NaN does
pub fn is_nan(number: Scalar) -> bool {
    number != number
}

/// Whether an element is what its tensor is filled with, which may be NaN.
pub fn is_fill(element: Scalar, fill: Scalar) -> bool {
    element == fill || is_nan(element) && is_nan(fill)
}

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
