//! The order in which each processor runs a loop, rotated by its place in the grid.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Relation, Statement, StatementNode};
use crate::notation::IndexVariable;

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
    changed.body =
        changed.body.replace(target, &mut |_, body| StatementNode::Forall(Loop::new(result.clone()), Box::new(body)));
    Ok(changed)
}
