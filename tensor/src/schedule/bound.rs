//! A promise about the extent of a loop.

use super::error::Reason;
use super::{pos, select};
use crate::concrete::{Loop, Relation, Statement, StatementNode};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    bounded: &IndexVariable,
    extent: i64,
) -> Result<Statement, Reason> {
    select::find_plain(statement, variable)?;
    select::check_new(statement, [bounded.name()])?;
    if let Some(access) = pos::is_part(statement, variable) {
        return Err(Reason::BoundPositions { variable: variable.clone(), access });
    }
    if statement.extents[variable] != extent {
        let (variable, promised) = (variable.clone(), extent);
        return Err(Reason::WrongBound { extent: statement.extents[&variable], variable, promised });
    }
    let mut changed = statement.clone();
    changed.extents.insert(bounded.clone(), extent);
    changed.relations.push(Relation::Bound { parent: variable.clone(), bounded: bounded.clone() });
    changed.body = changed
        .body
        .replace(variable, &mut |_, body| StatementNode::Forall(Loop::new(bounded.clone()), Box::new(body)));
    Ok(changed)
}
