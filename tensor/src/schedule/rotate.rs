//! The order in which each processor runs a loop, rotated by its place in the grid.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::{Loop, Node, Relation, Statement};
use crate::notation::IndexVariable;

impl Statement {
    /// Lets each iteration of the loops over `by`, which are around the loop over `target`, begin `target` at the sum of their values;
    /// `result` counts from there, and starts over from zero at the end. Processors of a launch that would need the same data at the same
    /// time then need different data, which a neighbour had before (Cannon, 1969).
    ///
    /// # Errors
    ///
    /// If there are no such loops, the loops over `by` are not around, something was decided about `target` already, it has no values, or the name
    /// is taken.
    pub fn rotate<V: Into<IndexVariable>>(
        &self,
        target: impl Into<IndexVariable>,
        by: impl IntoIterator<Item = V>,
        result: impl Into<IndexVariable>,
    ) -> Result<Self, ScheduleError> {
        let by = by.into_iter().map(Into::into).collect();
        Command::Rotate { target: target.into(), by, result: result.into() }.apply(self)
    }
}

pub(super) fn apply(
    statement: &Statement,
    target: &IndexVariable,
    by: &[IndexVariable],
    result: &IndexVariable,
) -> Result<Statement, Reason> {
    select::find_plain(statement, target)?;
    select::check_list("variables to rotate by", by)?;
    for variable in by {
        let (_, body) = select::find(statement, variable)?;
        if body.find(target).is_none() {
            return Err(Reason::RotatedByInner { by: variable.clone(), target: target.clone() });
        }
    }
    select::check_new(statement, [result.name()])?;
    let extent = statement.extents[target];
    if extent == 0 {
        return Err(Reason::NoValues { variable: target.clone() });
    }
    let mut changed = statement.clone();
    changed.extents.insert(result.clone(), extent);
    changed.relations.push(Relation::Rotate {
        target: target.clone(),
        by: by.to_vec(),
        result: result.clone(),
        extent,
    });
    changed.body = changed.body.replace(target, &mut |_, body| Node::Forall(Loop::new(result.clone()), Box::new(body)));
    Ok(changed)
}
