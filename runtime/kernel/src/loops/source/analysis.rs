//! Properties of statements that the printers must know.

use super::expression::may_fail;
use crate::element::ElementType;
use crate::element::Scalar::I64;
use crate::loops::{Expression, Reduction, Statement, Variable};

/// Whether `test` holds for `statement` or one within it.
pub(super) fn any_statement(statement: &Statement, test: &impl Fn(&Statement) -> bool) -> bool {
    let mut found = test(statement);
    statement.for_each_child(&mut |inner| found |= any_statement(inner, test));
    found
}

/// Whether `test` holds for an expression within `statement`.
pub(super) fn any_expression(statement: &Statement, test: &impl Fn(&Expression) -> bool) -> bool {
    fn within(value: &Expression, test: &impl Fn(&Expression) -> bool) -> bool {
        let mut found = test(value);
        value.for_each_operand(|operand| found |= within(operand, test));
        found
    }
    any_statement(statement, &|inner| {
        let mut found = false;
        inner.for_each_expression(&mut |value| found |= within(value, test));
        found
    })
}

/// How many elements there are, if all bounds are constants and it is not unreasonable.
pub(super) fn constant_count(bounds: &[(Expression, Expression)]) -> Option<i64> {
    bounds.iter().try_fold(1_i64, |count, bound| match bound {
        (Expression::Constant(I64(low)), Expression::Constant(I64(high))) => {
            count.checked_mul(high.checked_sub(*low)?.max(0)).filter(|count| *count < 1 << 40)
        }
        _ => None,
    })
}

/// The scalars that `body` reduces into but does not bind, in the order of their first reduction.
pub(super) fn outer_reductions(body: &Statement) -> Vec<(Variable, Reduction)> {
    fn collect(statement: &Statement, found: &mut Vec<(Variable, Reduction)>) {
        if let Statement::Set { variable, reduction: Some(reduction), .. } = statement
            && !found.iter().any(|(known, _)| known == variable)
        {
            found.push((variable.clone(), *reduction));
        }
        statement.for_each_child(&mut |inner| collect(inner, found));
    }
    let mut found = Vec::new();
    collect(body, &mut found);
    body.for_each_bound(&mut |name| found.retain(|(variable, _)| variable.name != *name));
    found
}

/// Whether `omp simd` may be said of a loop with this body: it must not be left early, what it
/// allocates must fit into `stack` bytes, and reductions must be C's own, of its own types.
pub(super) fn can_vectorise(body: &Statement, stack: i64) -> bool {
    let stands_in_the_way = |statement: &Statement| {
        let mut fails = match statement {
            Statement::Allocate { bounds, .. } => constant_count(bounds).is_none_or(|count| count * 16 > stack),
            Statement::Store { atomic, .. } => *atomic,
            Statement::For { kind, .. } => kind.is_of_team(),
            _ => false,
        };
        statement.for_each_expression(&mut |value| fails |= may_fail(value));
        fails
    };
    !any_statement(body, &stands_in_the_way)
        && outer_reductions(body).iter().all(|(variable, reduction)| {
            !variable.element.is_complex()
                && variable.element != ElementType::Bool
                && !matches!(reduction, Reduction::Custom(_))
        })
}
