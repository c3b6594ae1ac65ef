//! Expressions and assignments as text, which parses to the same.

use std::fmt::{Display, Formatter, Result};

use num_complex::Complex;

use super::assignment::Assignment;
use super::expression::{Access, Expression, Literal};
use super::variable::IndexVariable;
use crate::element::Scalar;
use crate::loops::BinaryOperator;

impl Display for Assignment {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let operator = self.accumulation().map_or(String::new(), |operator| operator.to_string());
        write!(formatter, "{} {operator}= {}", self.left(), self.right())
    }
}

impl Display for Access {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.write_str(self.tensor.name())?;
        if self.variables.is_empty() {
            return Ok(());
        }
        formatter.write_str("(")?;
        let variables: Vec<String> = self.variables.iter().map(IndexVariable::written).collect();
        list(formatter, &variables, ",")?;
        formatter.write_str(")")
    }
}

fn list<T: Display>(formatter: &mut Formatter<'_>, items: &[T], separator: &str) -> Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            formatter.write_str(separator)?;
        }
        item.fmt(formatter)?;
    }
    Ok(())
}

impl Display for Literal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Real(value) => write!(formatter, "{value:?}"),
            Self::Typed(scalar) => match *scalar {
                Scalar::Bool(value) => write!(formatter, "{}", u8::from(value)),
                Scalar::F32(value) => write!(formatter, "{value:?}"),
                Scalar::F64(value) => write!(formatter, "{value:?}"),
                Scalar::C32(Complex { re, im: 0.0 }) => write!(formatter, "{re:?}"),
                Scalar::C64(Complex { re, im: 0.0 }) => write!(formatter, "{re:?}"),
                Scalar::C32(value) => write!(formatter, "({value})"),
                Scalar::C64(value) => write!(formatter, "({value})"),
                integer => write!(formatter, "{integer}"),
            },
        }
    }
}

impl Expression {
    /// How tightly the outermost operator binds.
    fn precedence(&self) -> u8 {
        match self {
            Self::Binary(BinaryOperator::Or, ..) => 0,
            Self::Binary(BinaryOperator::And, ..) => 1,
            Self::Binary(operator, ..) if operator.is_comparison() => 2,
            Self::Binary(BinaryOperator::Add | BinaryOperator::Subtract, ..) => 3,
            Self::Binary(BinaryOperator::Multiply | BinaryOperator::Divide, ..) => 4,
            // Others are written as functions.
            Self::Negate(_) => 5,
            _ => 6,
        }
    }

    /// Writes the expression, in parentheses where it binds less tightly than `least`.
    fn write(&self, formatter: &mut Formatter<'_>, least: u8) -> Result {
        if self.precedence() < least {
            return write!(formatter, "({self})");
        }
        self.fmt(formatter)
    }
}

impl Display for Expression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Literal(literal, _) => literal.fmt(formatter),
            Self::Index(variable) => variable.fmt(formatter),
            Self::Access(access) => access.fmt(formatter),
            Self::Test(test, access) => write!(formatter, "{}({access})", test.name()),
            Self::Negate(operand) => {
                formatter.write_str("-")?;
                operand.write(formatter, 5)
            }
            Self::Binary(operator, left, right) if self.precedence() == 6 => {
                write!(formatter, "{operator}({left}, {right})")
            }
            Self::Binary(operator, left, right) => {
                left.write(formatter, self.precedence())?;
                let name = if operator.is_logical() { operator.properties().stem } else { operator.name() };
                write!(formatter, " {name} ")?;
                // Operators associate to the left.
                right.write(formatter, self.precedence() + 1)
            }
            Self::Call(intrinsic, arguments, _) => {
                write!(formatter, "{intrinsic}(")?;
                list(formatter, arguments, ", ")?;
                formatter.write_str(")")
            }
            Self::Select(operands, _) => {
                formatter.write_str("select(")?;
                list(formatter, &operands[..], ", ")?;
                formatter.write_str(")")
            }
            Self::Cast(element, operand, _) => write!(formatter, "{}({operand})", element.name()),
            Self::Reduce(reduction, variable, operand) => {
                write!(formatter, "reduce({reduction}, {variable}, {operand})")
            }
        }
    }
}
