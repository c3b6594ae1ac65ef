//! The rules of index notation, except for those of types.

use std::collections::BTreeMap;

use super::error::{NotationError, NotationErrorKind as Kind};
use super::expression::{Access, Expression};
use super::variable::Window;
use super::variable::{IndexVariable, TensorVariable, is_name};

/// The extent of each variable, if every access fits its tensor and no variable has two extents.
pub(super) fn extents(left: &Access, right: &Expression) -> Result<BTreeMap<IndexVariable, i64>, NotationError> {
    let mut accesses = vec![left];
    accesses.extend(right.accesses());
    let mut tensors = BTreeMap::<&str, &TensorVariable>::new();
    let (mut found, mut shifted) = (BTreeMap::<IndexVariable, (i64, &Access)>::new(), Vec::new());
    for access in accesses {
        let tensor = &access.tensor;
        names(access)?;
        if **tensors.entry(tensor.name()).or_insert(tensor) != *tensor {
            return Err(Kind::TwoTensors(tensor.name().into()).at(access.place));
        }
        if access.variables.len() != tensor.order() {
            let (order, found) = (tensor.order(), access.variables.len());
            return Err(Kind::WrongOrder { tensor: tensor.name().into(), order, found }.at(access.place));
        }
        if let Err(error) = tensor.format().check_rank(tensor.order()) {
            return Err(Kind::Format { tensor: tensor.name().into(), error }.at(access.place));
        }
        for (dimension, (variable, &extent)) in access.variables.iter().zip(tensor.dimensions()).enumerate() {
            if extent < 0 {
                return Err(Kind::NegativeExtent { tensor: tensor.name().into(), dimension, extent }.at(access.place));
            }
            let (variable, extent) = match variable.window() {
                Some(window) => match of_part(window, extent) {
                    // Shifts do not say how many values a variable has, unless nothing else does.
                    Some(None) => {
                        shifted.push((window.of.clone(), extent));
                        continue;
                    }
                    Some(Some(part)) => (variable.base(), part),
                    None => return Err(Kind::Window { access: access.to_string(), extent }.at(variable.place)),
                },
                None => (variable, extent),
            };
            let &mut (first, first_access) = found.entry(variable.clone()).or_insert((extent, access));
            if first != extent {
                return Err(Kind::TwoExtents {
                    variable: variable.clone(),
                    first,
                    first_access: first_access.to_string(),
                    second: extent,
                    second_access: access.to_string(),
                }
                .at(variable.place));
            }
        }
    }
    for (variable, extent) in shifted {
        found.entry(variable).or_insert((extent, left));
    }
    for variable in found.keys() {
        if tensors.contains_key(variable.name()) {
            return Err(Kind::TensorAndVariable(variable.name().into()).at(variable.place));
        }
    }
    let extents = found.into_iter().map(|(variable, (extent, _))| (variable, extent)).collect();
    values_have_extents(right, &extents)?;
    Ok(extents)
}

/// How many values a part of a dimension gives its variable, or none if it is a shift; nothing if the dimension has no
/// such part.
fn of_part(window: &Window, extent: i64) -> Option<Option<i64>> {
    let Window { of, start, step, end, .. } = window;
    let fits = end.is_none_or(|end| (0..=end).contains(start) && end <= extent);
    (fits && *step >= 1 && of.window().is_none()).then(|| window.extent())
}

fn names(access: &Access) -> Result<(), NotationError> {
    let tensor = (access.tensor.name(), access.place);
    let variables = access.variables.iter().map(|variable| (variable.base().name(), variable.place));
    match std::iter::once(tensor).chain(variables).find(|(name, _)| !is_name(name)) {
        Some((name, place)) => Err(Kind::NoName(name.into()).at(place)),
        None => Ok(()),
    }
}

/// Variables that are values, or reduced over, have the extent of the dimension that they index elsewhere.
fn values_have_extents(right: &Expression, extents: &BTreeMap<IndexVariable, i64>) -> Result<(), NotationError> {
    let used = match right {
        Expression::Index(variable) => Some((variable, variable.place)),
        Expression::Reduce(_, variable, operand) => Some((variable, variable.place.join(operand.place()))),
        _ => None,
    };
    if let Some((variable, place)) = used
        && !extents.contains_key(variable)
    {
        return Err(Kind::UnknownVariable(variable.name().into()).at(place));
    }
    right.operands().into_iter().try_for_each(|operand| values_have_extents(operand, extents))
}

/// The result is assigned whole, and read at most where it is written.
pub(super) fn result(left: &Access, right: &Expression) -> Result<(), NotationError> {
    if left.variables.iter().any(|variable| variable.window().is_some()) {
        return Err(Kind::WindowOnLeft(left.to_string()).at(left.place));
    }
    for (position, variable) in left.variables.iter().enumerate() {
        if left.variables[..position].contains(variable) {
            let (variable, place) = (variable.clone(), variable.place);
            return Err(Kind::RepeatedOnLeft { variable, access: left.to_string() }.at(place));
        }
    }
    match right.accesses().into_iter().find(|access| access.tensor == left.tensor && access.variables != left.variables)
    {
        Some(read) => Err(Kind::ResultRead { read: read.to_string(), written: left.to_string() }.at(read.place)),
        None => Ok(()),
    }
}

/// No reduction's variable is used around the reduction: which of the two is meant would be hard to see.
pub(super) fn reductions(left: &Access, right: &Expression) -> Result<(), NotationError> {
    bound_once(right, &mut left.variables.clone())
}

fn bound_once(expression: &Expression, outside: &mut Vec<IndexVariable>) -> Result<(), NotationError> {
    if let Expression::Reduce(_, variable, operand) = expression {
        if outside.contains(variable) {
            return Err(Kind::BoundTwice(variable.clone()).at(variable.place.join(operand.place())));
        }
        outside.push(variable.clone());
        bound_once(operand, outside)?;
        outside.pop();
        return Ok(());
    }
    expression.operands().into_iter().try_for_each(|operand| bound_once(operand, outside))
}
