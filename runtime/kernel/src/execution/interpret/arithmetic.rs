//! The operators of the loop IR on values.

use num_complex::Complex;

use crate::arithmetic::{Functions, Ordered, divide};
use crate::element::{ElementType, Scalar};
use crate::loops::{BinaryOperator, Intrinsic};

/// A truth value or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Number(Scalar),
}

/// A division of an integer by zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DivisionByZero;

macro_rules! integer {
    ($operator:expr, $left:expr, $right:expr, $variant:ident) => {{
        let (left, right) = ($left, $right);
        if $operator.divides() && right == 0 {
            return Err(DivisionByZero);
        }
        let remainder_is_off = |remainder| remainder != 0 && (remainder < 0) != (right < 0);
        Value::Number(Scalar::$variant(match $operator {
            BinaryOperator::Add => left.wrapping_add(right),
            BinaryOperator::Subtract => left.wrapping_sub(right),
            BinaryOperator::Multiply => left.wrapping_mul(right),
            BinaryOperator::Divide => left.wrapping_div(right),
            BinaryOperator::Remainder => left.wrapping_rem(right),
            BinaryOperator::FloorDivide => {
                let down = remainder_is_off(left.wrapping_rem(right));
                left.wrapping_div(right).wrapping_sub(down.into())
            }
            BinaryOperator::FloorRemainder => {
                let remainder = left.wrapping_rem(right);
                if remainder_is_off(remainder) { remainder.wrapping_add(right) } else { remainder }
            }
            other => return Ok(real!(other, left, right, $variant)),
        }))
    }};
}

/// Operators that need an order, and comparisons.
macro_rules! real {
    ($operator:expr, $left:expr, $right:expr, $variant:ident) => {
        match $operator {
            BinaryOperator::Less => Value::Bool($left < $right),
            BinaryOperator::LessEqual => Value::Bool($left <= $right),
            BinaryOperator::Minimum => Value::Number(Scalar::$variant($left.lesser($right))),
            BinaryOperator::Maximum => Value::Number(Scalar::$variant($left.greater($right))),
            BinaryOperator::NotEqual => Value::Bool($left != $right),
            _ => Value::Bool($left == $right),
        }
    };
}

macro_rules! field {
    ($operator:expr, $left:expr, $right:expr, $variant:ident, $other:expr) => {
        Value::Number(Scalar::$variant(match $operator {
            BinaryOperator::Add => $left + $right,
            BinaryOperator::Subtract => $left - $right,
            BinaryOperator::Multiply => $left * $right,
            BinaryOperator::Divide => $left / $right,
            _ => return Ok($other),
        }))
    };
}

/// `left operator right`, for operands of one type that the verifier allows. `And` and `Or` are the caller's.
pub(super) fn binary(operator: BinaryOperator, left: Scalar, right: Scalar) -> Result<Value, DivisionByZero> {
    Ok(match (left, right) {
        (Scalar::I32(left), Scalar::I32(right)) => integer!(operator, left, right, I32),
        (Scalar::I64(left), Scalar::I64(right)) => integer!(operator, left, right, I64),
        (Scalar::F32(left), Scalar::F32(right)) if operator == BinaryOperator::Remainder => {
            Value::Number(Scalar::F32(left % right))
        }
        (Scalar::F64(left), Scalar::F64(right)) if operator == BinaryOperator::Remainder => {
            Value::Number(Scalar::F64(left % right))
        }
        (Scalar::F32(left), Scalar::F32(right)) => {
            field!(operator, left, right, F32, real!(operator, left, right, F32))
        }
        (Scalar::F64(left), Scalar::F64(right)) => {
            field!(operator, left, right, F64, real!(operator, left, right, F64))
        }
        (Scalar::C32(left), Scalar::C32(right)) if operator == BinaryOperator::Divide => {
            Value::Number(Scalar::C32(divide(left, right)))
        }
        (Scalar::C64(left), Scalar::C64(right)) if operator == BinaryOperator::Divide => {
            Value::Number(Scalar::C64(divide(left, right)))
        }
        (Scalar::C32(left), Scalar::C32(right)) => {
            field!(operator, left, right, C32, Value::Bool((left == right) == (operator == BinaryOperator::Equal)))
        }
        (Scalar::C64(left), Scalar::C64(right)) => {
            field!(operator, left, right, C64, Value::Bool((left == right) == (operator == BinaryOperator::Equal)))
        }
        // Operands of two types don't pass the verifier.
        (left, _) => Value::Number(left),
    })
}

/// `-operand`.
pub(super) fn negate(operand: Scalar) -> Scalar {
    match operand {
        Scalar::I32(value) => Scalar::I32(value.wrapping_neg()),
        Scalar::I64(value) => Scalar::I64(value.wrapping_neg()),
        Scalar::F32(value) => Scalar::F32(-value),
        Scalar::F64(value) => Scalar::F64(-value),
        Scalar::C32(value) => Scalar::C32(-value),
        Scalar::C64(value) => Scalar::C64(-value),
    }
}

macro_rules! cast {
    ($value:expr, $to:expr) => {
        match $to {
            ElementType::I32 => Scalar::I32($value as i32),
            ElementType::I64 => Scalar::I64($value as i64),
            ElementType::F32 => Scalar::F32($value as f32),
            ElementType::F64 => Scalar::F64($value as f64),
            ElementType::C32 => Scalar::C32(Complex::new($value as f32, 0.0)),
            ElementType::C64 => Scalar::C64(Complex::new($value as f64, 0.0)),
        }
    };
}

/// `value` as a number of type `to`. Of a complex number as a real one, which the verifier refuses, the real part.
pub(super) fn cast(value: Scalar, to: ElementType) -> Scalar {
    match (value, to) {
        (Scalar::I32(value), _) => cast!(value, to),
        (Scalar::I64(value), _) => cast!(value, to),
        (Scalar::F32(value), _) => cast!(value, to),
        (Scalar::F64(value), _) => cast!(value, to),
        (Scalar::C32(value), ElementType::C64) => Scalar::C64(Complex::new(value.re.into(), value.im.into())),
        (Scalar::C64(value), ElementType::C32) => Scalar::C32(Complex::new(value.re as f32, value.im as f32)),
        (Scalar::C32(_), ElementType::C32) | (Scalar::C64(_), ElementType::C64) => value,
        (Scalar::C32(value), _) => cast!(value.re, to),
        (Scalar::C64(value), _) => cast!(value.re, to),
    }
}

/// What real and complex numbers have in common.
fn common<T: Functions>(function: Intrinsic, value: T, other: T) -> T {
    match function {
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
        Intrinsic::Abs | Intrinsic::Cbrt | Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::Conj => other,
    }
}

macro_rules! real_call {
    ($function:expr, $value:expr, $other:expr) => {
        match $function {
            Intrinsic::Abs => $value.abs(),
            Intrinsic::Cbrt => $value.cbrt(),
            Intrinsic::Floor => $value.floor(),
            Intrinsic::Ceil => $value.ceil(),
            function => common(function, $value, $other),
        }
    };
}

macro_rules! complex_call {
    ($function:expr, $value:expr, $other:expr) => {
        match $function {
            Intrinsic::Abs => Complex::new($value.norm(), 0.0),
            Intrinsic::Conj => $value.conj(),
            function => common(function, $value, $other),
        }
    };
}

/// `function` of `value`, and of `other` if it takes two.
pub(super) fn call(function: Intrinsic, value: Scalar, other: Scalar) -> Scalar {
    match (value, other) {
        (Scalar::I32(value), _) => Scalar::I32(value.wrapping_abs()),
        (Scalar::I64(value), _) => Scalar::I64(value.wrapping_abs()),
        (Scalar::F32(value), Scalar::F32(other)) => Scalar::F32(real_call!(function, value, other)),
        (Scalar::F64(value), Scalar::F64(other)) => Scalar::F64(real_call!(function, value, other)),
        (Scalar::C32(value), Scalar::C32(other)) => Scalar::C32(complex_call!(function, value, other)),
        (Scalar::C64(value), Scalar::C64(other)) => Scalar::C64(complex_call!(function, value, other)),
        // Arguments of two types don't pass the verifier.
        (value, _) => value,
    }
}
