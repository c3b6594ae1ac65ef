//! What packing asks of elements.

use crate::element::{Element, Scalar};
use crate::notation::{BinaryOperator, binary};

/// Whether both have the same bits: negative zeros are no zeros, and a NaN is itself.
pub(super) fn is_same<T: Element>(one: T, other: T) -> bool {
    match (one.to_scalar(), other.to_scalar()) {
        (Scalar::F32(one), Scalar::F32(other)) => one.to_bits() == other.to_bits(),
        (Scalar::F64(one), Scalar::F64(other)) => one.to_bits() == other.to_bits(),
        (Scalar::C32(one), Scalar::C32(other)) => {
            [one.re.to_bits(), one.im.to_bits()] == [other.re.to_bits(), other.im.to_bits()]
        }
        (Scalar::C64(one), Scalar::C64(other)) => {
            [one.re.to_bits(), one.im.to_bits()] == [other.re.to_bits(), other.im.to_bits()]
        }
        (one, other) => one == other,
    }
}

/// The sum; integers wrap.
pub(super) fn sum<T: Element>(one: T, other: T) -> T {
    let sum = binary(BinaryOperator::Add, one.to_scalar(), other.to_scalar());
    sum.ok().and_then(T::from_scalar).expect("the sum of two elements is one")
}

/// How far apart two elements are; NaN if that is not defined.
pub(super) fn distance<T: Element>(one: T, other: T) -> f64 {
    match (one.to_scalar(), other.to_scalar()) {
        (Scalar::I32(one), Scalar::I32(other)) => one.abs_diff(other).into(),
        (Scalar::I64(one), Scalar::I64(other)) => one.abs_diff(other) as f64,
        (Scalar::F32(one), Scalar::F32(other)) => (f64::from(one) - f64::from(other)).abs(),
        (Scalar::F64(one), Scalar::F64(other)) => (one - other).abs(),
        (Scalar::C32(one), Scalar::C32(other)) => (one - other).norm().into(),
        (Scalar::C64(one), Scalar::C64(other)) => (one - other).norm(),
        _ => f64::NAN,
    }
}
