//! The meaning of an assignment: loops over all variables, without any cleverness.

use std::collections::BTreeMap;

use super::arithmetic::{self, DivisionByZero, Value};
use super::array::DenseArray;
use super::assignment::Assignment;
use super::expression::{Access, Expression, Literal, Test, element_of};
use super::presence::{self, Term, TermResult};
use super::variable::{IndexVariable, TensorVariable};
use crate::element::{ElementType, Scalar};

/// An assignment could not be evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// A tensor has no elements.
    #[error("no elements are given for {0}")]
    Missing(String),
    /// Elements of the wrong type, or too few or too many.
    #[error(
        "{tensor} has elements of type {expected} and extents {extents:?}; given are {found} and {found_extents:?}"
    )]
    Mismatch {
        /// The tensor.
        tensor: String,
        /// Its type.
        expected: ElementType,
        /// Its extents.
        extents: Vec<i64>,
        /// The type of the elements.
        found: ElementType,
        /// The extents of the elements.
        found_extents: Vec<i64>,
    },
    /// An integer is divided by zero.
    #[error(transparent)]
    DivisionByZero(#[from] DivisionByZero),
}

/// The data that expressions need to have a value.
pub(crate) trait ExpressionValues {
    /// The value of an index variable.
    fn index(&self, variable: &IndexVariable) -> i64;
    /// The element that is accessed.
    fn load(&self, access: &Access) -> Scalar;
    /// The extent of a variable that is reduced over.
    fn extent(&self, variable: &IndexVariable) -> i64;
    /// Gives an index variable a value.
    fn set_index(&mut self, variable: &IndexVariable, value: i64);
    /// Whether a divisor is checked before anything is computed.
    fn is_checked(&self, divisor: &Expression) -> bool;
}

/// The result of `assignment` on `operands`, by name. With `+=` the result's old elements are among them.
///
/// # Errors
///
/// If operands are missing or don't fit, or an integer is divided by zero.
pub fn evaluate(assignment: &Assignment, operands: &BTreeMap<String, DenseArray>) -> Result<DenseArray, EvaluateError> {
    let left = assignment.left();
    let mut needed = assignment.tensors();
    let reads_result =
        assignment.accumulates() || assignment.right().accesses().iter().any(|access| access.tensor == left.tensor);
    if !reads_result {
        needed.remove(0);
    }
    for tensor in &needed {
        let array = operands.get(tensor.name()).ok_or_else(|| EvaluateError::Missing(tensor.name().into()))?;
        if array.element() != tensor.element() || array.dimensions() != tensor.dimensions() {
            return Err(EvaluateError::Mismatch {
                tensor: tensor.name().into(),
                expected: tensor.element(),
                extents: tensor.dimensions().to_vec(),
                found: array.element(),
                found_extents: array.dimensions().to_vec(),
            });
        }
    }
    let divisors = assignment.checked_divisors();
    let load = |tensor: &TensorVariable, coordinates: &[i64]| {
        operands[tensor.name()].get(coordinates).unwrap_or(tensor.fill())
    };
    let mut point = Point::new(assignment, &[], &load, &divisors);
    let mut failure = None;
    let result = DenseArray::from_fn(assignment.element(), left.tensor.dimensions(), |coordinates| {
        for (variable, &value) in left.variables.iter().zip(coordinates) {
            point.set_index(variable, value);
        }
        let old = operands.get(left.tensor.name()).and_then(|array| array.get(coordinates));
        let old = old.map(|old| Term::element(&left.tensor, old, !arithmetic::is_fill(old, left.tensor.fill())));
        let value =
            evaluate_term(assignment.right(), &mut point).and_then(|new| match (old, assignment.accumulation()) {
                (Some(old), Some(operator)) => old.combined(operator, new),
                _ => Ok(new),
            });
        let value = value.map(|term| term.value);
        value.unwrap_or_else(|error| {
            failure = Some(error);
            arithmetic::cast(Scalar::I64(0), assignment.element())
        })
    });
    failure.map_or(Ok(result), |error| Err(error.into()))
}

/// The values of the index variables of an assignment, and of the elements that are read there.
pub(crate) struct Point<'a> {
    assignment: &'a Assignment,
    load: &'a Load<'a>,
    divisors: &'a [TensorVariable],
    values: Vec<(IndexVariable, i64)>,
}

/// Gives the element of a tensor at some coordinates.
pub(crate) type Load<'a> = dyn Fn(&TensorVariable, &[i64]) -> Scalar + 'a;

impl<'a> Point<'a> {
    /// The point of an element of the result. `divisors` are tensors that are checked before anything is computed.
    pub(crate) fn new(
        assignment: &'a Assignment,
        coordinates: &[i64],
        load: &'a Load<'a>,
        divisors: &'a [TensorVariable],
    ) -> Self {
        let values = assignment.left().variables.iter().cloned().zip(coordinates.iter().copied()).collect();
        Self { assignment, load, divisors, values }
    }
}

impl ExpressionValues for Point<'_> {
    fn index(&self, variable: &IndexVariable) -> i64 {
        let known = variable.base();
        let value = self.values.iter().find(|(other, _)| other == known).map_or(0, |(_, value)| *value);
        variable.window().map_or(value, |window| window.coordinate(value))
    }

    /// Beyond the end of a dimension that is shifted, it is what the tensor is filled with.
    fn load(&self, access: &Access) -> Scalar {
        let coordinates: Vec<i64> = access.variables.iter().map(|variable| self.index(variable)).collect();
        let mut extents = coordinates.iter().zip(access.tensor.dimensions());
        match extents.all(|(coordinate, extent)| (0..*extent).contains(coordinate)) {
            true => (self.load)(&access.tensor, &coordinates),
            false => access.tensor.fill(),
        }
    }

    fn extent(&self, variable: &IndexVariable) -> i64 {
        self.assignment.extents()[variable]
    }

    fn set_index(&mut self, variable: &IndexVariable, value: i64) {
        match self.values.iter_mut().find(|(other, _)| other == variable) {
            Some((_, own)) => *own = value,
            None => self.values.push((variable.clone(), value)),
        }
    }

    fn is_checked(&self, divisor: &Expression) -> bool {
        presence::is_among(divisor, self.divisors)
    }
}

/// The value of a checked expression.
pub(crate) fn evaluate_expression(expression: &Expression, values: &mut dyn ExpressionValues) -> Value {
    evaluate_term(expression, values).map(|term| term.value)
}

/// The value of a checked expression, and what it was made of. An array that has all elements has entries for those
/// that are not fill values.
fn evaluate_term(expression: &Expression, values: &mut dyn ExpressionValues) -> TermResult {
    let is_entry = |access: &Access, value| !arithmetic::is_fill(value, access.tensor.fill());
    Ok(match expression {
        Expression::Literal(Literal::Typed(scalar), _) => Term::number(*scalar),
        Expression::Literal(Literal::Integer(value), _) => Term::number(Scalar::I64(*value)),
        Expression::Literal(Literal::Real(value), _) => Term::number(Scalar::F64(*value)),
        Expression::Index(variable) => Term::present(Scalar::I64(values.index(variable))),
        Expression::Access(access) => {
            let value = values.load(access);
            Term::element(&access.tensor, value, is_entry(access, value))
        }
        Expression::Test(test, access) => {
            let value = values.load(access);
            let is_entry = is_entry(access, value);
            let truth = Scalar::I64(i64::from(is_entry == (*test == Test::Stored)));
            Term { value: truth, ..Term::element(&access.tensor, value, is_entry) }
        }
        Expression::Negate(operand) => evaluate_term(operand, values)?.map(arithmetic::negate),
        Expression::Binary(operator, left, right) => {
            let (one, other) = (evaluate_term(left, values)?, evaluate_term(right, values)?);
            Term::binary(*operator, one, other, operator.divides() && values.is_checked(right))?
        }
        Expression::Call(function, arguments, _) => {
            let terms: Vec<Term> =
                arguments.iter().map(|argument| evaluate_term(argument, values)).collect::<Result<_, _>>()?;
            let is_checked = arguments.last().is_some_and(|last| values.is_checked(last));
            Term::call(*function, &terms, is_checked)?
        }
        Expression::Select(operands, _) => {
            let [condition, then, otherwise] = &**operands;
            let condition = evaluate_term(condition, values)?;
            // Both are evaluated: a division by zero in either is one.
            Term::select(condition, evaluate_term(then, values)?, evaluate_term(otherwise, values)?)
        }
        Expression::Cast(element, operand, _) => {
            evaluate_term(operand, values)?.map(|value| arithmetic::cast(value, *element))
        }
        Expression::Reduce(reduction, variable, operand) => {
            let identity = reduction.identity(element_of(operand));
            let mut total = identity.filter(|_| reduction.starts_with_identity());
            for value in 0..values.extent(variable) {
                values.set_index(variable, value);
                let next = evaluate_expression(operand, values)?;
                total = Some(match total {
                    None => next,
                    Some(total) => arithmetic::reduce(*reduction, total, next),
                });
            }
            let value = match total {
                Some(total) => total,
                None => identity.expect("reductions of a checked expression are defined"),
            };
            let background = presence::background(operand, &|divisor| values.is_checked(divisor));
            Term::reduced(value, *reduction, background)
        }
    })
}
