//! A loop in a given number of blocks.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::{select, split};
use crate::concrete::{Relation, Statement};
use crate::notation::IndexVariable;

impl Statement {
    /// Divides the loop over `variable` into `pieces` blocks of equal length, rounded up: `outer` counts the blocks, and `inner`, directly
    /// inside, the iterations of a block. Blocks at the end may be shorter, or empty.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, names are taken, or `pieces` is less than 1.
    pub fn divide(
        &self,
        variable: impl Into<IndexVariable>,
        outer: impl Into<IndexVariable>,
        inner: impl Into<IndexVariable>,
        pieces: i64,
    ) -> Result<Self, ScheduleError> {
        let (variable, outer, inner) = (variable.into(), outer.into(), inner.into());
        Command::Divide { variable, outer, inner, pieces }.apply(self)
    }
}

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    outer: &IndexVariable,
    inner: &IndexVariable,
    pieces: i64,
) -> Result<Statement, Reason> {
    select::find_plain(statement, variable)?;
    select::check_new(statement, [outer.name(), inner.name()])?;
    select::check_positive("number of pieces", pieces)?;
    let length = split::blocks(statement.extents[variable], pieces);
    let relation =
        Relation::Divide { parent: variable.clone(), outer: outer.clone(), inner: inner.clone(), pieces, length };
    Ok(split::in_two(statement, variable, relation, (outer, pieces), (inner, length)))
}
