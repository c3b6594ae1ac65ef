//! The order of loops.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::{Loop, Statement};
use crate::notation::IndexVariable;

impl Statement {
    /// Puts loops that are directly inside of one another into the given order, the first outermost. Loops keep what was decided
    /// about them.
    ///
    /// # Errors
    ///
    /// If other loops or workspaces are between them, or loops of one launch would be separated.
    pub fn reorder<V: Into<IndexVariable>>(&self, order: impl IntoIterator<Item = V>) -> Result<Self, ScheduleError> {
        Command::Reorder { order: order.into_iter().map(Into::into).collect() }.apply(self)
    }
}

pub(super) fn apply(statement: &Statement, order: &[IndexVariable]) -> Result<Statement, Reason> {
    let (nest, innermost) = select::nest(statement, order)?;
    let ordered: Vec<Loop> = order
        .iter()
        .filter_map(|variable| nest.iter().find(|outer| outer.variable == *variable))
        .map(|outer| (*outer).clone())
        .collect();
    let reordered = innermost.clone().in_loops(ordered.into_iter());
    let outermost = nest[0].variable.clone();
    let mut changed = statement.clone();
    changed.body = changed.body.replace(&outermost, &mut |_, _| reordered.clone());
    Ok(changed)
}
