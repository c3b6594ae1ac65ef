//! Operations on elements that packing needs.

use maniple_kernel::arithmetic::{self, Value, binary};
use maniple_kernel::operators::BinaryOperator;

use crate::element::{Element, Scalar};
use crate::identical::identical;

/// Whether both have the same bits.
pub(super) fn is_same<T: Element>(one: T, other: T) -> bool {
    identical(one.to_scalar(), other.to_scalar())
}

/// Whether an element is what its tensor is filled with: zeros of both signs are one, and so are all NaNs.
pub(super) fn is_fill<T: Element>(element: T, fill: T) -> bool {
    arithmetic::is_fill(element.to_scalar(), fill.to_scalar())
}

/// The sum; integers wrap.
pub(super) fn sum<T: Element>(one: T, other: T) -> T {
    let sum = binary(BinaryOperator::Add, one.to_scalar(), other.to_scalar());
    let number = |sum| match sum {
        Value::Number(number) => T::from_scalar(number),
        Value::Truth(_) => None,
    };
    sum.ok().and_then(number).expect("the sum of two elements is one")
}

/// How far apart two elements are; NaN if that is not defined.
pub(super) fn distance<T: Element>(one: T, other: T) -> f64 {
    match (one.to_scalar(), other.to_scalar()) {
        (Scalar::F32(one), Scalar::F32(other)) => (f64::from(one) - f64::from(other)).abs(),
        (Scalar::F64(one), Scalar::F64(other)) => (one - other).abs(),
        (Scalar::C32(one), Scalar::C32(other)) => (one - other).norm().into(),
        (Scalar::C64(one), Scalar::C64(other)) => (one - other).norm(),
        (one, other) => match (one.as_integer(), other.as_integer()) {
            (Some(one), Some(other)) => one.abs_diff(other) as f64,
            _ => f64::NAN,
        },
    }
}
