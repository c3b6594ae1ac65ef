//! Where intervals are exact.

#[allow(unused_imports)] // For the documentation.
use crate::bounds::Bounds;
use crate::concrete::{Relation, Statement};
use crate::notation::IndexVariable;

/// Whether `variable` takes all values of its [interval](Bounds::interval) when `fixed` have values, whatever other variables do.
pub fn is_exact(statement: &Statement, variable: &IndexVariable, fixed: &[IndexVariable]) -> bool {
    let dependencies = statement.dependencies(variable);
    let known = dependencies.iter().filter(|loops| fixed.contains(loops)).count();
    if known == 0 || known == dependencies.len() {
        return true;
    }
    match statement.recovery(variable) {
        Some(Relation::Split { outer, inner, .. } | Relation::Divide { outer, inner, .. }) => {
            let unknown = |other: &IndexVariable| !statement.dependencies(other).iter().any(|on| fixed.contains(on));
            let single = statement.dependencies(outer).iter().all(|on| fixed.contains(on));
            is_exact(statement, outer, fixed) && is_exact(statement, inner, fixed) && (single || unknown(inner))
        }
        Some(Relation::Bound { bounded, .. }) => is_exact(statement, bounded, fixed),
        _ => false,
    }
}
