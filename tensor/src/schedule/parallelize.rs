//! Loops of a leaf that run on several threads or lanes.

use super::command::{Command, Races};
use super::error::{Reason, ScheduleError};
use super::{select, validate};
use crate::concrete::{Execution, Statement, Unit};
use crate::notation::IndexVariable;

impl Statement {
    /// Runs the iterations of the loop over `variable` at the same time on `unit`s of one processor.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, a loop around it is parallel already (lanes may be inside of threads), or
    /// iterations would write the same elements and `races` forbids it.
    pub fn parallelize(
        &self,
        variable: impl Into<IndexVariable>,
        unit: Unit,
        races: Races,
    ) -> Result<Self, ScheduleError> {
        Command::Parallelize { variable: variable.into(), unit, races }.apply(self)
    }
}

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    unit: Unit,
    races: Races,
) -> Result<Statement, Reason> {
    let (outer, body) = select::find(statement, variable)?;
    if outer.execution != Execution::Serial || !outer.communicate.is_empty() || outer.substitution.is_some() {
        return Err(Reason::Tagged { variable: variable.clone(), tag: select::describe(outer) });
    }
    if races == Races::Forbidden {
        validate::check_races(statement, variable, body)?;
    }
    Ok(select::with_loop(statement, variable, |changed| changed.execution = Execution::Parallel(unit)))
}
