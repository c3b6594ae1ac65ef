//! Reductions as the runtime knows them.

use maniple::{FieldValue, OperatorId, ReductionOperator, register_reduction};
use num_complex::Complex;

use crate::element::{Element, ElementType};
use crate::loops::Reduction;
use crate::with_element;
use maniple_kernel::arithmetic::Ordered;

macro_rules! operator {
    ($(#[$doc:meta])* $name:ident: $([$($ty:ty),*] $identity:expr, |$a:ident, $b:ident| $combined:expr;)*) => {
        $(#[$doc])*
        pub(super) struct $name;

        $(operator!($name [$($ty),*] $identity, $a, $b, $combined);)*
    };
    ($name:ident [$($ty:ty),*] $identity:expr, $a:ident, $b:ident, $combined:expr) => {
        $(impl ReductionOperator<$ty> for $name {
            type Rhs = $ty;

            const APPLIES_AS_IT_FOLDS: bool = true;

            fn identity() -> $ty {
                $identity
            }

            fn apply(value: &mut $ty, contribution: $ty) {
                let ($a, $b) = (*value, contribution);
                *value = $combined;
            }

            fn fold(into: &mut $ty, contribution: $ty) {
                <Self as ReductionOperator<$ty>>::apply(into, contribution);
            }
        })*
    };
}

operator! {
    /// Adds; integers wrap.
    Adds:
    [bool] false, |a, b| a | b;
    [u8, i8, u16, i16, u32, i32, u64, i64] 0, |a, b| a.wrapping_add(b);
    [f32, f64] 0.0, |a, b| a + b;
    [Complex<f32>, Complex<f64>] Complex::new(0.0, 0.0), |a, b| a + b;
}

operator! {
    /// Multiplies; integers wrap.
    Multiplies:
    [bool] true, |a, b| a & b;
    [u8, i8, u16, i16, u32, i32, u64, i64] 1, |a, b| a.wrapping_mul(b);
    [f32, f64] 1.0, |a, b| a * b;
    [Complex<f32>, Complex<f64>] Complex::new(1.0, 0.0), |a, b| a * b;
}

operator! {
    /// Keeps the least; of floats as IEEE 754-2019 `minimum` does, so that a NaN stays.
    Least:
    [bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64] extreme(1), |a, b| a.lesser(b);
}

operator! {
    /// Keeps the greatest; of floats as IEEE 754-2019 `maximum` does, so that a NaN stays.
    Greatest:
    [bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64] extreme(0), |a, b| a.greater(b);
}

operator! {
    /// 1 if any value is other than zero, else 0.
    Any:
    [bool] false, |a, b| a | b;
    [u8, i8, u16, i16, u32, i32, u64, i64] 0, |a, b| (a != 0 || b != 0).into();
    [f32, f64] 0.0, |a, b| (a != 0.0 || b != 0.0).into();
}

operator! {
    /// 0 if any value is zero, else 1.
    All:
    [bool] true, |a, b| a & b;
    [u8, i8, u16, i16, u32, i32, u64, i64] 1, |a, b| (a != 0 && b != 0).into();
    [f32, f64] 1.0, |a, b| (a != 0.0 && b != 0.0).into();
}

/// The least value of a type with an order, or the greatest.
fn extreme<T: Element>(number: usize) -> T {
    T::EXTREMES.map_or(T::ONE, |extremes| extremes[number])
}

/// The operator of a reduction over elements of a type, which the runtime is told of; none for the least and greatest
/// of complex numbers, and for users' own.
pub(super) fn operator(reduction: Reduction, element: ElementType) -> Option<OperatorId> {
    macro_rules! ordered {
        ($operator:ident: $($variant:ident $ty:ty),*) => {
            match element {
                $(ElementType::$variant => known::<$operator, $ty>(),)*
                ElementType::C32 | ElementType::C64 => None,
            }
        };
        ($operator:ident) => {
            ordered!(
                $operator: Bool bool, U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64
            )
        };
    }
    match reduction {
        Reduction::Sum => with_element!(element, T => known::<Adds, T>()),
        Reduction::Product => with_element!(element, T => known::<Multiplies, T>()),
        Reduction::Minimum => ordered!(Least),
        Reduction::Maximum => ordered!(Greatest),
        Reduction::Or => ordered!(Any),
        Reduction::And => ordered!(All),
        // The runtime knows operators by their types.
        Reduction::Custom(_) => None,
    }
}

/// An operator that the runtime has been told of.
fn known<O: ReductionOperator<T>, T: FieldValue>() -> Option<OperatorId> {
    register_reduction::<O, T>();
    Some(OperatorId::of::<O>())
}
