//! Several iterations in a row, in machine code.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::{Execution, Statement};
use crate::notation::IndexVariable;

impl Statement {
    /// Writes `factor` iterations of the loop over `variable` one after the other in machine code. What remains runs one by one.
    ///
    /// If all that the loop does is a loop that reduces into an element of its own, the iterations run at once, in one such loop.
    ///
    /// # Errors
    ///
    /// If there is no such loop, it is distributed or communicates, or `factor` is less than 1.
    pub fn unroll(&self, variable: impl Into<IndexVariable>, factor: u32) -> Result<Self, ScheduleError> {
        Command::Unroll { variable: variable.into(), factor }.apply(self)
    }
}

pub(super) fn apply(statement: &Statement, variable: &IndexVariable, factor: u32) -> Result<Statement, Reason> {
    let (outer, _) = select::find(statement, variable)?;
    let is_parallel = matches!(outer.execution, Execution::Parallel(_)) && outer.unroll == 1;
    if !outer.is_plain() && !is_parallel {
        return Err(Reason::Tagged { variable: variable.clone(), tag: select::describe(outer) });
    }
    select::check_positive("factor", factor.into())?;
    Ok(select::with_loop(statement, variable, |changed| changed.unroll = factor))
}
