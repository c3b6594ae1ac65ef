//! What assignments of sparse tensors mean: the oracle of all kernels.
//!
//! Tensors are [maps](SparseMap) from coordinates to elements, with a fill value for all other coordinates. An element of the result is what [`notation::evaluate`](crate::notation::evaluate)
//! gives for it, if each coordinate that is not in a map has the fill value. Formats, schedules and the algebra of operators play no part: whether a coordinate that no operand has must be
//! visited follows from the values alone. Each part of an expression is a function of index variables that has one value at all but some points; extents may be as large as they like.
//!
//! | in reading order | |
//! | --- | --- |
//! | `map` | tensors |
//! | `function` | functions of index variables |

mod error;
mod function;
mod map;

use std::collections::BTreeMap;

pub use error::OracleError;
pub use map::SparseMap;

use crate::element::{ElementType, Scalar};
use crate::loops::Reduction;
use crate::notation::{
    Access, Assignment, BinaryOperator, Expression, IndexVariable, Literal, Test, binary, call, cast, is_fill, is_zero,
    negate, reduce,
};
use function::{Function, MOST};

/// The result of `assignment` on `operands`, by name. With `+=` the result's old elements are among them. Its fill value is that of all coordinates at which nothing differs.
///
/// # Errors
///
/// [`OracleError`] if operands are missing or do not fit, an integer is divided by zero, or there are more than ten million points to visit.
pub fn evaluate(assignment: &Assignment, operands: &BTreeMap<String, SparseMap>) -> Result<SparseMap, OracleError> {
    let left = assignment.left();
    let evaluation = Evaluation { extents: assignment.extents(), operands };
    let mut right = evaluation.function(assignment.right())?;
    if assignment.accumulates() {
        let old = evaluation.access(left)?;
        let operator = assignment.accumulation().unwrap_or(Reduction::Sum);
        let add = |old, value| Ok(reduce(operator, old, value));
        right = old.join(&right, add).map_err(|_| large(assignment.right()))?;
    }
    let right = right.over(&left.variables, left.tensor.dimensions()).map_err(|_| large(assignment.right()))?;
    // Any value, if there is no point that has it.
    let fill = if right.has_background() { right.background? } else { right.background.unwrap_or(Scalar::I64(0)) };
    let mut result = SparseMap::new(left.tensor.dimensions(), cast(fill, assignment.element()));
    for (point, value) in right.points {
        result.set(&point, value?);
    }
    Ok(result)
}

/// Evaluates assignments one after the other; the result of each replaces what was called so before.
///
/// # Errors
///
/// [`OracleError`] of the first that has no value.
pub fn run(assignments: &[Assignment], tensors: &mut BTreeMap<String, SparseMap>) -> Result<(), OracleError> {
    for assignment in assignments {
        let result = evaluate(assignment, tensors)?;
        tensors.insert(assignment.left().tensor.name().to_owned(), result);
    }
    Ok(())
}

fn large(expression: &Expression) -> OracleError {
    OracleError::Large { expression: expression.to_string(), most: MOST }
}

/// The type of a checked expression, whose operands have one type.
fn element(expression: &Expression) -> ElementType {
    match expression {
        Expression::Literal(Literal::Typed(scalar), _) => scalar.element_type(),
        Expression::Literal(Literal::Real(_), _) => ElementType::F64,
        Expression::Access(access) => access.tensor.element(),
        Expression::Cast(element, ..) => *element,
        _ => expression.operands().first().map_or(ElementType::I64, |operand| element(operand)),
    }
}

struct Evaluation<'a> {
    extents: &'a BTreeMap<IndexVariable, i64>,
    operands: &'a BTreeMap<String, SparseMap>,
}

impl Evaluation<'_> {
    /// The value of a checked expression, as a function of its variables.
    fn function(&self, expression: &Expression) -> Result<Function, OracleError> {
        let large = |_| large(expression);
        Ok(match expression {
            Expression::Literal(literal, _) => Function::constant(Ok(match *literal {
                Literal::Typed(scalar) => scalar,
                Literal::Integer(value) => Scalar::I64(value),
                Literal::Real(value) => Scalar::F64(value),
            })),
            Expression::Index(variable) => {
                let extent = self.extents[variable];
                if extent as u64 > MOST {
                    return Err(large(function::Large));
                }
                Function {
                    variables: vec![variable.clone()],
                    extents: vec![extent],
                    points: (0..extent).map(|value| (vec![value], Ok(Scalar::I64(value)))).collect(),
                    ..Function::constant(Ok(Scalar::I64(0)))
                }
            }
            Expression::Access(access) => self.access(access)?,
            Expression::Test(Test::IsFill, access) => {
                let truth = |value| Ok(Scalar::I64(is_fill(value, access.tensor.fill()).into()));
                self.access(access)?.map(truth)
            }
            Expression::Test(Test::Stored, access) => {
                let mut function = self.access(access)?.map(|_| Ok(Scalar::I64(1)));
                function.background = Ok(Scalar::I64(0));
                function
            }
            Expression::Negate(operand) => self.function(operand)?.map(|value| Ok(negate(value))),
            Expression::Cast(element, operand, _) => self.function(operand)?.map(|value| Ok(cast(value, *element))),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.function(left)?, self.function(right)?);
                left.join(&right, |left, right| binary(*operator, left, right)).map_err(large)?
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                let condition = self.function(condition)?;
                let zero = cast(Scalar::I32(0), element(expression));
                let chosen = |of: &Expression, when: bool| {
                    let choose = |condition, value| Ok(if is_zero(condition) == when { zero } else { value });
                    condition.join(&self.function(of)?, choose).map_err(large)
                };
                // One of the two is zero everywhere.
                let (then, otherwise) = (chosen(then, true)?, chosen(otherwise, false)?);
                then.join(&otherwise, |then, otherwise| binary(BinaryOperator::Add, then, otherwise)).map_err(large)?
            }
            Expression::Call(intrinsic, arguments, _) => {
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| self.function(argument)).collect::<Result<_, _>>()?;
                match <[Function; 1]>::try_from(arguments) {
                    Ok([argument]) => argument.map(|value| call(*intrinsic, &[value])),
                    // Functions have one argument or two.
                    Err(arguments) => arguments[0]
                        .join(&arguments[1], |left, right| call(*intrinsic, &[left, right]))
                        .map_err(large)?,
                }
            }
            Expression::Reduce(reduction, variable, operand) => {
                let operand_type = element(operand);
                let function = self.function(operand)?;
                function.reduce(*reduction, variable, self.extents[variable], operand_type).map_err(large)?
            }
        })
    }

    fn access(&self, access: &Access) -> Result<Function, OracleError> {
        let tensor = &access.tensor;
        let map = self.operands.get(tensor.name()).ok_or_else(|| OracleError::Missing(tensor.name().into()))?;
        if map.element() != tensor.element() || map.dimensions() != tensor.dimensions() {
            return Err(OracleError::Mismatch {
                tensor: tensor.name().into(),
                expected: tensor.element(),
                extents: tensor.dimensions().to_vec(),
                found: map.element(),
                found_extents: map.dimensions().to_vec(),
            });
        }
        // A variable that is there several times chooses the entries that have one coordinate in all its dimensions.
        let mut function = Function::constant(Ok(map.fill()));
        for variable in access.variables.iter().map(IndexVariable::base) {
            if !function.variables.contains(variable) {
                function.variables.push(variable.clone());
                function.extents.push(self.extents[variable]);
            }
        }
        for (coordinates, &value) in map.entries() {
            // The values of variables at which the entry is read: none, if it is in no part that is taken, or a shift takes it beyond the end.
            let values = access.variables.iter().zip(coordinates).map(|(variable, &coordinate)| {
                let value = variable.window().map_or(Some(coordinate), |window| window.value(coordinate))?;
                (value < self.extents[variable.base()]).then_some((variable.base(), value))
            });
            let Some(values) = values.collect::<Option<Vec<_>>>() else { continue };
            let value_of =
                |variable: &IndexVariable| values.iter().find(|(own, _)| *own == variable).map(|(_, value)| *value);
            if values.iter().all(|(variable, value)| value_of(variable) == Some(*value)) {
                function.points.insert(function.variables.iter().filter_map(value_of).collect(), Ok(value));
            }
        }
        Ok(function)
    }
}
