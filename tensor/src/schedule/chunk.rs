//! Threads that take some iterations at a time.

use super::error::Reason;
use super::select;
use crate::concrete::{Execution, Statement, Unit};
use crate::notation::IndexVariable;

pub(super) fn apply(statement: &Statement, variable: &IndexVariable, length: i64) -> Result<Statement, Reason> {
    let (outer, _) = select::find(statement, variable)?;
    if outer.execution != Execution::Parallel(Unit::Threads) {
        return Err(Reason::NotOnThreads { variable: variable.clone() });
    }
    if statement.positions().any(|positions| statement.descends(variable, &positions.position)) {
        return Err(Reason::ChunksOfPositions { variable: variable.clone() });
    }
    select::check_positive("length", length)?;
    Ok(select::with_loop(statement, variable, |changed| changed.chunk = Some(length)))
}
