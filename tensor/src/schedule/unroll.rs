//! Several iterations in a row, in machine code.

use super::error::Reason;
use super::select;
use crate::concrete::{Execution, Statement};
use crate::notation::IndexVariable;

pub(super) fn apply(statement: &Statement, variable: &IndexVariable, factor: u32) -> Result<Statement, Reason> {
    let (outer, _) = select::find(statement, variable)?;
    let is_parallel = matches!(outer.execution, Execution::Parallel(_)) && outer.unroll == 1;
    if !outer.is_plain() && !is_parallel {
        return Err(Reason::Tagged { variable: variable.clone(), tag: select::describe(outer) });
    }
    select::check_positive("factor", factor.into())?;
    // A loop has no more iterations in a row than values.
    let values = statement.extents.get(variable).copied().unwrap_or(i64::MAX).max(1);
    let factor = factor.min(u32::try_from(values).unwrap_or(u32::MAX));
    Ok(select::with_loop(statement, variable, |changed| changed.unroll = factor))
}
