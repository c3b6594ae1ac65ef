//! Two loops as one.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Relation, Statement, StatementNode};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    outer: &IndexVariable,
    inner: &IndexVariable,
    fused: &IndexVariable,
) -> Result<Statement, Reason> {
    let (_, body) = select::find_plain(statement, outer)?;
    select::find_plain(statement, inner)?;
    if !matches!(body, StatementNode::Forall(directly, _) if directly.variable == *inner) {
        return Err(Reason::NotDirectlyInside { outer: outer.clone(), inner: inner.clone() });
    }
    select::check_new(statement, [fused.name()])?;
    let extent = statement.extents[inner];
    let Some(pairs) = statement.extents[outer].checked_mul(extent) else {
        return Err(Reason::TooLarge { outer: outer.clone(), inner: inner.clone() });
    };
    let mut changed = statement.clone();
    changed.extents.insert(fused.clone(), pairs);
    changed.relations.push(Relation::Fuse { outer: outer.clone(), inner: inner.clone(), fused: fused.clone(), extent });
    changed.body = changed.body.replace(outer, &mut |_, body| match body {
        StatementNode::Forall(_, body) => StatementNode::Forall(Loop::new(fused.clone()), body),
        other => other,
    });
    Ok(changed)
}
