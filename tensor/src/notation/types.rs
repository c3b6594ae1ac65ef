//! Element types: all operands of an expression have the type of the result, unless they are cast.

use super::arithmetic::negate;
use super::cast;
use super::error::{NotationError, NotationErrorKind as Kind};
use super::expression::{Expression, Literal};
use super::variable::TextPlace;
use crate::element::{ElementType, Scalar};

/// `expression` with elements of type `expected`: its numbers have that type, and index variables are cast to it.
pub(crate) fn typed(expression: &Expression, expected: ElementType) -> Result<Expression, NotationError> {
    let mismatch = |found, place| Err(Kind::TypeMismatch { expected, found }.at(place));
    match expression {
        Expression::Literal(literal, place) => match literal.in_type(expected) {
            Some(scalar) => Ok(Expression::Literal(Literal::Typed(scalar), *place)),
            None => match literal {
                Literal::Typed(scalar) => mismatch(scalar.element_type(), *place),
                _ => Err(Kind::NotRepresentable { literal: literal.to_string(), element: expected }.at(*place)),
            },
        },
        Expression::Index(_) | Expression::Test(..) if expected == ElementType::I64 => Ok(expression.clone()),
        Expression::Index(variable) => {
            Ok(Expression::Cast(expected, Box::new(Expression::Index(variable.clone())), variable.place))
        }
        Expression::Test(_, access) => Ok(Expression::Cast(expected, Box::new(expression.clone()), access.place)),
        Expression::Access(access) if access.tensor.element() == expected => Ok(expression.clone()),
        Expression::Access(access) => mismatch(access.tensor.element(), access.place),
        Expression::Cast(element, operand, place) if *element == expected => {
            // What is cast has a type of its own; numbers and index variables take the one that loses least.
            let inner = type_of(operand).unwrap_or(if whole(operand) { ElementType::I64 } else { ElementType::F64 });
            if inner.is_complex() && !element.is_complex() {
                return Err(Kind::ComplexCast { from: inner, to: *element }.at(*place));
            }
            Ok(Expression::Cast(*element, Box::new(typed(operand, inner)?), *place))
        }
        Expression::Cast(element, _, place) => mismatch(*element, *place),
        Expression::Call(intrinsic, arguments, place) => {
            if arguments.len() != intrinsic.arity() {
                return Err(Kind::WrongArity { intrinsic: *intrinsic, found: arguments.len() }.at(*place));
            }
            if !intrinsic.is_defined_for(expected) {
                return Err(Kind::NotDefined { intrinsic: *intrinsic, element: expected }.at(*place));
            }
            expression.try_map(&mut |argument| typed(argument, expected))
        }
        Expression::Reduce(reduction, variable, operand) => {
            if !reduction.is_defined_for(expected) {
                let place: TextPlace = variable.place.join(operand.place());
                return Err(Kind::ReductionNotDefined { reduction: *reduction, element: expected }.at(place));
            }
            expression.try_map(&mut |operand| typed(operand, expected))
        }
        Expression::Binary(operator, ..) if !operator.is_logical() && !operator.is_defined_for(expected) => {
            Err(Kind::OperatorNotDefined { operator: *operator, element: expected }.at(expression.place()))
        }
        // No other number of the type is meant.
        Expression::Negate(operand)
            if expected.is_unsigned() && matches!(**operand, Expression::Literal(Literal::Integer(1..), _)) =>
        {
            let literal = expression.to_string();
            Err(Kind::NotRepresentable { literal, element: expected }.at(expression.place()))
        }
        // A negated number is a number, as it is where it is read again.
        Expression::Negate(operand) => Ok(match typed(operand, expected)? {
            Expression::Literal(Literal::Typed(scalar), place) => {
                Expression::Literal(Literal::Typed(negate(scalar)), place)
            }
            operand => Expression::Negate(Box::new(operand)),
        }),
        Expression::Binary(..) | Expression::Select(..) => expression.try_map(&mut |operand| typed(operand, expected)),
    }
}

/// The type that an expression has by itself: that of its first tensor, cast or typed number.
fn type_of(expression: &Expression) -> Option<ElementType> {
    match expression {
        Expression::Access(access) => Some(access.tensor.element()),
        Expression::Cast(element, ..) => Some(*element),
        Expression::Literal(Literal::Typed(scalar), _) => Some(scalar.element_type()),
        _ => expression.operands().into_iter().find_map(type_of),
    }
}

/// Whether an expression without tensors has whole numbers only.
fn whole(expression: &Expression) -> bool {
    !matches!(expression, Expression::Literal(Literal::Real(_), _)) && expression.operands().into_iter().all(whole)
}

impl Literal {
    /// The number in another type, if it has a value there.
    fn in_type(self, element: ElementType) -> Option<Scalar> {
        let real = match self {
            Self::Typed(scalar) => return (scalar.element_type() == element).then_some(scalar),
            Self::Integer(value) if element.is_integer() => {
                let scalar = cast(Scalar::I64(value), element);
                return (scalar.as_integer() == Some(value.into())).then_some(scalar);
            }
            Self::Integer(value) => value as f64,
            Self::Real(value) => value,
        };
        match element {
            ElementType::F32 => Some(Scalar::F32(real as f32)),
            ElementType::F64 => Some(Scalar::F64(real)),
            ElementType::C32 => Some(Scalar::C32((real as f32).into())),
            ElementType::C64 => Some(Scalar::C64(real.into())),
            _ => None,
        }
    }
}
