//! Tests of whether intervals are exact.

#[allow(unused_imports)] // For the documentation.
use crate::bounds::Bounds;
use crate::concrete::{Relation, Statement};
use crate::notation::IndexVariable;

/// Whether `variable` takes all values of its [interval](Bounds::interval) when `fixed` have values, whatever other
/// variables do.
pub fn is_exact(statement: &Statement, variable: &IndexVariable, fixed: &[IndexVariable]) -> bool {
    exact(statement, variable, fixed, false)
}

/// Whether it does in each of the [parts](super::RectangleOf::parts) that a part of a fused loop makes of its interval.
pub fn is_exact_in_parts(statement: &Statement, variable: &IndexVariable, fixed: &[IndexVariable]) -> bool {
    exact(statement, variable, fixed, true)
}

fn exact(statement: &Statement, variable: &IndexVariable, fixed: &[IndexVariable], in_parts: bool) -> bool {
    let is_exact = |variable| exact(statement, variable, fixed, in_parts);
    let dependencies = statement.dependencies(variable);
    let known = dependencies.iter().filter(|loops| fixed.contains(loops)).count();
    let is_stored = statement
        .positions()
        .any(|positions| dependencies.iter().any(|loops| statement.descends(loops, &positions.position)));
    if known == 0 || known == dependencies.len() && !is_stored {
        return true;
    }
    match statement.recovery(variable) {
        Some(
            Relation::Split { outer, inner, .. }
            | Relation::SplitAt { outer, inner, .. }
            | Relation::Divide { outer, inner, .. },
        ) => {
            let unknown = |other: &IndexVariable| !statement.dependencies(other).iter().any(|on| fixed.contains(on));
            let single = statement.dependencies(outer).iter().all(|on| fixed.contains(on));
            is_exact(outer) && is_exact(inner) && (single || unknown(inner))
        }
        Some(Relation::Bound { bounded, .. }) => is_exact(bounded),
        Some(Relation::Fuse { fused, .. }) => in_parts && is_exact(fused),
        _ => false,
    }
}
