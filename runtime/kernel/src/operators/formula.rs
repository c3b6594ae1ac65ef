//! Expressions of two values, in which users' reductions combine them.

use std::fmt;
use std::ops;

use super::table::{BinaryOperator, Intrinsic, UnaryOperator};
use crate::element::{ElementType, Scalar};

/// An expression of two values of one type: what a reduction makes of what it has so far, and of one more value.
///
/// It is written with Rust's operators, and with [`call`](Self::call), [`compare`](Self::compare) and
/// [`select`](Self::select).
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// The value so far.
    Left,
    /// One more value.
    Right,
    /// A number, which is cast to the type of the values.
    Number(Scalar),
    /// An operator of one number.
    Unary(UnaryOperator, Box<Formula>),
    /// An operator of two numbers.
    Binary(BinaryOperator, Box<Formula>, Box<Formula>),
    /// A function.
    Call(Intrinsic, Vec<Formula>),
    /// The second if the first, a comparison, holds; else the third.
    Select(Box<[Formula; 3]>),
}

impl Formula {
    /// `function` of `arguments`.
    pub fn call(function: Intrinsic, arguments: impl IntoIterator<Item = Formula>) -> Self {
        Self::Call(function, arguments.into_iter().collect())
    }

    /// A comparison, for [`select`](Self::select).
    pub fn compare(self, operator: BinaryOperator, right: impl Into<Formula>) -> Self {
        Self::Binary(operator, Box::new(self), Box::new(right.into()))
    }

    /// `then` where this comparison holds, else `otherwise`.
    pub fn select(self, then: impl Into<Formula>, otherwise: impl Into<Formula>) -> Self {
        Self::Select(Box::new([self, then.into(), otherwise.into()]))
    }

    fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Left | Self::Right | Self::Number(_) => Vec::new(),
            Self::Unary(_, operand) => vec![operand],
            Self::Binary(_, left, right) => vec![left, right],
            Self::Call(_, arguments) => arguments.iter().collect(),
            Self::Select(operands) => operands.iter().collect(),
        }
    }

    /// Whether it makes a number of numbers: comparisons are conditions of selections, and all functions have as many
    /// arguments as they take.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Left | Self::Right | Self::Number(_) => true,
            Self::Unary(operator, operand) => *operator == UnaryOperator::Negate && operand.is_number(),
            Self::Binary(operator, ..) if operator.is_comparison() || operator.is_logical() => false,
            Self::Call(function, arguments) if function.arity() != arguments.len() => false,
            Self::Binary(..) | Self::Call(..) => self.operands().into_iter().all(Self::is_number),
            Self::Select(operands) => {
                let [condition, then, otherwise] = &**operands;
                condition.is_condition() && then.is_number() && otherwise.is_number()
            }
        }
    }

    fn is_condition(&self) -> bool {
        match self {
            Self::Binary(operator, left, right) if operator.is_comparison() => left.is_number() && right.is_number(),
            Self::Binary(operator, left, right) if operator.is_logical() => left.is_condition() && right.is_condition(),
            Self::Unary(UnaryOperator::Not, operand) => operand.is_condition(),
            _ => false,
        }
    }

    /// Whether all of its operators are defined for a type, and none may fail: quotients are of fractions.
    pub(super) fn is_defined_for(&self, element: ElementType) -> bool {
        let own = match self {
            Self::Left | Self::Right | Self::Number(_) | Self::Select(_) => true,
            Self::Unary(operator, _) => *operator == UnaryOperator::Not || operator.is_defined_for(element),
            Self::Binary(operator, ..) => {
                let fails = operator.divides() && element.is_integer();
                (operator.is_logical() || operator.is_defined_for(element)) && !fails
            }
            Self::Call(function, _) => {
                let fails = function.operator().is_some_and(BinaryOperator::divides) && element.is_integer();
                function.is_defined_for(element) && !fails
            }
        };
        own && self.operands().into_iter().all(|operand| operand.is_defined_for(element))
    }
}

impl From<i64> for Formula {
    fn from(value: i64) -> Self {
        Self::Number(Scalar::I64(value))
    }
}

impl From<f64> for Formula {
    fn from(value: f64) -> Self {
        Self::Number(Scalar::F64(value))
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $operator:ident),*) => {$(
        impl<R: Into<Formula>> ops::$trait<R> for Formula {
            type Output = Formula;

            fn $method(self, right: R) -> Formula {
                Formula::Binary(BinaryOperator::$operator, Box::new(self), Box::new(right.into()))
            }
        }
    )*};
}

arithmetic!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

impl ops::Neg for Formula {
    type Output = Self;

    fn neg(self) -> Self {
        Self::Unary(UnaryOperator::Negate, Box::new(self))
    }
}

impl fmt::Display for Formula {
    /// Writes the values as `a` and `b`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |formatter: &mut fmt::Formatter<'_>, name: &str, operands: &[Self]| {
            write!(formatter, "{name}(")?;
            for (number, operand) in operands.iter().enumerate() {
                write!(formatter, "{}{operand}", if number > 0 { ", " } else { "" })?;
            }
            formatter.write_str(")")
        };
        match self {
            Self::Left => formatter.write_str("a"),
            Self::Right => formatter.write_str("b"),
            Self::Number(Scalar::I64(value)) => write!(formatter, "{value}"),
            Self::Number(Scalar::F64(value)) => write!(formatter, "{value:?}"),
            Self::Number(value) => write!(formatter, "{value:?}"),
            Self::Unary(operator, operand) => write!(formatter, "{operator}{operand}"),
            Self::Binary(operator, left, right) => write!(formatter, "({left} {operator} {right})"),
            Self::Call(function, arguments) => list(formatter, function.name(), arguments),
            Self::Select(operands) => list(formatter, "select", &operands[..]),
        }
    }
}
