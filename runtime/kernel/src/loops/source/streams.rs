//! Loops that read some buffers along, and others at places that they find there: along the entries of a sparse row,
//! and a vector at their coordinates.
//!
//! Processors fetch in advance what is read along, but not far enough where such loops are short: each has a few
//! entries, and ends with a branch that is guessed wrong now and then.

use super::analysis::{any_expression, any_statement};
use crate::loops::{Buffer, Expression, Statement, Variable};

/// The buffers that a loop over `variable` reads along, if it reads or stores others at places that are found there,
/// and has neither loops inside nor an early end. Otherwise there are none.
pub(super) fn streams<'a>(variable: &Variable, body: &'a Statement) -> Vec<&'a Buffer> {
    let is_other = |inner: &Statement| {
        matches!(inner, Statement::For { .. } | Statement::While { .. } | Statement::Break | Statement::Allocate { .. })
    };
    let mut streams = Vec::new();
    if any_statement(body, &is_other) {
        return streams;
    }
    let mut found = Vec::new();
    named_there(variable, body, &mut found);
    let is_found = |index: &Expression| reads_along(variable, index) || found.iter().any(|name| uses(index, name));
    let at_found = |value: &Expression| match value {
        Expression::Load { indices, .. } => indices.iter().any(is_found),
        _ => false,
    };
    let stored_at_found = |inner: &Statement| match inner {
        Statement::Store { indices, .. } => indices.iter().any(is_found),
        _ => false,
    };
    if any_expression(body, &at_found) || any_statement(body, &stored_at_found) {
        collect(variable, body, &mut streams);
    }
    streams
}

/// The variables whose values are found by reading along.
fn named_there<'a>(along: &Variable, statement: &'a Statement, found: &mut Vec<&'a Variable>) {
    if let Statement::Let { variable, value, .. } = statement
        && (reads_along(along, value) || found.iter().any(|name| uses(value, name)))
    {
        found.push(variable);
    }
    statement.for_each_child(&mut |inner| named_there(along, inner, found));
}

fn collect<'a>(along: &Variable, statement: &'a Statement, streams: &mut Vec<&'a Buffer>) {
    fn within<'a>(along: &Variable, value: &'a Expression, streams: &mut Vec<&'a Buffer>) {
        if let Some(buffer) = read_along(along, value).filter(|buffer| !streams.contains(buffer)) {
            streams.push(buffer);
        }
        value.for_each_operand(|operand| within(along, operand, streams));
    }
    statement.for_each_expression(&mut |value| within(along, value, streams));
    statement.for_each_child(&mut |inner| collect(along, inner, streams));
}

/// The buffer of which `value` is the element at `along`.
fn read_along<'a>(along: &Variable, value: &'a Expression) -> Option<&'a Buffer> {
    match value {
        Expression::Load { buffer, indices } => match &indices[..] {
            [Expression::Variable(index)] if index == along => Some(buffer),
            _ => None,
        },
        _ => None,
    }
}

fn reads_along(along: &Variable, value: &Expression) -> bool {
    let mut found = read_along(along, value).is_some();
    value.for_each_operand(|operand| found |= reads_along(along, operand));
    found
}

fn uses(value: &Expression, name: &Variable) -> bool {
    let mut found = matches!(value, Expression::Variable(variable) if variable == name);
    value.for_each_operand(|operand| found |= uses(operand, name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::ElementType::{F64, I32, I64};
    use crate::loops::{Access, Reduction};

    fn names(body: Statement) -> Vec<String> {
        streams(&Variable::new("p", I64), &body).iter().map(|buffer| buffer.name.to_string()).collect()
    }

    fn buffers() -> [Buffer; 3] {
        [("crd", I32), ("values", F64), ("x", F64)].map(|(name, element)| Buffer::new(name, element, 1, Access::Read))
    }

    /// `let j = crd[p]; sum += values[p] * x[index]`
    fn product(index: Expression) -> Statement {
        let ([crd, values, x], p) = (buffers(), Variable::new("p", I64));
        let j = Statement::bind(&Variable::new("j", I64), crd.load([p.value()]).cast(I64));
        let value = values.load([p.value()]) * x.load([index]);
        let sum = Statement::Set { variable: Variable::new("sum", F64), value, reduction: Some(Reduction::Sum) };
        Statement::Sequence(vec![j, sum])
    }

    #[test]
    fn coordinates_and_values_of_a_gathering_loop_are_streams() {
        assert_eq!(names(product(Variable::new("j", I64).value())), ["crd", "values"]);
        assert_eq!(names(product(Variable::new("j", I64).value() + Expression::from(1))), ["crd", "values"]);
        let ([crd, ..], p) = (buffers(), Variable::new("p", I64));
        assert_eq!(names(product(crd.load([p.value()]).cast(I64))), ["crd", "values"]);
    }

    #[test]
    fn a_loop_that_reads_everything_along_or_nothing_has_none() {
        assert!(names(product(Variable::new("p", I64).value())).is_empty());
        assert!(names(product(Variable::new("k", I64).value())).is_empty());
    }

    #[test]
    fn a_loop_with_a_loop_inside_or_an_early_end_has_none() {
        let inside = |inner: Statement| Statement::Sequence(vec![product(Variable::new("j", I64).value()), inner]);
        assert!(names(inside(Statement::Break)).is_empty());
        let spin = Statement::While { condition: Expression::Bool(true), body: Box::new(Statement::nothing()) };
        assert!(names(inside(spin)).is_empty());
        assert_eq!(names(inside(Statement::Continue)), ["crd", "values"]);
    }
}
