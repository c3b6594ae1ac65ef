//! Loops whose iterations run on processors of their own.

use super::error::Reason;
use super::{divide, reorder, select};
use crate::concrete::{Execution, Statement};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    targets: &[IndexVariable],
    outer: &[IndexVariable],
    inner: &[IndexVariable],
    grid: &[i64],
) -> Result<Statement, Reason> {
    select::nest(statement, targets)?;
    let lengths =
        [("outer variables", outer.len()), ("inner variables", inner.len()), ("extents of the grid", grid.len())];
    for (other, found) in lengths {
        if found != targets.len() {
            return Err(Reason::Lengths { what: "targets", expected: targets.len(), other, found });
        }
    }
    let mut changed = statement.clone();
    for (target, ((outer, inner), pieces)) in targets.iter().zip(outer.iter().zip(inner).zip(grid)) {
        changed = divide::apply(&changed, target, outer, inner, *pieces)?;
    }
    let order: Vec<IndexVariable> = outer.iter().chain(inner).cloned().collect();
    apply_to_loops(&reorder::apply(&changed, &order)?, outer)
}

pub(super) fn apply_to_loops(statement: &Statement, variables: &[IndexVariable]) -> Result<Statement, Reason> {
    select::nest(statement, variables)?;
    for variable in variables {
        select::find_plain(statement, variable)?;
    }
    let level = statement.body.loops().iter().filter_map(|outer| outer.level()).max().map_or(0, |level| level + 1);
    Ok(variables.iter().fold(statement.clone(), |statement, variable| {
        select::with_loop(&statement, variable, |changed| changed.execution = Execution::Distributed { level })
    }))
}
