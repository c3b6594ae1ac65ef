//! What an assignment means: loops over all variables, without any cleverness.

use std::collections::BTreeMap;

use super::arithmetic::{self, DivisionByZero, Value};
use super::array::DenseArray;
use super::assignment::Assignment;
use super::expression::{Access, Expression, Literal, Test};
use super::variable::IndexVariable;
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

/// What expressions need to know to have a value.
pub(crate) trait Values {
    /// The value of an index variable.
    fn index(&self, variable: &IndexVariable) -> i64;
    /// The element that is accessed.
    fn load(&self, access: &Access) -> Scalar;
    /// The extent of a variable that is reduced over.
    fn extent(&self, variable: &IndexVariable) -> i64;
    /// Gives an index variable a value.
    fn set_index(&mut self, variable: &IndexVariable, value: i64);
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
    let mut point = Point { assignment, operands, values: BTreeMap::new() };
    let mut failure = None;
    let result = DenseArray::from_fn(assignment.element(), left.tensor.dimensions(), |coordinates| {
        for (variable, &value) in left.variables.iter().zip(coordinates) {
            point.set_index(variable, value);
        }
        let old = operands.get(left.tensor.name()).and_then(|array| array.get(coordinates));
        let value =
            evaluate_expression(assignment.right(), &mut point).map(|value| match (old, assignment.accumulation()) {
                (Some(old), Some(operator)) => arithmetic::reduce(operator, old, value),
                _ => value,
            });
        value.unwrap_or_else(|error| {
            failure = Some(error);
            assignment_zero(assignment)
        })
    });
    failure.map_or(Ok(result), |error| Err(error.into()))
}

fn assignment_zero(assignment: &Assignment) -> Scalar {
    DenseArray::zeros(assignment.element(), &[]).values()[0]
}

struct Point<'a> {
    assignment: &'a Assignment,
    operands: &'a BTreeMap<String, DenseArray>,
    values: BTreeMap<IndexVariable, i64>,
}

impl Values for Point<'_> {
    fn index(&self, variable: &IndexVariable) -> i64 {
        variable.window().map_or_else(|| self.values[variable], |window| window.coordinate(self.values[&window.of]))
    }

    fn load(&self, access: &Access) -> Scalar {
        let coordinates: Vec<i64> = access.variables.iter().map(|variable| self.index(variable)).collect();
        // Shifts go beyond the tensor.
        self.operands[access.tensor.name()].get(&coordinates).unwrap_or(access.tensor.fill())
    }

    fn extent(&self, variable: &IndexVariable) -> i64 {
        self.assignment.extents()[variable]
    }

    fn set_index(&mut self, variable: &IndexVariable, value: i64) {
        self.values.insert(variable.clone(), value);
    }
}

/// The value of a checked expression.
pub(crate) fn evaluate_expression(expression: &Expression, values: &mut dyn Values) -> Value {
    Ok(match expression {
        Expression::Literal(Literal::Typed(scalar), _) => *scalar,
        Expression::Literal(Literal::Integer(value), _) => Scalar::I64(*value),
        Expression::Literal(Literal::Real(value), _) => Scalar::F64(*value),
        Expression::Index(variable) => Scalar::I64(values.index(variable)),
        Expression::Access(access) => values.load(access),
        Expression::Test(test, access) => Scalar::I64(i64::from(match test {
            // An array that has all elements stores those that are not fill values.
            Test::Stored => !arithmetic::is_fill(values.load(access), access.tensor.fill()),
            Test::IsFill => arithmetic::is_fill(values.load(access), access.tensor.fill()),
        })),
        Expression::Negate(operand) => arithmetic::negate(evaluate_expression(operand, values)?),
        Expression::Binary(operator, left, right) => {
            let left = evaluate_expression(left, values)?;
            arithmetic::binary(*operator, left, evaluate_expression(right, values)?)?
        }
        Expression::Call(intrinsic, arguments, _) => {
            let arguments: Vec<Scalar> =
                arguments.iter().map(|argument| evaluate_expression(argument, values)).collect::<Result<_, _>>()?;
            arithmetic::call(*intrinsic, &arguments)?
        }
        Expression::Select(operands, _) => {
            let [condition, then, otherwise] = &**operands;
            let condition = evaluate_expression(condition, values)?;
            // Both are evaluated: a division by zero in either is one.
            let (then, otherwise) = (evaluate_expression(then, values)?, evaluate_expression(otherwise, values)?);
            if arithmetic::is_zero(condition) { otherwise } else { then }
        }
        Expression::Cast(element, operand, _) => arithmetic::cast(evaluate_expression(operand, values)?, *element),
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
            match total {
                Some(total) => total,
                None => identity.expect("reductions of a checked expression are defined"),
            }
        }
    })
}

/// The type of a checked expression.
pub(crate) fn element_of(expression: &Expression) -> ElementType {
    match expression {
        Expression::Literal(Literal::Typed(scalar), _) => scalar.element_type(),
        Expression::Literal(Literal::Integer(_), _) | Expression::Index(_) | Expression::Test(..) => ElementType::I64,
        Expression::Literal(Literal::Real(_), _) => ElementType::F64,
        Expression::Access(access) => access.tensor.element(),
        Expression::Cast(element, ..) => *element,
        Expression::Select(operands, _) => element_of(&operands[1]),
        Expression::Negate(operand) | Expression::Binary(_, operand, _) | Expression::Reduce(_, _, operand) => {
            element_of(operand)
        }
        // Checked calls have arguments.
        Expression::Call(_, arguments, _) => arguments.first().map_or(ElementType::F64, element_of),
    }
}
