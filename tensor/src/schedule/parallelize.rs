//! Loops of a leaf that run on several threads or lanes.

use super::error::Reason;
use super::{select, validate};
use crate::concrete::{Execution, Statement, Unit};
use crate::notation::IndexVariable;

/// Whether iterations that run at the same time may combine values into one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Races {
    /// They may not: each element belongs to one iteration.
    Forbidden,
    /// They may: values are combined by the operator of the reduction, in any order.
    Reduced,
}

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    unit: Unit,
    races: Races,
) -> Result<Statement, Reason> {
    let (outer, body) = select::find(statement, variable)?;
    if let Execution::Parallel(before) = outer.execution {
        return Err(Reason::ParallelTwice { variable: variable.clone(), unit: before });
    }
    if outer.execution != Execution::Serial || !outer.communicate.is_empty() || outer.substitution.is_some() {
        return Err(Reason::Tagged { variable: variable.clone(), tag: select::describe(outer) });
    }
    if races == Races::Forbidden {
        validate::check_races(statement, variable, body)?;
    }
    Ok(select::with_loop(statement, variable, |changed| changed.execution = Execution::Parallel(unit)))
}
