//! One element by the definition.

use maniple_tensor::element::Scalar;
use maniple_tensor::notation::{
    Access, Assignment, Expression, IndexVariable, Literal, Test, binary, call, cast, is_fill, is_zero, negate, reduce,
};

use super::Load;

/// The element of the result at these coordinates.
///
/// # Errors
/// If an integer is divided by zero.
pub fn element(assignment: &Assignment, coordinates: &[i64], load: &Load<'_>) -> Result<Scalar, String> {
    let left = assignment.left();
    let mut values = left.variables.iter().cloned().zip(coordinates.iter().copied()).collect();
    let value = evaluate(assignment.right(), assignment, &mut values, load)?;
    Ok(match assignment.accumulation() {
        Some(operator) => reduce(operator, load(&left.tensor, coordinates), value),
        None => value,
    })
}

/// The values of index variables.
pub(super) type Point = Vec<(IndexVariable, i64)>;

pub(super) fn index(variable: &IndexVariable, point: &Point) -> i64 {
    let known = variable.base();
    let value = point.iter().rev().find(|(other, _)| other == known).map_or(0, |(_, value)| *value);
    variable.window().map_or(value, |window| window.coordinate(value))
}

/// The element that is accessed; beyond the end of a dimension that is shifted, what the tensor is filled with.
pub(super) fn loaded(access: &Access, point: &Point, load: &Load<'_>) -> Scalar {
    let mut coordinates = [0; 4];
    for (coordinate, variable) in coordinates.iter_mut().zip(&access.variables) {
        *coordinate = index(variable, point);
    }
    let coordinates = &coordinates[..access.variables.len()];
    let mut extents = coordinates.iter().zip(access.tensor.dimensions());
    match extents.all(|(coordinate, extent)| (0..*extent).contains(coordinate)) {
        true => load(&access.tensor, coordinates),
        false => access.tensor.fill(),
    }
}

fn evaluate(
    expression: &Expression,
    assignment: &Assignment,
    point: &mut Point,
    load: &Load<'_>,
) -> Result<Scalar, String> {
    let mut value = |operand: &Expression| evaluate(operand, assignment, point, load);
    Ok(match expression {
        Expression::Literal(Literal::Typed(scalar), _) => *scalar,
        Expression::Literal(Literal::Integer(value), _) => Scalar::I64(*value),
        Expression::Literal(Literal::Real(value), _) => Scalar::F64(*value),
        Expression::Index(variable) => Scalar::I64(index(variable, point)),
        Expression::Access(access) => loaded(access, point, load),
        Expression::Test(test, access) => {
            let element = value(&Expression::Access(access.clone()))?;
            Scalar::I64((is_fill(element, access.tensor.fill()) == (*test == Test::IsFill)).into())
        }
        Expression::Negate(operand) => negate(value(operand)?),
        Expression::Binary(operator, left, right) => {
            let left = value(left)?;
            binary(*operator, left, value(right)?).map_err(|error| error.to_string())?
        }
        Expression::Select(operands, _) => {
            let [condition, then, otherwise] = [&operands[0], &operands[1], &operands[2]].map(value);
            let (condition, then, otherwise) = (condition?, then?, otherwise?);
            if is_zero(condition) { otherwise } else { then }
        }
        Expression::Call(function, arguments, _) => {
            let arguments: Vec<Scalar> = arguments.iter().map(value).collect::<Result<_, _>>()?;
            call(*function, &arguments).map_err(|error| error.to_string())?
        }
        Expression::Cast(element, operand, _) => cast(value(operand)?, *element),
        Expression::Reduce(reduction, variable, operand) => {
            let mut total = None;
            point.push((variable.clone(), 0));
            for number in 0..assignment.extents()[variable] {
                if let Some(last) = point.last_mut() {
                    last.1 = number;
                }
                let next = evaluate(operand, assignment, point, load)?;
                let identity = reduction.identity(next.element_type()).filter(|_| reduction.starts_with_identity());
                total = Some(total.or(identity).map_or(next, |total| reduce(*reduction, total, next)));
            }
            point.pop();
            let identity = reduction.identity(assignment.element());
            total.or(identity).ok_or_else(|| "a reduction over nothing has no value".to_owned())?
        }
    })
}
