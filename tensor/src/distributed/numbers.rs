//! Numbers of files as elements of tensors.

use super::lists::FileProblem;
use crate::element::{Element, ElementType, Scalar};
use crate::notation::cast;

/// The element of another type that a number is, if it is one: floats may be rounded to floats, but not to an infinity;
/// an integer is no other number, of whatever type. A complex number is none of a type that is not.
pub fn element_that_is<T: Element>(number: Scalar) -> Option<T> {
    as_element(number, T::TYPE).and_then(T::from_scalar)
}

/// [`element_that_is`] for a type that is known at run time only.
pub fn as_element(number: Scalar, element: ElementType) -> Option<Scalar> {
    let (own, found) = (number.element_type(), cast(number, element));
    let is_one = match (own.is_integer(), element.is_integer()) {
        (_, true) => is_kept(number, found),
        (true, false) => is_exact(number, found),
        (false, false) => is_finite(found) || !is_finite(number),
    };
    let is_real = element.is_complex() || !own.is_complex();
    Some(found).filter(|_| is_one && is_real)
}

/// Whether a number is neither infinite nor none.
fn is_finite(number: Scalar) -> bool {
    match cast(number, ElementType::C64) {
        Scalar::C64(number) => number.re.is_finite() && number.im.is_finite(),
        _ => true,
    }
}

/// How the problem begins of an element of which the place is not known.
pub(super) const HAS_ELEMENT: &str = "it has the element";

/// The problem of a number that is no element of a type; `what` says which one, before the number.
pub(super) fn no_element(what: impl FnOnce() -> String, number: Scalar, element: ElementType) -> FileProblem {
    let number = match number {
        // As `1e300`, and not with all its digits.
        Scalar::F32(number) => format!("{number:?}"),
        Scalar::F64(number) => format!("{number:?}"),
        number => number.to_string(),
    };
    let wanted = element.name();
    format!("{} {number}, which is no {wanted}: read it as elements of another type", what()).into()
}

/// Whether a float is the integer that was cast to it.
fn is_exact(integer: Scalar, float: Scalar) -> bool {
    match cast(float, ElementType::C64) {
        Scalar::C64(float) => integer.as_integer() == Scalar::F64(float.re).as_integer(),
        _ => false,
    }
}

/// Whether an integer is the number that was cast to it.
fn is_kept(number: Scalar, integer: Scalar) -> bool {
    number.as_integer().is_some_and(|number| integer.as_integer() == Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Complex;

    /// 2^63.
    const LARGEST: f64 = 9_223_372_036_854_775_808.0;

    #[test]
    fn numbers_are_elements_of_types_that_have_them() {
        assert_eq!(element_that_is::<i32>(Scalar::F64(-3.0)), Some(-3));
        assert_eq!(element_that_is::<i32>(Scalar::F64(0.5)), None);
        assert_eq!(element_that_is::<i32>(Scalar::I64(1 << 31)), None);
        assert_eq!(element_that_is::<u8>(Scalar::I32(-1)), None);
        assert_eq!(element_that_is::<bool>(Scalar::I64(2)), None);
        assert_eq!(element_that_is::<bool>(Scalar::F32(1.0)), Some(true));
        assert_eq!(element_that_is::<i64>(Scalar::F64(f64::NAN)), None);
        assert_eq!(element_that_is::<i64>(Scalar::F64(LARGEST)), None);
        assert_eq!(element_that_is::<i64>(Scalar::F64(-LARGEST)), Some(i64::MIN));
        assert_eq!(element_that_is::<f32>(Scalar::F64(0.1)), Some(0.1));
        assert_eq!(element_that_is::<f32>(Scalar::F64(1e300)), None);
        assert_eq!(element_that_is::<f32>(Scalar::F64(f64::INFINITY)), Some(f32::INFINITY));
        assert_eq!(element_that_is::<f64>(Scalar::I64(i64::MAX)), None);
        assert_eq!(element_that_is::<f64>(Scalar::I64(i64::MIN)), Some(-LARGEST));
        assert_eq!(element_that_is::<f64>(Scalar::I64((1 << 53) + 1)), None);
        assert_eq!(element_that_is::<Complex<f64>>(Scalar::I64((1 << 53) + 1)), None);
        assert_eq!(element_that_is::<f32>(Scalar::U32((1 << 24) + 1)), None);
        assert_eq!(element_that_is::<f32>(Scalar::U32(1 << 31)), Some(2_147_483_648.0));
        assert_eq!(element_that_is::<Complex<f32>>(Scalar::Bool(true)), Some(1.0.into()));
        assert_eq!(element_that_is::<f64>(Scalar::C64(2.0.into())), None);
        assert_eq!(element_that_is::<u64>(Scalar::I64(-1)), None);
        assert_eq!(element_that_is::<i64>(Scalar::U64(1 << 63)), None);
        assert_eq!(element_that_is::<u64>(Scalar::F64(LARGEST)), Some(1 << 63));
        assert_eq!(element_that_is::<f64>(Scalar::U64(u64::MAX)), None);
        assert_eq!(element_that_is::<u16>(Scalar::I32(65_536)), None);
    }
}
