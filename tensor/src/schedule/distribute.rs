//! Loops whose iterations run on processors of their own.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::{divide, reorder, select};
use crate::concrete::{Execution, Statement};
use crate::notation::IndexVariable;

impl Statement {
    /// Tiles the loops over `targets` onto a grid of processors: each is divided into as many blocks as the grid has processors in its
    /// dimension, the loops over blocks (`outer`) are put outside of those within them (`inner`), and become one launch.
    ///
    /// Distributing loops over the result's dimensions brings operands to results; distributing a reduction makes results be reduced
    /// across processors. Distributing `inner` loops again describes a hierarchy, such as the processors within each node.
    ///
    /// # Errors
    ///
    /// If lists differ in length, the loops are not directly inside of one another, there is something else than serial and
    /// distributed loops around them, or one of them can't be divided.
    pub fn distribute<T: Into<IndexVariable>, O: Into<IndexVariable>, I: Into<IndexVariable>>(
        &self,
        targets: impl IntoIterator<Item = T>,
        outer: impl IntoIterator<Item = O>,
        inner: impl IntoIterator<Item = I>,
        grid: &[i64],
    ) -> Result<Self, ScheduleError> {
        let targets = targets.into_iter().map(Into::into).collect();
        let outer = outer.into_iter().map(Into::into).collect();
        let inner = inner.into_iter().map(Into::into).collect();
        Command::Distribute { targets, outer, inner, grid: grid.to_vec() }.apply(self)
    }

    /// Makes loops that are directly inside of one another one launch, as they are.
    ///
    /// # Errors
    ///
    /// If something else is between them, something was decided about one of them already, or there is something else than serial and
    /// distributed loops around them.
    pub fn distribute_loops<V: Into<IndexVariable>>(
        &self,
        variables: impl IntoIterator<Item = V>,
    ) -> Result<Self, ScheduleError> {
        Command::DistributeLoops { variables: variables.into_iter().map(Into::into).collect() }.apply(self)
    }
}

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
