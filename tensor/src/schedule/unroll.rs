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
    Ok(select::with_loop(statement, variable, |changed| changed.unroll = factor))
}
