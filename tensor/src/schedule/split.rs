//! A loop in blocks of a given length.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Relation, Statement, StatementNode};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    outer: &IndexVariable,
    inner: &IndexVariable,
    factor: i64,
) -> Result<Statement, Reason> {
    select::find_plain(statement, variable)?;
    select::check_new(statement, [outer.name(), inner.name()])?;
    select::check_positive("factor", factor)?;
    let extent = statement.extents[variable];
    let relation = Relation::Split { parent: variable.clone(), outer: outer.clone(), inner: inner.clone(), factor };
    // A block longer than the loop has no more iterations than the loop.
    Ok(in_two(statement, relation, [blocks(extent, factor), factor.min(extent)]))
}

/// How many blocks of `length` cover `extent`.
pub(super) fn blocks(extent: i64, length: i64) -> i64 {
    extent / length + i64::from(extent % length > 0)
}

/// Two loops of these extents in place of one: over the children of a relation in place of its parent.
pub(super) fn in_two(statement: &Statement, relation: Relation, extents: [i64; 2]) -> Statement {
    let mut changed = statement.clone();
    let children: Vec<IndexVariable> = relation.children().into_iter().cloned().collect();
    changed.extents.extend(children.iter().cloned().zip(extents));
    changed.body = changed.body.replace(relation.parents()[0], &mut |_, body| {
        children.iter().rev().fold(body, |body, child| StatementNode::Forall(Loop::new(child.clone()), Box::new(body)))
    });
    changed.relations.push(relation);
    changed
}
