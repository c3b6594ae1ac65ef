//! Reductions as the runtime knows them.

use maniple::{OperatorId, ReductionOperator, register_reduction};
use num_complex::Complex;

use crate::element::ElementType;
use crate::loops::Reduction;
use maniple_kernel::arithmetic::Ordered;

macro_rules! operator {
    ($(#[$doc:meta])* $name:ident: $($ty:ty => $identity:expr, |$a:ident, $b:ident| $combined:expr;)*) => {
        $(#[$doc])*
        pub(super) struct $name;

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
    bool => false, |a, b| a | b;
    u8 => 0, |a, b| a.wrapping_add(b);
    i8 => 0, |a, b| a.wrapping_add(b);
    i16 => 0, |a, b| a.wrapping_add(b);
    u32 => 0, |a, b| a.wrapping_add(b);
    i32 => 0, |a, b| a.wrapping_add(b);
    i64 => 0, |a, b| a.wrapping_add(b);
    f32 => 0.0, |a, b| a + b;
    f64 => 0.0, |a, b| a + b;
    Complex<f32> => Complex::new(0.0, 0.0), |a, b| a + b;
    Complex<f64> => Complex::new(0.0, 0.0), |a, b| a + b;
}

operator! {
    /// Multiplies; integers wrap.
    Multiplies:
    bool => true, |a, b| a & b;
    u8 => 1, |a, b| a.wrapping_mul(b);
    i8 => 1, |a, b| a.wrapping_mul(b);
    i16 => 1, |a, b| a.wrapping_mul(b);
    u32 => 1, |a, b| a.wrapping_mul(b);
    i32 => 1, |a, b| a.wrapping_mul(b);
    i64 => 1, |a, b| a.wrapping_mul(b);
    f32 => 1.0, |a, b| a * b;
    f64 => 1.0, |a, b| a * b;
    Complex<f32> => Complex::new(1.0, 0.0), |a, b| a * b;
    Complex<f64> => Complex::new(1.0, 0.0), |a, b| a * b;
}

operator! {
    /// Keeps the least; of floats as IEEE 754-2019 `minimum` does, so that a NaN stays.
    Least:
    bool => true, |a, b| a.lesser(b);
    u8 => u8::MAX, |a, b| a.lesser(b);
    i8 => i8::MAX, |a, b| a.lesser(b);
    i16 => i16::MAX, |a, b| a.lesser(b);
    u32 => u32::MAX, |a, b| a.lesser(b);
    i32 => i32::MAX, |a, b| a.lesser(b);
    i64 => i64::MAX, |a, b| a.lesser(b);
    f32 => f32::INFINITY, |a, b| a.lesser(b);
    f64 => f64::INFINITY, |a, b| a.lesser(b);
}

operator! {
    /// Keeps the greatest; of floats as IEEE 754-2019 `maximum` does, so that a NaN stays.
    Greatest:
    bool => false, |a, b| a.greater(b);
    u8 => u8::MIN, |a, b| a.greater(b);
    i8 => i8::MIN, |a, b| a.greater(b);
    i16 => i16::MIN, |a, b| a.greater(b);
    u32 => u32::MIN, |a, b| a.greater(b);
    i32 => i32::MIN, |a, b| a.greater(b);
    i64 => i64::MIN, |a, b| a.greater(b);
    f32 => f32::NEG_INFINITY, |a, b| a.greater(b);
    f64 => f64::NEG_INFINITY, |a, b| a.greater(b);
}

operator! {
    /// 1 if any value is other than zero, else 0.
    Any:
    bool => false, |a, b| a | b;
    u8 => 0, |a, b| (a != 0 || b != 0).into();
    i8 => 0, |a, b| (a != 0 || b != 0).into();
    i16 => 0, |a, b| (a != 0 || b != 0).into();
    u32 => 0, |a, b| (a != 0 || b != 0).into();
    i32 => 0, |a, b| (a != 0 || b != 0).into();
    i64 => 0, |a, b| (a != 0 || b != 0).into();
    f32 => 0.0, |a, b| (a != 0.0 || b != 0.0).into();
    f64 => 0.0, |a, b| (a != 0.0 || b != 0.0).into();
}

operator! {
    /// 0 if any value is zero, else 1.
    All:
    bool => true, |a, b| a & b;
    u8 => 1, |a, b| (a != 0 && b != 0).into();
    i8 => 1, |a, b| (a != 0 && b != 0).into();
    i16 => 1, |a, b| (a != 0 && b != 0).into();
    u32 => 1, |a, b| (a != 0 && b != 0).into();
    i32 => 1, |a, b| (a != 0 && b != 0).into();
    i64 => 1, |a, b| (a != 0 && b != 0).into();
    f32 => 1.0, |a, b| (a != 0.0 && b != 0.0).into();
    f64 => 1.0, |a, b| (a != 0.0 && b != 0.0).into();
}

/// The operator of a reduction over elements of a type, which the runtime is told of; none for the least and greatest
/// of complex numbers, and for users' own.
pub(super) fn operator(reduction: Reduction, element: ElementType) -> Option<OperatorId> {
    macro_rules! known {
        ($operator:ident: $($variant:ident $ty:ty),*) => {
            match element {
                $(ElementType::$variant => {
                    register_reduction::<$operator, $ty>();
                    Some(OperatorId::of::<$operator>())
                })*
                #[allow(unreachable_patterns)]
                _ => None,
            }
        };
    }
    match reduction {
        Reduction::Sum => {
            known!(Adds: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64, C32 Complex<f32>, C64 Complex<f64>)
        }
        Reduction::Product => {
            known!(Multiplies: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64, C32 Complex<f32>, C64 Complex<f64>)
        }
        Reduction::Minimum => {
            known!(Least: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64)
        }
        Reduction::Maximum => {
            known!(Greatest: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64)
        }
        Reduction::Or => known!(Any: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64),
        Reduction::And => known!(All: Bool bool, U8 u8, I8 i8, I16 i16, U32 u32, I32 i32, I64 i64, F32 f32, F64 f64),
        // The runtime knows operators by their types.
        Reduction::Custom(_) => None,
    }
}
