//! Expressions written with Rust's operators.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::assignment::Assignment;
use super::error::NotationError;
use super::expression::{Access, Expression, Literal};
use super::variable::{IndexVariable, TensorVariable, TextPlace};
use crate::element::{Element, ElementType};
use crate::loops::{BinaryOperator, Intrinsic, Reduction};

impl TensorVariable {
    /// The element at the coordinates that `variables` have: `b.at([&i, &k])`, or `b.at(["i", "k"])`.
    pub fn at<V: Into<IndexVariable>>(&self, variables: impl IntoIterator<Item = V>) -> Access {
        let variables = variables.into_iter().map(Into::into).collect();
        Access { tensor: self.clone(), variables, place: TextPlace::default() }
    }

    /// The only element of a tensor without dimensions.
    pub fn scalar(&self) -> Access {
        Access { tensor: self.clone(), variables: Vec::new(), place: TextPlace::default() }
    }
}

impl Access {
    /// `self = value`, checked; variables that only `value` has are summed over, term by term.
    pub fn assign(&self, value: impl Into<Expression>) -> Result<Assignment, NotationError> {
        Assignment::new(self.clone(), false, value.into())
    }

    /// `self += value`, checked; variables that only `value` has are summed over, term by term.
    pub fn accumulate(&self, value: impl Into<Expression>) -> Result<Assignment, NotationError> {
        Assignment::new(self.clone(), true, value.into())
    }
}

impl Expression {
    /// A number of a type, where no surrounding expression has one.
    pub fn typed(value: impl Element) -> Self {
        Self::Literal(Literal::Typed(value.to_scalar()), TextPlace::default())
    }

    /// `intrinsic` of `arguments`.
    pub fn call(intrinsic: Intrinsic, arguments: impl IntoIterator<Item = impl Into<Expression>>) -> Self {
        Self::Call(intrinsic, arguments.into_iter().map(Into::into).collect(), TextPlace::default())
    }

    /// The value of `value` in the type `element`.
    pub fn cast(element: ElementType, value: impl Into<Expression>) -> Self {
        Self::Cast(element, Box::new(value.into()), TextPlace::default())
    }

    /// All values of `value` over `variable`, combined.
    pub fn reduce(reduction: Reduction, variable: impl Into<IndexVariable>, value: impl Into<Expression>) -> Self {
        Self::Reduce(reduction, variable.into(), Box::new(value.into()))
    }
}

impl From<Access> for Expression {
    fn from(access: Access) -> Self {
        Self::Access(access)
    }
}

impl From<&Access> for Expression {
    fn from(access: &Access) -> Self {
        Self::Access(access.clone())
    }
}

impl From<&IndexVariable> for Expression {
    fn from(variable: &IndexVariable) -> Self {
        Self::Index(variable.clone())
    }
}

impl From<i64> for Expression {
    /// A whole number, which takes the type of what surrounds it.
    fn from(value: i64) -> Self {
        Self::Literal(Literal::Integer(value), TextPlace::default())
    }
}

impl From<f64> for Expression {
    /// A number, which takes the type of what surrounds it.
    fn from(value: f64) -> Self {
        Self::Literal(Literal::Real(value), TextPlace::default())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $operator:ident),*) => {$(
        operators!($trait $method $operator for Expression);
        operators!($trait $method $operator for Access);
        operators!($trait $method $operator for &Access);
        operators!($trait $method $operator for &IndexVariable);
        operators!($trait $method $operator from i64);
        operators!($trait $method $operator from f64);
    )*};
    ($trait:ident $method:ident $operator:ident for $left:ty) => {
        impl<R: Into<Expression>> $trait<R> for $left {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                Expression::Binary(BinaryOperator::$operator, Box::new(self.into()), Box::new(right.into()))
            }
        }
    };
    ($trait:ident $method:ident $operator:ident from $left:ty) => {
        operators!($trait $method $operator from $left, Expression);
        operators!($trait $method $operator from $left, Access);
        operators!($trait $method $operator from $left, &Access);
        operators!($trait $method $operator from $left, &IndexVariable);
    };
    ($trait:ident $method:ident $operator:ident from $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Expression;

            fn $method(self, right: $right) -> Expression {
                Expression::Binary(BinaryOperator::$operator, Box::new(self.into()), Box::new(right.into()))
            }
        }
    };
}

operators!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

macro_rules! negation {
    ($($operand:ty),*) => {$(
        impl Neg for $operand {
            type Output = Expression;

            fn neg(self) -> Expression {
                Expression::Negate(Box::new(self.into()))
            }
        }
    )*};
}

negation!(Expression, Access, &Access, &IndexVariable);
