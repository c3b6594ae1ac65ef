//! Operators on elements of any type.
//!
//! Integers wrap. The least and the greatest of floats are IEEE 754-2019 `minimum` and `maximum`.

use num_complex::Complex;

use super::{Functions, Ordered, divide};
use crate::element::{Element, ElementType, Scalar};
use crate::operators::{BinaryOperator, Formula, Intrinsic, Reduction, Special, UnaryOperator};
use crate::with_scalar;

/// An integer was divided by zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("an integer is divided by zero")]
pub struct DivisionByZero;

/// A truth value or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A truth value.
    Truth(bool),
    /// A number.
    Number(Scalar),
}

/// The operations on a type of element. Operators and functions that a type lacks give the first operand: checked
/// kernels and formulas have none of them.
trait Number: Element {
    /// An operator that makes a number.
    fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero>;
    fn less(self, right: Self) -> bool;
    fn less_equal(self, right: Self) -> bool;
    fn negate(self) -> Self;
    fn call(self, function: Intrinsic, other: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty, $is_negative:expr, $abs:expr;)*) => {$(
        impl Number for $type {
            fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
                if operator.divides() && right == 0 {
                    return Err(DivisionByZero);
                }
                let is_negative: fn(Self) -> bool = $is_negative;
                let rounds_up = |remainder| remainder != 0 && is_negative(remainder) != is_negative(right);
                Ok(match operator {
                    BinaryOperator::Add => self.wrapping_add(right),
                    BinaryOperator::Subtract => self.wrapping_sub(right),
                    BinaryOperator::Multiply => self.wrapping_mul(right),
                    BinaryOperator::Divide => self.wrapping_div(right),
                    BinaryOperator::Remainder => self.wrapping_rem(right),
                    BinaryOperator::FloorDivide => {
                        let down = rounds_up(self.wrapping_rem(right));
                        self.wrapping_div(right).wrapping_sub(down.into())
                    }
                    BinaryOperator::FloorRemainder => {
                        let remainder = self.wrapping_rem(right);
                        if rounds_up(remainder) { remainder.wrapping_add(right) } else { remainder }
                    }
                    BinaryOperator::Bit => self.wrapping_shr(right as u32) & 1,
                    BinaryOperator::NextBit => {
                        let first = u32::try_from(right as i64).unwrap_or(Self::BITS);
                        let found = self.checked_shr(first).filter(|rest| *rest != 0);
                        found.map_or(Self::BITS, |rest| first + rest.trailing_zeros()) as Self
                    }
                    BinaryOperator::Minimum => self.lesser(right),
                    BinaryOperator::Maximum => self.greater(right),
                    _ => self,
                })
            }

            fn less(self, right: Self) -> bool {
                self < right
            }

            fn less_equal(self, right: Self) -> bool {
                self <= right
            }

            fn negate(self) -> Self {
                self.wrapping_neg()
            }

            fn call(self, function: Intrinsic, _: Self) -> Self {
                match function {
                    Intrinsic::Abs => {
                        let abs: fn(Self) -> Self = $abs;
                        abs(self)
                    }
                    Intrinsic::Square => self.wrapping_mul(self),
                    Intrinsic::Cube => self.wrapping_mul(self).wrapping_mul(self),
                    _ => self,
                }
            }
        }
    )*};
}

/// Truth values are the numbers 0 and 1, and what is computed is 1 if it is not zero.
impl Number for bool {
    fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
        u8::from(self).binary(operator, right.into()).map(|number| number != 0)
    }

    fn less(self, right: Self) -> bool {
        !self && right
    }

    fn less_equal(self, right: Self) -> bool {
        !self || right
    }

    fn negate(self) -> Self {
        self
    }

    fn call(self, _: Intrinsic, _: Self) -> Self {
        self
    }
}

/// The functions that real and complex numbers have in common.
fn common<T: Functions + Copy + std::ops::Mul<Output = T>>(function: Intrinsic, value: T, other: T) -> T {
    match function {
        Intrinsic::Square => value * value,
        Intrinsic::Cube => value * value * value,
        Intrinsic::Sqrt => value.sqrt(),
        Intrinsic::Exp => value.exp(),
        Intrinsic::Log => value.log(),
        Intrinsic::Log10 => value.log10(),
        Intrinsic::Sin => value.sin(),
        Intrinsic::Cos => value.cos(),
        Intrinsic::Tan => value.tan(),
        Intrinsic::Asin => value.asin(),
        Intrinsic::Acos => value.acos(),
        Intrinsic::Atan => value.atan(),
        Intrinsic::Sinh => value.sinh(),
        Intrinsic::Cosh => value.cosh(),
        Intrinsic::Tanh => value.tanh(),
        Intrinsic::Asinh => value.asinh(),
        Intrinsic::Acosh => value.acosh(),
        Intrinsic::Atanh => value.atanh(),
        Intrinsic::Pow => value.pow(other),
        _ => value,
    }
}

macro_rules! reals {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
                Ok(match operator {
                    BinaryOperator::Add => self + right,
                    BinaryOperator::Subtract => self - right,
                    BinaryOperator::Multiply => self * right,
                    BinaryOperator::Divide => self / right,
                    BinaryOperator::Remainder => self % right,
                    BinaryOperator::Minimum => self.lesser(right),
                    BinaryOperator::Maximum => self.greater(right),
                    _ => self,
                })
            }

            fn less(self, right: Self) -> bool {
                self < right
            }

            fn less_equal(self, right: Self) -> bool {
                self <= right
            }

            fn negate(self) -> Self {
                -self
            }

            fn call(self, function: Intrinsic, other: Self) -> Self {
                match function {
                    Intrinsic::Abs => self.abs(),
                    Intrinsic::Cbrt => self.cbrt(),
                    Intrinsic::Floor => self.floor(),
                    Intrinsic::Ceil => self.ceil(),
                    function => common(function, self, other),
                }
            }
        }
    )*};
}

macro_rules! complexes {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn binary(self, operator: BinaryOperator, right: Self) -> Result<Self, DivisionByZero> {
                Ok(match operator {
                    BinaryOperator::Add => self + right,
                    BinaryOperator::Subtract => self - right,
                    BinaryOperator::Multiply => self * right,
                    BinaryOperator::Divide => divide(self, right),
                    _ => self,
                })
            }

            fn less(self, _: Self) -> bool {
                false
            }

            fn less_equal(self, _: Self) -> bool {
                false
            }

            fn negate(self) -> Self {
                -self
            }

            fn call(self, function: Intrinsic, other: Self) -> Self {
                match function {
                    Intrinsic::Abs => Self::new(self.norm(), 0.0),
                    Intrinsic::Conj => self.conj(),
                    function => common(function, self, other),
                }
            }
        }
    )*};
}

integers! {
    u8, |_| false, |number| number;
    u16, |_| false, |number| number;
    u32, |_| false, |number| number;
    u64, |_| false, |number| number;
    i8, Self::is_negative, Self::wrapping_abs;
    i16, Self::is_negative, Self::wrapping_abs;
    i32, Self::is_negative, Self::wrapping_abs;
    i64, Self::is_negative, Self::wrapping_abs;
}

reals!(f32, f64);
complexes!(Complex<f32>, Complex<f64>);

fn on_numbers<T: Number>(operator: BinaryOperator, a: T, b: T) -> Result<Value, DivisionByZero> {
    Ok(match operator {
        BinaryOperator::Equal => Value::Truth(a == b),
        BinaryOperator::NotEqual => Value::Truth(a != b),
        BinaryOperator::Less => Value::Truth(a.less(b)),
        BinaryOperator::LessEqual => Value::Truth(a.less_equal(b)),
        _ => Value::Number(a.binary(operator, b)?.to_scalar()),
    })
}

/// Whether a number differs from itself.
#[allow(clippy::eq_op)] // only a NaN does
pub fn is_nan(number: Scalar) -> bool {
    number != number
}

/// Whether an element is what its tensor is filled with, which may be NaN.
pub fn is_fill(element: Scalar, fill: Scalar) -> bool {
    element == fill || is_nan(element) && is_nan(fill)
}

/// Whether a number is zero, of either sign.
pub fn is_zero(number: Scalar) -> bool {
    Special::Zero.of(number.element_type()) == Some(number)
}

/// `left operator right` for numbers of one type, for which the operator is defined; of two truth values as numbers, a
/// truth value.
///
/// # Errors
///
/// If an integer is divided by zero.
pub fn binary(operator: BinaryOperator, left: Scalar, right: Scalar) -> Result<Value, DivisionByZero> {
    match operator {
        BinaryOperator::And => return Ok(Value::Truth(!is_zero(left) && !is_zero(right))),
        BinaryOperator::Or => return Ok(Value::Truth(!is_zero(left) || !is_zero(right))),
        _ => {}
    }
    with_scalar!(left, a => match Element::from_scalar(right) {
        Some(b) => on_numbers(operator, a, b),
        // What is checked has operands of one type.
        None => Ok(Value::Number(left)),
    })
}

/// `-value`.
pub fn negate(value: Scalar) -> Scalar {
    with_scalar!(value, number => number.negate().to_scalar())
}

/// `function(arguments)` for as many arguments as it takes, of one type for which it is defined.
///
/// # Errors
///
/// If an integer is divided by zero.
///
/// # Panics
///
/// If there are no arguments.
pub fn call(function: Intrinsic, arguments: &[Scalar]) -> Result<Scalar, DivisionByZero> {
    let (first, second) = (arguments[0], arguments[arguments.len() - 1]);
    if let Some(operator) = function.operator() {
        return binary(operator, first, second).map(|value| match value {
            Value::Number(number) => number,
            Value::Truth(_) => first,
        });
    }
    Ok(with_scalar!(first, a => match Element::from_scalar(second) {
        Some(b) => a.call(function, b).to_scalar(),
        None => first,
    }))
}

/// `left` and `right`, of one type for which the operator is defined, combined.
pub fn reduce(reduction: Reduction, left: Scalar, right: Scalar) -> Scalar {
    let combined = match (reduction, reduction.operator()) {
        (Reduction::Custom(custom), _) => return evaluate(custom.formula(), left, right),
        (_, Some(operator)) => binary(operator, left, right),
        (_, None) => return left,
    };
    match combined {
        Ok(Value::Number(number)) => number,
        Ok(Value::Truth(truth)) => cast(Scalar::I32(truth.into()), left.element_type()),
        // No reduction divides.
        Err(DivisionByZero) => left,
    }
}

/// `value` in another type: fractions round towards zero and stay within the integers, of which NaN is 0; integers
/// wrap; a truth value is whether the number is other than zero. Of a complex number in a real type, which checks
/// refuse, the real part.
pub fn cast(value: Scalar, element: ElementType) -> Scalar {
    macro_rules! to {
        ($real:expr, $imaginary:expr) => {
            match element {
                ElementType::Bool => Scalar::Bool(!is_zero(value)),
                ElementType::U8 => Scalar::U8($real as u8),
                ElementType::I8 => Scalar::I8($real as i8),
                ElementType::U16 => Scalar::U16($real as u16),
                ElementType::I16 => Scalar::I16($real as i16),
                ElementType::U32 => Scalar::U32($real as u32),
                ElementType::I32 => Scalar::I32($real as i32),
                ElementType::U64 => Scalar::U64($real as u64),
                ElementType::I64 => Scalar::I64($real as i64),
                ElementType::F32 => Scalar::F32($real as f32),
                ElementType::F64 => Scalar::F64($real as f64),
                ElementType::C32 => Scalar::C32(Complex::new($real as f32, $imaginary as f32)),
                ElementType::C64 => Scalar::C64(Complex::new($real as f64, $imaginary as f64)),
            }
        };
    }
    match value {
        Scalar::Bool(truth) => to!(u8::from(truth), 0.0),
        Scalar::U8(number) => to!(number, 0.0),
        Scalar::I8(number) => to!(number, 0.0),
        Scalar::U16(number) => to!(number, 0.0),
        Scalar::I16(number) => to!(number, 0.0),
        Scalar::U32(number) => to!(number, 0.0),
        Scalar::I32(number) => to!(number, 0.0),
        Scalar::U64(number) => to!(number, 0.0),
        Scalar::I64(number) => to!(number, 0.0),
        Scalar::F32(number) => to!(number, 0.0),
        Scalar::F64(number) => to!(number, 0.0),
        Scalar::C32(number) => to!(number.re, number.im),
        Scalar::C64(number) => to!(number.re, number.im),
    }
}

/// The result of a formula for two values of one type, for which it is defined.
pub(super) fn evaluate(formula: &Formula, left: Scalar, right: Scalar) -> Scalar {
    match value(formula, left, right) {
        Value::Number(number) => number,
        Value::Truth(_) => left,
    }
}

fn value(formula: &Formula, left: Scalar, right: Scalar) -> Value {
    let number = |formula: &Formula| evaluate(formula, left, right);
    let truth = |formula: &Formula| value(formula, left, right) == Value::Truth(true);
    Value::Number(match formula {
        Formula::Left => left,
        Formula::Right => right,
        Formula::Number(number) => cast(*number, left.element_type()),
        Formula::Unary(UnaryOperator::Negate, operand) => negate(number(operand)),
        Formula::Unary(UnaryOperator::Not, operand) => return Value::Truth(!truth(operand)),
        Formula::Binary(operator, first, second) if operator.is_logical() => {
            let one = Scalar::I64(truth(first).into());
            return binary(*operator, one, Scalar::I64(truth(second).into())).unwrap_or(Value::Truth(false));
        }
        // Nothing is divided that could fail.
        Formula::Binary(operator, first, second) => {
            return binary(*operator, number(first), number(second)).unwrap_or(Value::Number(left));
        }
        Formula::Call(function, arguments) => {
            let arguments: Vec<Scalar> = arguments.iter().map(number).collect();
            call(*function, &arguments).unwrap_or(left)
        }
        Formula::Select(operands) => {
            let [condition, then, otherwise] = &**operands;
            number(if truth(condition) { then } else { otherwise })
        }
    })
}
