//! What operators of index notation give: numbers.

use maniple_kernel::arithmetic;

use crate::element::Scalar;
use crate::loops::{BinaryOperator, Reduction};

pub use maniple_kernel::arithmetic::{DivisionByZero, call, cast, negate, reduce};

/// An element, or none if an integer was divided by zero.
pub type Value = Result<Scalar, DivisionByZero>;

/// Whether a number is zero, which is what stands for a condition that does not hold.
pub fn is_zero(number: Scalar) -> bool {
    Reduction::Sum.identity(number.element_type()) == Some(number)
}

/// `left operator right`. A comparison that holds is 1, and 0 if it does not.
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
