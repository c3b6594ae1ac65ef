//! What operators and functions give, for each type of element.
//!
//! Integers wrap. The least and the greatest of floats are IEEE 754-2019 `minimum` and `maximum`. Kernels give the same integers, and the same floating-point numbers up to rounding.

use num_complex::Complex;

use super::expression::BinaryOperator;
use super::intrinsic::Intrinsic;
use crate::element::{ElementType, Scalar};
use crate::loops::Reduction;
use maniple_kernel::arithmetic::{Functions, Ordered, divide};

/// An integer was divided by zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("an integer is divided by zero")]
pub struct DivisionByZero;

/// An element, or none if an integer was divided by zero.
pub type Value = Result<Scalar, DivisionByZero>;

/// What each type of element can do. Operations that a type lacks give `None`; checked assignments have none of them.
trait Number: Copy {
    fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero>;
    fn negate(self) -> Self;
    fn unary(self, intrinsic: Intrinsic) -> Option<Self>;
    fn of_two(self, intrinsic: Intrinsic, right: Self) -> Option<Result<Self, DivisionByZero>>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
                Ok(match operator {
                    BinaryOperator::Add => self.wrapping_add(right),
                    BinaryOperator::Subtract => self.wrapping_sub(right),
                    BinaryOperator::Multiply => self.wrapping_mul(right),
                    BinaryOperator::Divide if right == 0 => return Err(DivisionByZero),
                    BinaryOperator::Divide => self.wrapping_div(right),
                })
            }

            fn negate(self) -> Self {
                self.wrapping_neg()
            }

            fn unary(self, intrinsic: Intrinsic) -> Option<Self> {
                match intrinsic {
                    Intrinsic::Abs => Some(self.wrapping_abs()),
                    Intrinsic::Square => Some(self.wrapping_mul(self)),
                    Intrinsic::Cube => Some(self.wrapping_mul(self).wrapping_mul(self)),
                    _ => None,
                }
            }

            fn of_two(self, intrinsic: Intrinsic, right: Self) -> Option<Result<Self, DivisionByZero>> {
                match intrinsic {
                    Intrinsic::Mod if right == 0 => Some(Err(DivisionByZero)),
                    Intrinsic::Mod => Some(Ok(self.wrapping_rem(right))),
                    Intrinsic::Min => Some(Ok(self.lesser(right))),
                    Intrinsic::Max => Some(Ok(self.greater(right))),
                    _ => None,
                }
            }
        }
    )*};
}

macro_rules! fractions {
    ($($type:ty: $quotient:ident $special:ident $two:ident),*) => {$(
        impl Number for $type {
            fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
                Ok(match operator {
                    BinaryOperator::Add => self + right,
                    BinaryOperator::Subtract => self - right,
                    BinaryOperator::Multiply => self * right,
                    BinaryOperator::Divide => $quotient!(self, right),
                })
            }

            fn negate(self) -> Self {
                -self
            }

            fn unary(self, intrinsic: Intrinsic) -> Option<Self> {
                Some(match intrinsic {
                    Intrinsic::Sqrt => Functions::sqrt(self),
                    Intrinsic::Square => self * self,
                    Intrinsic::Cube => self * self * self,
                    Intrinsic::Sin => Functions::sin(self),
                    Intrinsic::Cos => Functions::cos(self),
                    Intrinsic::Tan => Functions::tan(self),
                    Intrinsic::Asin => Functions::asin(self),
                    Intrinsic::Acos => Functions::acos(self),
                    Intrinsic::Atan => Functions::atan(self),
                    Intrinsic::Sinh => Functions::sinh(self),
                    Intrinsic::Cosh => Functions::cosh(self),
                    Intrinsic::Tanh => Functions::tanh(self),
                    Intrinsic::Asinh => Functions::asinh(self),
                    Intrinsic::Acosh => Functions::acosh(self),
                    Intrinsic::Atanh => Functions::atanh(self),
                    Intrinsic::Exp => Functions::exp(self),
                    Intrinsic::Log => Functions::log(self),
                    other => return $special!(self, other),
                })
            }

            fn of_two(self, intrinsic: Intrinsic, right: Self) -> Option<Result<Self, DivisionByZero>> {
                $two!(self, intrinsic, right)
            }
        }
    )*};
}

macro_rules! real_quotient {
    ($left:expr, $right:expr) => {
        $left / $right
    };
}

macro_rules! complex_quotient {
    ($left:expr, $right:expr) => {
        divide($left, $right)
    };
}

macro_rules! real {
    ($value:expr, $intrinsic:expr) => {
        match $intrinsic {
            Intrinsic::Abs => Some($value.abs()),
            Intrinsic::Cbrt => Some($value.cbrt()),
            Intrinsic::Log10 => Some(Functions::log10($value)),
            Intrinsic::Floor => Some($value.floor()),
            Intrinsic::Ceil => Some($value.ceil()),
            _ => None,
        }
    };
}

macro_rules! real_two {
    ($left:expr, $intrinsic:expr, $right:expr) => {
        match $intrinsic {
            Intrinsic::Pow => Some(Ok(Functions::pow($left, $right))),
            Intrinsic::Mod => Some(Ok($left % $right)),
            Intrinsic::Min => Some(Ok($left.lesser($right))),
            Intrinsic::Max => Some(Ok($left.greater($right))),
            _ => None,
        }
    };
}

macro_rules! complex {
    ($value:expr, $intrinsic:expr) => {
        match $intrinsic {
            Intrinsic::Abs => Some(Self::new($value.norm(), 0.0)),
            Intrinsic::Conj => Some($value.conj()),
            _ => None,
        }
    };
}

macro_rules! complex_two {
    ($left:expr, $intrinsic:expr, $right:expr) => {
        match $intrinsic {
            Intrinsic::Pow => Some(Ok(Functions::pow($left, $right))),
            _ => None,
        }
    };
}

integers!(i32, i64);
fractions!(
    f32: real_quotient real real_two,
    f64: real_quotient real real_two,
    Complex<f32>: complex_quotient complex complex_two,
    Complex<f64>: complex_quotient complex complex_two
);

/// Does the same for each type; `$left` and `$right` have one type, or the result is `None`.
macro_rules! each_type {
    ($scalar:expr, $value:ident => $result:expr) => {
        match $scalar {
            Scalar::I32($value) => $result.map(|result| result.map(Scalar::I32)),
            Scalar::I64($value) => $result.map(|result| result.map(Scalar::I64)),
            Scalar::F32($value) => $result.map(|result| result.map(Scalar::F32)),
            Scalar::F64($value) => $result.map(|result| result.map(Scalar::F64)),
            Scalar::C32($value) => $result.map(|result| result.map(Scalar::C32)),
            Scalar::C64($value) => $result.map(|result| result.map(Scalar::C64)),
        }
    };
    ($left:expr, $right:expr, $a:ident, $b:ident => $result:expr) => {
        match ($left, $right) {
            (Scalar::I32($a), Scalar::I32($b)) => $result.map(|result| result.map(Scalar::I32)),
            (Scalar::I64($a), Scalar::I64($b)) => $result.map(|result| result.map(Scalar::I64)),
            (Scalar::F32($a), Scalar::F32($b)) => $result.map(|result| result.map(Scalar::F32)),
            (Scalar::F64($a), Scalar::F64($b)) => $result.map(|result| result.map(Scalar::F64)),
            (Scalar::C32($a), Scalar::C32($b)) => $result.map(|result| result.map(Scalar::C32)),
            (Scalar::C64($a), Scalar::C64($b)) => $result.map(|result| result.map(Scalar::C64)),
            _ => None,
        }
    };
}

/// `left operator right`.
///
/// # Panics
///
/// If the types differ, which they do in no checked assignment.
pub fn binary(operator: BinaryOperator, left: Scalar, right: Scalar) -> Value {
    let value = each_type!(left, right, a, b => Some(a.binary(operator, b)));
    value.expect("operands of a checked expression have one type")
}

/// `-value`.
pub fn negate(value: Scalar) -> Scalar {
    let negated: Option<Value> = each_type!(value, value => Some(Ok(value.negate())));
    negated.and_then(Result::ok).unwrap_or(value)
}

/// `intrinsic(arguments)`.
///
/// # Panics
///
/// If the function is not defined for these arguments; in a checked assignment it is.
pub fn call(intrinsic: Intrinsic, arguments: &[Scalar]) -> Value {
    let value = match *arguments {
        [value] => each_type!(value, value => value.unary(intrinsic).map(Ok)),
        [left, right] => each_type!(left, right, a, b => a.of_two(intrinsic, b)),
        _ => None,
    };
    value.expect("functions of a checked expression are defined for their arguments")
}

/// `left` and `right` combined.
///
/// # Panics
///
/// If the types differ, or the operator is not defined for them; in a checked assignment it is.
pub fn reduce(reduction: Reduction, left: Scalar, right: Scalar) -> Scalar {
    let value = match reduction {
        Reduction::Sum => binary(BinaryOperator::Add, left, right),
        Reduction::Product => binary(BinaryOperator::Multiply, left, right),
        Reduction::Minimum => call(Intrinsic::Min, &[left, right]),
        Reduction::Maximum => call(Intrinsic::Max, &[left, right]),
    };
    value.expect("no reduction divides")
}

/// `value` in another type: fractions round towards zero and stay within the integers, integers wrap. Checked
/// assignments cast no complex numbers to others.
pub fn cast(value: Scalar, element: ElementType) -> Scalar {
    macro_rules! to {
        ($real:expr, $imaginary:expr) => {
            match element {
                ElementType::I32 => Scalar::I32($real as i32),
                ElementType::I64 => Scalar::I64($real as i64),
                ElementType::F32 => Scalar::F32($real as f32),
                ElementType::F64 => Scalar::F64($real as f64),
                ElementType::C32 => Scalar::C32(Complex::new($real as f32, $imaginary as f32)),
                ElementType::C64 => Scalar::C64(Complex::new($real as f64, $imaginary as f64)),
            }
        };
    }
    match value {
        Scalar::I32(value) => to!(value, 0.0),
        Scalar::I64(value) => to!(value, 0.0),
        Scalar::F32(value) => to!(value, 0.0),
        Scalar::F64(value) => to!(value, 0.0),
        Scalar::C32(value) => to!(value.re, value.im),
        Scalar::C64(value) => to!(value.re, value.im),
    }
}
