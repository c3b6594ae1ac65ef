//! A loop in blocks of a given length.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Node, Relation, Statement};
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
    Ok(in_two(statement, variable, relation, (outer, blocks(extent, factor)), (inner, factor.min(extent))))
}

/// How many blocks of `length` cover `extent`.
pub(super) fn blocks(extent: i64, length: i64) -> i64 {
    extent / length + i64::from(extent % length > 0)
}

/// Two loops in place of one.
pub(super) fn in_two(
    statement: &Statement,
    variable: &IndexVariable,
    relation: Relation,
    (outer, outer_extent): (&IndexVariable, i64),
    (inner, inner_extent): (&IndexVariable, i64),
) -> Statement {
    let mut changed = statement.clone();
    changed.extents.insert(outer.clone(), outer_extent);
    changed.extents.insert(inner.clone(), inner_extent);
    changed.relations.push(relation);
    changed.body = changed.body.replace(variable, &mut |_, body| {
        let inner = Node::Forall(Loop::new(inner.clone()), Box::new(body));
        Node::Forall(Loop::new(outer.clone()), Box::new(inner))
    });
    changed
}
