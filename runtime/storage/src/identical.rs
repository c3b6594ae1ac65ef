//! Elements that cannot be told apart.

use crate::element::Scalar;

/// Whether both have the same type and bits: a NaN is itself, and a negative zero is no zero.
pub fn identical(one: Scalar, other: Scalar) -> bool {
    match (one, other) {
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
